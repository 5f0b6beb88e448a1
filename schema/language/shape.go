package language

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"millwright/schema"
)

// shape is a part of a published JSON Schema, in which keys and values are looked up. It judges nothing.
type shape struct {
	root map[string]any
	at   map[string]any
}

// shapes returns the alternatives at the root of a document's schema.
func shapes(document string) []shape {
	root := schemaOf(document)
	return shape{root, root}.alternatives(0)
}

// schemaOf returns the JSON Schema of a document, decoded once.
func schemaOf(document string) map[string]any {
	if decoded, ok := decodedSchemas().Load(document); ok {
		return decoded.(map[string]any)
	}

	var root map[string]any
	text, _ := schema.JSONSchema(document)
	if json.Unmarshal(text, &root) != nil {
		root = map[string]any{}
	}

	decodedSchemas().Store(document, root)
	return root
}

var decodedSchemas = sync.OnceValue(func() *sync.Map { return &sync.Map{} })

// maxReferences bounds how far references of a schema are followed.
const maxReferences = 8

// alternatives follows the references of a shape and returns what it may be.
func (s shape) alternatives(depth int) (all []shape) {
	if ref, ok := s.at["$ref"].(string); ok && depth < maxReferences {
		name := strings.TrimPrefix(ref, "#/$defs/")
		defs, _ := s.root["$defs"].(map[string]any)
		if to, ok := defs[name].(map[string]any); ok {
			merged := map[string]any{}
			maps.Copy(merged, to)
			for _, key := range []string{"title", "description", "examples", "default"} {
				if own, ok := s.at[key]; ok {
					merged[key] = own
				}
			}
			return shape{s.root, merged}.alternatives(depth + 1)
		}
	}

	all = append(all, s)
	for _, keyword := range []string{"anyOf", "oneOf"} {
		list, _ := s.at[keyword].([]any)
		for _, one := range list {
			if at, ok := one.(map[string]any); ok && depth < maxReferences {
				all = append(all, shape{s.root, at}.alternatives(depth+1)...)
			}
		}
	}

	return all
}

// key returns what the value of a key may be.
func key(of []shape, name string) (all []shape) {
	for _, s := range of {
		properties, _ := s.at["properties"].(map[string]any)
		at, ok := properties[name].(map[string]any)
		if !ok {
			at, ok = s.at["additionalProperties"].(map[string]any)
		}
		if ok {
			all = append(all, shape{s.root, at}.alternatives(0)...)
		}
	}
	return all
}

// item returns what an item of a list may be.
func item(of []shape) (all []shape) {
	for _, s := range of {
		if at, ok := s.at["items"].(map[string]any); ok {
			all = append(all, shape{s.root, at}.alternatives(0)...)
		}
	}
	return all
}

// keys returns the names of the keys, sorted.
func keys(of []shape) (names []string) {
	for _, s := range of {
		properties, _ := s.at["properties"].(map[string]any)
		for name := range properties {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// is reports whether a value may be of a type.
func is(of []shape, kind string) bool {
	return slices.ContainsFunc(of, func(s shape) bool {
		list, _ := s.at["type"].([]any)
		return s.at["type"] == kind || slices.Contains(list, any(kind))
	})
}

// text returns a member of the shapes that is a text, of the first that has one.
func member(of []shape, name string) string {
	for _, s := range of {
		if text, ok := s.at[name].(string); ok {
			return text
		}
	}
	return ""
}

// list returns the values of a member of all shapes, such as enum, as YAML on one line.
func list(of []shape, name string) (values []any) {
	for _, s := range of {
		some, _ := s.at[name].([]any)
		values = append(values, some...)
	}
	return values
}

// about describes a key in Markdown.
func about(name string, of []shape) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**", name)
	if kinds := kindsOf(of); kinds != "" {
		fmt.Fprintf(&b, " — %s", kinds)
	}
	if text := member(of, "description"); text != "" {
		fmt.Fprintf(&b, "\n\n%s", text)
	}

	for _, s := range of {
		if value, ok := s.at["default"]; ok {
			fmt.Fprintf(&b, "\n\nDefault: `%s`", jsonText(value))
			break
		}
	}

	if values := list(of, "enum"); len(values) > 0 && len(values) <= 12 {
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = "`" + jsonText(v) + "`"
		}
		fmt.Fprintf(&b, "\n\nOne of %s", strings.Join(texts, ", "))
	}
	if examples := list(of, "examples"); len(examples) > 0 {
		fmt.Fprintf(&b, "\n\nExample:\n```yaml\n%s: %s\n```", name, jsonText(examples[0]))
	}

	return b.String()
}

// kindsOf names the types of a value.
func kindsOf(of []shape) string {
	words := map[string]string{
		"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false",
		"array": "list", "object": "mapping", "null": "null",
	}

	var all []string
	for _, name := range []string{"string", "integer", "number", "boolean", "array", "object", "null"} {
		if is(of, name) {
			all = append(all, words[name])
		}
	}
	return strings.Join(all, " or ")
}

func jsonText(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}
