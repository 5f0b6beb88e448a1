package millwright_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAlertsUseMetricsThatExist holds the alert rules and the operating guide against the program: a rule on
// a metric that nothing exports never fires, and one that is not in the guide nobody finds.
func TestAlertsUseMetricsThatExist(t *testing.T) {
	rules, err := os.ReadFile("deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]bool{}
	name := regexp.MustCompile(`"(millwright_[a-z_]+)"`)
	for _, room := range []string{"ingress", "reconcile", "runs"} {
		err := filepath.WalkDir(room, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			src, err := os.ReadFile(file)
			for _, m := range name.FindAllSubmatch(src, -1) {
				exported[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	guide, err := os.ReadFile("docs/operating/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	for metric := range exported {
		if !regexp.MustCompile("`" + metric + "[`{]").Match(guide) {
			t.Errorf("docs/operating/monitoring.md does not name %s", metric)
		}
	}
	used := regexp.MustCompile(`\bmillwright_[a-z_]+`).FindAllString(string(rules), -1)
	if len(used) < 10 {
		t.Fatalf("only %d metrics in the rules", len(used))
	}
	for _, u := range used {
		base := u
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			base = strings.TrimSuffix(base, suffix)
		}
		if !exported[u] && !exported[base] {
			t.Errorf("no code exports %s", u)
		}
	}
}
