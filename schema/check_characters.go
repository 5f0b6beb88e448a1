package schema

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// checkControls reports control characters, written as escapes, in the keys and values at and below a node.
func (d *document) checkControls(n *yaml.Node, path []string) {
	if n == nil {
		return
	}

	if n.Kind == yaml.ScalarNode {
		if i := strings.IndexFunc(n.Value, isBidirectional); i >= 0 && !d.bad[n] {
			r, _ := utf8.DecodeRuneInString(n.Value[i:])
			d.report(
				d.spanOf(n),
				ruleHiddenText,
				fmt.Sprintf(
					"%s holds U+%04X, which changes the order in which it is shown",
					wherePath(path),
					r,
				),
				"delete it",
			)
		}
		if r, _, found := ControlCharacter(n.Value, true); found {
			what := "the file"
			if len(path) > 0 {
				what = wherePath(path)
			}

			d.controlCharacter(n, what, r)
		}

		return
	}

	for i, c := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			d.checkControls(c, append(path, fmt.Sprint(i)))
		case i%2 == 1:
			d.checkControls(c, append(path, n.Content[i-1].Value))
		default:
			if r, _, found := ControlCharacter(c.Value, false); found {
				d.controlCharacter(c, "the key "+quoted(c.Value), r)
			}
		}
	}
}

// checkBody reports the first control character below the front matter, and warns of text that its readers do
// not see as the agent does.
func (d *document) checkBody(kind fileKind) {
	from := d.close + 3 // behind the fence
	if len(d.body) == 0 || from > len(d.src) {
		return
	}

	text := string(d.src[from:])
	d.hiddenText(text, from)
	d.secondFrontMatter(text, from)
	r, at, found := ControlCharacter(text, true)
	if !found {
		return
	}

	size := utf8.RuneLen(r)
	what := "the prompt"
	if kind == kindSkill {
		what = "the text"
	}

	message, hint := controlMessage(what, r)
	more := 0
	for rest := text[at:]; found; {
		rest = rest[utf8.RuneLen(r):]
		var next int
		if r, next, found = ControlCharacter(rest, true); found {
			more++
			rest = rest[next:]
		}
	}

	if more > 0 {
		message += fmt.Sprintf(", and %d more like it", more)
	}

	first := from + at
	d.report(d.spanAt(first, first+size), ruleControlCharacter, message, hint)
}

// hiddenText warns of the first character of a body that changes how the text around it is shown, or of a body
// in which nothing can be seen.
func (d *document) hiddenText(text string, from int) {
	for i, r := range text {
		switch {
		case isBidirectional(r):
			d.report(d.spanAt(from+i, from+i+utf8.RuneLen(r)), ruleHiddenText,
				fmt.Sprintf("the text holds U+%04X, which changes the order in which it is shown", r), "delete it")
			return
		case r >= 0xe0000 && r <= 0xe007f:
			d.report(d.spanAt(from+i, from+i+utf8.RuneLen(r)), ruleHiddenText,
				fmt.Sprintf("the text holds U+%04X, which is not shown and which an agent reads", r), "delete it")
			return
		}
	}

	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsSpace(r) && !hidden(r) }) < 0 {
		d.report(d.spanAt(d.close, d.close+3), ruleHiddenText,
			"the text below this line has no character that can be seen", "write a prompt")
	}
}

// isBidirectional reports whether a character overrides, embeds or isolates the direction of text.
func isBidirectional(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// secondFrontMatter warns of a body that begins with what reads like front matter: it is part of the prompt.
func (d *document) secondFrontMatter(text string, from int) {
	_, at := lineAt([]byte(text), 0) // the rest of the fence
	for at < len(text) {
		line, next := lineAt([]byte(text), at)
		if len(bytes.TrimSpace(line)) > 0 {
			if isFence(line) {
				break
			}
			return
		}

		at = next
	}

	keys := false
	for i := at; i < len(text); {
		line, next := lineAt([]byte(text), i)
		switch trimmed := bytes.TrimSpace(line); {
		case i == at:
		case isFence(line):
			if keys {
				d.report(d.spanAt(from+at, from+at+3), ruleHiddenText,
					"the text begins with a second front matter block, which is part of it and sets nothing",
					"move its keys into the first block")
			}
			return
		case frontMatterKey.Match(line):
			keys = true
		case len(trimmed) > 0 && line[0] != ' ' && line[0] != '-' && line[0] != '#':
			return
		}

		i = next
	}
}

var frontMatterKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*:(\s|$)`)
