package dashboard_test

import (
	"regexp"
	"strings"
	"testing"

	"millwright/dashboard"
)

var (
	aTag    = regexp.MustCompile(`<[^>]*>`)
	safeTag = regexp.MustCompile(`^<(?:/?(?:p|ul|ol|li|blockquote|pre|code|em|strong|del|table|thead|tbody|tr|th|td|a|span)` +
		`|br|hr|ol start="\d+"|p class="heading"|span class="quiet"|code class="language-[^"<>]*"` +
		`|a rel="noreferrer nofollow" href="(?:https?://|mailto:)[^"<>]*")>$`)
)

// onlySafe fails the test when rendered Markdown has an element or attribute that text cannot make here.
func onlySafe(t *testing.T, source, rendered string) {
	t.Helper()
	for _, tag := range aTag.FindAllString(rendered, -1) {
		if !safeTag.MatchString(tag) {
			t.Fatalf("%q becomes %s in %s", source, tag, rendered)
		}
	}
	if rest := aTag.ReplaceAllString(rendered, ""); strings.ContainsAny(rest, "<>") {
		t.Fatalf("%q becomes %q", source, rendered)
	}
}

func TestMarkdown(t *testing.T) {
	for source, want := range map[string]string{
		"# A heading":                       `<p class="heading">A heading</p>`,
		"one `<b>` two":                     "<p>one <code>&lt;b&gt;</code> two</p>",
		"- a\n- b":                          "<ul>\n<li>a</li>\n<li>b</li>\n</ul>",
		"| a | b |\n|---|---|\n| 1 | <i> |": "&lt;i&gt;",
		"```sh\nmake <all>\n```":            `<pre><code class="language-sh">make &lt;all&gt;`,
		"**x** <script>alert(1)</script>":   "<strong>x</strong> &lt;script&gt;alert(1)&lt;/script&gt;",
		"[a](https://evil.example/x)":       `<a rel="noreferrer nofollow" href="https://evil.example/x">a</a> <span class="quiet">(evil.example)</span>`,
		"[a](javascript:alert(1)) **b**":    "a <strong>b</strong>",
		"[a](//evil.example) **b**":         "a <strong>b</strong>",
		"![a](https://evil.example/x.png)":  `href="https://evil.example/x.png">a</a>`,
		"`a` https://example.com/x":         `<a rel="noreferrer nofollow" href="https://example.com/x">https://example.com/x</a>`,
	} {
		got, structured := dashboard.Markdown(source)
		if !structured || !strings.Contains(got, want) {
			t.Errorf("%q becomes %q, %v; want %q", source, got, structured, want)
		}
		onlySafe(t, source, got)
	}
	for _, source := range []string{"", "plain", "two\nlines", "ok  pkg/a 0.1s\nok  pkg/b 0.2s", "a * b * c", "see https://example.com", "<div>\n<b>x</b>\n</div>"} {
		if got, structured := dashboard.Markdown(source); structured {
			t.Errorf("%q becomes %q, though it is plain", source, got)
		}
	}
}

// TestMarkdownCost: a text of the greatest size is rendered to a bounded multiple of it, or left as it is.
func TestMarkdownCost(t *testing.T) {
	for _, unit := range []string{
		">", "> ", "- ", "* a\n", "1. ", "[", "![", "](", "[a](", "`", "``` ", "*a **a ", "_", "<", "| a ", "|-", "a|\n-|\n",
		"#", "~~", "\\", "&", "http://", "\t", " - a\n  ", "[a]: b\n", "[a]",
	} {
		source := "**x**\n\n" + strings.Repeat(unit, (64<<10)/len(unit))
		got, _ := dashboard.Markdown(source)
		if len(got) > 8*len(source)+1024 {
			t.Errorf("%q many times becomes %d bytes", unit, len(got))
		}
		onlySafe(t, unit, got)
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{markup, control, "[a](https://b \"c\")", "![a][b]\n\n[b]: data:text/html,x", "<a@b.c>", "~~~ \"><x\nz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		rendered, _ := dashboard.Markdown(source)
		onlySafe(t, source, rendered)
	})
}
