//go:build unix

package worker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	acp "github.com/coder/acp-go-sdk"
)

// maxLine is how many bytes of a line of output are read; the rest is dropped.
const maxLine = 1 << 20

// readLines calls f with each line of r, without its end, until r ends. left is the number of dropped bytes
// of the line.
func readLines(r io.Reader, f func(line []byte, left int)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	left := 0
	for {
		part, err := in.ReadSlice('\n')
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		if room := maxLine - len(line); len(part) > room {
			left += len(part) - room
			part = part[:room]
		}

		line = append(line, part...)
		if ended || err != bufio.ErrBufferFull && len(line) > 0 {
			f(bytes.TrimSuffix(line, []byte("\r")), left)
			line, left = line[:0], 0
			if cap(line) > 128<<10 {
				line = nil
			}
		}

		if err != nil && err != bufio.ErrBufferFull {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// shortened appends a note about the dropped bytes of a line. It closes a JSON object that ends inside a
// string, such as an image in base64, so that it still parses as a block.
func shortened(line string, left int) string {
	note := fmt.Sprintf("… [%d bytes left out]", left)
	if !strings.HasPrefix(line, "{") {
		return line + note
	}

	var open []byte
	inString, escaped := false, false
	for _, c := range []byte(line) {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = c == '\\', c != '"'
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			open = append(open, c+2) // closing text, in ASCII
		case (c == '}' || c == ']') && len(open) > 0:
			open = open[:len(open)-1]
		}
	}

	slices.Reverse(open)
	text := line
	if i := strings.LastIndexByte(text, '\\'); i >= len(text)-6 { // maybe half an escape
		text = strings.TrimRight(text[:max(i, 0)], `\`)
	}
	if closed := text + note + `"` + string(open); inString && json.Valid([]byte(closed)) {
		return closed
	}

	return line + note
}

// clean makes text valid UTF-8 without NUL.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// tail keeps the last bytes that are written to it.
type tail struct{ kept []byte }

// maxTail is how much of standard error becomes the status message, in bytes.
const maxTail = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if len(t.kept) > 4*maxTail {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-2*maxTail:]...)
	}
	return len(p), nil
}

// text returns the stored bytes with secrets redacted. It removes a partial secret at the beginning.
func (t *tail) text(r *redactor) string {
	text := clean(r.text(string(t.kept)))
	if len(text) > maxTail {
		text = "…" + clean(text[len(text)-maxTail:])
	}
	return strings.TrimSpace(text)
}

// reason returns the words of an agent's error.
func reason(err error) string {
	var refused *acp.RequestError
	if !errors.As(err, &refused) {
		return err.Error()
	}

	text := refused.Message
	if details, ok := refused.Data.(map[string]any); ok {
		if more, ok := details["details"].(string); ok {
			text += ": " + more
		}
	}
	return cut(clean(text), maxTail)
}

// cut shortens text to about max bytes, with a note at the end.
func cut(text string, max int) string {
	if len(text) <= max {
		return text
	}
	return clean(text[:max]) + fmt.Sprintf("… [%d bytes left out]", len(text)-max)
}
