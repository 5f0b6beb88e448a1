package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"millwright/cmd/cli"
)

// TestReadme holds the first screen of the README: its file, in a directory of its own, draws its complaint.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```\n\\$ cat (\\S+)\n(.*?)\n\\$ millwright validate\n(.*?, )…\n```").FindSubmatch(readme)
	if m == nil {
		t.Fatal("the README shows no file and what validate says of it")
	}
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(string(m[1])), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(string(m[1]), m[2], 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if status := run(t.Context(), []string{"validate"}, strings.NewReader(""), &out, &errs); status != cli.ExitProblem {
		t.Errorf("status %d: %s", status, errs.String())
	}
	if want := string(m[3]); !strings.HasPrefix(out.String(), want) {
		t.Errorf("the README says\n%s\nvalidate says\n%s", want, out.String())
	}
}
