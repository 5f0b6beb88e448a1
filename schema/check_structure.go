package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"go.yaml.in/yaml/v3"
)

// The problems of a file whose structure its JSON Schema refuses, in words.

func (d *document) structureProblem(name string, raw any, e *jsonschema.ValidationError) {
	path := pointer(e.InstanceLocation)
	n := d.node(path)
	_, fragment, _ := strings.Cut(e.AbsoluteKeywordLocation, "#")
	steps := pointer(fragment)
	if len(steps) == 0 {
		return
	}

	keyword := steps[len(steps)-1]
	constraint, _ := lookup(raw, steps[:len(steps)-1]).(map[string]any)
	what := "the file"
	if len(path) > 0 {
		what = wherePath(path)
	}

	rule := valueRule(name, path)
	switch keyword {
	case "additionalProperties":
		properties, _ := constraint["properties"].(map[string]any)
		d.unknownKeys(n, sortedKeys(properties), what)
	case "required":
		required, _ := constraint["required"].([]any)
		for _, r := range required {
			key, _ := r.(string)
			if k, _ := find(n, key); k == nil {
				d.missingKey(n, path, key)
			}
		}

	case "type":
		if list, ok := constraint["enum"].([]any); ok && n != nil && n.Kind == yaml.ScalarNode && !isNull(n) &&
			n.Value != "" {
			d.typeOfEnum(n, rule, what, list)
			return
		}

		d.typeMismatch(n, what, constraint["type"])
	case "enum":
		list, _ := constraint["enum"].([]any)
		d.notOneOf(n, rule, what, enumWords(list))

	case "pattern", "minLength", "maxLength":
		if n != nil {
			d.badText(n, rule, what, keyword, constraint)
		}
	case "minItems":
		d.errorAt(n, rule, what+" is empty", missingHints[what])
	case "maxItems":
		d.errorAt(n, rule, fmt.Sprintf("%s has more than %v items", what, constraint["maxItems"]), "")
	case "minimum", "maximum", "exclusiveMinimum":
		hint := fmt.Sprintf("%s: %v", boundWords[keyword], constraint[keyword])
		if extremeNumber(n.Value) {
			hint = "write a number of ordinary size"
		}

		d.errorAt(n, rule, fmt.Sprintf("%s is %s, which is out of range", what, clip(n.Value)), hint)

	default:
		if n != nil {
			d.errorAt(n, rule, what+": "+e.Message, "")
		}
	}
}

var boundWords = map[string]string{
	"minimum":          "the least is",
	"maximum":          "the greatest is",
	"exclusiveMinimum": "it must be above",
}

func lookup(v any, steps []string) any {
	for _, s := range steps {
		switch t := v.(type) {
		case map[string]any:
			v = t[s]
		case []any:
			i, err := strconv.Atoi(s)
			if err != nil || i >= len(t) {
				return nil
			}

			v = t[i]

		default:
			return nil
		}
	}

	return v
}

// valueRule returns the rule of a value that has the right type and is wrong.
func valueRule(name string, path []string) RuleID {
	if len(path) == 0 {
		return ruleInvalidValue
	}

	if name == "webhook" {
		switch path[0] {
		case "authMode":
			return ruleAuthMode
		case "signatureScheme":
			return ruleSignatureScheme
		case "deliveryIdHeader":
			return ruleDeliveryIDHeader
		case "customScheme":
			return ruleCustomScheme
		}
	}

	if name == "automation" && isFlow(path) {
		return ruleFlow
	}

	switch last := path[len(path)-1]; {
	case last == "secretName", last == "urlSecretName", len(path) > 1 && path[len(path)-2] == "secrets":
		return ruleSecretName
	case last == "triggers",
		last == "provider" && path[0] == "triggers",
		last == "event" && path[0] == "triggers":
		return ruleTrigger
	case last == "cron":
		return ruleSchedule
	}

	return ruleInvalidValue
}

// wherePath writes a path as people do: triggers[0].filter.
func wherePath(path []string) string {
	var b strings.Builder
	for i, step := range path {
		if _, err := strconv.Atoi(step); err == nil && i > 0 {
			b.WriteString("[" + step + "]")
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}

		b.WriteString(clip(step))
	}

	return b.String()
}

func (d *document) missingKey(n *yaml.Node, path []string, key string) {
	if d.meant[meantKey{n, key}] {
		return // it is there, misspelt, and that is reported
	}

	s := fileSpan()
	if d.at > 0 && len(d.text) > 0 || d.base > 0 {
		s = d.spanAt(d.at, d.at)
	}

	where := ""
	if n != nil {
		if d.bad[n] {
			return
		}

		start, end := d.extent(n)
		if len(n.Content) > 0 && n.Style&yaml.FlowStyle == 0 {
			_, end = d.extent(n.Content[0])
		}

		s = d.spanAt(start, end)
	}

	if len(path) > 0 {
		where = wherePath(path) + ": "
	}

	d.report(
		s,
		ruleMissingKey,
		fmt.Sprintf("%sthe required key %s is missing", where, quoted(key)),
		missingHints[key],
	)
}

func (d *document) typeMismatch(n *yaml.Node, what string, want any) {
	if n == nil || d.bad[n] {
		return
	}

	want = withoutNull(want)
	word := typeWord(want)
	if n.Kind == yaml.ScalarNode && n.Style == 0 && n.Value == "" {
		d.errorAt(
			n,
			ruleTypeMismatch,
			fmt.Sprintf("%s has no value; it takes %s", what, word),
			"write a value, or delete the key",
		)
		return
	}

	message, hint := fmt.Sprintf("%s takes %s, not %s", what, word, nodeArticle(n)), ""
	if want == "array" && n.Kind == yaml.MappingNode {
		hint = `begin each item of the list with "- "`
	}

	if n.Kind == yaml.ScalarNode {
		message = fmt.Sprintf("%s takes %s; %s is %s", what, word, shown(n), nodeArticle(n))
		null := n.Style == 0 && classify(n.Value) == scalarNull
		if null {
			message = fmt.Sprintf("%s takes %s, not null", what, word)
			hint = "write a value, or delete the key"
		}

		switch want {
		case "string":
			if null {
				hint += "; for the text, put it in quotes: " + doubleQuoted(n.Value)
				break
			}
			hint = "put it in quotes: " + doubleQuoted(n.Value)
			if unit := flowHint(what, n.Value); unit != "" && !strings.Contains(what, "[") {
				hint = unit
			}

		case "boolean":
			if v, ok := map[string]string{"0": "false", "1": "true", "true,": "true", "false,": "false"}[n.Value]; ok &&
				n.Style == 0 {
				hint = "write " + v
			} else if v, ok := yaml11Bool(n.Value); ok || strings.EqualFold(n.Value, "true") ||
				strings.EqualFold(n.Value, "false") {
				if v == "" {
					v = strings.ToLower(n.Value)
				}

				hint = "write " + v
				if n.Style == 0 {
					hint = fmt.Sprintf("%s is a string in YAML 1.2: write %s", n.Value, v)
				}
			}

		case "number", "integer":
			if n.Style != 0 && jsonNumber.MatchString(n.Value) {
				hint = "write it without quotes: " + n.Value
			} else if every, err := time.ParseDuration(n.Value); err == nil && strings.HasSuffix(what, ".tolerance") {
				hint = fmt.Sprintf("write it in seconds: %.0f", every.Seconds())
			}

		case "object":
			if key := mainKey(what); key != "" && !null {
				hint = fmt.Sprintf("write {%s: %s}", key, asWritten(n))
			}
		case "array":
			switch key := mainKey(what + "["); {
			case missingHints[what] != "": // a list of mappings
				hint = missingHints[what]
			case key != "":
				hint = fmt.Sprintf("write [{%s: %s}]", key, asWritten(n))
			default:
				hint = "write [" + shown(n) + "]"
			}
		}
	}

	d.errorAt(n, ruleTypeMismatch, message, hint)
}

// withoutNull takes null off the types of a key: null stands for an absent key, and hints do not name it.
func withoutNull(want any) any {
	list, ok := want.([]any)
	if !ok {
		return want
	}

	left := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == "null" })
	if len(left) == 1 {
		return left[0]
	}

	return left
}

func typeWord(want any) string {
	switch want {
	case "object":
		return "a mapping"
	case "array":
		return "a list"
	case "boolean":
		return "true or false"
	case "integer":
		return "a whole number"
	case "string":
		return "a string"
	case "number":
		return "a number"
	}

	if list, ok := want.([]any); ok {
		words := make([]string, len(list))
		for i, w := range list {
			words[i] = typeWord(w)
		}

		return listed(words)
	}

	return "another type"
}

func (d *document) badText(n *yaml.Node, rule RuleID, what, keyword string, constraint map[string]any) {
	switch {
	case keyword == "pattern" && (constraint["pattern"] == linePattern || constraint["pattern"] == textPattern):
		r, _, _ := ControlCharacter(n.Value, constraint["pattern"] == textPattern)
		d.controlCharacter(n, what, r)
	case rule == ruleSecretName:
		hint := "a letter or an underscore, then up to 127 letters, digits or underscores"
		if looksLikeSecret(n.Value) {
			d.secretValue(n)
			return
		}
		if m := secretReference.FindStringSubmatch(n.Value); m != nil {
			hint = "write the name alone: " + m[1]
		}

		d.errorAt(n, rule, fmt.Sprintf("%s is not a secret name", quoted(n.Value)), hint)

	case rule == ruleDeliveryIDHeader:
		d.errorAt(
			n,
			rule,
			fmt.Sprintf("%s is not a header name", quoted(n.Value)),
			"letters, digits and hyphens, for example X-Request-Id",
		)

	case keyword == "minLength":
		d.errorAt(n, rule, what+" is empty", "write a value, or delete the key")
	case keyword == "maxLength":
		d.errorAt(
			n,
			rule,
			fmt.Sprintf("%s is too long; at most %v characters are allowed", what, constraint["maxLength"]),
			"",
		)

	case constraint["pattern"] == aliasPattern:
		hint := "letters, digits, spaces, dots, underscores and dashes"
		if utf8.RuneCountInString(strings.TrimSpace(n.Value)) > MaxAlias {
			hint = fmt.Sprintf("at most %d characters", MaxAlias)
		}

		d.errorAt(n, rule, fmt.Sprintf("%s cannot be %s", what, shown(n)), hint)

	default:
		hint := ""
		if rule == ruleFlow {
			hint = flowHint(what, n.Value)
		}

		d.errorAt(n, rule, fmt.Sprintf("%s cannot be %s", what, shown(n)), hint)
	}
}

// checkStructure validates the data against the JSON Schema of its kind and
// reports each leaf of the validator's answer at the node it speaks of. The
// validator's own order is random; problems are sorted later.
func (d *document) checkStructure(name string) {
	s, err := structures[name]()
	if err != nil {
		d.report(
			fileSpan(),
			ruleInvalidValue,
			"the schema of this kind of file cannot be read: "+err.Error(),
			"",
		)
		return
	}

	verr, failed := s.compiled.Validate(d.data).(*jsonschema.ValidationError)
	if !failed {
		return
	}

	var leaves []*jsonschema.ValidationError
	collectLeaves(verr, &leaves)
	slices.SortStableFunc(leaves, func(a, b *jsonschema.ValidationError) int {
		if c := strings.Compare(a.InstanceLocation, b.InstanceLocation); c != 0 {
			return c
		}
		return strings.Compare(a.KeywordLocation, b.KeywordLocation)
	})

	for i, leaf := range leaves {
		if d.full() {
			severity := SeverityError
			if d.loose && d.worst != SeverityError {
				severity = SeverityWarning
			}

			for _, rest := range leaves[i:] {
				if !strings.HasSuffix(rest.KeywordLocation, "/additionalProperties") {
					severity = SeverityError
				}
			}

			d.drop(len(leaves)-i, severity)
			return
		}

		d.structureProblem(name, s.raw(), leaf)
	}
}
