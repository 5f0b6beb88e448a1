package schema

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// unknownKeys reports the keys of a mapping that are not among those known.
func (d *document) unknownKeys(n *yaml.Node, known []string, what string) {
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || d.bad[key] || slices.Contains(known, key.Value) {
			continue
		}

		d.spoil(key)
		if d.full() {
			d.drop(1, d.unknownSeverity())
			continue
		}

		d.unknownKey(n, key, known, what)
	}
}

func (d *document) unknownSeverity() Severity {
	if d.loose {
		return SeverityWarning
	}
	return SeverityError
}

func (d *document) unknownKey(n, key *yaml.Node, known []string, what string) {
	severity := d.unknownSeverity()
	message := fmt.Sprintf("%s has no key %s", what, quoted(key.Value))
	if what == "the file" {
		message = fmt.Sprintf("unknown key %s", quoted(key.Value))
	}

	near := suggest(key.Value, known)
	alone := d.misspeltOnce(n, near, known)
	hint := didYouMean(near, "known keys: "+listed(known))
	twin, _ := find(n, near)
	switch {
	case strings.ContainsFunc(key.Value, isFalseBlank):
		hint = d.falseBlank(key.Line, key.Line)
	case near != "" && twin == nil && d.lookalike(key) != "":
		hint = d.lookalike(key)
	case near == "":
		if better := elsewhere(what, key.Value, known); better != "" {
			hint = better
		}
	case twin != nil:
		hint = fmt.Sprintf("%s is already on line %d: delete this one", near, twin.Line+d.base)
	case strings.EqualFold(near, key.Value):
		hint = "keys are case-sensitive: write " + near
	}

	p := d.add(newProblem(d.path, d.spanOf(key), ruleUnknownKey, message, hint).as(severity))
	if near != "" && twin == nil {
		if alone { // of two misspelt forms of one key neither is safe to rename
			p.Fix = d.replace(key, near)
		}
		if severity == SeverityError {
			if d.meant == nil {
				d.meant = map[meantKey]bool{}
			}
			d.meant[meantKey{n, near}] = true
		}
	}
}

// misspeltOnce reports whether only one key of a mapping was probably meant to be near.
func (d *document) misspeltOnce(n *yaml.Node, near string, known []string) bool {
	count := 0
	for i := 0; near != "" && i+1 < len(n.Content) && count < 2; i += 2 {
		if key := n.Content[i]; key.Value == near ||
			!slices.Contains(known, key.Value) && suggest(key.Value, known) == near {
			count++
		}
	}
	return count == 1
}

// replace is a fix that writes a plain text in place of a scalar; nil for a scalar of several lines.
func (d *document) replace(n *yaml.Node, text string) *Fix {
	start, end := d.extent(n)
	if !d.onOneLine(n, start, end) {
		return nil
	}
	if q := d.src[start]; q == '"' || q == '\'' {
		text = string(q) + text + string(q)
	}
	return &Fix{Start: start, End: end, Text: text}
}

// replaceQuoted is replace for a text that cannot stand without quotes.
func (d *document) replaceQuoted(n *yaml.Node, text string) *Fix {
	fix := d.replace(n, text)
	if fix != nil && n.Style == 0 {
		fix.Text = doubleQuoted(text)
	}
	return fix
}
