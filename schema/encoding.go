package schema

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// wideEncoding names the encoding of a text of two or four bytes a character, by its mark or by its zero
// bytes; it is empty for any other.
func wideEncoding(src []byte) string {
	zeros := [4]int{}
	sample := src[:min(len(src), 64)]
	for i, c := range sample {
		if c == 0 {
			zeros[i%4]++
		}
	}

	most := len(sample) / 4
	switch {
	case bytes.HasPrefix(src, []byte{0xff, 0xfe, 0, 0}), bytes.HasPrefix(src, []byte{0, 0, 0xfe, 0xff}),
		most > 0 && (min(zeros[1], zeros[2], zeros[3]) >= most || min(zeros[0], zeros[1], zeros[2]) >= most):
		return "UTF-32"
	case bytes.HasPrefix(src, []byte{0xff, 0xfe}), bytes.HasPrefix(src, []byte{0xfe, 0xff}),
		most > 0 && (min(zeros[1], zeros[3]) >= most || min(zeros[0], zeros[2]) >= most):
		return "UTF-16"
	}

	return ""
}

func (d *document) checkEncoding() bool {
	if utf8.Valid(d.src) {
		return true
	}

	at := invalidUTF8(d.src)
	hint := "save the file as UTF-8"
	if wide := wideEncoding(d.src); wide != "" {
		hint = "the file is " + wide + ": save it as UTF-8"
	}

	line, col := d.position(at)
	d.report(
		span{line, col, line, col + 1},
		ruleNotUTF8,
		fmt.Sprintf("the file is not valid UTF-8 at byte %d", at),
		hint,
	)

	return false
}

// wholeText takes the file as YAML from its first line to its last.
func (d *document) wholeText() {
	d.text = bytes.TrimPrefix(d.src, byteOrderMark)
	d.at = len(d.src) - len(d.text)
}
