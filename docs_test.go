package millwright_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"regexp"
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
		document, code := strings.HasSuffix(name, ".md"), strings.HasSuffix(name, ".go")
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
