package schema_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"millwright/schema"
)

var update = flag.Bool("update", false, "write golden files and docs/checks.md anew")

const fixtures = "../testdata/factories"

// golden compares text with a golden file, or writes it.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s\nrun the tests with -update when this is meant", path, diff)
	}
}

// fixture is one directory of testdata/factories.
type fixture struct {
	name string // of the directory
	dir  string
	rule string // an err fixture's rule, the longest code its name begins with
}

func listFixtures(t testing.TB, kind string) []fixture {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(fixtures, kind))
	if err != nil {
		t.Fatal(err)
	}
	var out []fixture
	for _, e := range entries {
		f := fixture{name: e.Name(), dir: filepath.Join(fixtures, kind, e.Name())}
		for _, code := range schema.RuleCodes() {
			if (f.name == code || strings.HasPrefix(f.name, code+"-")) && len(code) > len(f.rule) {
				f.rule = code
			}
		}
		out = append(out, f)
	}
	return out
}

// tree opens a fixture: its directory, a tree.txtar in it, or, for trees that a
// repository cannot hold, what the name stands for.
func (f fixture) tree(t testing.TB) fs.FS {
	t.Helper()
	files := func(list ...schema.File) fs.FS {
		fsys, err := schema.FilesFS(list)
		if err != nil {
			t.Fatal(err)
		}
		return fsys
	}
	const webhook = "secretName: CI_TOKEN\n"
	name := f.name
	if filepath.Base(filepath.Dir(f.dir)) != "err" {
		name = ""
	}
	switch name {
	case "missing-path":
		return os.DirFS(filepath.Join(f.dir, "nowhere"))
	case "file-too-large":
		return files(schema.File{Path: "webhooks/ci.yaml", Content: webhook + strings.Repeat("#", schema.MaxFileBytes+1-len(webhook))})
	case "tree-too-large":
		list := make([]schema.File, schema.MaxFiles+1)
		for i := range list {
			list[i] = schema.File{Path: fmt.Sprintf("webhooks/w%d.yaml", i), Content: webhook}
		}
		return files(list...)
	case "tree-too-large-bytes":
		list := make([]schema.File, 70)
		for i := range list {
			list[i] = schema.File{Path: fmt.Sprintf("automations/a%d/automation.md", i), Content: strings.Repeat("x", 250<<10)}
		}
		return files(list...)
	case "unreadable":
		return closedFS{files(schema.File{Path: "webhooks/ci.yaml", Content: webhook}), "webhooks/ci.yaml"}
	case "invalid-name-control":
		return files(schema.File{Path: "webhooks/ci\x1b[31m.yaml", Content: webhook})
	}
	if archive, err := os.ReadFile(filepath.Join(f.dir, "tree.txtar")); err == nil {
		var list []schema.File
		for _, file := range txtar.Parse(archive).Files {
			list = append(list, schema.File{Path: file.Name, Content: string(file.Data)})
		}
		return files(list...)
	}
	return os.DirFS(f.dir)
}

// closedFS refuses to open one file.
type closedFS struct {
	fs.FS
	closed string
}

func (c closedFS) Open(name string) (fs.File, error) {
	if name == c.closed {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return c.FS.Open(name)
}

func (f fixture) known(t testing.TB) *schema.Known {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, "known.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var k schema.Known
	if err := json.Unmarshal(text, &k); err != nil {
		t.Fatal(err)
	}
	return &k
}

// output is what a checker prints for the problems of a result.
func output(r *schema.Result) string {
	var b strings.Builder
	for _, p := range r.Problems {
		b.WriteString(schema.Text(p, r.Source(p.Path)))
		b.WriteByte('\n')
	}
	return b.String()
}

// planRules are reported by the plan, which knows the revision applied before, or by the source.
var planRules = []string{"commit-signature", "deliveries-limit", "prune-guard", "sender-contract", "webhook-last", "webhook-renamed"}

func TestBrokenTrees(t *testing.T) {
	for _, f := range listFixtures(t, "err") {
		t.Run(f.name, func(t *testing.T) {
			if f.rule == "" {
				t.Fatalf("the name %q begins with no rule code", f.name)
			}
			if slices.Contains(planRules, f.rule) {
				t.Skip("reported by the plan")
			}
			r := schema.Load(f.tree(t), f.known(t))
			if f.rule == "not-hosted" { // only where it is asked for
				r.Problems = append(r.Problems, r.Hosted()...)
			}
			if !slices.ContainsFunc(r.Problems, func(p schema.Problem) bool { return p.Code == f.rule }) {
				t.Errorf("no problem has the code %s:\n%s", f.rule, output(r))
			}
			if (r.Factory == nil) != !r.Valid() {
				t.Errorf("Valid is %v and Factory %v", r.Valid(), r.Factory)
			}
			for _, p := range r.Problems {
				checkProblem(t, r, p)
			}
			golden(t, filepath.Join(f.dir, "expected.txt"), output(r))
		})
	}
}

// checkProblem checks what holds for every problem: a known rule, a severity no
// greater than the rule's, and a place inside the file.
func checkProblem(t testing.TB, r *schema.Result, p schema.Problem) {
	t.Helper()
	rule, ok := schema.LookupRule(p.Code)
	if !ok {
		t.Errorf("problem with unknown code: %+v", p)
	}
	rank := map[schema.Severity]int{schema.SeverityInfo: 1, schema.SeverityWarning: 2, schema.SeverityError: 3}
	if rank[p.Severity] == 0 || rank[p.Severity] > rank[rule.Severity] {
		t.Errorf("problem with severity %q, its rule has %q: %+v", p.Severity, rule.Severity, p)
	}
	if p.Message == "" || p.Path == "" {
		t.Errorf("problem without message or path: %+v", p)
	}
	if p.Line < 1 || p.Column < 1 || p.EndLine < p.Line || p.EndLine == p.Line && p.EndColumn < p.Column {
		t.Errorf("problem ends before it begins: %+v", p)
	}
	src := r.Source(p.Path)
	lines := strings.Split(strings.TrimPrefix(string(src), "\ufeff"), "\n")
	inside := func(line, col int) bool {
		return line <= len(lines) && col <= len([]rune(strings.TrimSuffix(lines[line-1], "\r")))+2
	}
	if !inside(p.Line, p.Column) || !inside(p.EndLine, p.EndColumn) {
		t.Errorf("problem outside its file of %d lines: %+v", len(lines), p)
	}
	if f := p.Fix; f != nil && (f.Start < 0 || f.End < f.Start || f.End > len(src)) {
		t.Errorf("fix outside its file: %+v", *f)
	}
	if e := schema.Excerpt(src, p); e != "" {
		two := strings.Split(e, "\n")
		if len(two) != 2 || !strings.Contains(two[1], "^") {
			t.Errorf("odd excerpt:\n%s", e)
		}
	}
}

func TestGoodTrees(t *testing.T) {
	for _, f := range listFixtures(t, "ok") {
		t.Run(f.name, func(t *testing.T) {
			r := schema.Load(f.tree(t), f.known(t))
			for _, p := range r.Problems {
				checkProblem(t, r, p)
				if p.Severity == schema.SeverityError || p.Code == f.rule {
					t.Errorf("unexpected problem: %s", schema.Text(p, r.Source(p.Path)))
				}
			}
			if !r.Valid() || r.Factory == nil {
				t.Fatalf("not valid: %v", r.Err)
			}
			text, err := json.MarshalIndent(r.Factory, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			if f.rule == "" {
				golden(t, filepath.Join(f.dir, "expected.json"), string(text)+"\n")
			}
			var back schema.Factory
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			again, err := json.MarshalIndent(&back, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(text), string(again)); diff != "" {
				t.Errorf("a round trip through JSON changes the factory:\n%s", diff)
			}
		})
	}
}

// TestEveryRuleIsShown keeps rules, fixtures and pages in step.
func TestEveryRuleIsShown(t *testing.T) {
	broken, good := map[string]bool{}, map[string]bool{}
	for _, f := range listFixtures(t, "err") {
		if f.name == f.rule || !broken[f.rule] {
			broken[f.rule] = true
		}
	}
	for _, f := range listFixtures(t, "ok") {
		good[f.rule] = true
	}
	for _, rule := range schema.Rules() {
		if !broken[rule.Code] {
			t.Errorf("rule %s has no failing fixture", rule.Code)
		}
		if !good[rule.Code] {
			t.Errorf("rule %s has no passing fixture", rule.Code)
		}
		page, ok := schema.RuleDoc(rule.Code)
		if !ok || !strings.Contains(page, rule.Doc) || !strings.Contains(page, "["+rule.Code+"]") {
			t.Errorf("rule %s has no page, or one without its text or output: %q", rule.Code, page)
		}
		if rule.Title == "" || rule.Doc == "" {
			t.Errorf("rule %s has no title or text", rule.Code)
		}
	}
	if codes := schema.RuleCodes(); len(slices.Compact(slices.Clone(codes))) != len(codes) {
		t.Errorf("a code is there twice: %v", codes)
	}
	if _, ok := schema.RuleDoc("no-such-rule"); ok {
		t.Error("an unknown rule has a page")
	}
}

// TestChecksPage generates docs/checks.md, which the program carries.
func TestChecksPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Checks

What ` + "`millwright validate`" + `, the plan and every apply look for in a definition tree.
This page is generated from the rules and from testdata/factories; ` + "`millwright explain RULE`" + `
prints one section of it.

An **error** keeps a tree from being applied; a **warning** or **info** does not. Rules
marked *needs state* run where a server or a list of secrets is at hand, and are named as
not checked otherwise.

| rule | severity | |
| --- | --- | --- |
`)
	for _, r := range schema.Rules() {
		title := r.Title
		if r.NeedsState {
			title += " *(needs state)*"
		}
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", r.Code, r.Code, r.Severity, title)
	}
	good := listFixtures(t, "ok")
	broken := listFixtures(t, "err")
	for _, r := range schema.Rules() {
		fmt.Fprintf(&b, "\n## %s\n\n%s: %s.", r.Code, r.Severity, r.Title)
		if r.NeedsState {
			b.WriteString(" Needs state.")
		}
		fmt.Fprintf(&b, "\n\n%s\n", r.Doc)
		for _, f := range broken {
			if f.rule == r.Code {
				b.WriteString("\n### " + f.name + "\n")
				showTree(t, &b, f)
				expected, err := os.ReadFile(filepath.Join(f.dir, "expected.txt"))
				if err != nil {
					t.Fatal(err)
				}
				b.WriteString("\nsays:\n\n" + fenced("text", visible(string(expected))))
			}
		}
		for _, f := range good {
			if f.rule == r.Code {
				b.WriteString("\n### Mended\n")
				showTree(t, &b, f)
			}
		}
	}
	golden(t, "../docs/checks.md", b.String())
}

// showTree shows the files of a fixture.
func showTree(t *testing.T, b *strings.Builder, f fixture) {
	t.Helper()
	if note, err := os.ReadFile(filepath.Join(f.dir, "note.txt")); err == nil {
		b.WriteString("\n" + string(note))
		return
	}
	fsys := f.tree(t)
	var paths []string
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == "expected.txt" {
			return err
		}
		paths = append(paths, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const most = 8
	for i, path := range paths {
		if i == most {
			fmt.Fprintf(b, "\nand %d more files like these.\n", len(paths)-most)
			break
		}
		if info, err := os.Lstat(filepath.Join(f.dir, path)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			fmt.Fprintf(b, "\n`%s` is a symbolic link.\n", path)
			continue
		}
		text, err := fs.ReadFile(fsys, path)
		if err != nil {
			t.Fatal(err)
		}
		name := "`" + path + "`"
		if path == "known.json" {
			name = "what is known of the state"
		}
		language := map[string]string{".yaml": "yaml", ".yml": "yaml", ".md": "markdown", ".json": "json"}[filepath.Ext(path)]
		fmt.Fprintf(b, "\n%s\n\n%s", name, fenced(language, visible(string(text))))
	}
}

func fenced(language, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}

// visible escapes what a page cannot show, and cuts long lines and texts.
func visible(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var b strings.Builder
	for _, r := range text {
		if r != '\n' && (r < ' ' || r == 0x7f || r == 0xfffd || r == 0xfeff || r == 0x2028) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	lines := strings.Split(b.String(), "\n")
	const most = 40
	if len(lines) > most {
		const head, tail = 16, 12
		left := fmt.Sprintf("… %d lines …", len(lines)-head-tail)
		lines = slices.Concat(lines[:head], []string{left}, lines[len(lines)-tail:])
	}
	return strings.Join(lines, "\n")
}
