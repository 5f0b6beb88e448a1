package report_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"millwright/schema"
	"millwright/schema/report"
)

var update = flag.Bool("update", false, "write golden files anew")

// check loads files as the command line does, under the shown path dir.
func check(t testing.TB, dir string, known *schema.Known, files ...schema.File) *report.Report {
	t.Helper()
	fsys, err := schema.FilesFS(files)
	if err != nil {
		t.Fatal(err)
	}
	r := schema.Load(fsys, known)
	out := &report.Report{
		Version: "v1.2.3", Trees: []report.Tree{{Path: dir, Files: r.Files}}, NotChecked: r.NotChecked,
		Source: func(p string) []byte { return r.Source(strings.TrimPrefix(p, dir+"/")) },
	}
	for _, p := range r.Problems {
		p.Path = dir + "/" + p.Path
		out.Problems = append(out.Problems, p)
	}
	return out
}

// nasty is text that means something to each of the forms.
const nasty = "]]>&lt;</failure>```\u202e%0A::error::x|@team #1,file=y\x1b[31m"

func samples(t testing.TB) map[string]*report.Report {
	t.Helper()
	mixed := &report.Report{
		Version: "v1.2.3", Trees: []report.Tree{{Path: "factory", Files: 4}}, NotChecked: []string{"prune-guard", "webhook-renamed"},
		Notices: []string{"this program (v1.2.3) is older than the server (v1.3.0)"},
		Problems: []schema.Problem{
			{Path: "factory/automations/go.md", Line: 1, Column: 1, EndLine: 1, EndColumn: 1, Severity: schema.SeverityWarning, Code: "flat-automation", Message: "an automation has a directory of its own"},
			{Path: "factory/automations/go.md", Line: 3, Column: 1, EndLine: 3, EndColumn: 2, Severity: schema.SeverityError, Code: "invalid-yaml", Message: "a tab in the indentation", Hint: "replace it"},
			{Path: "factory/automations/go.md", Line: 4, Column: 3, EndLine: 5, EndColumn: 2, Severity: schema.SeverityInfo, Code: "trigger-not-fired", Message: "slack/mention is not fired by this server"},
			{Path: "factory/webhooks/ci.yaml", Line: 1, Column: 13, EndLine: 1, EndColumn: 21, Severity: schema.SeverityError, Code: "secret-missing", Message: `the team secret "CI_TOKEM" does not exist`, Hint: `did you mean "CI_TOKEN"?`},
		},
		Source: func(p string) []byte {
			return []byte(map[string]string{
				"factory/webhooks/ci.yaml":  "secretName: CI_TOKEM\n",
				"factory/automations/go.md": "---\ntriggers:\n\t- provider: slack\n  event: 漢字\n---\n",
			}[p])
		},
	}
	hostile := check(t, "a: b,c%d", nil,
		schema.File{Path: "webhooks/" + strings.ReplaceAll(nasty, "/", "_") + ".yaml", Content: "secretName: X\n"},
		schema.File{Path: "webhooks/w.yaml", Content: "secretName: \"" + strings.ReplaceAll(nasty[:len(nasty)-5], "\x1b", "") + "\"\n"},
		schema.File{Path: "webhooks/v.yaml", Content: "secretName: " + strings.Repeat("`", 200) + "\n"},
	)
	incomplete := check(t, "factory", nil, schema.File{Path: "webhooks/ci.yaml", Content: "secretName: X\n"})
	incomplete.Trees = append(incomplete.Trees, report.Tree{Path: "elsewhere", Err: "no such directory"})
	good := check(t, ".", nil, schema.File{Path: "webhooks/ci.yaml", Content: "secretName: X\n"})
	warned := check(t, "f", nil, schema.File{Path: "automations/go.md", Content: "---\ntriggers: [{provider: slack, event: mention}]\n---\nGo.\n"})
	var same []schema.File
	for i := range 3 {
		same = append(same, schema.File{Path: fmt.Sprintf("webhooks/w%d.yaml", i), Content: "enabled: true\nx: 1\nx: 1\nx: 1\n"})
	}
	unknown := check(t, "f", nil)
	unknown.Problems = []schema.Problem{{Path: "f/webhooks/a.yaml", Line: 1, Column: 1, EndLine: 1, EndColumn: 1, Severity: schema.SeverityError, Code: "rule-of-the-future", Message: "no"}}
	return map[string]*report.Report{
		"mixed": mixed, "hostile": hostile, "incomplete": incomplete, "good": good, "warned": warned,
		"same": check(t, "f", nil, same...), "unknown": unknown, "nothing": {},
	}
}

func write(t testing.TB, format string, r *report.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Write(&b, format, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGolden shows what each form looks like. SARIF has the pages of all rules
// in it and is left to its schema.
func TestGolden(t *testing.T) {
	for _, format := range report.Formats() {
		if format == "sarif" {
			continue
		}
		file := filepath.Join("testdata", "mixed."+format)
		got := write(t, format, samples(t)["mixed"])
		if format == "junit" { // the passing rules come and go with the rules
			got = regexp.MustCompile(`(?m)^ *<testcase name="([a-z0-9-]+)" classname="[a-z0-9-]+"></testcase>\n`).ReplaceAllString(got, "")
			got = regexp.MustCompile(`tests="\d+"`).ReplaceAllString(got, `tests="N"`)
		}
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s\nrun with -update when this is meant", format, diff)
		}
	}
}

func TestOutcome(t *testing.T) {
	want := map[string]report.Outcome{
		"mixed": report.Bad, "hostile": report.Bad, "incomplete": report.Incomplete, "good": report.Good, "warned": report.Good,
		"same": report.Bad, "unknown": report.Bad, "nothing": report.Good,
	}
	for name, r := range samples(t) {
		if got := r.Outcome(); got != want[name] {
			t.Errorf("%s: outcome %q, want %q", name, got, want[name])
		}
	}
	strict := samples(t)["warned"]
	strict.Strict = true
	if got := strict.Outcome(); got != report.Bad {
		t.Errorf("a warning, strictly: %q", got)
	}
	good := samples(t)["good"]
	good.Strict = true
	if got := good.Outcome(); got != report.Good {
		t.Errorf("good, strictly: %q", got)
	}
}

// TestNotCheckedIsSaid looks for the name of every rule that did not run, in
// every form, and for what could not be checked.
func TestNotCheckedIsSaid(t *testing.T) {
	r := samples(t)["incomplete"]
	if !slices.Contains(r.NotChecked, "secret-missing") {
		t.Fatal("the sample checked everything")
	}
	for _, format := range report.Formats() {
		out := write(t, format, r)
		for _, code := range append(slices.Clone(r.NotChecked), "elsewhere", "no such directory") {
			if !strings.Contains(out, code) {
				t.Errorf("%s does not say %s", format, code)
			}
		}
		if strings.Contains(out, "no problems") && !strings.Contains(out, "could not check") {
			t.Errorf("%s passes for good:\n%s", format, out)
		}
	}
}

func TestSameBytesEveryTime(t *testing.T) {
	for _, format := range report.Formats() {
		first := samples(t)
		for name, r := range samples(t) {
			if a, b := write(t, format, first[name]), write(t, format, r); a != b {
				t.Errorf("%s of %s differs between runs", format, name)
			}
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	err := report.Write(&bytes.Buffer{}, "xml", &report.Report{})
	if !errors.Is(err, report.ErrUnknownFormat) || !strings.Contains(err.Error(), "junit") {
		t.Errorf("error %v", err)
	}
	if err := report.Write(closed{}, "text", &report.Report{}); err == nil {
		t.Error("a report that could not be written passes for one that was")
	}
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, os.ErrClosed }

var ansi = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestColor(t *testing.T) {
	for name, r := range samples(t) {
		plain := write(t, "text", r)
		if strings.Contains(plain, "\x1b") {
			t.Errorf("%s: escape sequences without colour: %q", name, plain)
		}
		r.Color = true
		painted := write(t, "text", r)
		if !strings.Contains(painted, "\x1b[") {
			t.Errorf("%s: no colour", name)
		}
		if diff := cmp.Diff(plain, ansi.ReplaceAllString(painted, "")); diff != "" {
			t.Errorf("%s: colour changes the text:\n%s", name, diff)
		}
	}
}

func TestMarkdownFits(t *testing.T) {
	for _, n := range []int{0, 1, 500, 30_000} {
		r := &report.Report{Trees: []report.Tree{{Path: "f"}}}
		for i := range n {
			r.Problems = append(r.Problems, schema.Problem{
				Path: "f/webhooks/a.yaml", Line: i + 1, Column: 1, EndLine: i + 1, EndColumn: 1, Severity: schema.SeverityError, Code: "filter",
				Message: "something is wrong with this 漢字", Hint: "mend it",
			})
		}
		got := write(t, "markdown", r)
		if len(got) > report.MarkdownLimit {
			t.Errorf("%d problems take %d bytes", n, len(got))
		}
		shown := strings.Count(got, "[filter]")
		left := 0
		if m := regexp.MustCompile(`… and (\d+) more`).FindStringSubmatch(got); m != nil {
			fmt.Sscan(m[1], &left)
		}
		if shown+left != n {
			t.Errorf("of %d problems, %d are shown and %d counted", n, shown, left)
		}
		if n == 30_000 && shown < 300 {
			t.Errorf("only %d problems are shown", shown)
		}
	}
}

// TestMarkdownStaysInItsFence reads the output as a Markdown parser would: no
// foreign text may stand outside a code block.
func TestMarkdownStaysInItsFence(t *testing.T) {
	for name, r := range samples(t) {
		fence := ""
		for line := range strings.Lines(write(t, "markdown", r)) {
			line = strings.TrimSuffix(line, "\n")
			ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
			switch {
			case fence == "" && len(ticks) >= 3:
				fence = ticks
			case fence != "" && len(ticks) >= len(fence) && strings.Trim(line, "`") == "":
				fence = ""
			case fence == "" && strings.ContainsAny(line, "@<|`%\\"):
				t.Errorf("%s: outside a code block: %q", name, line)
			}
		}
		if fence != "" {
			t.Errorf("%s: a code block is not closed", name)
		}
	}
}

func TestFenced(t *testing.T) {
	long := strings.Repeat("漢", 1000)
	for _, c := range []struct {
		items []string
		limit int
	}{
		{nil, 100},
		{[]string{"a", "b"}, 100},
		{[]string{long, "b"}, 200},
		{[]string{"```", "````"}, 100},
		{[]string{strings.Repeat("`", 5000)}, 200},
		{slices.Repeat([]string{"one\ntwo"}, 1000), 300},
	} {
		got := report.Fenced("diff", c.items, c.limit)
		if len(got) > c.limit {
			t.Errorf("%d bytes, at most %d wanted: %q", len(got), c.limit, got)
		}
		if !strings.HasPrefix(got, "```") || strings.Count(got, "\n") < 2 || strings.ToValidUTF8(got, "?") != got {
			t.Errorf("no block: %q", got)
		}
	}
}
