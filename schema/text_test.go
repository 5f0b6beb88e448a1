package schema_test

import (
	"strings"
	"testing"

	"millwright/schema"
)

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("a", 300)
	tests := []struct {
		name, src          string
		line, col, end     int
		wantLine, wantMark string
	}{
		{"plain", "a: b\nkey: value\n", 2, 6, 11, "  2 | key: value", "    |      ^^^^^"},
		{"tab", "a:\tvalue\n", 1, 4, 9, "  1 | a:  value", "    |     ^^^^^"},
		{"tab marked", "\tx\n", 1, 1, 2, "  1 |     x", "    | ^^^^"},
		{"CRLF", "a: b\r\nkey: v\r\n", 2, 6, 7, "  2 | key: v", "    |      ^"},
		{"byte-order mark", "\ufeffkey: v\n", 1, 6, 7, "  1 | key: v", "    |      ^"},
		{"wide", "日本: 値x\n", 1, 5, 6, "  1 | 日本: 値x", "    |       ^^"},
		{"full width", "Ａ: x\n", 1, 4, 5, "  1 | Ａ: x", "    |     ^"},
		{"emoji", "🎉: x\n", 1, 4, 5, "  1 | 🎉: x", "    |     ^"},
		{"emoji of several", "👩\u200d💻: x\n", 1, 6, 7, "  1 | 👩\u200d💻: x", "    |     ^"},
		{"emoji by selector", "\u2764\ufe0f: x\n", 1, 5, 6, "  1 | \u2764\ufe0f: x", "    |     ^"},
		{"skin tone", "👍🏽: x\n", 1, 5, 6, "  1 | 👍🏽: x", "    |     ^"},
		{"flag", "🇩🇪: x\n", 1, 5, 6, "  1 | 🇩🇪: x", "    |     ^"},
		{"combining", "e\u0301: x\n", 1, 5, 6, "  1 | e\u0301: x", "    |    ^"},
		{"control", "a\x1b[31m: x\n", 1, 9, 10, `  1 | a\u001b[31m: x`, "    |              ^"},
		{"right-to-left override", "a\u202eb: x\n", 1, 3, 4, `  1 | a\u202eb: x`, "    |        ^"},
		{"bad byte", "a\xff: x\n", 1, 2, 3, `  1 | a\xff: x`, "    |  ^^^^"},
		{"nothing to mark", "key:\n", 1, 5, 5, "  1 | key:", "    |     ^"},
		{"beyond the end", "key:\n", 1, 99, 120, "  1 | key:", "    |     ^"},
		{"tenth line", strings.Repeat("\n", 9) + "k: v\n", 10, 4, 5, "  10 | k: v", "     |    ^"},
		{"long line, start", long, 1, 3, 5, "  1 | " + long[:100] + "…", "    |   ^^"},
		{"long line, middle", long, 1, 151, 153, "  1 | …" + long[:100] + "…", "    | " + strings.Repeat(" ", 41) + "^^"},
		{"long line, end", long, 1, 300, 301, "  1 | …" + long[:41], "    | " + strings.Repeat(" ", 41) + "^"},
		{"no line feed at the end", "k: v", 1, 4, 5, "  1 | k: v", "    |    ^"},
	}
	for _, tt := range tests {
		p := schema.Problem{Line: tt.line, Column: tt.col, EndLine: tt.line, EndColumn: tt.end}
		if got, want := schema.Excerpt([]byte(tt.src), p), tt.wantLine+"\n"+tt.wantMark; got != want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, want)
		}
	}
}

func TestExcerptOfNothing(t *testing.T) {
	for _, p := range []schema.Problem{
		{},
		{Line: 1, Column: 1, EndLine: 1, EndColumn: 1}, // of a whole file
		{Line: 3, Column: 1, EndLine: 3, EndColumn: 2},
		{Line: -1, Column: -5, EndLine: -1},
	} {
		if got := schema.Excerpt([]byte("a\nb"), p); got != "" {
			t.Errorf("%+v: %q", p, got)
		}
	}
	if got := schema.Excerpt(nil, schema.Problem{Line: 1, Column: 1, EndLine: 1, EndColumn: 2}); got != "" {
		t.Errorf("without a source: %q", got)
	}
}

func TestExcerptOfSeveralLines(t *testing.T) {
	p := schema.Problem{Line: 1, Column: 4, EndLine: 3, EndColumn: 2}
	if got, want := schema.Excerpt([]byte("a: [b,\n c,\n d]\n"), p), "  1 | a: [b,\n    |    ^^^"; got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestTextEscapesForeignText(t *testing.T) {
	p := schema.Problem{Path: "webhooks/a\x1b]0;x\a\n.yaml", Line: 1, Column: 1, EndLine: 1, EndColumn: 1, Severity: schema.SeverityError, Code: "x", Message: "m\u202e", Hint: "h\r\xff"}
	want := `webhooks/a\u001b]0;x\u0007\u000a.yaml:1:1: error: m\u202e [x]` + "\n" + `  hint: h\u000d\xff`
	if got := schema.Text(p, nil); got != want {
		t.Errorf("got %q", got)
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add([]byte("a: b\n"), 1, 4, 1, 5)
	f.Add([]byte("\ufeff日本\t\r\n"), 1, 2, 2, 1)
	f.Fuzz(func(t *testing.T, src []byte, line, col, endLine, endCol int) {
		e := schema.Excerpt(src, schema.Problem{Line: line, Column: col, EndLine: endLine, EndColumn: endCol})
		if e == "" {
			return
		}
		two := strings.Split(e, "\n")
		if len(two) != 2 || !strings.HasSuffix(two[1], "^") || len(two[1]) > 250 {
			t.Errorf("odd excerpt:\n%q", e)
		}
		for _, r := range e {
			if r != '\n' && r < ' ' || r == 0x7f || r == 0x202e {
				t.Errorf("%U is shown raw", r)
			}
		}
	})
}
