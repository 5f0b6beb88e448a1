package schema

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Explanation says why a filter matches a body, or does not.
type Explanation struct {
	Matched bool `json:"matched"`
	// Reason is set when the filter as a whole decides: there is none, it is
	// empty, or the body is no object.
	Reason string `json:"reason,omitempty"`
	// Leaves has one entry for every operator of every field, in the order of
	// the filter. Unless Reason is set, Matched is true exactly when all passed.
	Leaves []LeafExplanation `json:"leaves"`
}

// LeafExplanation is one operator of one field.
type LeafExplanation struct {
	// Path holds the field's keys in the filter.
	Path []string `json:"path"`
	// Where is the place looked at in the body: keys joined by dots (in quotes
	// where that would be unclear), with the index of the element of an array
	// ("commits[2].author").
	Where    string `json:"where"`
	Operator string `json:"operator"` // in, not_in or exists
	Expected string `json:"expected"` // the operator's value as JSON, at most 200 bytes
	Present  bool   `json:"present"`
	Found    string `json:"found,omitempty"` // the value found as JSON, at most 200 bytes
	Passed   bool   `json:"passed"`
}

// Explain evaluates as Match does and says how. Where a pattern meets an array
// of objects, it explains the first element that matches or, when none does,
// the one that comes closest. Values from the body are cut to 200 bytes.
func (f *Filter) Explain(p Payload) Explanation {
	e := Explanation{Matched: f.Match(p), Leaves: []LeafExplanation{}}
	switch {
	case f == nil:
		e.Reason = "there is no payload filter: every body matches"
	case p.root == nil:
		e.Reason = "the body could not be read"
	case len(f.root.fields) == 0:
		e.Reason = "the filter is empty: every body matches"
	case p.root.kind != kindObject:
		e.Reason = "the body is " + p.root.kind.article() + ", not an object"
		f.root.explain(nil, "", &e.Leaves)
	default:
		f.root.explain(p.root, "", &e.Leaves)
	}
	return e
}

// explain adds the leaves of p as they fare on the object v. Where there is no
// such object, v is nil and every leaf fails.
func (p *pattern) explain(v *value, where string, out *[]LeafExplanation) {
	for i := range p.fields {
		f := &p.fields[i]
		at := where + plainKey(f.key())
		if f.ops != nil {
			f.ops.explain(f.path, v, at, out)
			continue
		}
		var m *value
		if v != nil {
			m = v.member(f.key())
		}
		if m != nil && m.kind == kindArray {
			if i := f.nested.closest(m.items); i >= 0 {
				f.nested.explain(&m.items[i], at+"["+strconv.Itoa(i)+"].", out)
				continue
			}
		}
		if m != nil && m.kind != kindObject {
			m = nil
		}
		f.nested.explain(m, at+".", out)
	}
}

func (o *operators) explain(path []string, parent *value, where string, out *[]LeafExplanation) {
	leaf := LeafExplanation{Path: path, Where: where}
	var v *value
	if parent != nil {
		v = parent.member(path[len(path)-1])
	}
	if v != nil {
		leaf.Present, leaf.Found = true, preview(v.raw)
	}
	add := func(operator, expected string, passed bool) {
		leaf.Operator, leaf.Expected, leaf.Passed = operator, preview(expected), passed && parent != nil
		*out = append(*out, leaf)
	}
	if o.in != nil {
		add("in", setText(o.in), o.passIn(v))
	}
	if o.notIn != nil {
		add("not_in", setText(o.notIn), o.passNotIn(v))
	}
	if o.exists != nil {
		add("exists", strconv.FormatBool(*o.exists), o.passExists(v))
	}
}

// closest returns the place of the first object that passes the most leaves, or
// -1 when there is no object.
func (p *pattern) closest(items []value) int {
	best, most := -1, -1
	for i := range items {
		if items[i].kind == kindObject {
			if n := p.passed(&items[i]); n > most {
				best, most = i, n
			}
		}
	}
	return best
}

// passed counts the leaf fields of p that hold on the object v.
func (p *pattern) passed(v *value) (n int) {
	for i := range p.fields {
		f := &p.fields[i]
		m := v.member(f.key())
		switch {
		case f.ops != nil:
			if f.match(m) {
				n++
			}
		case m == nil:
		case m.kind == kindObject:
			n += f.nested.passed(m)
		case m.kind == kindArray:
			if i := f.nested.closest(m.items); i >= 0 {
				n += f.nested.passed(&m.items[i])
			}
		}
	}
	return n
}

// plainKey quotes a key that would be unclear among others.
func plainKey(key string) string {
	for i := range len(key) {
		if c := key[i]; c < utf8.RuneSelf && !isAlnum(c) && c != '_' && c != '-' {
			return preview(strconv.Quote(key))
		}
	}
	if key == "" {
		return `""`
	}
	return preview(key)
}

func setText(set []value) string {
	texts := make([]string, len(set))
	for i := range set {
		texts[i] = set[i].raw
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
