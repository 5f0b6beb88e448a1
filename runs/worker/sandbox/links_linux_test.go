package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millwright/runs/worker/confine"
	"millwright/runs/worker/sandbox"
)

// TestPlantedLinks makes a second sandbox of a run in whose directory links lead to files of the worker: none
// is written, and none is shown.
func TestPlantedLinks(t *testing.T) {
	for place, refused := range map[string]bool{
		"etc": false, "etc/passwd": false, "etc/group": false, "etc/hosts": false,
		confine.Tmp: true, confine.Work: true, confine.Home: true, "bases": true, "bases/0": true,
	} {
		t.Run(place, func(t *testing.T) {
			b := open(t)
			if said, err := b.sh("true"); err != nil {
				t.Fatal(err, said)
			}
			if strings.HasPrefix(place, "bases") {
				b.spec.Parts = []sandbox.Part{{Path: confine.Work}, {Path: "bases/0"}}
			}

			victim := b.plant(place)
			said, err := b.sh(`id -un; for d in /tmp . "$HOME"; do ls -A "$d"; echo own >"$d/own"; done`)
			if failed := err != nil; failed != refused || !refused && said != "agent" {
				t.Errorf("said %q: %v", said, err)
			}
			if refused && !strings.Contains(fmt.Sprint(err), place+" is not a directory of the run") {
				t.Error(err)
			}

			files, err := os.ReadDir(victim)
			if err != nil || len(files) != 3 || strings.Contains(said, "passwd") {
				t.Errorf("the worker's files are %v (%v), said %q", files, err, said)
			}
			for _, f := range files {
				if text, err := os.ReadFile(filepath.Join(victim, f.Name())); string(text) != "of the worker" {
					t.Errorf("%s is %q (%v)", f.Name(), text, err)
				}
			}
		})
	}
}

// TestParts shows some directories of a run to a command, which may write to one of them.
func TestParts(t *testing.T) {
	b := open(t)
	for _, dir := range []string{"bases/0", "bases/1", "collect-0", "left"} {
		if err := os.MkdirAll(filepath.Join(b.spec.Root, dir), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(b.spec.Root, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}

	b.spec.Parts = []sandbox.Part{
		{Path: confine.Work, ReadOnly: true}, {Path: "bases/0", ReadOnly: true}, {Path: "collect-0"},
	}
	said, err := b.sh(`cd ..; ls . bases
		for d in . work bases bases/0 collect-0; do (: >$d/new) 2>&- && echo $d; done`)
	if want := ".:\nbases\ncollect-0\nwork\n\nbases:\n0\ncollect-0"; err != nil || said != want {
		t.Errorf("said %q (%v), want %q", said, err, want)
	}

	for _, path := range []string{"", ".", "..", "../other", "/etc", "bases/../left", "bases/", "missing"} {
		b.spec.Parts = []sandbox.Part{{Path: confine.Work}, {Path: path}}
		if said, err := b.sh("true"); err == nil || !strings.HasSuffix(err.Error(), " directory of the run") {
			t.Errorf("%q: said %q, %v", path, said, err)
		}
	}
}

// plant puts a link in place of what the directory of the run has, and returns the directory of the worker's
// files that it leads to.
func (b *box) plant(place string) (victim string) {
	b.Helper()
	victim = filepath.Join(b.TempDir(), "victim")
	if err := os.Mkdir(victim, 0o700); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"passwd", "group", "hosts"} {
		if err := os.WriteFile(filepath.Join(victim, name), []byte("of the worker"), 0o600); err != nil {
			b.Fatal(err)
		}
	}

	target := victim
	if dir, name := filepath.Split(place); dir != "" {
		target = filepath.Join(victim, name)
	}
	link := filepath.Join(b.spec.Root, place)
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.RemoveAll(link); err != nil {
		b.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		b.Fatal(err)
	}
	if err := os.Chmod(victim, 0o777); err != nil { // so that nothing but the sandbox protects it
		b.Fatal(err)
	}
	return victim
}
