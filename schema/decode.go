package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// The readers below take what the structure check left: a value of another type
// has been reported already and reads as absent.

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func boolean(m map[string]any, key string, absent bool) bool {
	if b, ok := m[key].(bool); ok {
		return b
	}
	return absent
}

func number(m map[string]any, key string) float64 {
	n, _ := m[key].(json.Number)
	f, _ := strconv.ParseFloat(string(n), 64)
	return f
}

// texts reads a list of strings: nil when the key is absent, empty when the
// list is.
func texts(m map[string]any, key string) []string {
	list, ok := m[key].([]any)
	if !ok {
		return nil
	}

	out := make([]string, 0, len(list))
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}

	return out
}

// objects reads a list of mappings, with nil for an item that is none.
func objects(m map[string]any, key string) []map[string]any {
	list, _ := m[key].([]any)
	out := make([]map[string]any, len(list))
	for i, v := range list {
		out[i], _ = v.(map[string]any)
	}
	return out
}

// child follows one step from a node: a key of a mapping or an index of a list.
func child(n *yaml.Node, step string) *yaml.Node {
	if n == nil {
		return nil
	}

	if n.Kind == yaml.SequenceNode {
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i]
		}
		return nil
	}

	_, v := find(n, step)
	return v
}

// keyOf returns the key of the root mapping whose value n is, or n itself.
func (d *document) keyOf(n *yaml.Node) *yaml.Node {
	for i := 0; d.root != nil && i+1 < len(d.root.Content); i += 2 {
		if d.root.Content[i+1] == n {
			return d.root.Content[i]
		}
	}
	return n
}

// anyBad says whether a problem was reported for n or anything in it.
func (d *document) anyBad(n *yaml.Node) bool {
	if len(d.bad) == 0 || n == nil {
		return false
	}
	if d.bad[n] {
		return true
	}

	return slices.ContainsFunc(n.Content, d.anyBad)
}

// nodeJSON writes a node as JSON: keys in the order of the file, numbers as
// they are written, and text as json.Marshal escapes it, so that a round trip
// through JSON leaves the bytes alone.
func nodeJSON(n *yaml.Node) json.RawMessage {
	var b bytes.Buffer
	writeJSON(&b, n)
	return b.Bytes()
}

func writeJSON(b *bytes.Buffer, n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}

			writeJSONString(b, n.Content[i].Value)
			b.WriteByte(':')
			writeJSON(b, n.Content[i+1])
		}

		b.WriteByte('}')

	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, c)
		}

		b.WriteByte(']')

	case yaml.ScalarNode:
		kind := scalarString
		if n.Style == 0 {
			kind = classify(n.Value)
		}

		switch kind {
		case scalarNull:
			b.WriteString("null")
		case scalarBool:
			b.WriteString(strconv.FormatBool(n.Value[0] == 't' || n.Value[0] == 'T'))
		case scalarNumber:
			b.WriteString(n.Value)
		default:
			writeJSONString(b, n.Value)
		}

	default:
		b.WriteString("null")
	}
}

func writeJSONString(b *bytes.Buffer, s string) {
	text, _ := json.Marshal(s) // a string always marshals
	b.Write(text)
}

// isNull reports whether a value is null, written or empty, which stands for an absent key.
func isNull(n *yaml.Node) bool {
	return n != nil && n.Kind == yaml.ScalarNode && n.Style == 0 && classify(n.Value) == scalarNull
}

// decode reads the first document, and the place of a second if there is one.
func decode(text []byte) (first, second *yaml.Node, err error) {
	defer func() {
		// The parser reports its errors by value; a panic would be a bug in it,
		// and must not take the server down.
		if r := recover(); r != nil {
			first, second, err = nil, nil, fmt.Errorf("yaml: %v", r)
		}
	}()

	dec := yaml.NewDecoder(bytes.NewReader(text))
	var one, two yaml.Node
	switch err := dec.Decode(&one); {
	case errors.Is(err, io.EOF):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}

	switch err := dec.Decode(&two); {
	case errors.Is(err, io.EOF):
		return &one, nil, nil
	case err != nil:
		return nil, nil, err
	}

	return &one, &two, nil
}
