//go:build unix

package checkout_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"millwright/runs/worker/checkout"
)

// mktree commits a tree of entries in the form of git ls-tree, also of those that git itself would not add.
func (r *remote) mktree(entries ...string) {
	r.t.Helper()
	commit := r.run(r.bare, "commit-tree", "-m", "x", r.subtree(entries...))
	r.run(r.bare, "update-ref", "refs/heads/main", commit)
}

// blob stores a file.
func (r *remote) blob(body string) string {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "blob")
	write(r.t, file, body)
	return r.run(r.bare, "hash-object", "-w", file)
}

// TestHostileRepositories checks out repositories that try to execute something or to write elsewhere.
func TestHostileRepositories(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "executed")
	run := "#!/bin/sh\ntouch " + mark + "\n"
	t.Setenv("GIT_CONFIG_COUNT", "1") // of this process: not used
	t.Setenv("GIT_CONFIG_KEY_0", "filter.evil.smudge")
	t.Setenv("GIT_CONFIG_VALUE_0", "touch "+mark)

	for name, set := range map[string]func(r *remote){
		"hooks": func(r *remote) {
			r.commit("main", map[string]string{".githooks/post-checkout": run, "hooks/post-checkout": run})
			write(r.t, filepath.Join(r.bare, "hooks/post-checkout"), run)
			write(r.t, filepath.Join(r.bare, "hooks/reference-transaction"), run)
		},
		"configuration of the remote": func(r *remote) {
			r.commit("main", map[string]string{"a": "b"})
			r.run(r.bare, "config", "uploadpack.packObjectsHook", "touch "+mark+";")
			r.run(r.bare, "config", "core.fsmonitor", "touch "+mark)
		},
		"filters": func(r *remote) {
			r.commit("main", map[string]string{
				".gitattributes": "* filter=evil\n*.bin filter=lfs diff=lfs merge=lfs -text\n",
				"a.bin":          "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
				".lfsconfig":     "[lfs]\n\turl = ext::touch " + mark + "\n",
			})
		},
		"submodule with a helper": func(r *remote) {
			r.commit("main", map[string]string{
				".gitmodules": "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c touch% " + mark + "\n\tupdate = !touch " + mark + "\n",
			})
			commit := r.run(r.work, "rev-parse", "HEAD")
			r.run(r.work, "update-index", "--add", "--cacheinfo", "160000,"+commit+",x")
			r.run(r.work, "commit", "--quiet", "--message=y")
			r.run(r.work, "push", "--quiet", r.bare, "HEAD:refs/heads/main")
		},
		"submodule named as an option": func(r *remote) {
			r.commit("main", map[string]string{
				".gitmodules": "[submodule \"../../x\"]\n\tpath = -u./x\n\turl = -u./touch\n",
			})
		},
		"link out of the tree": func(r *remote) {
			link := r.blob(filepath.Dir(mark))
			file := r.blob("x")
			r.mktree("120000 blob "+link+"\tout", "100644 blob "+file+"\tplain")
		},
		"link and file of one name": func(r *remote) {
			link, file := r.blob(filepath.Dir(mark)), r.blob("x")
			inner := r.subtree("100644 blob " + file + "\texecuted")
			r.mktree("120000 blob "+link+"\tD", "040000 tree "+inner+"\td")
		},
		"git directory in the tree": func(r *remote) {
			hook := r.blob(run)
			hooks := r.subtree("100755 blob " + hook + "\tpost-checkout")
			inner := r.subtree("040000 tree " + hooks + "\thooks")
			r.mktree("040000 tree "+inner+"\t.git", "100644 blob "+hook+"\ta")
		},
		"git directory under another name": func(r *remote) {
			hook := r.blob(run)
			hooks := r.subtree("100755 blob " + hook + "\tpost-checkout")
			inner := r.subtree("040000 tree " + hooks + "\thooks")
			r.mktree("040000 tree "+inner+"\tGIT~1", "040000 tree "+inner+"\t.g\u200cit")
		},
		"parent directory": func(r *remote) {
			file := r.blob("x")
			inner := r.subtree("100644 blob " + file + "\texecuted")
			r.mktree("040000 tree " + inner + "\t..")
		},
		"names with newlines": func(r *remote) {
			r.commit("main", map[string]string{"a\nb": "x", "--upload-pack=touch": "y", "$(touch x)": "z", "\xff\xfe": "w"})
		},
		"alternates": func(r *remote) {
			r.commit("main", map[string]string{"a": "b"})
			write(r.t, filepath.Join(r.bare, "objects/info/alternates"), "/etc\n../../../../../../etc\n")
			write(r.t, filepath.Join(r.bare, "objects/info/http-alternates"), "http://127.0.0.1:1/\n")
		},
		"branches named as options": func(r *remote) {
			commit := r.commit("main", map[string]string{"a": "b"})
			write(r.t, filepath.Join(r.bare, "packed-refs"), commit+" refs/heads/--upload-pack=touch\n")
		},
		"huge tree": func(r *remote) {
			tree := r.subtree("100644 blob " + r.blob("x") + "\tf")
			for range 9 {
				var entries []string
				for i := range 10 {
					entries = append(entries, fmt.Sprintf("040000 tree %s\t%d", tree, i))
				}
				tree = r.subtree(entries...)
			}
			r.mktree("040000 tree " + tree + "\td")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t)
			set(r)

			outside := listing(t, filepath.Dir(mark))
			dir := filepath.Join(t.TempDir(), "work")
			m := open(t)
			_, err := m.Checkout(t.Context(), checkout.Source{URL: r.url()}, dir, filepath.Join(t.TempDir(), "base"))
			t.Log(err)
			if now := listing(t, filepath.Dir(mark)); now != outside {
				t.Errorf("it executed or wrote something: %s", now)
			}
			if _, err := os.Lstat(filepath.Join(dir, ".git", "hooks", "post-checkout")); err == nil {
				t.Error("it left a hook")
			}

			other := newRemote(t)
			other.commit("main", map[string]string{"a": "b"})
			made(t, m, checkout.Source{URL: other.url()})
		})
	}
}

// TestPointersAndSubmodules checks out a file of Git LFS, which stays a pointer, and a submodule, whose directory
// stays empty.
func TestPointersAndSubmodules(t *testing.T) {
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
	inner := newRemote(t)
	commit := inner.commit("main", map[string]string{"inner": "x"})

	r := newRemote(t)
	r.commit("main", map[string]string{
		".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
		".gitmodules":    "[submodule \"sub\"]\n\tpath = sub\n\turl = " + inner.url() + "\n",
		"a.bin":          pointer,
	})
	r.run(r.work, "update-index", "--add", "--cacheinfo", "160000,"+commit+",sub")
	r.run(r.work, "commit", "--quiet", "--message=sub")
	r.run(r.work, "push", "--quiet", r.bare, "HEAD:refs/heads/main")

	work, _ := made(t, open(t), checkout.Source{URL: r.url()})
	if got := read(t, filepath.Join(work, "a.bin")); got != pointer {
		t.Errorf("the pointer became %q", got)
	}
	if in, err := os.ReadDir(filepath.Join(work, "sub")); err != nil || len(in) > 0 {
		t.Errorf("the submodule has %v, %v", in, err)
	}
	if status := r.run(work, "status", "--porcelain"); status != "" {
		t.Errorf("the checkout has changes: %s", status)
	}
}

// subtree stores a tree.
func (r *remote) subtree(entries ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", "mktree", "-z", "--missing")
	cmd.Dir = r.bare
	cmd.Stdin = bytes.NewReader([]byte(strings.Join(entries, "\x00") + "\x00"))
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
