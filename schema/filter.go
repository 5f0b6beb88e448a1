package schema

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// The limits of a payload filter.
const (
	MaxFilterLevels = 10 // objects inside one another, the root counted
	MaxFilterLeaves = 64 // fields with operators
	MaxFilterValues = 32 // values in one set
)

// Filter is a compiled payload filter: a pattern that mirrors a delivery's
// body. It is immutable and safe for concurrent use. A nil *Filter is no filter
// and matches every body.
type Filter struct{ root pattern }

// FilterProblem is one thing that is wrong with a filter. Path leads to it from
// the root: keys, and the decimal index inside a list.
type FilterProblem struct {
	Path    []string `json:"path"`
	Message string   `json:"message"`
	Hint    string   `json:"hint,omitempty"`
	onKey   bool     // the key is at fault rather than its value
}

// pattern is an object whose fields must all match.
type pattern struct {
	fields []field // at most MaxFilterLeaves
	leaves int
}

type field struct {
	path   []string // from the root; the last is the field's own key
	ops    *operators
	nested *pattern
}

func (f field) key() string { return f.path[len(f.path)-1] }

// operators are what must hold for one field. A nil set is an absent operator.
type operators struct {
	in, notIn []value
	exists    *bool
}

// CompileFilter compiles a payload filter from JSON. It returns every problem
// of the filter, in the order of the text, and a nil filter when there is one.
// Without text (length 0) there is no filter: nil, nil.
func CompileFilter(rawJSON []byte) (*Filter, []FilterProblem) {
	if len(rawJSON) == 0 {
		return nil, nil
	}
	if wrong := NotJSON(rawJSON); wrong != "" {
		return nil, []FilterProblem{{Message: "the filter " + wrong}}
	}

	r := filterReader{scanner: scanner{text: rawJSON}, whole: string(rawJSON)}
	root := r.value()
	if r.values > maxFilterText {
		message := fmt.Sprintf("the filter has more than %d fields and values", maxFilterText)
		return nil, []FilterProblem{{Message: message}}
	}

	c := &filterCompiler{}
	if root.kind != kindObject {
		c.problem(nil, "a filter is an object that mirrors the body, not "+root.kind.article(), "")
		return nil, c.problems
	}

	f := &Filter{root: c.pattern(&root, nil)}
	if c.leaves > MaxFilterLeaves {
		c.problem(
			nil,
			fmt.Sprintf("the filter has %d leaf fields; at most %d are allowed", c.leaves, MaxFilterLeaves),
			"split it over several automations",
		)
	}

	if len(c.problems) > 0 {
		return nil, c.problems
	}

	return f, nil
}

type filterCompiler struct {
	problems []FilterProblem
	leaves   int
}

func (c *filterCompiler) problem(path []string, message, hint string) {
	c.problems = append(c.problems, FilterProblem{Path: slices.Clone(path), Message: message, Hint: hint})
}

func (c *filterCompiler) problemAtKey(path []string, message, hint string) {
	c.problems = append(
		c.problems,
		FilterProblem{Path: slices.Clone(path), Message: message, Hint: hint, onKey: true},
	)
}

func (c *filterCompiler) pattern(v *value, path []string) (p pattern) {
	seen := make(map[string]bool, len(v.keys))
	for i, key := range v.keys {
		at := append(path[:len(path):len(path)], key)
		if seen[key] {
			c.problemAtKey(
				at,
				fmt.Sprintf("the field %q is here twice", key),
				"put all its operators into one object",
			)
			continue
		}

		seen[key] = true
		if f, ok := c.field(&v.items[i], at); ok {
			p.fields = append(p.fields, f)
			p.leaves++
			if f.nested != nil {
				p.leaves += f.nested.leaves - 1
			}
		}
	}

	return p
}

func (c *filterCompiler) field(v *value, path []string) (field, bool) {
	f := field{path: path}
	switch v.kind {
	case kindArray:
		c.leaves++
		f.ops = &operators{in: c.set(v, path, path[len(path)-1])}
		return f, true
	case kindObject:
	default:
		c.problem(
			path,
			"a field takes a list of allowed values or an object, not "+v.kind.article(),
			"write ["+preview(v.raw)+"]",
		)
		return f, false
	}

	switch operatorKeys(v) {
	case 0:
		if len(v.keys) == 0 {
			c.problem(
				path,
				"an empty object matches nothing in particular",
				`write {"exists": true} to ask only that the field is there`,
			)
			return f, false
		}

		if len(path) >= MaxFilterLevels {
			c.problem(path, fmt.Sprintf("the filter is more than %d levels deep", MaxFilterLevels), "")
			return f, false
		}

		nested := c.pattern(v, path)
		f.nested = &nested

	case len(v.keys):
		c.leaves++
		f.ops = c.operators(v, path)
	default:
		for _, key := range v.keys {
			if !isOperator(key) {
				c.problemAtKey(append(path[:len(path):len(path)], key),
					fmt.Sprintf("%q stands among operators", key),
					"an object holds either operators (in, not_in, exists) or field names, not both")
			}
		}

		return f, false
	}

	return f, true
}

func isOperator(key string) bool { return key == "in" || key == "not_in" || key == "exists" }

func operatorKeys(v *value) (n int) {
	for _, key := range v.keys {
		if isOperator(key) {
			n++
		}
	}
	return n
}

func (c *filterCompiler) operators(v *value, path []string) *operators {
	o := &operators{}
	seen := map[string]bool{}
	for i, key := range v.keys {
		at := append(path[:len(path):len(path)], key)
		if seen[key] {
			c.problemAtKey(at, fmt.Sprintf("the operator %q is here twice", key), "")
			continue
		}

		seen[key] = true
		item := &v.items[i]
		switch {
		case key == "exists":
			if item.kind != kindBool {
				c.problem(at, "exists takes true or false, not "+item.kind.article(), "")
				continue
			}

			yes := item.text == "true"
			o.exists = &yes

		case item.kind != kindArray:
			c.problem(at, key+" takes a list of values, not "+item.kind.article(), "write ["+preview(item.raw)+"]")
		case key == "in":
			o.in = c.set(item, at, key)
		default:
			o.notIn = c.set(item, at, key)
		}
	}

	for i := range o.notIn {
		if slices.ContainsFunc(o.in, func(in value) bool { return in.equal(&o.notIn[i]) }) {
			c.problem(
				append(path[:len(path):len(path)], "not_in", strconv.Itoa(i)),
				preview(
					o.notIn[i].raw,
				)+" is in both in and not_in, so the field can never match by it",
				"take it out of one of them",
			)
		}
	}

	if o.exists != nil && !*o.exists && o.in != nil {
		c.problem(
			append(path[:len(path):len(path)], "exists"),
			"exists: false together with in can never match",
			"take out one of them",
		)
	}

	return o
}

func (c *filterCompiler) set(v *value, path []string, name string) []value {
	if len(v.items) == 0 {
		c.problem(path, "the list of values is empty", `write {"exists": true} to ask only that the field is there`)
	}

	if len(v.items) > MaxFilterValues {
		c.problem(
			path,
			fmt.Sprintf("%s has %d values; at most %d are allowed", name, len(v.items), MaxFilterValues),
			"",
		)
	}

	for i := range v.items {
		if k := v.items[i].kind; k >= kindArray {
			c.problem(
				append(path[:len(path):len(path)], strconv.Itoa(i)),
				"a value is a string, a number, true, false or null, not "+k.article(),
				"list the values themselves: there are no operators but in, not_in and exists",
			)
		}
	}

	return v.items
}

// previewLimit bounds the bytes of a payload that an explanation shows for one
// value.
const previewLimit = 200

func preview[T string | []byte](raw T) string {
	if len(raw) <= previewLimit {
		return string(raw)
	}
	cut := previewLimit
	for cut > 0 && !utf8.RuneStart(raw[cut]) {
		cut--
	}
	return string(raw[:cut]) + "…"
}
