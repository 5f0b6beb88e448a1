package language

import (
	"bytes"
	"sort"
	"unicode/utf8"
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// text is a text with the places of its lines, as the protocol counts them: a line ends with a line feed, a
// carriage return, or both.
type text struct {
	src   []byte
	lines []int // byte offset of each line
}

func newText(src []byte) *text {
	t := &text{src: src, lines: []int{0}}
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '\r':
			if i+1 < len(src) && src[i+1] == '\n' {
				i++
			}
		case '\n':
		default:
			continue
		}
		t.lines = append(t.lines, i+1)
	}
	return t
}

// fileText is the text of a file on disk. Editors take its byte-order mark for no part of the first line.
func fileText(src []byte) *text {
	t := newText(src)
	if bytes.HasPrefix(src, byteOrderMark) {
		t.lines[0] = len(byteOrderMark)
	}
	return t
}

// lineEnd returns the offset at which a line ends, before what ends it.
func (t *text) lineEnd(line int) int {
	end := len(t.src)
	if line+1 < len(t.lines) {
		end = t.lines[line+1]
	}
	for end > t.lines[line] && (t.src[end-1] == '\n' || t.src[end-1] == '\r') {
		end--
	}
	return end
}

// offset returns the byte offset of a position. A position beyond a line is at its end, one beyond the text
// at the text's end, and one inside a surrogate pair before it.
func (t *text) offset(p Position) int {
	if int64(p.Line) >= int64(len(t.lines)) {
		return len(t.src)
	}

	at, end := t.lines[p.Line], t.lineEnd(int(p.Line))
	for units := uint32(0); at < end; {
		r, size := utf8.DecodeRune(t.src[at:end])
		if units += width(r); units > p.Character {
			break
		}
		at += size
	}

	return at
}

// position returns the position of a byte offset.
func (t *text) position(offset int) Position {
	offset = min(max(offset, 0), len(t.src))
	line := sort.Search(len(t.lines), func(i int) bool { return t.lines[i] > offset }) - 1
	line = max(line, 0)

	units := uint32(0)
	for at := t.lines[line]; at < offset; {
		r, size := utf8.DecodeRune(t.src[at:])
		units += width(r)
		at += size
	}

	return Position{uint32(line), units}
}

func (t *text) span(start, end int) Range { return Range{t.position(start), t.position(end)} }

// width is how many UTF-16 code units a character takes.
func width(r rune) uint32 {
	if r >= 0x10000 {
		return 2
	}
	return 1
}

// place returns the byte offset of a line and column as problems have them: both from 1, the column in
// characters, lines ended by line feeds alone.
func (t *text) place(line, column int) int {
	at := 0
	if bytes.HasPrefix(t.src, byteOrderMark) {
		at = len(byteOrderMark)
	}

	for ; line > 1; line-- {
		n := bytes.IndexByte(t.src[at:], '\n')
		if n < 0 {
			return len(t.src)
		}
		at += n + 1
	}

	for ; column > 1 && at < len(t.src) && t.src[at] != '\n'; column-- {
		_, size := utf8.DecodeRune(t.src[at:])
		at += size
	}

	return at
}

// change returns the text with a change made to it.
func (t *text) change(c contentChange) []byte {
	if c.Range == nil {
		return []byte(c.Text)
	}

	start, end := t.offset(c.Range.Start), t.offset(c.Range.End)
	if end < start {
		start, end = end, start
	}

	out := make([]byte, 0, len(t.src)-(end-start)+len(c.Text))
	out = append(out, t.src[:start]...)
	out = append(out, c.Text...)
	return append(out, t.src[end:]...)
}
