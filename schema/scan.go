package schema

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

type kind byte

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

func (k kind) article() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}[k]
}

// scanner walks over text that is valid JSON and builds nothing from it.
type scanner struct {
	text []byte
	at   int
	room []byte // holds the last string or number that the text does not write plainly
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// kind moves to the first byte of the next value and returns the value's kind.
func (s *scanner) kind() kind {
	s.space()
	switch s.text[s.at] {
	case '{':
		return kindObject
	case '[':
		return kindArray
	case '"':
		return kindString
	case 't', 'f':
		return kindBool
	case 'n':
		return kindNull
	}

	return kindNumber
}

// enter goes into the array or object that begins at s.
func (s *scanner) enter() { s.at++ }

// more moves to the next element or key of the array or object that was entered, or past its end.
func (s *scanner) more() bool {
	s.space()
	switch s.text[s.at] {
	case ']', '}':
		s.at++
		return false
	case ',':
		s.at++
		s.space()
	}
	return true
}

// key reads a key and moves to its value. The key is valid until the next string or number is read.
func (s *scanner) key() []byte {
	key := s.string()
	s.space()
	s.at++ // the colon
	s.space()
	return key
}

// scalar reads a value of kind k, which is no array or object. Values are equal if and only if their kinds
// and texts are. The text is valid until the next string or number is read.
func (s *scanner) scalar(k kind) []byte {
	switch k {
	case kindString:
		return s.string()
	case kindNumber:
		return s.number()
	}
	return s.token()
}

// skip moves past the next value and returns its text.
func (s *scanner) skip() []byte {
	k := s.kind()
	start := s.at
	switch k {
	case kindArray, kindObject:
		s.skipNested()
	case kindString:
		s.skipString()
	default:
		s.token()
	}

	return s.text[start:s.at]
}

func (s *scanner) skipNested() {
	for depth := 0; ; {
		switch s.text[s.at] {
		case '"':
			s.skipString()
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}

		s.at++
		if depth == 0 {
			return
		}
	}
}

func (s *scanner) skipString() {
	s.at++
	for start := s.at; ; s.at++ {
		s.at += bytes.IndexByte(s.text[s.at:], '"')
		escapes := 0
		for i := s.at - 1; i >= start && s.text[i] == '\\'; i-- {
			escapes++
		}

		if escapes%2 == 0 {
			s.at++
			return
		}
	}
}

// token reads a number, true, false or null.
func (s *scanner) token() []byte {
	start := s.at
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r', ',', ']', '}':
			return s.text[start:s.at]
		}
		s.at++
	}
	return s.text[start:]
}

// number reads a number in normal form, as appendNumber describes it.
func (s *scanner) number() []byte {
	start, plain := s.at, true
	for ; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		if '0' <= c && c <= '9' || c == '-' {
			continue
		}
		if c != '.' && c != 'e' && c != 'E' && c != '+' {
			break
		}

		plain = false
	}

	text := s.text[start:s.at]
	if plain && (len(text) == 1 || text[len(text)-1] != '0') {
		return text
	}

	s.room = appendNumber(s.room[:0], text)
	return s.room
}

// string reads a string. Half of a surrogate pair equals only itself.
func (s *scanner) string() []byte {
	start := s.at + 1
	s.skipString()
	text := s.text[start : s.at-1]
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	s.room = appendUnescaped(s.room[:0], text)
	return s.room
}

// appendUnescaped appends the characters that the inside of a JSON string stands for.
func appendUnescaped(out, text []byte) []byte {
	out = slices.Grow(out, len(text))
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return append(out, text...)
		}

		out = append(out, text[:i]...)
		c := text[i+1]
		text = text[i+2:]

		switch c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := codeUnit(text)
			text = text[4:]
			if utf16.IsSurrogate(r) && bytes.HasPrefix(text, []byte(`\u`)) {
				if pair := utf16.DecodeRune(r, codeUnit(text[2:])); pair != utf8.RuneError {
					r, text = pair, text[6:]
				}
			}

			if utf16.IsSurrogate(r) {
				out = append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
			} else {
				out = utf8.AppendRune(out, r)
			}

		default:
			out = append(out, c)
		}
	}
}

// codeUnit reads the four hexadecimal digits of an escape.
func codeUnit(text []byte) rune {
	n, _ := strconv.ParseUint(string(text[:4]), 16, 32)
	return rune(n)
}
