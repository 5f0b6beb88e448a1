package bundle_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"millwright/forge/bundle"
)

// repository is a repository that a test changes.
type repository struct {
	t    testing.TB
	dir  string
	base string
}

// newRepository makes a repository with one commit.
func newRepository(t testing.TB, files map[string]string) *repository {
	t.Helper()
	r := &repository{t: t, dir: t.TempDir()}
	r.git("init", "-q", "-b", "main")
	r.base = r.commit(files)
	return r
}

// git runs git without the settings of this machine.
func (r *repository) git(args ...string) string {
	r.t.Helper()
	return r.gitWith("", args...)
}

func (r *repository) gitWith(in string, args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(in)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.c", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b.c",
		"GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000") // the same commits in each process
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("git %v: %v %s", args, err, &problems)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// write writes files; an empty text deletes one.
func (r *repository) write(files map[string]string) {
	r.t.Helper()
	for name, text := range files {
		path := filepath.Join(r.dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil && text == "" {
			err = os.Remove(path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *repository) commit(files map[string]string) string {
	r.t.Helper()
	r.write(files)
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "x")
	return r.git("rev-parse", "HEAD")
}

// bundle packs the changes up to a commit as a worker does, without the objects that are left out.
func (r *repository) bundle(head string, without ...string) []byte {
	r.t.Helper()
	names := r.base + "\n" + r.git("rev-parse", r.base+"^{tree}") + "\n" +
		r.git("rev-list", "--objects", "--no-object-names", head, "^"+r.base) + "\n"
	for _, line := range strings.Split(r.git("diff-tree", "-r", "-t", "--raw", "--no-abbrev", "--no-renames", r.base, head), "\n") {
		if fields := strings.Fields(line); len(fields) > 3 && strings.Trim(fields[2], "0") != "" && fields[0] != ":160000" {
			names += fields[2] + "\n"
		}
	}
	return r.pack(head, names, without...)
}

func (r *repository) pack(head, names string, without ...string) []byte {
	r.t.Helper()
	list := strings.Fields(names)
	slices.Sort(list)
	list = slices.DeleteFunc(slices.Compact(list), func(name string) bool { return slices.Contains(without, name) })
	pack := r.gitWith(strings.Join(list, "\n")+"\n", "pack-objects", "--stdout", "-q")
	return fmt.Appendf(nil, "# v2 git bundle\n-%s x\n%s refs/heads/changes\n\n%s\n", r.base, head, pack)
}

func (r *repository) patch(head string) string {
	r.t.Helper()
	text := r.git("diff", "--binary", "--full-index", r.base, head)
	return text + "\n"
}

func open(t *testing.T, content []byte, base string) (*bundle.Bundle, error) {
	t.Helper()
	b, err := bundle.Open(bytes.NewReader(content), base)
	if err == nil {
		t.Cleanup(func() { b.Close() })
	}
	return b, err
}

// noise is a text that does not compress.
func noise(n int) string {
	b := make([]byte, n)
	rnd := rand.NewChaCha8([32]byte{1})
	rnd.Read(b)
	return string(b)
}

// TestBundle accepts changes of all kinds, and compares them with patches.
func TestBundle(t *testing.T) {
	long := strings.Repeat("line\n", 3000)
	for name, change := range map[string]func(r *repository){
		"text":        func(r *repository) { r.write(map[string]string{"a.txt": "one\nzwei\nthree\n"}) },
		"new":         func(r *repository) { r.write(map[string]string{"deep/down/new.txt": "new\n", "empty": " "}) },
		"no line end": func(r *repository) { r.write(map[string]string{"a.txt": "one\ntwo\nthree"}) },
		"crlf":        func(r *repository) { r.write(map[string]string{"a.txt": "one\r\ntwo\r\nthree\r\n"}) },
		"deleted":     func(r *repository) { r.write(map[string]string{"a.txt": "", "dir/b.bin": ""}) },
		"renamed":     func(r *repository) { r.write(map[string]string{"long.txt": "", "moved/long.txt": long + "more\n"}) },
		"binary": func(r *repository) {
			r.write(map[string]string{"dir/b.bin": noise(9000) + "x", "c.bin": noise(70_000)})
		},
		"executable": func(r *repository) { os.Chmod(filepath.Join(r.dir, "a.txt"), 0o755) },
		"link": func(r *repository) {
			os.Remove(filepath.Join(r.dir, "a.txt"))
			os.Symlink("../../etc/passwd", filepath.Join(r.dir, "a.txt"))
		},
		"file for directory": func(r *repository) {
			os.RemoveAll(filepath.Join(r.dir, "dir"))
			r.write(map[string]string{"dir": "now a file\n"})
		},
		"names": func(r *repository) {
			r.write(map[string]string{"a b\tc\".txt": "1\n", "\xff\xfe": "2\n", "ü.txt": "3\n", "line\nbreak": "4\n", "-rf": "5\n"})
		},
		"many": func(r *repository) {
			for i := range 300 {
				r.write(map[string]string{fmt.Sprintf("many/%d/%d.txt", i%7, i): fmt.Sprint(i, "\n")})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t, map[string]string{
				"a.txt": "one\ntwo\nthree\n", "long.txt": long, "dir/b.bin": noise(9000), "dir/deep/c": "c\n", "other/d": "d\n",
			})
			change(r)
			head := r.commit(nil)
			b, err := open(t, r.bundle(head), r.base)
			if err != nil {
				t.Fatal(err)
			}
			if b.Head != head || b.Base != r.base {
				t.Errorf("%s from %s, want %s from %s", b.Head, b.Base, head, r.base)
			}
			want := strings.Split(strings.Trim(r.git("diff-tree", "-r", "-z", "--name-only", "--no-renames", r.base, head), "\x00"), "\x00")
			slices.Sort(want)
			if got := b.Paths(); !slices.Equal(got, want) {
				t.Errorf("paths %q, want %q", got, want)
			}
			if err := b.ShownBy(strings.NewReader(r.patch(head))); err != nil {
				t.Errorf("its patch: %v", err)
			}

			for what, patch := range map[string]string{
				"nothing": "",
				"more":    r.patch(head) + "diff --git a/other/d b/other/d\n--- a/other/d\n+++ b/other/d\n@@ -1 +1 @@\n-d\n+e\n",
				"garbage": "garbage\n" + r.patch(head),
			} {
				var refused *bundle.RefusedError
				if err := b.ShownBy(strings.NewReader(patch)); !errors.As(err, &refused) {
					t.Errorf("a patch with %s: %v", what, err)
				}
			}
		})
	}
}

// TestHistories accepts several commits and merges of them.
func TestHistories(t *testing.T) {
	r := newRepository(t, map[string]string{"a": "1\n", "dir/b": "2\n"})
	r.commit(map[string]string{"a": "2\n"})
	r.git("checkout", "-q", "-b", "side", r.base)
	r.commit(map[string]string{"dir/b": "3\n"})
	r.commit(map[string]string{"dir/b": "2\n", "c": "4\n"}) // dir is as it was
	r.git("checkout", "-q", "main")
	r.git("merge", "-q", "--no-edit", "side")
	head := r.git("rev-parse", "HEAD")
	b, err := open(t, r.bundle(head), r.base)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Paths(); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("paths %q", got)
	}
	if err := b.ShownBy(strings.NewReader(r.patch(head))); err != nil {
		t.Error(err)
	}
}

// TestHostileBundles refuses bundles that must not be pushed, each with its reason.
func TestHostileBundles(t *testing.T) {
	r := newRepository(t, map[string]string{"a": "1\n", "dir/b": "2\n"})
	start := r.base
	head := r.commit(map[string]string{"a": "2\n", "dir/b": "3\n"})
	good := r.bundle(head)
	blob := func(text string) string { return r.gitWith(text, "hash-object", "-w", "--stdin") }
	child := func(tree string) string {
		return r.gitWith("x", "commit-tree", tree, "-p", r.base)
	}
	tree := func(lines ...string) string {
		return r.gitWith(strings.Join(lines, "\n")+"\n", "mktree", "--missing")
	}
	odd := func(mode, name, hash string) []byte { // mktree refuses such entries
		raw, err := hex.DecodeString(hash)
		if err != nil {
			t.Fatal(err)
		}
		content := mode + " " + name + "\x00" + string(raw)
		bad := r.gitWith(content, "hash-object", "-t", "tree", "-w", "--stdin", "--literally")
		return r.bundleOf(child(bad), bad, hash, r.git("rev-parse", start+":dir/b"))
	}
	x := blob("x")

	unrelated := r.gitWith("x", "commit-tree", r.git("rev-parse", head+"^{tree}"))
	r.git("checkout", "-q", "--orphan", "other")
	r.commit(map[string]string{"a": "9\n"})
	older := r.git("rev-parse", "HEAD")
	merged := r.gitWith("x", "commit-tree", r.git("rev-parse", head+"^{tree}"), "-p", start, "-p", older)
	for name, c := range map[string]struct {
		content []byte
		reason  string
	}{
		"nothing":          {nil, "not a git bundle"},
		"text":             {[]byte("hello\n"), "not a git bundle of version 2"},
		"version 3":        {bytes.Replace(good, []byte("v2"), []byte("v3"), 1), "version 2"},
		"endless header":   {bytes.Repeat([]byte("-"), 1<<20), "not a git bundle"},
		"many lines":       {append([]byte("# v2 git bundle\n"), bytes.Repeat([]byte("-"+start+" x\n"), 5000)...), "not a git bundle"},
		"no branch":        {[]byte("# v2 git bundle\n\nPACK"), "no branch"},
		"two branches":     {bytes.Replace(good, []byte("\n\n"), []byte("\n"+head+" refs/heads/b\n\n"), 1), "more than one branch"},
		"bad header":       {bytes.Replace(good, []byte(head[:4]), []byte("zzzz"), 1), "cannot be read"},
		"other base":       {bytes.Replace(good, []byte("-"+start), []byte("-"+head), 1), "not the one that the changes begin at"},
		"no pack":          {good[:bytes.Index(good, []byte("PACK"))], "damaged pack"},
		"half a pack":      {good[:len(good)-40], "damaged pack"},
		"changed pack":     {append(slices.Clone(good[:len(good)-60]), good[len(good)-59:]...), "damaged pack"},
		"without the base": {r.bundle(head, start), "lacks the commit " + start},
		"without the head": {r.bundle(head, head), "lacks the commit " + head},
		"without a tree":   {r.bundle(head, r.git("rev-parse", start+":dir")), "lacks the tree"},
		"nothing new":      {r.pack(start, start+"\n"+r.git("rev-parse", start+"^{tree}")), "no new commit"},
		"empty commit":     {r.bundleOf(child(r.git("rev-parse", start+"^{tree}"))), "changes nothing"},
		"rewritten":        {r.bundleOf(unrelated, r.git("rev-parse", head+"^{tree}")), "does not descend"},
		"merges another":   {r.bundle(merged), "does not descend"},
		"merges unknown":   {r.bundle(merged, older), "lacks the commit " + older},
		"a blob as tree":   {odd("40000", "d", x), "where a tree belongs"},
		"submodule":        {r.bundleOf(child(tree("100644 blob "+x+"\tx", "160000 commit "+start+"\tsub"))), `submodule "sub"`},
		".git":             {odd("100644", ".git", x), "no file may have"},
		".GIT ":            {odd("100644", ".GIT ", x), "no file may have"},
		"git~1":            {odd("100644", "git~1", x), "no file may have"},
		"ignored":          {odd("100644", ".g\u200cit", x), "no file may have"},
		"..":               {odd("100644", "..", x), "no file may have"},
		"slash":            {odd("100644", "a/b", x), "no file may have"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := open(t, c.content, start)
			var refused *bundle.RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%v, %v; want one with %q", b, err, c.reason)
			}
		})
	}
}

// bundleOf packs a commit, its tree, and further objects.
func (r *repository) bundleOf(commit string, further ...string) []byte {
	r.t.Helper()
	tree := strings.Fields(r.git("cat-file", "-p", commit))[1]
	base := r.git("rev-parse", r.base+"^{tree}")
	return r.pack(commit, strings.Join(append(further, commit, tree, r.base, base, r.git("rev-parse", r.base+":dir")), "\n"))
}

// TestAcceptanceLargeBundles refuses bundles beyond the limits before it unpacks them.
func TestAcceptanceLargeBundles(t *testing.T) {
	r := newRepository(t, map[string]string{"a": "1\n"})
	for name, c := range map[string]struct {
		change func()
		reason string
	}{
		"a file":     {func() { r.write(map[string]string{"large": strings.Repeat("\x00", 65<<20)}) }, "an object of"},
		"many bytes": {func() { r.manyZeros(8, 40<<20) }, "more than 250 MiB of new objects"},
		"noise":      {func() { r.write(map[string]string{"large": noise(51 << 20)}) }, "more than 50 MiB"},
		"many files": {func() {
			for i := range 10_001 {
				r.write(map[string]string{fmt.Sprintf("d%d/f%d", i%50, i): "x"})
			}
		}, "more than 10000 files"},
	} {
		t.Run(name, func(t *testing.T) {
			r.git("checkout", "-q", "-B", "main", r.base)
			c.change()
			_, err := open(t, r.bundle(r.commit(nil)), r.base)
			var refused *bundle.RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%v, want %q", err, c.reason)
			}
		})
	}
}

func (r *repository) manyZeros(n, size int) {
	for i := range n {
		r.write(map[string]string{fmt.Sprint("z", i): strings.Repeat("\x00", size) + fmt.Sprint(i)})
	}
}

// TestUnreadable holds that content which cannot be read now is not refused.
func TestUnreadable(t *testing.T) {
	r := newRepository(t, map[string]string{"a.txt": "one\n"})
	content := r.bundle(r.commit(map[string]string{"a.txt": "two\n"}))
	away := errors.New("the database is away")
	for _, n := range []int{0, 10, 60, len(content) - 30} {
		_, err := bundle.Open(io.MultiReader(bytes.NewReader(content[:n]), iotest.ErrReader(away)), r.base)
		if !errors.Is(err, away) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

// TestContains finds texts in what the commits of a bundle add, and not in what was there before.
func TestContains(t *testing.T) {
	r := newRepository(t, map[string]string{"old.txt": "was-there\n", "a.txt": "one\n"})
	r.commit(map[string]string{"a.txt": "between\n"})
	head := r.commit(map[string]string{"a.txt": "last\n", "dir/in-a-name": "x\n", "old.txt": ""})
	b, err := open(t, r.bundle(head), r.base)
	if err != nil {
		t.Fatal(err)
	}

	for text, want := range map[string]bool{
		"between": true, "last": true, "in-a-name": true, "a@b.c": true, "was-there": false, "absent": false,
	} {
		got, err := b.Contains(func(found []byte) bool { return bytes.Contains(found, []byte(text)) })
		if err != nil || got != want {
			t.Errorf("%q: %t, %v", text, got, err)
		}
	}
}
