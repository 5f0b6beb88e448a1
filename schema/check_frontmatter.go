package schema

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

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
		end := len(bytes.TrimRight(first, " \t\r"))
		if bytes.HasPrefix(first, []byte("---\r")) {
			end = 3
		}

		message, hint := noFence(text, first)
		return fail(0, end, message, hint)
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

// noFence explains why the first line of a text does not open front matter, and how to repair it.
func noFence(text, first []byte) (message, hint string) {
	const fence = "the line --- that opens the front matter "
	trimmed := bytes.TrimSpace(first)
	begins := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return bytes.HasPrefix(trimmed, []byte(p)) })
	}

	hint = "begin it with a line ---, the keys, and another line ---"
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return "the file is empty", hint
	case len(trimmed) == 0:
		return "the file begins with a blank line before the front matter", "put --- on the first line"
	case string(trimmed) == "---" && bytes.HasPrefix(first, []byte("---")):
		return fence + "ends with characters that look like blanks", "delete what follows ---"
	case string(trimmed) == "---" && first[0] >= 0x80:
		return fence + "begins with a character that looks like a blank", "delete what precedes ---"
	case begins("---\r"):
		return "the lines of the file end with carriage returns", "save it with LF line ends"
	case string(trimmed) == "---":
		return fence + "is indented", "put it at the start of the line"
	case begins("+++", "---toml"):
		return "TOML front matter is not supported", "write YAML between two lines ---"
	case begins("{", ";;;", "---json"):
		return "JSON front matter is not supported", "write YAML between two lines ---"
	case begins("--") && len(bytes.Trim(trimmed, "-")) == 0, begins("---", "\u2014", "\u2013"):
		return "the front matter opens with " + quoted(string(trimmed)), "the first line must be exactly ---"
	}

	return "the file does not begin with front matter", hint
}

// prompt finds the first line of the front matter that is a sentence of the prompt. Then the line that
// closes the front matter is missing, and a line --- of the prompt was taken for it.
func (d *document) prompt() (start, end int, ok bool) {
	if d.base == 0 {
		return 0, 0, false
	}

	for at := 0; at < len(d.text); {
		line, next := lineAt(d.text, at)
		if isSentence(string(line)) {
			_, _, err := decode(d.text[:at])
			return at, at + len(bytes.TrimRight(line, " \t\r")), err == nil
		}
		at = next
	}

	return 0, 0, false
}

// sentenceKey is prompt for a front matter that YAML reads all the same: a sentence with a colon looks like
// a key.
func (d *document) sentenceKey() (start, end int, ok bool) {
	if d.root == nil || d.base == 0 {
		return 0, 0, false
	}

	for i := 0; i < len(d.root.Content); i += 2 {
		if key := d.root.Content[i]; key.Style == 0 && key.Column == 1 && isSentence(key.Value) {
			return d.prompt()
		}
	}

	return 0, 0, false
}

// isSentence reports whether a line of YAML reads as prose. No key has three words or ends like a sentence.
func isSentence(line string) bool {
	first, _ := utf8.DecodeRuneInString(line)
	words, _, colon := strings.Cut(strings.TrimRight(line, " \t\r"), ":")
	ends := !colon && strings.HasSuffix(words, ".")
	return unicode.IsLetter(first) && (ends || len(strings.Fields(words)) > 2)
}

// openPrompt reports the line at which the prompt begins although the front matter is not closed.
func (d *document) openPrompt(start, end int) {
	fence, _ := d.position(d.close)
	d.report(
		d.spanAt(d.at+start, d.at+end),
		ruleFrontMatter,
		fmt.Sprintf("the front matter is not closed before this line; the next --- is on line %d", fence),
		"put a line --- between the last key and the prompt",
	)
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
