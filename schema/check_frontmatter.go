package schema

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/adrg/frontmatter"
)

// splitFrontMatter finds the front matter of a Markdown file. The fences are
// checked here first, because a front matter that is missing, unclosed or
// opened with something else must never silently become prompt text: the first
// line is "---", a later line is "---", and trailing blanks are the only
// liberty. The library then does the splitting, and its answer must agree.
func (d *document) splitFrontMatter() bool {
	text := bytes.TrimPrefix(d.src, byteOrderMark)
	skipped := len(d.src) - len(text)
	fail := func(start, end int, message, hint string) bool {
		d.report(d.spanAt(skipped+start, skipped+end), ruleFrontMatter, message, hint)
		return false
	}
	first, next := lineAt(text, 0)
	if !isFence(first) {
		message, hint := "the file does not begin with front matter", "begin it with a line ---, the keys, and another line ---"
		switch trimmed := bytes.TrimSpace(first); {
		case len(bytes.TrimSpace(text)) == 0:
			message = "the file is empty"
		case len(trimmed) == 0:
			message, hint = "the file begins with a blank line before the front matter", "put --- on the first line"
		case bytes.Equal(trimmed, []byte("---")) && bytes.HasPrefix(first, []byte("---")):
			message, hint = "the line --- that opens the front matter ends with characters that look like blanks", "delete what follows ---"
		case bytes.Equal(trimmed, []byte("---")) && first[0] >= 0x80:
			message, hint = "the line --- that opens the front matter begins with a character that looks like a blank", "delete what precedes ---"
		case bytes.HasPrefix(trimmed, []byte("---\r")):
			message, hint = "the lines of the file end with carriage returns", "save it with LF line ends"
			first = first[:3]
		case bytes.Equal(trimmed, []byte("---")):
			message, hint = "the line --- that opens the front matter is indented", "put it at the start of the line"
		case bytes.HasPrefix(trimmed, []byte("+++")), bytes.HasPrefix(trimmed, []byte("---toml")):
			message, hint = "TOML front matter is not supported", "write YAML between two lines ---"
		case bytes.HasPrefix(trimmed, []byte("{")),
			bytes.HasPrefix(trimmed, []byte(";;;")),
			bytes.HasPrefix(trimmed, []byte("---json")):
			message, hint = "JSON front matter is not supported", "write YAML between two lines ---"
		case bytes.HasPrefix(trimmed, []byte("--")) && len(bytes.Trim(trimmed, "-")) == 0,
			bytes.HasPrefix(trimmed, []byte("---")), bytes.HasPrefix(trimmed, []byte("\u2014")), bytes.HasPrefix(trimmed, []byte("\u2013")):
			message, hint = "the front matter opens with "+quoted(
				string(trimmed),
			), "the first line must be exactly ---"
		}

		return fail(0, len(bytes.TrimRight(first, " \t\r")), message, hint)
	}

	close, after := -1, 0
	almost := -1
	for at := next; at < len(text); {
		line, following := lineAt(text, at)
		if isFence(line) {
			close, after = at, following
			break
		}

		if almost < 0 {
			if t := bytes.TrimSpace(line); len(t) >= 2 && len(bytes.Trim(t, "-")) == 0 ||
				bytes.Equal(t, []byte("...")) {
				almost = at
			}
		}

		at = following
	}

	if close < 0 {
		if almost >= 0 {
			line, _ := lineAt(text, almost)
			return fail(
				almost,
				almost+len(bytes.TrimRight(line, " \t\r")),
				fmt.Sprintf(
					"the front matter is never closed; this line is %s",
					quoted(string(bytes.TrimRight(line, " \t\r"))),
				),
				"the closing line must be exactly ---, at the start of the line",
			)
		}

		return fail(0, 3, "the front matter opens here and is never closed", "put a line --- after the last key")
	}

	var raw []byte
	reader, _ := readers.Get().(*bufio.Reader)
	reader.Reset(bytes.NewReader(text))
	defer readers.Put(reader)

	body, err := frontmatter.MustParse(reader, &raw, frontmatter.NewFormat("---", "---", captureRaw))
	if err != nil || !bytes.Equal(raw, text[next:close]) {
		// The library also takes an indented line for a fence; such a line can
		// only stand in a multi-line value, and the file's own fence counts.
		body = text[after:]
	}

	d.text, d.at, d.base = text[next:close], skipped+next, 1
	d.close = skipped + close
	d.body = trimBlankLines(body)
	return true
}

// readers saves the library a buffer for each file: it takes a buffered reader
// as it is.
var readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

// captureRaw is an unmarshal function that keeps the bytes as they are: they
// are decoded with positions later.
func captureRaw(data []byte, v any) error {
	raw, ok := v.(*[]byte)
	if !ok {
		return errors.New("front matter is captured as bytes")
	}
	*raw = data
	return nil
}

// lineAt returns the line that begins at an offset, without its line feed, and
// the offset of the next.
func lineAt(text []byte, at int) (line []byte, next int) {
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return text[at : at+n], at + n + 1
	}
	return text[at:], len(text)
}

func isFence(line []byte) bool {
	return bytes.HasPrefix(line, []byte("---")) && len(bytes.TrimRight(line[3:], " \t\r")) == 0
}

// trimBlankLines takes blank lines off both ends; the first line left keeps its
// indentation.
func trimBlankLines(body []byte) []byte {
	for len(body) > 0 {
		line, next := lineAt(body, 0)
		if len(bytes.TrimSpace(line)) > 0 {
			break
		}
		body = body[next:]
	}
	return bytes.TrimRight(body, " \t\r\n")
}
