//go:build unix

package checkout_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"millwright/runs/worker/checkout"
	"millwright/runs/worker/confine/confinetest"
)

// TestKilledGit has a mirror with the locks and new objects of a git that was killed. It is used on.
func TestKilledGit(t *testing.T) {
	r := newRemote(t)
	r.commit("main", map[string]string{"a.txt": "one"})
	r.commit("feature/x", map[string]string{"a.txt": "two"})
	dir := t.TempDir()
	m := checkout.Open(dir, maxBytes)
	made(t, m, checkout.Source{URL: r.url()})
	found, err := filepath.Glob(filepath.Join(dir, "*", "HEAD"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	mirror := filepath.Dir(found[0])

	for _, left := range []string{
		"HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock",
		"refs/heads/main.lock", "refs/heads/feature/x.lock", "refs/heads/feature/y.lock",
		"objects/info/commit-graph.lock", "objects/pack/tmp_pack_x", "objects/aa/tmp_obj_x",
	} {
		t.Run(left, func(t *testing.T) {
			write(t, filepath.Join(mirror, left), "")
			write(t, filepath.Join(mirror, "mark"), "")
			for _, branch := range []string{"main", "feature/x", "feature/y"} {
				commit := r.commit(branch, map[string]string{"a.txt": branch + left})
				if _, got := made(t, m, checkout.Source{URL: r.url(), Ref: branch}); got.Commit != commit {
					t.Errorf("made %+v, want %s", got, commit)
				}
			}

			if _, err := os.Stat(filepath.Join(mirror, left)); err == nil {
				t.Error("it is still there")
			}
			if _, err := os.Stat(filepath.Join(mirror, "mark")); err != nil {
				t.Error("the mirror was made anew")
			}
		})
	}
}

// TestThreadsEnd ends the threads of this process while git waits for a server. That kills no git.
func TestThreadsEnd(t *testing.T) {
	r := newRemote(t)
	commit := r.commit("main", map[string]string{"a.txt": "one"})
	server := serveGit(t, filepath.Dir(r.bare))
	serve := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		confinetest.EndThreads()
		serve.ServeHTTP(w, req)
	})

	source := checkout.Source{
		URL:        server.URL + "/" + filepath.Base(r.bare),
		Credential: checkout.Credential{User: "x", Password: token},
	}
	for range 5 {
		if _, got := made(t, open(t), source); got.Commit != commit {
			t.Errorf("made %+v", got)
		}
	}
}
