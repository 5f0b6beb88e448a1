package provider

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// MaxValues is how many values a key of a filter may have.
const MaxValues = 100

// Filter is a compiled trigger of a provider: its event, and what its filter asks for. It is immutable and safe
// for concurrent use.
type Filter struct {
	provider, event string
	conditions      []condition
	forms           []form
}

// condition is what a key of a filter asks for.
type condition struct {
	key       string
	in, notIn []want // an empty list asks for nothing
}

// form is a filter as it is compared with the deliveries of one table.
type form struct {
	table *table
	event *event
	keys  []*key // by condition; nil where the sender has no such value
}

// Problem is one thing that is wrong with a filter. Path leads to it from the filter.
type Problem struct {
	Path    []string
	OnKey   bool // the key is at fault rather than its value
	Message string
	Hint    string
	Unknown string // the unknown key, without a message
	Odd     bool   // Message is about a value that hardly anybody means, and which is compared all the same
	Word    string // a value that is none of Words, which is a problem if it is near one of them
	Words   []string
}

// Compile compiles a trigger of a provider from its event and its filter, which is JSON, or empty for none. It
// returns every problem, and a nil filter when there is one other than unknown words and odd values.
func Compile(provider, eventName string, raw []byte) (*Filter, []Problem) {
	e := tableFor(provider).event(eventName)
	if e == nil {
		return nil, []Problem{{Message: fmt.Sprintf("%s has no event %q", provider, eventName)}}
	}

	c := compiler{provider: provider, event: e, filter: &Filter{provider: provider, event: eventName}}
	if len(raw) > 0 {
		c.filterOf(gjson.ParseBytes(raw))
	}
	if c.failed {
		return nil, c.problems
	}

	f := c.filter
	slices.SortStableFunc(f.conditions, func(a, b condition) int { return e.position(a.key) - e.position(b.key) })
	for _, t := range tables() {
		row := t.event(eventName)
		if t.provider != provider || row == nil {
			continue
		}

		of := form{table: t, event: row, keys: make([]*key, len(f.conditions))}
		for i := range f.conditions {
			of.keys[i] = row.key(f.conditions[i].key)
		}

		f.forms = append(f.forms, of)
	}

	return f, c.problems
}

func (e *event) position(name string) int {
	return slices.IndexFunc(e.keys, func(k key) bool { return k.name == name })
}

type compiler struct {
	provider string
	event    *event
	filter   *Filter
	problems []Problem
	failed   bool
}

func (c *compiler) problem(p Problem) {
	c.problems = append(c.problems, p)
	c.failed = true
}

func (c *compiler) filterOf(raw gjson.Result) {
	if raw.Type == gjson.Null {
		return
	}
	if !raw.IsObject() {
		c.problem(Problem{Message: "a filter is a mapping of keys to values"})
		return
	}

	from := map[string]string{}
	raw.ForEach(func(name, value gjson.Result) bool {
		written := name.Str
		canonical := CanonicalKey(c.provider, c.event.name, written)
		switch other, twice := from[canonical]; {
		case canonical == "":
			c.problem(Problem{Path: []string{written}, OnKey: true, Unknown: written})
		case twice:
			c.problem(Problem{
				Path: []string{written}, OnKey: true,
				Message: fmt.Sprintf("%q and %q are one key", other, written),
				Hint:    "keep " + canonical + ", with all values",
			})

		default:
			from[canonical] = written
			c.matcher(written, c.event.key(canonical), value)
		}

		return true
	})
}

// matcher reads what a key asks for: a list, or lists under in and not_in.
func (c *compiler) matcher(written string, k *key, v gjson.Result) {
	path := []string{written}
	out := condition{key: k.name}
	switch {
	case v.Type == gjson.Null:
		return
	case v.IsArray():
		out.in = c.values(path, k, v)
	case v.IsObject():
		v.ForEach(func(operator, list gjson.Result) bool {
			at := []string{written, operator.Str}
			switch {
			case operator.Str != "in" && operator.Str != "not_in":
				c.problem(Problem{
					Path: at, OnKey: true, Message: fmt.Sprintf("%q is no operator of this key", operator.Str),
					Hint: operatorHint(operator.Str),
				})
			case list.Type == gjson.Null:
			case !list.IsArray():
				c.problem(Problem{Path: at, Message: operator.Str + " takes a list of values", Hint: listHint(list)})
			case operator.Str == "in":
				out.in = c.values(at, k, list)
			default:
				out.notIn = c.values(at, k, list)
			}

			return true
		})

	default:
		c.problem(Problem{Path: path, Message: k.name + " takes a list of values", Hint: listHint(v)})
		return
	}

	for i, w := range out.notIn {
		if slices.ContainsFunc(out.in, func(in want) bool { return in.text == w.text }) {
			c.problem(Problem{
				Path: []string{written, "not_in", strconv.Itoa(i)},
				Message: fmt.Sprintf("%q is in both in and not_in, so the key can never match by it",
					cut(w.written, 80)),
				Hint: "take it out of one of them",
			})
		}
	}

	if len(out.in)+len(out.notIn) > 0 {
		c.filter.conditions = append(c.filter.conditions, out)
	}
}

func operatorHint(word string) string {
	switch strings.ToLower(strings.ReplaceAll(word, "_", "")) {
	case "notin", "nin", "not", "except", "exclude":
		return "write not_in"
	case "anyof", "oneof", "include", "eq", "equals":
		return "write in, or the list alone"
	}
	return "a key takes a list of values, or {in: […], not_in: […]}"
}

func listHint(v gjson.Result) string {
	if v.IsObject() || v.IsArray() {
		return ""
	}
	return "write [" + cut(v.Raw, 80) + "]"
}

// values reads a list of values.
func (c *compiler) values(path []string, k *key, list gjson.Result) (all []want) {
	i := -1
	list.ForEach(func(_, v gjson.Result) bool {
		i++
		at := append(path[:len(path):len(path)], strconv.Itoa(i))
		if i == MaxValues {
			c.problem(Problem{Path: path, Message: fmt.Sprintf("%s has more than %d values", k.name, MaxValues)})
			return false
		}

		text, problem, hint := k.value(v)
		if problem != "" {
			c.problem(Problem{Path: at, Message: problem, Hint: hint})
			return true
		}

		w := k.compare.want(text)
		all = append(all, w)
		if k.compare.words != nil && !slices.Contains(k.compare.words, w.text) {
			c.problems = append(c.problems, Problem{Path: at, Word: text, Words: k.compare.words})
		}
		if k.compare.odd != nil {
			if why, hint := k.compare.odd(text); why != "" {
				message := fmt.Sprintf("%q %s", cut(text, 80), why)
				c.problems = append(c.problems, Problem{Path: at, Odd: true, Message: message, Hint: hint})
			}
		}

		return true
	})

	return all
}

// value reads one value of a filter.
func (k *key) value(v gjson.Result) (text, problem, hint string) {
	if k.compare.integer {
		if v.Type != gjson.Number || strings.ContainsAny(v.Raw, ".eE-") {
			return "", k.name + " takes whole numbers", ""
		}
		return v.Raw, "", ""
	}

	text = scalar(v)
	fraction := v.Type == gjson.Number && strings.ContainsAny(v.Raw, ".eE")
	if text == "" && v.Type != gjson.String || fraction {
		return "", k.name + " takes texts", "write them in quotes"
	}

	if strings.TrimSpace(text) == "" {
		return "", "a blank value of " + k.name + " matches nothing", "write a value, or delete the key"
	}

	if k.compare.valid != nil {
		if problem, hint := k.compare.valid(text); problem != "" {
			return "", fmt.Sprintf("%q %s", cut(text, 80), problem), hint
		}
	}

	return text, "", ""
}

// Keys returns the canonical keys that the filter compares, in the order in which it does.
func (f *Filter) Keys() []string {
	names := make([]string, len(f.conditions))
	for i := range f.conditions {
		names[i] = f.conditions[i].key
	}
	return names
}

// Restricted reports whether the filter names who may cause the event.
func (f *Filter) Restricted() bool {
	return slices.ContainsFunc(f.conditions, func(c condition) bool {
		k := tableFor(f.provider).event(f.event).key(c.key)
		return k != nil && k.must && len(c.in) > 0
	})
}

// form returns how the filter is compared with the deliveries of a table, or nil.
func (f *Filter) form(t *table) *form {
	for i := range f.forms {
		if f.forms[i].table == t {
			return &f.forms[i]
		}
	}
	return nil
}

// Match reports whether the delivery is the trigger's event and passes its filter, by what is known of it.
func (f *Filter) Match(d *Delivery) bool {
	matched, _ := f.Judge(d)
	return matched
}

// Judge is Match, and returns what the forge is to be asked for if the answer decides. Then matched is false.
func (f *Filter) Judge(d *Delivery) (matched bool, ask Ask) {
	if f == nil || d == nil {
		return false, ask
	}

	of := f.form(d.table)
	if of == nil || !d.is(of.event) {
		return false, ask
	}

	for i := range f.conditions {
		if asked := of.keys[i].asks(&d.body); asked.Any() {
			ask = ask.And(asked)
		} else if !f.conditions[i].holds(&d.body, of.keys[i]) {
			return false, Ask{}
		}
	}

	if own := f.own(of); own != nil && !d.known.Ask.Account {
		ask.Account = true
	} else if own != nil && !d.ownCondition(own).holds(&d.body, own) {
		return false, Ask{}
	}

	return !ask.Any(), ask
}

// asks returns what the forge is asked for because of a condition.
func (k *key) asks(b *body) Ask {
	if k == nil || !k.files || b.known.Ask.Files {
		return Ask{}
	}
	return Ask{Files: true}
}

// own returns the key that must have the account of the server, since the filter does not ask for another;
// nil for none.
func (f *Filter) own(of *form) *key {
	name := of.event.own
	if name == "" {
		return nil
	}
	for i := range f.conditions {
		if f.conditions[i].key == name && len(f.conditions[i].in) > 0 {
			return nil
		}
	}
	return of.event.key(name)
}

// ownCondition asks for the account of the server.
func (b *body) ownCondition(k *key) *condition {
	return &condition{key: k.name, in: []want{k.compare.want(b.known.Account)}}
}

// holds reports whether the payload has a value that the condition asks for, and none that it excludes. A key
// that no payload of the sender has never holds.
func (c *condition) holds(b *body, k *key) bool {
	if k == nil || k.read == nil {
		return false
	}

	j := judgement{condition: c, key: k, in: len(c.in) == 0}
	if few := b.valuesOf(k); !few.many {
		for _, have := range few.texts {
			if !j.add(have) {
				break
			}
		}
	} else {
		j = j.addAll(b)
	}

	return j.in && !j.excluded && (j.found || !k.must)
}

// judgement compares the values of a payload with a condition.
type judgement struct {
	*condition
	key                 *key
	in, excluded, found bool
}

// add compares a value, in its form, and reports whether more values matter.
func (j *judgement) add(have string) bool {
	j.found = true
	for i := 0; i < len(j.condition.in) && !j.in; i++ {
		j.in = j.key.compare.match(&j.condition.in[i], have)
	}
	for i := 0; i < len(j.notIn) && !j.excluded; i++ {
		j.excluded = j.key.compare.match(&j.notIn[i], have)
	}
	return !j.excluded && (!j.in || len(j.notIn) > 0)
}

// addAll compares all values of a payload that has many.
func (j judgement) addAll(b *body) judgement {
	j.key.read(b, func(have string) bool { return j.add(j.key.compare.form(have)) })
	return j
}
