package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"millwright/schema"
)

func TestDefinitionRoot(t *testing.T) {
	for path, want := range map[string][2]string{
		"/r/webhooks/ci.yaml":                   {"/r", "webhooks/ci.yaml"},
		"/r/webhooks/deep/ci.yaml":              {"/r", "webhooks/deep/ci.yaml"},
		"/r/automations/go/automation.md":       {"/r", "automations/go/automation.md"},
		"/r/automations/go.md":                  {"/r", "automations/go.md"},
		"/r/automations/go/notes/x.md":          {"/r", "automations/go/notes/x.md"},
		"/r/agents/a/agent.md":                  {"/r", "agents/a/agent.md"},
		"/r/agents/a/skills/s/SKILL.md":         {"/r", "agents/a/skills/s/SKILL.md"},
		"/r/skills/s/SKILL.md":                  {"/r", "skills/s/SKILL.md"},
		"/r/runners/big.yaml":                   {"/r", "runners/big.yaml"},
		"/r/factory.yaml":                       {"/r", "factory.yaml"},
		"/home/agents/factory/webhooks/ci.yaml": {"/home/agents/factory", "webhooks/ci.yaml"},
		"/webhooks/ci.yaml":                     {"/", "webhooks/ci.yaml"},
		"/r/README.md":                          {"", ""},
		"/r/webhook/ci.yaml":                    {"", ""},
	} {
		dir, file, ok := schema.RootOf(filepath.FromSlash(path))
		if filepath.ToSlash(dir) != want[0] || file != want[1] || ok != (want[0] != "") {
			t.Errorf("%s: %q, %q, %v", path, dir, file, ok)
		}
	}
}

func TestRootsAreMerged(t *testing.T) {
	dir := writeTree(t, map[string]string{"webhooks/a.yaml": "", "webhooks/b.yaml": "", "automations/x/automation.md": ""})
	in := func(names ...string) []string {
		for i := range names {
			names[i] = filepath.Join(dir, filepath.FromSlash(names[i]))
		}
		return names
	}
	for name, c := range map[string]struct {
		paths []string
		only  []string
	}{
		"two files":          {in("webhooks/a.yaml", "automations/x/automation.md"), []string{"webhooks/a.yaml", "automations/x/automation.md"}},
		"a file and all":     {in("webhooks/a.yaml", "."), nil},
		"all and a file":     {in(".", "webhooks/a.yaml"), nil},
		"the same, two ways": {in(".", "webhooks/.."), nil},
	} {
		got, err := roots(c.paths)
		if err != nil || len(got) != 1 || got[0].err != nil || !slices.Equal(got[0].only, c.only) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestReadSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("\ufeff# a comment\r\nNAME\r\n\r\n SPACED =a b\r\nSAFE=a=b\nTILDE=~\nNAME2=x")
	known, err := readSecrets(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, safe := range map[string]string{"NAME": "?", "SPACED": "no", "SAFE": "no", "TILDE": "yes", "NAME2": "yes"} {
		fact, ok := known.Secrets[name]
		got := "?"
		if fact.URLSafe != nil {
			got = map[bool]string{true: "yes", false: "no"}[*fact.URLSafe]
		}
		if !ok || got != safe {
			t.Errorf("%s: %v, %s", name, ok, got)
		}
	}
	if len(known.Secrets) != 5 {
		t.Errorf("%v", known.Secrets)
	}
	for _, text := range []string{"hush hush", "A\n=hush", "1A=hush", "A-B=hush", "A=", strings.Repeat("A", 129) + "=hush", "A\x00B=hush"} {
		write(text)
		if _, err := readSecrets(file); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: error %v", text, err)
		}
	}
	write("")
	if known, err := readSecrets(file); err != nil || known.Secrets == nil {
		t.Errorf("no secrets at all: %+v, %v", known, err)
	}
}

// FuzzReadSecrets looks for values that come out again.
func FuzzReadSecrets(f *testing.F) {
	f.Add("NAME=value\n# x\nOTHER\n")
	f.Add("A=\r\n\x00")
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "s")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		known, err := readSecrets(file)
		if err != nil {
			if strings.Contains(text, "marker") && strings.Contains(err.Error(), "marker") {
				t.Errorf("an error shows the file: %v", err)
			}
			return
		}
		for name := range known.Secrets {
			if !isSecretName(name) {
				t.Errorf("name %q", name)
			}
		}
	})
}

// TestKeyOfForeignDirectory sees that a key in the working directory is used, and not where the directory may
// be a stranger's.
func TestKeyOfForeignDirectory(t *testing.T) {
	t.Chdir(writeTree(t, map[string]string{".millwright/admin-key": "mwk_local\n"}))
	t.Setenv("MILLWRIGHT_API_KEY", "")
	t.Setenv("MILLWRIGHT_STATE", "")
	for foreign, want := range map[bool]string{false: "mwk_local", true: ""} {
		c := &Client{Server: "http://127.0.0.1:1", foreign: foreign}
		if err := c.prepare(); err != nil || c.Key != want {
			t.Errorf("foreign %v: the key is %q, want %q (%v)", foreign, c.Key, want, err)
		}
	}
}
