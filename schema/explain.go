package schema

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Explanation explains why a filter matches a body or not.
type Explanation struct {
	Matched bool `json:"matched"`
	// AsksForge is set when nothing but an answer of the forge is missing, which decides.
	AsksForge bool `json:"asks_forge,omitempty"`
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
	e := explainer{
		Explanation: Explanation{Matched: f.Match(p), Leaves: []LeafExplanation{}},
		scanner:     scanner{text: p.body},
	}
	switch {
	case f == nil:
		e.Reason = "there is no payload filter: every body matches"
	case p.body == nil:
		e.Reason = "the body could not be read"
	case len(f.root.fields) == 0:
		e.Reason = "the filter is empty: every body matches"
	case e.kind() != kindObject:
		e.Reason = "the body is " + e.kind().article() + ", not an object"
		e.object(&f.root, placesOf(&f.root, unreached), "")
	default:
		e.object(&f.root, p.places(&e.scanner, &f.root), "")
	}

	return e.Explanation
}

// explainer writes an explanation on its way through a body.
type explainer struct {
	Explanation
	scanner
}

// unreached is the place of a field whose object is not there: no leaf holds on it.
const unreached = -2

// object adds the leaves of p as they fare on an object whose fields are at these places.
func (e *explainer) object(p *pattern, at places, where string) {
	for i := range p.fields {
		f := &p.fields[i]
		if f.ops != nil {
			e.leaf(f, at[i], where)
		} else {
			e.nested(f.nested, at[i], where+plainKey(f.key()))
		}
	}
}

// nested adds the leaves of p as they fare on the value at a place.
func (e *explainer) nested(p *pattern, at int32, where string) {
	if at >= 0 {
		e.at = int(at)
		switch e.kind() {
		case kindObject:
			e.object(p, e.places(p), where+".")
			return
		case kindArray:
			if best := e.closest(p); best.index >= 0 {
				e.at = best.at
				e.object(p, e.places(p), where+"["+strconv.Itoa(best.index)+"].")
				return
			}
		}
	}

	e.object(p, placesOf(p, unreached), where+".")
}

// leaf adds each operator of f as it fares on the value at a place.
func (e *explainer) leaf(f *field, at int32, where string) {
	leaf := LeafExplanation{Path: f.path, Where: where + plainKey(f.key())}
	if at >= 0 {
		e.at = int(at)
		leaf.Present, leaf.Found = true, preview(e.skip())
	}

	add := func(operator, expected string, only operators) {
		one := field{path: f.path, ops: &only}
		leaf.Operator, leaf.Expected, leaf.Passed = operator, preview(expected), e.passed(&one, at) == 1
		e.Leaves = append(e.Leaves, leaf)
	}
	if f.ops.in != nil {
		add("in", setText(f.ops.in), operators{in: f.ops.in})
	}
	if f.ops.notIn != nil {
		add("not_in", setText(f.ops.notIn), operators{notIn: f.ops.notIn})
	}
	if f.ops.exists != nil {
		add("exists", strconv.FormatBool(*f.ops.exists), operators{exists: f.ops.exists})
	}
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
