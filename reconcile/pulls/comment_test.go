package pulls

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state/checks"
)

// hostile are texts that a branch can put into names, values and hints.
var hostile = []string{
	"", " ", "`", "``x``", "\\", "\\`", "a|b", "| --- |", "@everyone", "x @root-admin", "<img src=x onerror=alert(1)>",
	"<!-- millwright:check-1-fac:00 -->", "[x](http://evil.example)", "![x](http://evil.example/x.png)",
	"https://evil.example www.evil.example me@evil.example", "#1 acme/shop#2 !3 GH-4 0123456789abcdef0123456789abcdef01234567",
	"a\nb\r\n\n# c", "\x00\x1b[31m", "\u202e\u2066\u200b", "$`x`$ $$x$$", ":tada: ~~~\n```", "\xff\xfe", strings.Repeat("é", 5000),
	"javascript:alert(1)", "&lt;img&gt; &#64;x", "***_x_***", "- [ ] x",
}

// check holds that Markdown has text in code spans, emphasis, headings and tables alone, and no mention.
func check(t *testing.T, source string) (spans int) {
	t.Helper()
	parser := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	tree := parser.Parse(text.NewReader([]byte(source)))
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n.Kind() {
		case ast.KindLink, ast.KindImage, ast.KindAutoLink, ast.KindRawHTML, ast.KindHTMLBlock:
			t.Fatalf("%s in %q", n.Kind(), source)
		case ast.KindCodeSpan:
			spans++
			return ast.WalkSkipChildren, nil
		case ast.KindText:
			if plain := string(n.(*ast.Text).Segment.Value([]byte(source))); strings.ContainsAny(plain, "@<>`") {
				t.Fatalf("%q is outside of code in %q", plain, source)
			}
		}
		return ast.WalkContinue, nil
	})
	for i, c := range source {
		if c == '@' && !strings.HasPrefix(source[i:], "@\u200b") {
			t.Fatalf("a mention in %q", source)
		}
	}
	return spans
}

// FuzzCode holds that text from elsewhere stays in one cell of a table, as code.
func FuzzCode(f *testing.F) {
	for _, seed := range hostile {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, foreign string) {
		got := code(foreign)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r|") || strings.Count(got, "`") > 2 || len(got) > 8*maxCell {
			t.Fatalf("%q becomes %q", foreign, got)
		}
		if got != "–" {
			source := "| a | b |\n| --- | --- |\n| " + got + " | " + code("next") + " |\n"
			if n := check(t, source); n != 2 {
				t.Fatalf("%d cells with code in %q", n, source)
			}
		}
	})
}

// TestComment gives a comment hostile text everywhere, and more of it than there is room for.
func TestComment(t *testing.T) {
	for _, public := range []bool{false, true} {
		r := Report{Factory: "mill", Head: "0123456789abcdef", Public: public}
		r.Plan.WouldApply = public
		for i := range 500 {
			foreign := hostile[i%len(hostile)]
			r.Plan.Changes = append(r.Plan.Changes, plan.Change{
				Kind: plan.KindWebhook, Action: plan.ActionCreate, Name: foreign, UID: "wh_secret", File: foreign, Line: i,
				Fields: []plan.Field{{Name: foreign}},
			})
			r.Plan.Secrets = append(r.Plan.Secrets, plan.Secret{Name: "KEY_" + foreign, Webhooks: []string{foreign}})
			r.Plan.Backtests = append(r.Plan.Backtests, plan.Backtest{Automation: foreign})
			r.Plan.Problems = append(r.Plan.Problems, schema.Problem{
				Severity: schema.SeverityError, Path: foreign, Message: foreign, Hint: foreign, Code: "invalid-value",
			})
		}

		body := r.Comment()
		check(t, body)
		if len(body) > 65_000 || !strings.Contains(body, "more.") {
			t.Errorf("%d bytes", len(body))
		}
		for _, secret := range []string{"wh_secret", "KEY_", "stored deliveries"} {
			if strings.Contains(body, secret) == public {
				t.Errorf("public %t: %q in the comment is %t", public, secret, !public)
			}
		}
	}
}

// TestPlaces has the first problems with a line, at their place in the repository and without a mention.
func TestPlaces(t *testing.T) {
	r := Report{}
	for i := range 100 {
		r.Plan.Problems = append(r.Plan.Problems, schema.Problem{
			Severity: schema.SeverityWarning, Path: "webhooks/a.yaml", Line: i, Message: hostile[i%len(hostile)] + "\n@all",
		}, schema.Problem{Severity: schema.SeverityError, Line: 3, Message: "of no file"})
	}

	all := r.places("def/mill")
	if len(all) != checks.MaxProblems {
		t.Fatalf("%d problems", len(all))
	}
	for i, p := range all {
		if p.Path != "def/mill/webhooks/a.yaml" || p.Line != i+1 || !p.Warning || !strings.HasSuffix(p.Text, "@\u200ball") &&
			!strings.HasSuffix(p.Text, "…") || strings.ContainsAny(p.Text, "\n\x00\x1b\u202e") {
			t.Errorf("problem %+v", p)
		}
	}
	for _, empty := range []Report{{Plan: r.Plan, Quiet: true}, {Plan: r.Plan, Unreadable: "x"}, {Plan: r.Plan, Broken: true}} {
		if got := empty.places("."); got != nil {
			t.Errorf("%d problems of a report without a plan", len(got))
		}
	}
}

// TestStatus has the status of each kind of report.
func TestStatus(t *testing.T) {
	broken := plan.Plan{Problems: []schema.Problem{
		{Severity: schema.SeverityError, Code: "secret-missing", Path: "webhooks/a.yaml", Line: 1, Message: "the team secret \"X\" does not exist"},
		{Severity: schema.SeverityError, Code: "unknown-key", Path: "webhooks/b.yaml", Line: 2, Message: "unknown key"},
	}}
	changed := plan.Plan{WouldApply: true, Changes: []plan.Change{
		{Action: plan.ActionCreate}, {Action: plan.ActionRestore}, {Action: plan.ActionDelete}, {Action: plan.ActionUnchanged},
	}}
	for want, r := range map[string]Report{
		"success does not change the definition":             {Quiet: true},
		"success would be applied: no changes":               {Plan: plan.Plan{WouldApply: true}},
		"success would be applied: 2 to create, 1 to delete": {Plan: changed},
		"failure would be refused: webhooks/a.yaml:1: the team secret \"X\" does not exist [secret-missing] and 1 more": {Plan: broken},
		"failure would be refused: webhooks/b.yaml:2: unknown key [unknown-key] and 1 more":                             {Plan: broken, Public: true},
		"failure would be refused: 1 problem, which the server's page has":                                              {Plan: plan.Plan{Problems: broken.Problems[:1]}, Public: true},
		"failure would be refused: too large":                                                                           {Unreadable: "too large"},
		"error the server could not check this commit; push again, or see its log":                                      {Broken: true},
	} {
		result, text := r.Status()
		if got := fmt.Sprint(result, " ", text); got != want {
			t.Errorf("status %q, want %q", got, want)
		}
		if result == checks.Pending {
			t.Error("a report is pending")
		}
	}
}
