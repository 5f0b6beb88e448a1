package millwright_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentsLeadSomewhere follows every link from one document to another, and every mention of a
// document in the code.
func TestDocumentsLeadSomewhere(t *testing.T) {
	listed, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("this is no git checkout: %v", err)
	}
	tracked := map[string]bool{}
	for _, name := range strings.Fields(string(listed)) {
		for dir := name; dir != "."; dir = path.Dir(dir) {
			tracked[dir] = true
		}
	}

	link := regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)\s]*)?\)`)
	mention := regexp.MustCompile(`\bdocs/[a-z0-9/-]+\.md\b`)
	checked := 0
	for name := range tracked {
		document := strings.HasSuffix(name, ".md")
		code := strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
		if !document && !code || strings.HasPrefix(name, "testdata/") || strings.HasPrefix(name, "schema/testdata/") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			continue // removed, and not yet committed
		}

		for _, m := range mention.FindAllString(string(text), -1) {
			checked++
			if !tracked[m] {
				t.Errorf("%s names %s, which does not exist", name, m)
			}
		}
		if !document {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], ":") {
				continue // another site
			}
			checked++
			if target := path.Join(path.Dir(name), m[1]); !tracked[target] {
				t.Errorf("%s links to %s, which does not exist", name, target)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d links were found", checked)
	}
}

// TestQuestionsNameCode checks that the files and names by which AGENTS.md answers questions exist.
func TestQuestionsNameCode(t *testing.T) {
	text, err := os.ReadFile("AGENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Ten questions\n")
	section, _, _ = strings.Cut(section, "\n## ")

	answers := regexp.MustCompile("`([a-z_/]+\\.go)`(?: \\(`(\\w+)`\\))?").FindAllStringSubmatch(section, -1)
	if len(answers) < 20 {
		t.Errorf("only %d answers were found", len(answers))
	}
	for _, answer := range answers {
		file, name := answer[1], answer[2]
		code, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("AGENTS.md names %s: %v", file, err)
			continue
		}
		if name != "" && !declares(code, name) {
			t.Errorf("AGENTS.md names %s in %s, which does not declare it", name, file)
		}
	}
}

// TestPromisesNameTests checks that the tests that README.md names for its promises exist.
func TestPromisesNameTests(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Promises\n")
	section, _, _ = strings.Cut(section, "\n## ")

	row := regexp.MustCompile("(?m)^\\| \\*\\*.*`(?:\\w+=\\w+ )*go test \\./(\\S+) -run '?([^' `]+)'?.*` \\|$")
	promises := row.FindAllStringSubmatch(section, -1)
	if rows := strings.Count(section, "\n| **"); len(promises) != rows || rows < 5 {
		t.Errorf("%d of %d promises name a test", len(promises), rows)
	}

	for _, promise := range promises {
		dir, pattern := promise[1], strings.ReplaceAll(promise[2], `\|`, "|")
		test, script, _ := strings.Cut(pattern, "/")
		if !matches(t, dir+"/*_test.go", `(?m)^func (Test\w+)\(`, test) {
			t.Errorf("README.md names %s: %s has no such test", pattern, dir)
		}

		for _, name := range strings.Split(strings.Trim(script, "()"), "|") {
			if name != "" && !matches(t, "testdata/scripts/*.txtar", "", name) {
				t.Errorf("README.md names %s: there is no script %s", pattern, name)
			}
		}
	}
}

// matches reports whether a name in the files of a glob matches a pattern: a group of text, or the file's own.
func matches(t *testing.T, glob, text, pattern string) bool {
	t.Helper()
	files, err := filepath.Glob(glob)
	if err != nil {
		t.Fatal(err)
	}

	wanted := regexp.MustCompile(pattern)
	for _, file := range files {
		names := []string{strings.TrimSuffix(filepath.Base(file), ".txtar")}
		if text != "" {
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			names = names[:0]
			for _, m := range regexp.MustCompile(text).FindAllStringSubmatch(string(code), -1) {
				names = append(names, m[1])
			}
		}
		if slices.ContainsFunc(names, wanted.MatchString) {
			return true
		}
	}

	return false
}

// TestSectionsExist follows each mention of a document's section in the code, such as that of the contract's
// section 4, States.
func TestSectionsExist(t *testing.T) {
	listed, err := exec.Command("git", "ls-files", "*.go").Output()
	if err != nil {
		t.Skipf("this is no git checkout: %v", err)
	}

	mention := regexp.MustCompile(`(docs/[a-z/-]+\.md),(?:\s|//)+sections? (\d+)(?: (?:to|and) (\d+))?(?:, ([A-Z]\w+))?`)
	checked := 0
	for _, file := range strings.Fields(string(listed)) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // removed, and not yet committed
		}

		for _, m := range mention.FindAllStringSubmatch(string(text), -1) {
			checked++
			document, err := os.ReadFile(m[1])
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}

			for _, number := range m[2:4] {
				if number != "" && !strings.Contains(string(document), "\n## "+number+". ") {
					t.Errorf("%s names section %s of %s, which does not exist", file, number, m[1])
				}
			}
			if m[4] != "" && !strings.Contains(string(document), "\n### "+m[4]+"\n") {
				t.Errorf("%s names %s of %s, which does not exist", file, m[4], m[1])
			}
		}
	}

	if checked < 30 {
		t.Errorf("only %d mentions were found", checked)
	}
}

// declares reports whether a file declares a function, method, type, variable or constant of a name.
func declares(file *ast.File, name string) bool {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == name {
				return true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.Name == name {
						return true
					}
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						if n.Name == name {
							return true
						}
					}
				}
			}
		}
	}
	return false
}
