package schema

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

func (d *document) payload(n *yaml.Node, t *Trigger, where string) {
	if d.anyBad(n) {
		return
	}

	raw := nodeJSON(n)
	_, problems := CompileFilter(raw)
	for _, p := range problems {
		at := n
		for i, step := range p.Path {
			if i == len(p.Path)-1 && p.onKey {
				at, _ = find(at, step)
				break
			}
			at = child(at, step)
		}

		if at == nil {
			at = n
		}

		place := where + ".filter.payload"
		if len(p.Path) > 0 {
			place = wherePath(p.Path)
		}

		if v, ok := yaml11Bool(at.Value); ok && at.Style == 0 && strings.HasPrefix(p.Message, "exists ") {
			p.Hint = fmt.Sprintf("%s is a string in YAML 1.2: write %s", at.Value, v)
		} else if (at.Value == "true" || at.Value == "false") && at.Style != 0 && strings.HasPrefix(p.Message, "exists ") {
			p.Hint = "write it without quotes: " + at.Value
		} else if near := nearOperator(p.Path); near == "exists" {
			p.Hint = "the operators are in, not_in and exists: write exists: " + clip(at.Value)
		} else if list, ok := strings.CutPrefix(p.Hint, "write ["); ok && near != "" {
			p.Hint = "the operators are in, not_in and exists: write " + near + ": [" + list
		}

		d.report(d.spanOf(at), ruleFilter, place+": "+p.Message, p.Hint)
	}

	if len(problems) == 0 {
		t.Payload = raw
		d.nearOperators(n, true)
	}
}

// nearOperators warns of fields below the root of a filter that read like an operator: as fields they would
// never be there, and the filter would match nothing.
func (d *document) nearOperators(n *yaml.Node, root bool) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if near := operatorOf(key.Value); near != "" && near != key.Value && !root {
			d.report(
				d.spanOf(key),
				ruleFilterOperator,
				fmt.Sprintf("%s is the name of a field here, not an operator", quoted(key.Value)),
				didYouMean(near, "")+" If the body has such a field, this is right",
			)
		}

		d.nearOperators(n.Content[i+1], false)
	}
}

// nearOperator returns the operator that the last step of a path below the root reads like, and is not.
func nearOperator(path []string) string {
	if len(path) < 2 {
		return ""
	}
	last := path[len(path)-1]
	if near := operatorOf(last); near != last {
		return near
	}
	return ""
}

// operatorOf returns the operator that a word stands for in other filter languages.
func operatorOf(word string) string {
	switch fold(strings.TrimPrefix(word, "$")) {
	case "in", "oneof", "anyof", "eq", "equals":
		return "in"
	case "notin", "nin", "noneof", "ne", "neq", "not", "notequals":
		return "not_in"
	case "exists", "exist":
		return "exists"
	}
	return ""
}
