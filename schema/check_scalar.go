package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

func (d *document) convertScalar(n *yaml.Node) any {
	if n.Style != 0 {
		return n.Value
	}

	switch classify(n.Value) {
	case scalarNull:
		return nil
	case scalarBool:
		return n.Value[0] == 't' || n.Value[0] == 'T'
	case scalarNumber:
		if extremeNumber(n.Value) {
			return json.Number("-1") // out of every range; filters read the node itself
		}
		return json.Number(n.Value)
	case scalarOdd:
		d.errorAt(
			n,
			ruleTypeMismatch,
			ambiguity(n.Value),
			oddHint(n.Value),
		)
		return nil

	case scalarDate:
		d.errorAt(
			n,
			ruleTypeMismatch,
			clip(n.Value)+" is ambiguous: a date to YAML 1.1 readers, text to YAML 1.2 readers",
			"put it in quotes: "+doubleQuoted(n.Value),
		)
		return nil
	}

	return n.Value
}

// extremeNumber says whether exact arithmetic on a number could be costly.
func extremeNumber(text string) bool {
	i := strings.IndexAny(text, "eE")
	return len(text) > maxNumberText || i >= 0 && len(strings.TrimLeft(text[i+1:], "+-0")) > 2
}

// ambiguity says how readers of YAML differ in a number.
func ambiguity(text string) string {
	if n, err := strconv.ParseInt(text, 8, 64); err == nil && strings.HasPrefix(text, "0") && text != "0" {
		decimal := cmp.Or(strings.TrimLeft(text, "0"), "0")
		return fmt.Sprintf(
			"%s is ambiguous: %d (octal) to YAML 1.1 readers, %s to YAML 1.2 readers",
			clip(text),
			n,
			decimal,
		)
	}
	return clip(text) + " is ambiguous: a number to some YAML readers, text or another number to others"
}

func oddHint(text string) string {
	hint := "for text, put it in quotes: " + doubleQuoted(text)
	if plain := strings.TrimLeft(text, "+0"); plain != text && jsonNumber.MatchString(plain) {
		return hint + "; for a number, write " + plain
	}
	return hint
}

func (k scalarKind) article() string {
	return [...]string{
		"a string", "null", "a boolean", "a number", "a number to some readers", "a date to some readers",
	}[k]
}

// nodeArticle names what a node is, for messages.
func nodeArticle(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}

	if n.Style != 0 {
		return "a string"
	}

	return classify(n.Value).article()
}
