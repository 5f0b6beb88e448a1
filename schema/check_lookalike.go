package schema

import (
	"fmt"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// falseBlank names the first character from one line of the text to another that looks like a blank or a
// colon, or like nothing, and is neither to YAML.
func (d *document) falseBlank(from, to int) string {
	line, start := 1, 0
	for i, r := range string(d.text) {
		switch {
		case r == '\n':
			line, start = line+1, i+1
		case line > to:
			return ""
		case line >= from && isFalseBlank(r):
			return fmt.Sprintf(
				"the character at %d:%d is U+%04X, which YAML reads as text: retype it",
				line+d.base,
				utf8.RuneCount(d.text[start:i])+1,
				r,
			)
		}
	}

	return ""
}

// lookalike names the first letter of a word that is not ASCII, when the word would be known without it.
func (d *document) lookalike(n *yaml.Node) string {
	start, _ := d.extent(n)
	if n.Style != 0 {
		start++
	}

	for i, r := range n.Value {
		if r >= utf8.RuneSelf {
			line, column := d.position(start + i)
			return fmt.Sprintf(
				"the character at %d:%d is U+%04X, which looks like another character: retype it",
				line,
				column,
				r,
			)
		}
	}

	return ""
}

func isFalseBlank(r rune) bool {
	return r == 0xa0 || r >= 0x2000 && r <= 0x200f || r == 0x202f || r == 0x2060 || r == 0xad || r == 0x3000 ||
		r == 0xff1a
}
