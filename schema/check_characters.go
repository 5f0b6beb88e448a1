package schema

import (
	"fmt"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// ControlCharacter returns the first control character of a text (C0, DEL or C1), and where it is. In a text of
// several lines tabs, line feeds and carriage returns are none.
func ControlCharacter(text string, lines bool) (r rune, at int, found bool) {
	for i, r := range text {
		switch {
		case lines && (r == '\t' || r == '\n' || r == '\r'):
		case r < ' ', r >= 0x7f && r <= 0x9f:
			return r, i, true
		}
	}
	return 0, 0, false
}

func controlMessage(what string, r rune) (message, hint string) {
	hint = "delete it"
	if r == '\t' || r == '\n' || r == '\r' {
		hint = "write it on one line, without tabs"
	}
	return fmt.Sprintf("%s holds the control character U+%04X", what, r), hint
}

func (d *document) controlCharacter(n *yaml.Node, what string, r rune) {
	message, hint := controlMessage(what, r)
	d.errorAt(n, ruleControlCharacter, message, hint)
}

// checkControls reports control characters, written as escapes, in the keys and values at and below a node.
func (d *document) checkControls(n *yaml.Node, path []string) {
	if n == nil {
		return
	}

	if n.Kind == yaml.ScalarNode {
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

// checkBody reports the first control character below the front matter.
func (d *document) checkBody(kind fileKind) {
	from := d.close + 3 // behind the fence
	if len(d.body) == 0 || from > len(d.src) {
		return
	}

	text := string(d.src[from:])
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
