package schema

import (
	"fmt"
	"regexp"
	"slices"
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
		} else if truth := at.Value == "true" || at.Value == "false"; truth && at.Style != 0 &&
			strings.HasPrefix(p.Message, "exists ") {
			p.Hint = "write it without quotes: " + at.Value
		} else if near := nearOperator(p.Path); near == "exists" {
			p.Hint = "the operators are in, not_in and exists: write exists: " + clip(at.Value)
		} else if list, ok := strings.CutPrefix(p.Hint, "write ["); ok && near != "" {
			p.Hint = "the operators are in, not_in and exists: write " + near + ": [" + list
		} else if missing := lastMissing(p.Path); ok && missing != "" {
			p.Hint = missing
		}

		d.report(d.spanOf(at), ruleFilter, place+": "+p.Message, p.Hint)
	}

	if len(problems) == 0 {
		t.Payload = raw
		d.nearOperators(n, true)
	}
}

// nearOperators warns of fields that people mean as something else: below the root as an operator of another
// language, anywhere as a path. As fields they are hardly ever there, and the filter would match nothing.
func (d *document) nearOperators(n *yaml.Node, root bool) {
	if n.Kind != yaml.MappingNode {
		return
	}

	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		hint, not := pathHint(key.Value), "a path"
		if near := operatorOf(key.Value); near != "" && near != key.Value && !root {
			hint, not = didYouMean(near, ""), "an operator"
		} else if hint == "" && !root {
			hint, not = missingOperator(key.Value), "an operator"
		}

		if hint != "" {
			d.report(d.spanOf(key), ruleFilterOperator,
				fmt.Sprintf("%s is the name of a field here, not %s", quoted(key.Value), not),
				hint+sentenceEnd(hint)+" If the body has such a field, this is right")
		}

		d.nearOperators(n.Content[i+1], false)
	}
}

// sentenceEnd is the full stop of a hint that has none.
func sentenceEnd(hint string) string {
	if strings.HasSuffix(hint, "?") {
		return ""
	}
	return "."
}

var plainScalar = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// pathHint says how to write a key that people mean as a path into the body.
func pathHint(key string) string {
	path := strings.TrimPrefix(strings.TrimPrefix(key, "$"), ".")
	if path == key && !strings.ContainsAny(key, ".[/") || key == "." ||
		operatorOf(key) != "" && !strings.Contains(key, ".") {
		return ""
	}
	if strings.Contains(key, "/") && !strings.HasPrefix(key, "/") {
		return "" // a name with a slash, such as that of a label
	}

	steps := pathStep.FindAllString(path, -1)
	if len(steps) == 0 || len(steps) > 6 {
		return ""
	}

	keys := slices.DeleteFunc(steps, func(s string) bool { return strings.Trim(s, "0123456789") == "" })
	if len(keys) == 0 || slices.ContainsFunc(keys, func(s string) bool { return !plainScalar.MatchString(s) }) {
		return ""
	}

	written := strings.Join(keys, ": {") + ": […]" + strings.Repeat("}", len(keys)-1)
	return "keys are names, not paths: write " + written
}

var pathStep = regexp.MustCompile(`[^.$\[\]/'"*]+`)

// missingOperator names the replacement of an operator of other filter languages.
func missingOperator(word string) string {
	switch fold(strings.TrimPrefix(word, "$")) {
	case "contains", "matches", "match", "regex", "regexp", "startswith", "endswith", "prefix", "suffix", "like",
		"glob", "wildcard", "pattern", "includes", "icontains", "ilike", "equalsignorecase":
		return "a filter compares whole values: list them with in, or leave the choice to the prompt"
	case "gt", "gte", "lt", "lte", "ge", "le", "between", "numeric", "range", "min", "max", ">", ">=", "<", "<=":
		return "a filter compares no sizes: list the values with in, or leave the choice to the prompt"
	}
	return ""
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

// lastMissing is missingOperator of the last name in a path below the root.
func lastMissing(path []string) string {
	if len(path) < 2 {
		return ""
	}
	return missingOperator(path[len(path)-1])
}

// operatorOf returns the operator that a word stands for in other filter languages.
func operatorOf(word string) string {
	switch fold(strings.TrimPrefix(word, "$")) {
	case "in", "oneof", "anyof", "any", "eq", "equals", "is", "value", "values", "==", "=":
		return "in"
	case "notin", "nin", "noneof", "ne", "neq", "not", "notequals", "isnot", "anythingbut", "!=", "<>":
		return "not_in"
	case "exists", "exist":
		return "exists"
	}
	return ""
}
