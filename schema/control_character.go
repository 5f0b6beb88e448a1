package schema

import (
	"fmt"

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
