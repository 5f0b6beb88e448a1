package millwright_test

import (
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
