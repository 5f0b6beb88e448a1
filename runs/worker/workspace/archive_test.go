//go:build unix

package workspace_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"millwright/runs/worker/workspace"
)

func place(t *testing.T, file, body string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(body), mode); err != nil {
		t.Fatal(err)
	}
}

// TestArchive packs a directory that a hostile harness left, and unpacks it elsewhere.
func TestArchive(t *testing.T) {
	from := t.TempDir()
	place(t, filepath.Join(from, "a/b/run.sh"), "one", 0o755)
	place(t, filepath.Join(from, "plain"), "two", 0o644)
	place(t, filepath.Join(from, "prompt.md"), "ours", 0o644)
	place(t, filepath.Join(from, "twice"), "linked", 0o644)
	for _, err := range []error{
		os.Symlink("/etc/passwd", filepath.Join(from, "link")),
		os.Symlink("/etc", filepath.Join(from, "dirlink")),
		os.Link(filepath.Join(from, "twice"), filepath.Join(from, "a/again")),
		syscall.Mkfifo(filepath.Join(from, "fifo"), 0o644),
		os.Mkdir(filepath.Join(from, "closed"), 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	huge, err := os.Create(filepath.Join(from, "zhuge"))
	if err != nil {
		t.Fatal(err)
	}
	if err := huge.Truncate(1 << 40); err != nil {
		t.Fatal(err)
	}
	huge.Close()

	var archive bytes.Buffer
	skip := func(name string) bool { return name == "prompt.md" }
	packed, left, err := workspace.Pack(&archive, []workspace.Tree{
		{Path: from, Prefix: "work", Skip: skip}, {Path: filepath.Join(from, "none"), Prefix: "home"},
	})
	if err != nil || packed != 2 || left.Files != 6 {
		t.Fatalf("packed %d, left out %+v, %v", packed, left, err)
	}

	to := filepath.Join(t.TempDir(), "new")
	if err := workspace.Unpack(&archive, []workspace.Tree{{Path: to, Prefix: "work"}}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a/b/run.sh": "one", "plain": "two"} {
		if body, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(body) != want {
			t.Errorf("%s: %q, %v", name, body, err)
		}
	}
	if info, err := os.Stat(filepath.Join(to, "a/b/run.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("the script cannot be executed: %v %v", info, err)
	}
}

// TestArchiveOnly packs the sessions of an agent and nothing else of its home.
func TestArchiveOnly(t *testing.T) {
	home := t.TempDir()
	place(t, filepath.Join(home, ".claude/projects/p/s.jsonl"), "session", 0o600)
	place(t, filepath.Join(home, ".claude/.credentials.json"), "key", 0o600)
	place(t, filepath.Join(home, ".claude/settings.json"), "hooks", 0o600)
	tree := workspace.Tree{Path: home, Prefix: "home", Only: []string{".claude/projects"}}

	var archive bytes.Buffer
	if packed, _, err := workspace.Pack(&archive, []workspace.Tree{tree}); err != nil || packed != 1 {
		t.Fatalf("packed %d, %v", packed, err)
	}
	tree.Path = t.TempDir()
	if err := workspace.Unpack(&archive, []workspace.Tree{tree}); err != nil {
		t.Fatal(err)
	}
	if body, err := os.ReadFile(filepath.Join(tree.Path, ".claude/projects/p/s.jsonl")); string(body) != "session" {
		t.Error(err)
	}
}

// TestHostileArchives unpacks archives that no Pack has written.
func TestHostileArchives(t *testing.T) {
	file := func(name string) []tar.Header { return []tar.Header{{Name: name, Typeflag: tar.TypeReg, Mode: 0o644}} }
	many := make([]tar.Header, 10_001)
	for i := range many {
		many[i] = file(fmt.Sprintf("work/f%d", i))[0]
	}

	tests := map[string][]tar.Header{
		"outside":             file("work/../../evil"),
		"absolute":            file("work//etc/evil"),
		"no tree":             file("work"),
		"a dot":               file("work/./evil"),
		"a directory":         {{Name: "work/d/", Typeflag: tar.TypeDir, Mode: 0o755}},
		"a symbolic link":     {{Name: "work/l", Typeflag: tar.TypeSymlink, Linkname: "/etc"}},
		"a hard link":         {{Name: "work/l", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}},
		"a device":            {{Name: "work/n", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}},
		"settings":            file("home/.claude/settings.json"),
		"ours":                file("work/prompt.md"),
		"ours, a directory":   file("work/prompt.md/x"),
		"twice":               append(file("work/a"), file("work/a")...),
		"a file below a file": append(file("work/a"), file("work/a/b")...),
		"deep":                file("work/" + strings.Repeat("d/", 70) + "f"),
		"long":                file("work/" + strings.Repeat("n", 600)),
		"many":                many,
		"large":               {{Name: "work/large", Typeflag: tar.TypeReg, Size: 65 << 20}},
	}
	for name, headers := range tests {
		var archive bytes.Buffer
		zip := gzip.NewWriter(&archive)
		out := tar.NewWriter(zip)
		for _, h := range headers {
			if err := out.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if _, err := out.Write(make([]byte, h.Size)); err != nil {
				t.Fatal(err)
			}
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		zip.Close()

		dir := t.TempDir()
		trees := []workspace.Tree{
			{Path: filepath.Join(dir, "w"), Prefix: "work", Skip: func(name string) bool { return name == "prompt.md" }},
			{Path: filepath.Join(dir, "h"), Prefix: "home", Only: []string{".claude/projects"}},
		}
		if err := workspace.Unpack(&archive, trees); err == nil {
			t.Errorf("%s: unpacked", name)
		}
		if _, err := os.Lstat(filepath.Join(dir, "evil")); err == nil {
			t.Errorf("%s: it wrote outside", name)
		}
	}

	for _, text := range []string{"", "no archive", "\x1f\x8b\x08\x00"} {
		if err := workspace.Unpack(strings.NewReader(text), []workspace.Tree{{Path: t.TempDir(), Prefix: "work"}}); err == nil {
			t.Errorf("%q: unpacked", text)
		}
	}
}
