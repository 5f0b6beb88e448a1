package state_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// powerMutants are copies of files that each lack one step of what brings a file to disk.
var powerMutants = []struct{ name, file, text, instead string }{
	{
		"new directories are not synced", "db/file.go",
		"func MakeDir(dir string) error {",
		"func MakeDir(dir string) error {\n\tif true {\n\t\treturn os.MkdirAll(dir, 0o700)\n\t}\n",
	},
	{
		"a new file has its name before its content", "db/file.go",
		"func WriteNew(name string, content []byte) error {",
		`func WriteNew(name string, content []byte) error {
	if true {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(content)
		return errors.Join(err, f.Sync(), f.Close(), syncNames(filepath.Dir(name)))
	}
`,
	},
	{
		"a new file is not synced before it has its name", "db/file.go",
		"\tif err := syncFile(part); err != nil {\n\t\treturn err\n\t}\n\n\terr := os.Link(",
		"\terr := os.Link(",
	},
	{
		"a file is not synced before it replaces another", "db/file.go",
		"\tif err := syncFile(part); err != nil {\n\t\treturn err\n\t}\n\tif err := os.Rename(",
		"\tif err := os.Rename(",
	},
	{
		"names are not synced", "db/file.go",
		"\treturn syncFile(dir)\n",
		"\treturn nil\n",
	},
	{
		"commits are not synced", "db/db.go",
		"synchronous(FULL)",
		"synchronous(NORMAL)",
	},
}

// TestAcceptancePowerMutants holds that the tests of power failures find each mutant within 100 failures. `make simulate`
// runs it.
func TestAcceptancePowerMutants(t *testing.T) {
	for _, m := range powerMutants {
		t.Run(m.name, func(t *testing.T) {
			original, err := filepath.Abs(m.file)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(original)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(text), m.text) != 1 {
				t.Fatalf("%s does not have once %q", m.file, m.text)
			}

			mutant := filepath.Join(t.TempDir(), "mutant.go")
			overlay := filepath.Join(t.TempDir(), "overlay.json")
			replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: mutant}})
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(text), m.text, m.instead, 1)
			for name, content := range map[string]string{mutant: changed, overlay: string(replace)} {
				if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}

			build := exec.Command("go", "test", "-count=1", "-vet=off", "-overlay", overlay,
				"-run", "^TestPowerFailure(OfFirstStart)?$", ".")
			build.Env = append(os.Environ(), "MILLWRIGHT_POWER_FAILURES=100")
			out, err := build.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "-power-seed") {
				t.Fatalf("not found: %v\n%s", err, out)
			}
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, "-power-seed") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}
