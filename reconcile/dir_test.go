package reconcile_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"millwright/reconcile"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

func revision(t *testing.T, s reconcile.Source) string {
	t.Helper()
	snap, err := s.Fetch(t.Context())
	must(t, err)
	return snap.Revision.ID
}

func TestDirRevisionNamesWhatTheDefinitionSays(t *testing.T) {
	root := t.TempDir()
	two.write(t, root)
	source := dir(t, root)
	base := revision(t, source)
	if !strings.HasPrefix(base, "sha256:") || revision(t, source) != base || revision(t, dir(t, root)) != base {
		t.Errorf("revision %s is not stable", base)
	}
	tests := []struct {
		name    string
		do      func(t *testing.T)
		changes bool
	}{
		{"touched", func(t *testing.T) { put(t, filepath.Join(root, "webhooks/a.yaml"), hook("A")) }, false},
		{"other files", func(t *testing.T) {
			put(t, filepath.Join(root, "README.md"), "x")
			put(t, filepath.Join(root, "src/main.go"), "x")
			put(t, filepath.Join(root, ".git/HEAD"), "x")
		}, false},
		{"permissions", func(t *testing.T) { must(t, os.Chmod(filepath.Join(root, "webhooks/a.yaml"), 0o755)) }, false},
		{"content", func(t *testing.T) { put(t, filepath.Join(root, "webhooks/a.yaml"), hook("A")+"#\n") }, true},
		{"written in place, same size and time", func(t *testing.T) {
			path := filepath.Join(root, "webhooks/a.yaml")
			info, err := os.Stat(path)
			must(t, err)
			must(t, os.WriteFile(path, []byte(hook("B")), 0o644))
			must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		}, true},
		{"new file", func(t *testing.T) { put(t, filepath.Join(root, "webhooks/c.yaml"), hook("C")) }, true},
		{"new directories", func(t *testing.T) { put(t, filepath.Join(root, "automations/x/automation.md"), "---\n") }, true},
		{"removed", func(t *testing.T) { must(t, os.Remove(filepath.Join(root, "webhooks/b.yaml"))) }, true},
		{"near miss", func(t *testing.T) { put(t, filepath.Join(root, "webhooks/b.yml"), hook("B")) }, true},
		{"link", func(t *testing.T) { must(t, os.Symlink("a.yaml", filepath.Join(root, "webhooks/d.yaml"))) }, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := revision(t, source)
			test.do(t)
			after := revision(t, source)
			if (after != before) != test.changes {
				t.Errorf("revision changed: %v", after != before)
			}
			if fresh := revision(t, dir(t, root)); fresh != after {
				t.Errorf("a fresh source says %s, this one %s", fresh, after)
			}
		})
	}
}

func TestDirHostileFiles(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.yaml")
	put(t, outside, hook("A"))
	tests := []struct {
		name string
		do   func(t *testing.T, root string)
		want string // code of the problem
	}{
		{"link to a file outside", func(t *testing.T, root string) {
			must(t, os.MkdirAll(filepath.Join(root, "webhooks"), 0o755))
			must(t, os.Symlink(outside, filepath.Join(root, "webhooks/x.yaml")))
		}, "symlink"},
		{"link to a directory outside", func(t *testing.T, root string) {
			must(t, os.Symlink(filepath.Dir(outside), filepath.Join(root, "webhooks")))
		}, "symlink"},
		{"pipe", func(t *testing.T, root string) {
			must(t, os.MkdirAll(filepath.Join(root, "webhooks"), 0o755))
			must(t, syscall.Mkfifo(filepath.Join(root, "webhooks/x.yaml"), 0o644))
		}, "unsupported-path"},
		{"large file", func(t *testing.T, root string) {
			put(t, filepath.Join(root, "webhooks/x.yaml"), strings.Repeat("#\n", schema.MaxFileBytes))
		}, "file-too-large"},
		{"sparse giant", func(t *testing.T, root string) {
			put(t, filepath.Join(root, "webhooks/x.yaml"), "")
			must(t, os.Truncate(filepath.Join(root, "webhooks/x.yaml"), 1<<40))
		}, "file-too-large"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			test.do(t, root)
			b := newBench(t, statetest.Open(t, statetest.SQLite(t)), dir(t, root), nil)
			r := b.once(state.OutcomeRefused, true)
			if r.Problems[0].Code != test.want {
				t.Errorf("problems %+v", r.Problems)
			}
		})
	}
}

func TestDirThatCannotBeRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, "x")
	for name, path := range map[string]string{"missing": filepath.Join(t.TempDir(), "none"), "a file": file} {
		t.Run(name, func(t *testing.T) {
			_, err := dir(t, path).Fetch(t.Context())
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want one that names the directory", err)
			}
		})
	}
	if _, err := reconcile.Dir(reconcile.DirConfig{}); err == nil {
		t.Error("no directory: no error")
	}
}

// TestDirIsWatched has the loop run with an interval of an hour, so that only events can tell it.
func TestDirIsWatched(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "deep", "factory")
	b := newBench(t, statetest.Open(t, statetest.SQLite(t)), dir(t, root), func(c *reconcile.Config) { c.AllowPrune, c.AllowRename = true, true })
	b.run()
	statetest.Until(t, "failed without a root", func() bool { return b.now().SyncState == state.SyncFailed })
	applied := func(what string, want ...string) {
		t.Helper()
		statetest.Until(t, what, func() bool {
			return b.now().SyncState == state.SyncApplied && strings.Join(b.webhooks(), " ") == strings.Join(want, " ")
		})
	}
	two.writeNew(t, root)
	applied("root made, with its parents", "a", "b")
	put(t, filepath.Join(root, "webhooks/c.yaml"), hook("C"))
	applied("file renamed into place", "a", "b", "c")
	must(t, os.WriteFile(filepath.Join(root, "webhooks/d.yaml"), []byte(hook("A", "enabled: false")), 0o644))
	applied("file written in place", "a", "b", "c", "d")
	must(t, os.Remove(filepath.Join(root, "webhooks/d.yaml")))
	applied("file removed", "a", "b", "c")
	put(t, filepath.Join(root, "automations/new/automation.md"), "---\ntriggers:\n  - {provider: github, event: push}\n---\nGo.\n")
	statetest.Until(t, "file in new directories", func() bool {
		cur, err := b.store.Current(t.Context(), b.factory.UID)
		return err == nil && len(cur.Tree.Automations) == 1
	})
	put(t, filepath.Join(root, "automations/new/automation.md"), "---\ntriggers:\n  - {provider: github, event: pull}\n---\nGo.\n")
	statetest.Until(t, "file changed in new directories", func() bool {
		cur, err := b.store.Current(t.Context(), b.factory.UID)
		return err == nil && cur.Tree.Automations[0].Triggers[0].Event == "pull"
	})
	must(t, os.Rename(root, root+".old"))
	statetest.Until(t, "root moved away", func() bool { return b.now().SyncState == state.SyncFailed })
	tree{"webhooks/z.yaml": hook("C", "enabled: false")}.writeNew(t, root)
	applied("root replaced", "z")
}

// TestDirSwaps swaps the root as Kubernetes and git-sync do.
func TestDirSwaps(t *testing.T) {
	swap := func(t *testing.T, link, target string) {
		must(t, os.Symlink(target, link+".tmp"))
		must(t, os.Rename(link+".tmp", link))
	}
	tests := map[string]func(t *testing.T, base string) (root string, publish func(n int, content tree)){
		"link to the root": func(t *testing.T, base string) (string, func(int, tree)) {
			return filepath.Join(base, "current"), func(n int, content tree) {
				content.writeNew(t, filepath.Join(base, "releases", strconv.Itoa(n)))
				swap(t, filepath.Join(base, "current"), filepath.Join("releases", strconv.Itoa(n)))
			}
		},
		"link on the way to the root": func(t *testing.T, base string) (string, func(int, tree)) {
			return filepath.Join(base, "current", "sub"), func(n int, content tree) {
				content.writeNew(t, filepath.Join(base, strconv.Itoa(n), "sub"))
				swap(t, filepath.Join(base, "current"), filepath.Join(base, strconv.Itoa(n)))
			}
		},
		"Kubernetes volume": func(t *testing.T, base string) (string, func(int, tree)) {
			return base, func(n int, content tree) {
				content.writeNew(t, filepath.Join(base, "..v"+strconv.Itoa(n)))
				swap(t, filepath.Join(base, "..data"), "..v"+strconv.Itoa(n))
				for _, name := range []string{"webhooks", "automations"} {
					_ = os.Symlink(filepath.Join("..data", name), filepath.Join(base, name))
				}
				_ = os.RemoveAll(filepath.Join(base, "..v"+strconv.Itoa(n-1)))
			}
		},
		"link in a Kubernetes volume": func(t *testing.T, base string) (string, func(int, tree)) {
			return filepath.Join(base, "..data"), func(n int, content tree) {
				content.writeNew(t, filepath.Join(base, "..v"+strconv.Itoa(n)))
				swap(t, filepath.Join(base, "..data"), "..v"+strconv.Itoa(n))
				_ = os.RemoveAll(filepath.Join(base, "..v"+strconv.Itoa(n-1)))
			}
		},
	}
	for name, setup := range tests {
		t.Run(name, func(t *testing.T) {
			root, publish := setup(t, t.TempDir())
			publish(1, two)
			b := newBench(t, statetest.Open(t, statetest.SQLite(t)), dir(t, root), nil)
			b.run()
			statetest.Until(t, "first tree", func() bool { return strings.Join(b.webhooks(), " ") == "a b" })
			for n := 2; n < 5; n++ {
				enabled := strconv.FormatBool(n%2 == 1)
				publish(n, tree{"webhooks/a.yaml": hook("A"), "webhooks/b.yaml": hook("B", "enabled: "+enabled)})
				statetest.Until(t, "tree "+strconv.Itoa(n), func() bool {
					cur, err := b.store.Current(t.Context(), b.factory.UID)
					return err == nil && len(cur.Webhooks) == 2 && strconv.FormatBool(cur.Webhooks[1].Spec.Enabled) == enabled
				})
			}
			if got := b.outcomes(); strings.Contains(got, "refused") {
				t.Errorf("history %s", got)
			}
		})
	}
}

func TestAVolumeLinkThatLeavesTheVolumeIsRefused(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	two.write(t, outside)
	must(t, os.Symlink(outside, filepath.Join(root, "..data")))
	if _, err := dir(t, root).Fetch(t.Context()); err == nil {
		t.Error("the link was followed")
	}
}

// TestADirThatChangesWhileItIsRead writes files all the while: every snapshot is one of the trees that
// were there, never a mixture, as long as each change is one rename.
func TestADirThatChangesWhileItIsRead(t *testing.T) {
	root := t.TempDir()
	two.write(t, root)
	source := dir(t, root)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			put(t, filepath.Join(root, "webhooks/a.yaml"), hook("A", "enabled: "+strconv.FormatBool(n%2 == 0)))
		}
	}()
	seen := map[string]bool{}
	for range 50 {
		if snap, err := source.Fetch(t.Context()); err == nil {
			seen[snap.Revision.ID] = true
			loaded := schema.Load(snap.FS, nil)
			if !loaded.Valid() || len(loaded.Factory.Webhooks) != 2 {
				t.Fatalf("a snapshot is broken: %+v %v", loaded.Problems, loaded.Err)
			}
		} else if !strings.Contains(err.Error(), "chang") && !strings.Contains(err.Error(), "no such file") {
			t.Fatal(err)
		}
	}
	close(stop)
	<-done
	if len(seen) > 3 {
		t.Errorf("%d revisions of two or three trees", len(seen))
	}
}
