package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"millwright/signature"
)

// maxFilterHeaders is how many headers a filter may name.
const maxFilterHeaders = 10

// HeaderFilter is a compiled filter of a request's headers. It is immutable. A nil *HeaderFilter matches every
// request.
type HeaderFilter struct{ fields []headerField }

type headerField struct {
	name      string // canonical
	in, notIn []string
}

// matcherText is the JSON form of a header's matcher: a list, or an object of in and not_in.
type matcherText struct{ In, NotIn []string }

func (m *matcherText) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' {
		return json.Unmarshal(raw, &m.In)
	}

	var object struct {
		In    []string `json:"in"`
		NotIn []string `json:"not_in"`
	}
	err := json.Unmarshal(raw, &object)
	m.In, m.NotIn = object.In, object.NotIn
	return err
}

// CompileHeaders compiles filter.headers of a trigger as it is stored. Of length 0 there is none: nil, nil.
func CompileHeaders(raw json.RawMessage) (*HeaderFilter, error) {
	if len(raw) == 0 {
		return nil, nil
	}

	var fields map[string]matcherText
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("filter.headers: %w", err)
	}

	f := &HeaderFilter{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		m := fields[name]
		f.fields = append(f.fields, headerField{textproto.CanonicalMIMEHeaderKey(name), m.In, m.NotIn})
	}

	return f, nil
}

// Match reports whether the headers of a request match: each has an allowed value, and none that is excluded.
func (f *HeaderFilter) Match(header map[string][]string) bool {
	if f == nil {
		return true
	}
	for i := range f.fields {
		if h := &f.fields[i]; !h.passes("in", header) || !h.passes("not_in", header) {
			return false
		}
	}
	return true
}

// passes reports whether one operator holds.
func (h *headerField) passes(operator string, header map[string][]string) bool {
	among := func(values []string) bool {
		return slices.ContainsFunc(header[h.name], func(v string) bool { return slices.Contains(values, v) })
	}
	if operator == "in" {
		return h.in == nil || among(h.in)
	}
	return !among(h.notIn)
}

// explain returns one leaf for each operator of each header. A nil header was not kept.
func (f *HeaderFilter) explain(header map[string][]string) (leaves []LeafExplanation) {
	if f == nil {
		return nil
	}
	for i := range f.fields {
		h := &f.fields[i]
		for _, operator := range []string{"in", "not_in"} {
			wanted := h.in
			if operator == "not_in" {
				wanted = h.notIn
			}
			if wanted == nil {
				continue
			}

			leaf := LeafExplanation{
				Path: []string{"headers", h.name}, Where: "headers." + h.name, Operator: operator,
				Expected: preview(textList(wanted)), Passed: h.passes(operator, header),
			}
			if values := header[h.name]; len(values) > 0 {
				leaf.Present, leaf.Found = true, preview(textList(values))
			}
			leaves = append(leaves, leaf)
		}
	}

	return leaves
}

// textList writes strings as a JSON list.
func textList(values []string) string {
	text, err := json.Marshal(values)
	if err != nil {
		return ""
	}
	return string(text)
}

// CredentialHeader reports whether a header of this name holds a credential beyond the message that it comes
// with.
func CredentialHeader(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(credentialWords(), func(word string) bool { return strings.Contains(name, word) })
}

var credentialWords = sync.OnceValue(func() []string {
	return []string{
		"authorization", "cookie", "token", "secret", "password", "credential", "session", "jwt", "api-key", "apikey",
		"access-key", "auth-key",
	}
})

// headers checks filter.headers of a webhook trigger, and keeps it.
func (d *document) headers(n *yaml.Node, t *Trigger, where string) {
	where += ".filter.headers"
	switch {
	case d.anyBad(n) || isNull(n):
		return
	case n.Kind != yaml.MappingNode:
		d.errorAt(n, ruleFilterHeaders, where+" takes a mapping of header names to values, not "+nodeArticle(n), "")
		return
	case len(n.Content) > 2*maxFilterHeaders:
		d.errorAt(n, ruleFilterHeaders, fmt.Sprintf("%s has more than %d headers", where, maxFilterHeaders), "")
		return
	}

	before := len(d.problems)
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		d.headerName(key, where, seen)
		d.headerMatcher(value, where+"."+clip(key.Value))
	}

	if len(d.problems) == before && len(n.Content) > 0 {
		t.Headers = nodeJSON(n)
	}
}

var headerPattern = regexp.MustCompile(headerNamePattern)

const headerNamePattern = "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$"

func (d *document) headerName(key *yaml.Node, where string, seen map[string]bool) {
	name := textproto.CanonicalMIMEHeaderKey(key.Value)
	switch {
	case !headerPattern.MatchString(key.Value):
		d.errorAt(key, ruleFilterHeaders, fmt.Sprintf("%s: %s is not a header name", where, quoted(key.Value)), "")
	case seen[name]:
		d.errorAt(key, ruleFilterHeaders, fmt.Sprintf("%s: %s is here twice", where, name),
			"put all values into one list")
	case CredentialHeader(name) || signature.Reserved(name):
		d.errorAt(key, ruleFilterHeaders, fmt.Sprintf("%s: %s holds a credential or a signature", where, name),
			"filter by another header: values of this one never stand in a definition")
	}
	seen[name] = true
}

func (d *document) headerMatcher(n *yaml.Node, where string) {
	switch n.Kind {
	case yaml.SequenceNode:
		d.headerValues(n, where)
	case yaml.MappingNode:
		if len(n.Content) == 0 {
			d.errorAt(n, ruleFilterHeaders, where+" has neither in nor not_in", "write the list of allowed values")
			return
		}

		for i := 0; i+1 < len(n.Content); i += 2 {
			key, list := n.Content[i], n.Content[i+1]
			if key.Value != "in" && key.Value != "not_in" {
				d.errorAt(key, ruleFilterHeaders,
					fmt.Sprintf("%s: %s is no operator of a header", where, quoted(key.Value)),
					"the operators are in and not_in")
				continue
			}
			d.headerValues(list, where+"."+key.Value)
		}

	default:
		d.errorAt(n, ruleFilterHeaders, where+" takes a list of values", "write ["+shown(n)+"]")
	}
}

func (d *document) headerValues(n *yaml.Node, where string) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > MaxFilterValues {
		d.errorAt(n, ruleFilterHeaders, fmt.Sprintf("%s takes a list of 1 to %d values", where, MaxFilterValues), "")
		return
	}
	for _, v := range n.Content {
		if v.Kind != yaml.ScalarNode || v.Style == 0 && classify(v.Value) != scalarString {
			d.errorAt(v, ruleFilterHeaders, where+" takes texts", "put it in quotes: "+doubleQuoted(v.Value))
		}
	}
}
