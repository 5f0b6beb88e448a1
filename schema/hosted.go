package schema

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"millwright/schema/provider"
)

// The JSON Schemas mark the keys that definitions of the hosted service do not have with "x-hosted": false.
// Of a key whose values they do not all have, "x-hosted" lists those that they have.

// Hosted returns a warning for each file, key and value of the tree that definitions of the hosted service do
// not have, in order.
func (r *Result) Hosted() []Problem {
	var all []Problem
	for _, path := range sortedKeys(r.sources) {
		d := &document{path: path, src: r.sources[path]}
		name := schemaOf(path)
		if name == "" {
			d.report(fileSpan(), ruleNotHosted, "the hosted service does not read this file", "")
			all = append(all, d.problems...)
			continue
		}

		if !d.checkEncoding() || strings.HasSuffix(path, ".md") && !d.splitFrontMatter() {
			continue
		}
		if strings.HasSuffix(path, ".yaml") {
			d.wholeText()
		}

		d.parse()
		s, err := structures[name]()
		if d.root == nil || err != nil {
			continue
		}

		d.problems = nil // Load has reported them
		raw := s.raw()
		h := hosted{d, raw}
		h.value(d.root, raw, "")
		if name == "automation" {
			h.filters()
		}
		all = append(all, d.problems...)
	}

	SortProblems(all)
	return all
}

// schemaOf returns the name of the JSON Schema of a file of a tree; empty for a kind of file that the hosted
// service does not have.
func schemaOf(path string) string {
	dir, rest, _ := strings.Cut(path, "/")
	switch {
	case path == "factory.yaml":
		return "factory"
	case dir == "agents" && strings.Contains(rest, "/skills/"):
		return "skill"
	}

	return map[string]string{
		"agents": "agent", "automations": "automation", "runners": "runner", "skills": "skill", "webhooks": "webhook",
	}[dir]
}

// hosted compares a document with the marks of its schema.
type hosted struct {
	*document
	schema any // the whole
}

// resolve follows the references of a schema, and returns it with its mark.
func (h hosted) resolve(schema any) (m map[string]any, mark any) {
	for {
		m, _ = schema.(map[string]any)
		if own, ok := m["x-hosted"]; ok && mark == nil {
			mark = own
		}

		ref, ok := m["$ref"].(string)
		if !ok {
			return m, mark
		}

		schema = lookup(h.schema, pointer(strings.TrimPrefix(ref, "#")))
	}
}

// value reports what is marked of the value of a key, and of those in it.
func (h hosted) value(n *yaml.Node, schema any, key string) {
	m, mark := h.resolve(schema)
	if list, ok := mark.([]any); ok && n.Kind == yaml.ScalarNode && !slices.Contains(list, any(n.Value)) {
		h.report(h.spanOf(n), ruleNotHosted,
			fmt.Sprintf("definitions of the hosted service have no %s %s", key, quoted(n.Value)),
			"they have "+listed(enumWords(list)))
	}

	switch n.Kind {
	case yaml.SequenceNode:
		for _, item := range n.Content {
			h.value(item, m["items"], key)
		}
	case yaml.MappingNode:
		properties, _ := m["properties"].(map[string]any)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			inner, ok := properties[key.Value]
			if !ok {
				inner = m["additionalProperties"]
			}

			if _, mark := h.resolve(inner); mark == false {
				h.report(h.spanOf(key), ruleNotHosted,
					fmt.Sprintf("definitions of the hosted service have no key %s here", quoted(key.Value)), "")
				continue
			}

			h.value(value, inner, clip(key.Value))
		}
	}
}

// filters reports the keys of filters that definitions of the hosted service do not have, or write in another
// way.
func (h hosted) filters() {
	triggers := child(h.root, "triggers")
	if triggers == nil || triggers.Kind != yaml.SequenceNode {
		return
	}

	for _, trigger := range triggers.Content {
		from, event, filter := child(trigger, "provider"), child(trigger, "event"), child(trigger, "filter")
		if from == nil || event == nil || filter == nil || filter.Kind != yaml.MappingNode {
			continue
		}

		for i := 0; i+1 < len(filter.Content); i += 2 {
			key := filter.Content[i]
			canonical := provider.CanonicalKey(from.Value, event.Value, key.Value)
			switch {
			case from.Value == providerWebhook && key.Value == "headers",
				canonical != "" && !provider.Hosted(from.Value, event.Value, canonical):
				h.report(h.spanOf(key), ruleNotHosted,
					fmt.Sprintf("definitions of the hosted service have no key %s here", quoted(key.Value)), "")
			case canonical != "" && canonical != key.Value && !provider.Hosted(from.Value, event.Value, key.Value):
				h.report(h.spanOf(key), ruleNotHosted,
					fmt.Sprintf("definitions of the hosted service do not write %s", quoted(key.Value)),
					"write "+canonical)
			}
		}
	}
}
