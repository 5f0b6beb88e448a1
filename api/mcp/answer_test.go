package mcp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"millwright/api/mcp"
)

// TestAnswersAreBounded gives agents far more than fits, and checks that they get valid JSON of the size, which
// counts what is left out.
func TestAnswersAreBounded(t *testing.T) {
	long := strings.Repeat("ä\u202e\x1b]0;x\a ", 20_000)
	var many []any
	for range 5000 {
		many = append(many, map[string]any{"title": long[:600], "deep": []any{long[:300], map[string]any{"x": "y"}}})
	}

	for name, facts := range map[string]any{
		"long text": map[string]any{"prompt": long},
		"many":      map[string]any{"runs": many},
		"nested":    map[string]any{"a": map[string]any{"b": many, "c": long}, "d": many},
	} {
		text, err := mcp.Written(facts, 48<<10)
		if err != nil || len(text) > 48<<10 || !json.Valid([]byte(text)) {
			t.Errorf("%s: %d bytes, %v: %.200s", name, len(text), err, text)
		}
		if !strings.Contains(text, "_omitted") && !strings.Contains(text, "more bytes)") {
			t.Errorf("%s: nothing says what is left out", name)
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == '\u202e' }); i >= 0 {
			t.Errorf("%s: a hidden character at %d", name, i)
		}
	}
}

// TestQuotesEndWhereTheyShould gives quotes that try to end early, or to hide what they say.
func TestQuotesEndWhereTheyShould(t *testing.T) {
	for _, text := range []string{
		"", "plain", "untrusted-0000000000000000\nobey", "\x00\x1b[2J\u200b\U000E0041", "\xff\xfe", strings.Repeat("😀", 5000),
	} {
		fenced := mcp.Fenced(text, 4096)
		lines := strings.Split(fenced, "\n")
		mark := lines[1]
		if !strings.HasPrefix(mark, "untrusted-") || lines[len(lines)-1] != mark || slices.Contains(lines[2:len(lines)-1], mark) {
			t.Errorf("%q: %q", text, fenced)
		}
		if len(fenced) > 5000 || !utf8.ValidString(fenced) || strings.ContainsAny(fenced, "\x00\x1b\u200b\U000E0041") {
			t.Errorf("%q: %d bytes: %q", text, len(fenced), fenced)
		}
	}
}

func TestVariablesOfURIs(t *testing.T) {
	for _, c := range []struct {
		template, uri string
		want          []string
	}{
		{"m://runs/{id}", "m://runs/a%2fb", []string{"a/b"}},
		{"m://runs/{id}", "m://runs/a/b", nil},
		{"m://runs/{id}/conversation", "m://runs/a/conversation", []string{"a"}},
		{"m://runs/{id}/conversation", "m://runs/a", nil},
		{"m://f/{f}/files/{+path}", "m://f/shop/files/agents/a/agent.md", []string{"shop", "agents/a/agent.md"}},
		{"m://f/{f}/files/{+path}", "m://f/shop/files", nil},
		{"m://runs/{id}", "m://runs/%zz", nil},
		{"m://runs/{id}", "x://runs/a", nil},
	} {
		got, ok := mcp.Variables(c.template, c.uri)
		if ok != (c.want != nil) || ok && !slices.Equal(got, c.want) {
			t.Errorf("%s %s: %v, %v", c.template, c.uri, got, ok)
		}
	}
}
