package language

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// TestPositions compares offsets and positions with a text in UTF-16, for texts with every kind of line end
// and of character.
func TestPositions(t *testing.T) {
	for _, src := range []string{
		"", "a", "a\n", "\n\n", "a\r\nb", "a\rb\r\rc", "ä😀b\n😀", "\ufeffa: 1\n", "😀😀\r\n😀", "a\xffb", "é\n\r\n\n\r",
	} {
		text := newText([]byte(src))
		for at := 0; at <= len(src); at++ {
			if at < len(src) && !utf8.RuneStart(src[at]) || strings.HasPrefix(src[at:], "\n") && strings.HasSuffix(src[:at], "\r") {
				continue
			}
			p := text.position(at)
			if back := text.offset(p); back != at {
				t.Errorf("%q: offset %d is at %+v, which is offset %d", src, at, p, back)
			}
			line := src[text.lines[p.Line]:at]
			if want := len(utf16.Encode([]rune(line))); int(p.Character) != want {
				t.Errorf("%q: offset %d is at character %d, want %d", src, at, p.Character, want)
			}
		}
	}
}

func FuzzChange(f *testing.F) {
	f.Add("a: 1\nb: ä😀\r\n", uint32(1), uint32(3), uint32(1), uint32(4), "x\ny")
	f.Add("", uint32(9), uint32(9), uint32(0), uint32(0), "😀")
	f.Add("a\rb", uint32(1<<31), uint32(1<<31), uint32(1), uint32(1<<31), "")
	f.Fuzz(func(t *testing.T, src string, l1, c1, l2, c2 uint32, with string) {
		text := newText([]byte(src))
		out := text.change(contentChange{Range: &Range{Position{l1, c1}, Position{l2, c2}}, Text: with})
		if !strings.Contains(string(out), with) || len(out) > len(src)+len(with) {
			t.Errorf("%q with %q is %q", src, with, out)
		}
		text.place(int(l1), int(c1))
		text.position(int(l2))
	})
}

// FuzzCursor reads the structure around every cursor of a file that is being typed. What is replaced lies in
// the file.
func FuzzCursor(f *testing.F) {
	for _, text := range []string{
		"---\ntriggers:\n  - provider: webhook\n    filter: {webhook_ids: [a, ", "a: 'b", "a: \"😀\\", "- - a", "? a\n: b", "&a [*a]",
		"---\nagent: x\n---\nprompt", "a:\n  b:\n    - {c: d}\n", "\ufeffa: b", "a: |\n  text\n", "a: # b\n", "{", "}: [", "a: \"",
	} {
		f.Add(text, uint16(len(text)), uint8(0))
		f.Add(text, uint16(len(text)/2), uint8(1))
	}
	f.Fuzz(func(t *testing.T, src string, at uint16, kind uint8) {
		paths := []string{"automations/a/automation.md", "webhooks/a.yaml", "factory.yaml"}
		offset := min(int(at), len(src))
		c, ok := cursorIn(paths[int(kind)%len(paths)], []byte(src), offset)
		if ok && (c.start < 0 || c.end < c.start || c.end > len(src)) {
			t.Errorf("%q at %d: %d to %d is replaced", src, offset, c.start, c.end)
		}
		openBrackets(src)
	})
}
