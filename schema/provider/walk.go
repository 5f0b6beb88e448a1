package provider

import (
	"strings"

	"github.com/tidwall/gjson"
)

// walker walks over the members of an object. It decodes nothing. Of a text that is no JSON it returns
// anything, and ends.
type walker struct {
	text string
	at   int
}

// member is a member of an object: its key as it is written between the quotation marks, and its value.
type member struct{ key, value string }

// next returns the next member; false behind the last one.
func (w *walker) next() (m member, more bool) {
	quote := strings.IndexByte(w.text[w.at:], '"')
	if quote < 0 {
		return m, false
	}

	key := w.at + quote + 1
	end := endOfString(w.text, key)
	value := end
	for value < len(w.text) && strings.IndexByte(": \t\r\n", w.text[value]) >= 0 {
		value++
	}
	if value == len(w.text) {
		return m, false
	}

	w.at = endOfValue(w.text, value)
	return member{w.text[key : end-1], w.text[value:w.at]}, true
}

// is reports whether the member has a key.
func (m member) is(key string) bool {
	if m.key == key {
		return true
	}
	return len(m.key) > len(key) && strings.IndexByte(m.key, '\\') >= 0 && gjson.Parse(`"`+m.key+`"`).Str == key
}

// endOfString returns where a string ends, its closing quotation mark included, whose inside begins at a
// place.
func endOfString(text string, inside int) int {
	for at := inside; ; {
		quote := strings.IndexByte(text[at:], '"')
		if quote < 0 {
			return len(text)
		}

		at += quote + 1
		escapes := 0
		for i := at - 2; i >= inside && text[i] == '\\'; i-- {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
	}
}

// endOfValue returns where the value ends that begins at a place.
func endOfValue(text string, at int) int {
	for depth := 0; at < len(text); {
		switch text[at] {
		case '"':
			at = endOfString(text, at+1)
		case '{', '[':
			depth++
			at++
		case '}', ']', ',':
			if depth == 0 {
				return at
			}
			if text[at] != ',' {
				depth--
			}
			at++
			if depth > 0 {
				continue
			}
		default:
			at++
			continue
		}

		if depth == 0 {
			return at
		}
	}

	return len(text)
}
