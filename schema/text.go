package schema

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

const (
	excerptWidth = 100 // columns of a source line that are shown
	excerptLead  = 40  // of them at most before the caret, when a line is cut
	tabStop      = 4
)

// Text renders a problem for people, in plain text without a line feed at its
// end: "path:line:col: severity: message [code]", the excerpt when src is
// given or the problem has its own, and the hint. Control characters of foreign
// text are escaped.
func Text(p Problem, src []byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: %s: %s [%s]", clean(p.Path), p.Line, p.Column, p.Severity, clean(p.Message), p.Code)
	e := p.Excerpt
	if src != nil {
		e = Excerpt(src, p)
	}
	if e != "" {
		b.WriteByte('\n')
		b.WriteString(e)
	}
	if p.Hint != "" {
		b.WriteString("\n  hint: ")
		b.WriteString(clean(p.Hint))
	}

	return b.String()
}

// Excerpt shows the source line of a problem with a caret line below it, in two
// lines without a line feed at the end. The caret stands right in a terminal:
// tabs are expanded, wide characters and emoji count twice, characters that
// would not be seen are escaped, and a long line is cut around the problem. It
// is empty for a problem of a whole file, and when src has no such line.
func Excerpt(src []byte, p Problem) string {
	if len(src) == 0 || p.Line < 1 || p == wholeFile(p) {
		return ""
	}

	line, ok := sourceLine(src, p.Line)
	if !ok {
		return ""
	}

	line, skipped, cut := around(line, p.Column-1)
	cells := cellsOf(line)
	from := min(max(p.Column-1-skipped, 0), len(cells))
	to := len(cells)
	if p.EndLine == p.Line {
		to = min(max(p.EndColumn-1-skipped, from), len(cells))
	}

	shown, before, marked := window(cells, from, to, skipped > 0, cut)
	number := strconv.Itoa(p.Line)
	return fmt.Sprintf(
		"  %s | %s\n  %s | %s%s",
		number,
		strings.TrimRight(shown, " "),
		strings.Repeat(" ", len(number)),
		strings.Repeat(" ", before),
		strings.Repeat("^", max(marked, 1)),
	)
}

// wholeFile is p with the place of a problem that concerns a whole file and has
// nothing to point at.
func wholeFile(p Problem) Problem {
	if p.Code == ruleMissingKey.Code() || p.Code == ruleFrontMatter.Code() {
		return Problem{}
	}
	p.Line, p.Column, p.EndLine, p.EndColumn = 1, 1, 1, 1
	return p
}

func sourceLine(src []byte, line int) ([]byte, bool) {
	src = bytes.TrimPrefix(src, byteOrderMark)
	for ; line > 1; line-- {
		n := bytes.IndexByte(src, '\n')
		if n < 0 {
			return nil, false
		}

		src = src[n+1:]
	}

	if n := bytes.IndexByte(src, '\n'); n >= 0 {
		src = src[:n]
	}

	return bytes.TrimSuffix(src, []byte{'\r'}), true
}

// around cuts a very long line down to the code points near the one in
// question, and says how many it took off the start, and whether any off the
// end.
func around(line []byte, at int) (near []byte, skipped int, cut bool) {
	const most = 4 * excerptWidth // code points on either side
	if len(line) <= 4*most {
		return line, 0, false
	}

	for at-skipped > most && len(line) > 0 {
		_, n := utf8.DecodeRune(line)
		line = line[n:]
		skipped++
	}

	end := 0
	for n := 0; n < 2*most && end < len(line); n++ {
		_, size := utf8.DecodeRune(line[end:])
		end += size
	}

	return line[:end], skipped, end < len(line)
}

// cell is one code point as shown.
type cell struct {
	text  string
	width int
}

func cellsOf(line []byte) []cell {
	cells := make([]cell, 0, len(line))
	column := 0
	joined := false // the last code point was a joiner: the next adds no width
	for len(line) > 0 {
		r, n := utf8.DecodeRune(line)
		c := cell{string(line[:n]), 1}
		switch {
		case r == utf8.RuneError && n == 1:
			c = escaped(fmt.Sprintf(`\x%02x`, line[0]))
		case r == '\t':
			c.width = tabStop - column%tabStop
			c.text = strings.Repeat(" ", c.width)
		case r == 0x200d && len(cells) > 0: // zero width joiner, in an emoji
			c.width = 0
		case r == 0xfe0f && len(cells) > 0: // shown as an emoji
			c.width = 0
			if last := &cells[len(cells)-1]; last.width == 1 {
				last.width = 2
				column++
			}

		case hidden(r):
			c = escaped(escape(r))
		case joined, unicode.In(r, unicode.Mn, unicode.Me), r >= 0x1f3fb && r <= 0x1f3ff && len(cells) > 0:
			c.width = 0
		default:
			if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
				c.width = 2
			}
		}

		joined = r == 0x200d
		column += c.width
		cells = append(cells, c)
		line = line[n:]
	}

	return cells
}

func escaped(text string) cell { return cell{text, len(text)} }

// hidden says whether a character cannot be seen, or changes how others are
// shown: controls, line separators, bidirectional and other format characters.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs)
}

func escape(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// clean escapes the characters of a message that cannot be seen. Joiners stay.
func clean(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return hidden(r) || r == utf8.RuneError }) < 0 {
		return s
	}

	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case hidden(r) && r != 0x200d:
			b.WriteString(escape(r))
		default:
			b.WriteString(s[i : i+n])
		}

		i += n
	}

	return b.String()
}

// window cuts a line around the cells from..to and says how many columns stand
// before the first of them, and how many they take.
func window(cells []cell, from, to int, cutStart, cutEnd bool) (shown string, before, marked int) {
	start, end := 0, len(cells)
	total := 0
	for _, c := range cells {
		total += c.width
	}

	if total > excerptWidth {
		lead := 0
		for start = from; start > 0 && lead+cells[start-1].width <= excerptLead; start-- {
			lead += cells[start-1].width
		}

		used := lead
		for end = from; end < len(cells) && used+cells[end].width <= excerptWidth; end++ {
			used += cells[end].width
		}
	}

	var b strings.Builder
	if start > 0 || cutStart {
		b.WriteString("…")
		before++
	}

	for i := start; i < end; i++ {
		b.WriteString(cells[i].text)
		switch {
		case i < from:
			before += cells[i].width
		case i < to:
			marked += cells[i].width
		}
	}

	if end < len(cells) || cutEnd {
		b.WriteString("…")
	}

	return b.String(), before, marked
}

// Printable returns s with the characters that cannot be seen, or that change
// how others are shown, written as escapes: on a terminal and in a log, foreign
// text can then neither hide nor pass for something else.
func Printable(s string) string { return clean(s) }
