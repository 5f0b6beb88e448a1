package schema_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"millwright/schema"
)

// TestPaths tells what each path is taken for.
func TestPaths(t *testing.T) {
	hook, auto, agent, skill := "secretName: A\n", automation(sampleUID), "---\n---\n", "---\nname: x\n---\n"
	tests := []struct{ path, text, want string }{
		{"webhooks/a.yaml", hook, ""},
		{"webhooks/a.yml", hook, "unsupported-path: webhooks/a.yaml"},
		{"webhooks/a.YAML", hook, "unsupported-path: webhooks/a.yaml"},
		{"webhooks/a/b.yaml", hook, "unsupported-path: webhooks/b.yaml"},
		{"webhooks/a/b/c/d.yml", hook, "unsupported-path: webhooks/d.yaml"},
		{"webhooks/a/webhook.yaml", hook, "unsupported-path: webhooks/a.yaml"},
		{"webhooks/a/b/c/d/e/f/g/h/i/j.yaml", hook, "unsupported-path: webhooks/j.yaml"},
		{"webhooks/" + strings.Repeat("a/", 40) + "j.yaml", hook, "unsupported-path"},
		{"skills/a/node_modules/b/node_modules/c/d/e/f/g/h/i/j.js", "", ""},
		{"webhooks/a.json", "{}", "unsupported-path: webhooks/a.yaml"},
		{"webhooks", "elsewhere/webhooks", "unsupported-path"},
		{"webhooks.yaml", hook, "unsupported-path: webhooks/<name>.yaml"},
		{"webhook.yaml", "kind: Deployment\n", ""},
		{"webhooks/a.txt", "", ""},
		{"webhooks/a.yaml.bak", "", ""},
		{"webhooks/.gitkeep", "", ""},
		{"webhooks/.a.yaml.swp", "", ""},
		{"webhooks/._a.yaml", "\x00", ""},
		{"webhooks/.#a.yaml", "", ""},
		{"webhooks/.yaml", "", "invalid-name"},
		{"webhooks/.a.yaml", hook, "invalid-name"},
		{"webhooks/a b.yaml", hook, "invalid-name"},
		{"webhooks/é.yaml", hook, "invalid-name"},
		{"webhooks/a.b.yaml", hook, ""},
		{"webhook/a.yaml", hook, "unsupported-path: webhooks/a.yaml"},
		{"webhoks/a.yaml", hook, "unsupported-path: webhooks/a.yaml"},
		{"Webhooks/a.yaml", hook, "unsupported-path: webhooks/a.yaml"},
		{"web-hooks/a.yaml", hook, "unsupported-path: webhooks/a.yaml"},
		{"webhook/main.go", "", ""},
		{"hooks/a.yaml", "x", ""},
		{"automations/a/automation.md", auto, ""},
		{"automations/a.md", auto, "flat-automation: automations/a/automation.md"},
		{"automations/README.md", "x", ""},
		{"automations/a/README.md", "x", "missing-path: automations/a/automation.md"},
		{"automations/a/Automation.md", auto, "unsupported-path: automations/a/automation.md"},
		{"automations/a/automations.md", auto, "unsupported-path: automations/a/automation.md"},
		{"automations/a/automation.markdown", auto, "unsupported-path: automations/a/automation.md"},
		{"automations/a/automation.yaml", auto, "unsupported-path: automations/a/automation.md"},
		{"automations/a/b/automation.md", auto, "unsupported-path: automations/b/automation.md"},
		{"automations/a/b/c/automation.md", auto, "unsupported-path: automations/c/automation.md"},
		{"automations/a/b/c/d/e/f/g/h/i/j/automation.md", auto, "unsupported-path: automations/j/automation.md"},
		{"AUTOMATION.md", "# How we automate", ""},
		{"automation.md", auto, "unsupported-path: automations/<name>/automation.md"},
		{"automation/a.md", auto, "unsupported-path: automations/a/automation.md"},
		{"automation/README.md", auto, ""},
		{"AGENTS.md", "x", ""},
		{"automations/a.yaml", auto, "unsupported-path: automations/a/automation.md"},
		{"automation/a/automation.md", auto, "unsupported-path: automations/a/automation.md"},
		{"automatoins/a/automation.md", auto, "unsupported-path: automations/a/automation.md"},
		{"automation/a/notes.md", auto, ""},
		{"agents/a/agent.md", agent, ""},
		{"agents/a.md", agent, "unsupported-path: agents/a/agent.md"},
		{"agents/a/AGENT.md", agent, "unsupported-path: agents/a/agent.md"},
		{"agents/a/agents.md", agent, "unsupported-path: agents/a/agent.md"},
		{"agents/a/skills/s/SKILL.md", skill, ""},
		{"agents/a/skills/s/skill.md", skill, "unsupported-path: agents/a/skills/s/SKILL.md"},
		{"agents/a/skills/s.md", skill, "unsupported-path: agents/a/skills/s/SKILL.md"},
		{"agents/a/skill/s/SKILL.md", skill, "unsupported-path: agents/a/skills/s/SKILL.md"},
		{"runners/a.yaml", "platform: {os: macos}\n", ""},
		{"runners/a.yml", "description: x\n", "unsupported-path: runners/a.yaml"},
		{"runner/a.yaml", "description: x\n", "unsupported-path: runners/a.yaml"},
		{"runner/main.go", "", ""},
		{"skills/s/SKILL.md", skill, ""},
		{"skills/s/scripts/run.sh", "", ""},
		{"skills/group/s/SKILL.md", skill, "unsupported-path: skills/s/SKILL.md"},
		{"agents/a/b/agent.md", agent, "unsupported-path: agents/b/agent.md"},
		{"agents/a/skills/group/s/SKILL.md", skill, "unsupported-path: agents/a/skills/s/SKILL.md"},
		{"skills/s/Skill.md", skill, "unsupported-path: skills/s/SKILL.md"},
		{"skills/s.md", skill, "unsupported-path: skills/s/SKILL.md"},
		{"factory.yml", "", "unsupported-path: factory.yaml"},
		{"Factory.yaml", "", "unsupported-path: factory.yaml"},
		{"scorers/a.yaml", "x: [", ""},
		{"benchmarks/a/b.md", "x", ""},
		{"docs/webhooks/a.yaml", "x: [", ""},
		{".github/workflows/a.yaml", "x: [", ""},
	}
	for _, tt := range tests {
		r := load(t, nil, tt.path, tt.text)
		var got []string
		for _, p := range r.Problems {
			s := p.Code
			if _, right, ok := strings.Cut(p.Hint, "move it to "); ok {
				s += ": " + right
			} else if _, right, ok := strings.Cut(p.Hint, "add "); ok {
				s += ": " + strings.Split(right, ",")[0]
			}
			got = append(got, s)
		}
		if strings.Join(got, "; ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.path, got, tt.want)
		}
	}
}

func TestNamesThatCollide(t *testing.T) {
	r := load(t, nil, "webhooks/a.yaml", "secretName: A\n", "webhooks/A.yaml", "secretName: A\n", "runners/a.yaml", "platform: {os: macos}\n",
		"agents/x/agent.md", "---\n---\n", "agents/x/skills/S/SKILL.md", "---\n---\n", "agents/X/agent.md", "---\n---\n", "agents/X/skills/s/SKILL.md", "---\n---\n", "skills/s/SKILL.md", "---\n---\n")
	if got := codes(r); !slices.Equal(got, []string{"duplicate-name", "duplicate-name", "duplicate-name"}) {
		t.Errorf("%s", output(r))
	}
}

// TestLinksAreNotFollowed puts links at resource paths, to good definitions and
// to a secret outside the tree.
func TestLinksAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(outside, "w.yaml"), "secretName: TOPSECRET\nx: 1\n")
	write(filepath.Join(outside, "automation.md"), automation(sampleUID))
	link := func(dir, path, target string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(dir, path)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"webhooks/a.yaml", "webhooks/more", "webhooks", "automations", "automations/a", "automations/a/automation.md", "automations/a.md", "agents/a/skills", "agents/a/skills/s", "skills/s/SKILL.md", "factory.yaml", "runners/r.yaml"} {
		for _, target := range []string{outside, filepath.Join(outside, "w.yaml"), "nowhere"} {
			dir := t.TempDir()
			link(dir, path, target)
			r := schema.Load(os.DirFS(dir), nil)
			if got := codes(r); !slices.Equal(got, []string{"symlink"}) || r.Files != 0 {
				t.Errorf("%s -> %s: %v, %d files read", path, target, got, r.Files)
			}
		}
	}
	dir := t.TempDir()
	for _, path := range []string{"README.md", "docs", "skills/s/assets", "webhooks/notes.txt", "automations/a/data.json"} {
		link(dir, path, outside)
	}
	write(filepath.Join(dir, "automations/a/automation.md"), automation(sampleUID))
	write(filepath.Join(dir, "skills/s/SKILL.md"), "---\n---\n")
	if r := schema.Load(os.DirFS(dir), nil); len(r.Problems) != 0 {
		t.Errorf("links elsewhere: %s", output(r))
	}
}

func TestOddFiles(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"webhooks/dir.yaml", "automations/a/automation.md"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "webhooks", "pipe.yaml"), 0o600); err != nil {
		t.Skip(err)
	}
	r := schema.Load(os.DirFS(dir), nil)
	if got := codes(r); !slices.Equal(got, []string{"unsupported-path", "unsupported-path", "unsupported-path"}) {
		t.Errorf("%s", output(r))
	}
}

// TestUnreadable refuses to open a directory: the check could not be made, and
// what could be read is reported all the same.
func TestUnreadable(t *testing.T) {
	fsys, err := schema.FilesFS([]schema.File{{Path: "webhooks/a.yaml", Content: "x: 1\n"}, {Path: "automations/a/automation.md", Content: automation(sampleUID)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, closed := range []string{"automations", "automations/a", "automations/a/automation.md"} {
		r := schema.Load(closedFS{fsys, closed}, nil)
		if r.Err == nil || r.Valid() || r.Factory != nil || !slices.Equal(codes(r), []string{"unreadable", "missing-key", "unknown-key"}) {
			t.Errorf("%s: %v\n%s", closed, r.Err, output(r))
		}
	}
	r := schema.Load(closedFS{fsys, "."}, nil)
	if r.Err == nil || !slices.Equal(codes(r), []string{"unreadable"}) {
		t.Errorf("root: %v\n%s", r.Err, output(r))
	}
}

// endlessFS claims that every file is empty and never ends.
type endlessFS struct{ fs.FS }

func (e endlessFS) Open(name string) (fs.File, error) {
	f, err := e.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".yaml") {
		return f, err
	}
	return endless{f}, nil
}

type endless struct{ fs.File }

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	return len(p), nil
}

func TestEndlessFile(t *testing.T) {
	fsys, err := schema.FilesFS([]schema.File{{Path: "webhooks/a.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	if r := schema.Load(endlessFS{fsys}, nil); !slices.Equal(codes(r), []string{"file-too-large"}) {
		t.Errorf("%s", output(r))
	}
}

func TestLooksLikeRoot(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		want  bool
	}{
		"webhooks among others":      {[]string{"webhooks/ci.yaml", "src/main.go"}, true},
		"notifications alone":        {[]string{"notifications/team.yaml", "README.md", ".git/HEAD"}, true},
		"secrets alone":              {[]string{"secrets/TOKEN.age"}, true},
		"notifications and skills":   {[]string{"notifications/team.yaml", "skills/s/SKILL.md"}, true},
		"notifications of a program": {[]string{"notifications/mail.yaml", "src/main.go"}, false},
		"secrets of a machine":       {[]string{"secrets/wifi.age", "hosts/a/disk.nix"}, false},
		"secrets of another kind":    {[]string{"secrets/token.enc"}, false},
		"skills alone":               {[]string{"skills/s/SKILL.md"}, false},
		"nothing":                    {nil, false},
	} {
		tree := fstest.MapFS{}
		for _, file := range c.files {
			tree[file] = &fstest.MapFile{}
		}
		if got := schema.LooksLikeRoot(tree); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
