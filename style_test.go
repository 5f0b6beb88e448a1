package millwright_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Bounds of the program's text. Tests, generated code and tables of data are free.
const (
	maxColumns    = 120 // of a line; a tab counts as four
	maxLines      = 500 // of a file
	maxStateFiles = 30  // directly in the room state
	maxIndexes    = 35  // that the migration of each database makes
	unbroken      = 20  // lines of a function body that need no blank line
)

// tables are the files with rows of data, one line or more each.
var tables = []string{
	"schema/rules_table.go", "signature/events.go", "signature/providers.go", "signature/schemes.go",
	"signature/unshipped.go",
}

var structTag = regexp.MustCompile("`[a-zA-Z-]+:\"")

// TestStyle measures the files of the program: their number and length, their lines, and the blank lines in
// the bodies of functions.
func TestStyle(t *testing.T) {
	listed, err := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard",
		"*.go").Output()
	if err != nil {
		t.Skipf("this is no git checkout: %v", err)
	}

	inState, blank, all := 0, 0, 0
	for _, name := range strings.Fields(string(listed)) {
		src, err := os.ReadFile(name)
		if strings.HasSuffix(name, "_test.go") || err != nil || bytes.Contains(src[:min(300, len(src))], []byte("DO NOT EDIT")) {
			continue
		}

		if path.Dir(name) == "state" {
			inState++
		}
		lines := strings.Split(strings.TrimSuffix(string(src), "\n"), "\n")
		if len(lines) > maxLines {
			t.Errorf("%s has %d lines, more than %d: split it by subject", name, len(lines), maxLines)
		}

		if !slices.Contains(tables, name) {
			for _, n := range longLines(src, lines) {
				t.Errorf("%s:%d has more than %d columns", name, n, maxColumns)
			}
		}

		b, l, dense := paragraphs(t, name, src, lines)
		blank, all = blank+b, all+l
		for _, place := range dense {
			t.Errorf("%s: its body has more than %d lines and no blank one between its steps", place, unbroken)
		}
	}

	if inState > maxStateFiles {
		t.Errorf("state has %d files, more than %d: join some, or give a subject a room", inState, maxStateFiles)
	}
	if share := 100 * float64(blank) / float64(all); share < 5 || share > 14 {
		t.Errorf("%.1f %% of the lines in bodies of functions are blank, want 5 to 14", share)
	}
}

// longLines returns the numbers of the lines that are too long. Those of text over several lines, and those
// with the tags of a struct, are not counted.
func longLines(src []byte, lines []string) (long []int) {
	file := token.NewFileSet().AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	text := map[int]bool{}
	for {
		pos, tok, value := s.Scan()
		if tok == token.EOF {
			break
		}

		if first := file.Line(pos); tok == token.STRING && strings.Contains(value, "\n") {
			for n := range strings.Count(value, "\n") + 1 {
				text[first+n] = true
			}
		}
	}

	for i, line := range lines {
		columns := len([]rune(line)) + 3*(len(line)-len(strings.TrimLeft(line, "\t")))
		if columns > maxColumns && !text[i+1] && !structTag.MatchString(line) {
			long = append(long, i+1)
		}
	}

	return long
}

// paragraphs counts the blank lines among those in bodies of functions. dense are functions of many lines and
// several statements without any.
func paragraphs(t *testing.T, name string, src []byte, lines []string) (blank, all int, dense []string) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}

	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}

		first, last := set.Position(f.Body.Lbrace).Line, set.Position(f.Body.Rbrace).Line
		found := 0
		for n := first; n < last-1; n++ {
			if all++; strings.TrimSpace(lines[n]) == "" {
				found++
			}
		}

		if blank += found; found == 0 && last-first > unbroken && len(f.Body.List) > 2 {
			dense = append(dense, fmt.Sprintf("%s:%d: %s", name, first, f.Name.Name))
		}
	}

	return blank, all, dense
}

// TestIndexes counts the indexes of both databases, and requires a comment above each that names its query.
func TestIndexes(t *testing.T) {
	for _, db := range []string{"sqlite", "postgres"} {
		text, err := os.ReadFile("state/db/migrations/" + db + "/0001_init.sql")
		if err != nil {
			t.Fatal(err)
		}

		lines := strings.Split(string(text), "\n")
		n := 0
		for i, line := range lines {
			if strings.HasPrefix(line, "CREATE INDEX") || strings.HasPrefix(line, "CREATE UNIQUE INDEX") {
				n++
				if i == 0 || !strings.HasPrefix(lines[i-1], "-- ") {
					t.Errorf("%s: no comment names the query of %q", db, line)
				}
			}
		}
		if n > maxIndexes || n < 20 {
			t.Errorf("%s has %d indexes, want at most %d", db, n, maxIndexes)
		}
	}
}
