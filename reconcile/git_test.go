package reconcile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millwright/reconcile"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// repository is a bare repository that the git program serves, and a clone of it to work in.
type repository struct {
	testing.TB
	bare, work string
}

func newRepository(tb testing.TB) *repository {
	tb.Helper()
	statetest.Program(tb, "git")
	r := &repository{tb, filepath.Join(tb.TempDir(), "r.git"), filepath.Join(tb.TempDir(), "work")}
	r.run("", "init", "-q", "--bare", "-b", "main", r.bare)
	r.run(r.bare, "config", "receive.denyDeleteCurrent", "ignore")
	r.run("", "clone", "-q", r.bare, r.work)
	r.git("checkout", "-q", "-b", "main")
	return r
}

func (r *repository) run(dir string, args ...string) string {
	r.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		r.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// git runs the git program in the working clone.
func (r *repository) git(args ...string) string {
	r.Helper()
	return r.run(r.work, args...)
}

// commit commits the tree and returns the commit.
func (r *repository) commit(t tree, message string) string {
	r.Helper()
	old, err := filepath.Glob(filepath.Join(r.work, "*"))
	must(r, err)
	for _, path := range old {
		if filepath.Base(path) != ".git" {
			must(r, os.RemoveAll(path))
		}
	}
	for name, content := range t {
		put(r, filepath.Join(r.work, name), content)
	}
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", message)
	return r.git("rev-parse", "HEAD")
}

func (r *repository) push(t tree, message string) string {
	r.Helper()
	commit := r.commit(t, message)
	r.git("push", "-q", "--force", "origin", "HEAD")
	return commit
}

func (r *repository) fileURL() string { return "file://" + r.bare }

// server serves the repository over HTTP with git's own program, to whoever has the token if that is set.
type server struct {
	*httptest.Server
	requests atomic.Int64
	handler  atomic.Pointer[http.Handler] // in front, when set
}

func (r *repository) serve(token string) *server {
	backend, err := exec.Command("git", "--exec-path").Output()
	must(r, err)
	git := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(backend)), "git-http-backend"),
		Root: "/",
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(r.bare), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null"},
	}
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.requests.Add(1)
		if h := s.handler.Load(); h != nil {
			(*h).ServeHTTP(w, req)
			return
		}
		if _, password, _ := req.BasicAuth(); token != "" && password != token {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "no: "+req.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		git.ServeHTTP(w, req)
	}))
	r.Cleanup(s.Close)
	return s
}

func (s *server) url() string { return s.URL + "/r.git" }

func (s *server) answer(h http.HandlerFunc) {
	if h == nil {
		s.handler.Store(nil)
		return
	}
	var handler http.Handler = h
	s.handler.Store(&handler)
}

func gitSource(tb testing.TB, cfg reconcile.GitConfig) reconcile.Source {
	tb.Helper()
	if cfg.CloneDir == "" {
		cfg.CloneDir = filepath.Join(tb.TempDir(), "clone")
	}
	source, err := reconcile.Git(cfg)
	must(tb, err)
	tb.Cleanup(func() { must(tb, source.Close()) })
	return source
}

func fetch(tb testing.TB, s reconcile.Source) reconcile.Snapshot {
	tb.Helper()
	snap, err := s.Fetch(context.Background())
	must(tb, err)
	return snap
}

func read(tb testing.TB, fsys fs.FS, name string) string {
	tb.Helper()
	data, err := fs.ReadFile(fsys, name)
	must(tb, err)
	return string(data)
}

func token(value string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(value), nil }
}

// transports are the ways to a repository that a test can take.
var transports = map[string]func(r *repository) reconcile.GitConfig{
	"file": func(r *repository) reconcile.GitConfig { return reconcile.GitConfig{URL: r.fileURL()} },
	"http": func(r *repository) reconcile.GitConfig {
		return reconcile.GitConfig{URL: r.serve("s3cret").url(), Token: token("s3cret")}
	},
}

func TestGit(t *testing.T) {
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			first := r.push(two, "Add two webhooks\n\nWith a body.")
			source := gitSource(t, transport(r))
			snap := fetch(t, source)
			if rev := snap.Revision; rev.ID != first || rev.Author != "Ada" || rev.Subject != "Add two webhooks" || rev.At == nil || time.Since(*rev.At) > time.Hour || rev.Tree == "" {
				t.Errorf("revision %+v", rev)
			}
			if got := read(t, snap.FS, "webhooks/a.yaml"); got != two["webhooks/a.yaml"] {
				t.Errorf("content %q", got)
			}
			if again := fetch(t, source); again.Revision.ID != first || again.Bytes > 4<<10 {
				t.Errorf("an unchanged poll: revision %s, %d bytes", again.Revision.ID, again.Bytes)
			}
			second := r.push(tree{"webhooks/a.yaml": hook("B"), "webhooks/b.yaml": hook("B")}, "Change one")
			snap = fetch(t, source)
			if got := read(t, snap.FS, "webhooks/a.yaml"); snap.Revision.ID != second || got != hook("B") {
				t.Errorf("revision %s, content %q", snap.Revision.ID, got)
			}
			if got := read(t, snap.FS, "webhooks/b.yaml"); got != hook("B") {
				t.Errorf("a file of the first fetch: %q", got)
			}

			r.git("reset", "-q", "--hard", first)
			r.git("push", "-q", "--force", "origin", "main")
			if snap = fetch(t, source); snap.Revision.ID != first || read(t, snap.FS, "webhooks/a.yaml") != hook("A") {
				t.Errorf("forced back to the first commit: %s", snap.Revision.ID)
			}

			r.git("checkout", "-q", "--orphan", "other")
			orphan := r.commit(tree{"webhooks/z.yaml": hook("C")}, "Rewrite history")
			r.git("push", "-q", "--force", "origin", "HEAD:main")
			if snap = fetch(t, source); snap.Revision.ID != orphan || read(t, snap.FS, "webhooks/z.yaml") != hook("C") {
				t.Errorf("rewritten history: %s", snap.Revision.ID)
			}
			if _, err := fs.Stat(snap.FS, "webhooks/a.yaml"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a file of the old history: %v", err)
			}

			r.git("push", "-q", "origin", ":main")
			if _, err := source.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), `no branch "main"`) && !strings.Contains(err.Error(), "no commits") {
				t.Errorf("branch deleted: %v", err)
			}
			r.git("push", "-q", "origin", "HEAD:main")
			if snap = fetch(t, source); snap.Revision.ID != orphan {
				t.Errorf("branch made again: %s", snap.Revision.ID)
			}
		})
	}
}

// TestGitForcedBackToAnAncestor moves the branch to a commit that the shallow clone never had.
func TestGitForcedBackToAnAncestor(t *testing.T) {
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			ancestor := r.push(two, "one")
			r.push(tree{"webhooks/a.yaml": hook("C"), "webhooks/b.yaml": hook("B")}, "two")
			source := gitSource(t, transport(r))
			fetch(t, source)
			r.git("reset", "-q", "--hard", ancestor)
			r.git("push", "-q", "--force", "origin", "main")
			if snap := fetch(t, source); snap.Revision.ID != ancestor || read(t, snap.FS, "webhooks/a.yaml") != hook("A") || read(t, snap.FS, "webhooks/b.yaml") != hook("B") {
				t.Errorf("revision %s", snap.Revision.ID)
			}
		})
	}
}

func TestGitTagsAndCommits(t *testing.T) {
	r := newRepository(t)
	first := r.push(two, "one")
	r.git("tag", "light")
	r.git("tag", "-a", "-m", "annotated", "heavy")
	r.git("push", "-q", "--tags")
	last := r.push(tree{"webhooks/c.yaml": hook("C")}, "two")
	r.run(r.bare, "config", "uploadpack.allowReachableSHA1InWant", "true")
	for name, cfg := range map[string]reconcile.GitConfig{"light": {Tag: "light"}, "heavy": {Tag: "heavy"}, "commit": {Commit: first}} {
		t.Run(name, func(t *testing.T) {
			cfg.URL = r.fileURL()
			source := gitSource(t, cfg)
			for range 2 {
				if snap := fetch(t, source); snap.Revision.ID != first || read(t, snap.FS, "webhooks/a.yaml") == "" {
					t.Errorf("revision %s, want %s and not %s", snap.Revision.ID, first, last)
				}
			}
		})
	}
	s := r.serve("")
	pinned := gitSource(t, reconcile.GitConfig{URL: s.url(), Commit: first})
	fetch(t, pinned)
	asked := s.requests.Load()
	if fetch(t, pinned); s.requests.Load() != asked {
		t.Error("a pinned commit that is here was asked for again")
	}
}

func TestGitMonorepo(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		r := newRepository(t)
		base := tree{"ops/factory/webhooks/a.yaml": hook("A"), "ops/factory/webhooks/b.yaml": hook("B"), "src/main.go": "package main\n"}
		first := r.push(base, "one")
		b := newBench(t, s, gitSource(t, reconcile.GitConfig{URL: r.fileURL(), Path: "ops/factory/"}), nil)
		b.once(state.OutcomeApplied, true)
		b.wantWebhooks("a", "b")
		generation := b.now().Generation

		base["src/main.go"] = "package other\n"
		second := r.push(base, "code only")
		b.check(b.Once(t.Context(), reconcile.Request{}), state.OutcomeUnchanged, true)
		if f := b.now(); f.Applied.ID != second || f.Attempted.ID != second || f.Applied.Subject != "code only" || f.Generation != generation || second == first {
			t.Errorf("after a commit elsewhere: %+v", f)
		}
		b.once(state.OutcomeUnchanged, false)

		r.push(tree{"src/main.go": "package main\n"}, "moved away")
		if result := b.once(state.OutcomeFailed, true); !strings.Contains(result.Message, "no directory: ops/factory") {
			t.Errorf("message %q", result.Message)
		}
		b.wantWebhooks("a", "b")
		r.push(base, "back")
		b.once(state.OutcomeUnchanged, true)
		if got, want := b.outcomes(), "applied unchanged failed unchanged"; got != want {
			t.Errorf("history %q, want %q", got, want)
		}
	})
}

// TestGitCommitsPickUpSecrets holds that any new commit uses new values of secrets: one that is empty, one
// elsewhere, and one of definitions. The same commit uses none.
func TestGitCommitsPickUpSecrets(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		r := newRepository(t)
		base := tree{"ops/webhooks/a.yaml": hook("A"), "ops/webhooks/b.yaml": hook("B"), "src/main.go": "package main\n"}
		r.push(base, "one")
		b := newBench(t, s, gitSource(t, reconcile.GitConfig{URL: r.fileURL(), Path: "ops"}), nil)
		b.once(state.OutcomeApplied, true)
		waiting := func() (n int) {
			t.Helper()
			all, err := s.Webhooks(t.Context(), b.factory.UID, false)
			must(t, err)
			for _, w := range all {
				if w.SecretStale {
					n++
				}
			}
			return n
		}

		for i, change := range []func(){
			func() { base["src/main.go"] = "package other\n" },
			func() {}, // an empty commit
			func() { base["ops/webhooks/a.yaml"] = hook("A", "enabled: false") },
		} {
			secret(t, s, "A", fmt.Sprintf("value %d", i))
			b.once(state.OutcomeUnchanged, false)
			if n := waiting(); n != 1 {
				t.Errorf("%d: %d webhooks wait at the same commit", i, n)
			}

			change()
			commit := r.push(base, fmt.Sprintf("commit %d", i))
			if result := b.once(state.OutcomeApplied, true); result.Counts.Secrets != 1 {
				t.Errorf("%d: counts %+v", i, result.Counts)
			}
			if f := b.now(); f.Applied.ID != commit || waiting() != 0 {
				t.Errorf("%d: applied %s of %s, %d webhooks wait", i, f.Applied.ID, commit, waiting())
			}
		}

		base["src/main.go"] = "package third\n"
		r.push(base, "without a new value")
		b.once(state.OutcomeUnchanged, true)
	})
}

func TestGitPathChangesWhileTheCommitDoesNot(t *testing.T) {
	r := newRepository(t)
	r.push(tree{"one/webhooks/a.yaml": hook("A"), "two/webhooks/b.yaml": hook("B")}, "both")
	s := statetest.Open(t, statetest.SQLite(t))
	newBench(t, s, gitSource(t, reconcile.GitConfig{URL: r.fileURL(), Path: "one"}), nil).once(state.OutcomeApplied, true)
	b := newBench(t, s, gitSource(t, reconcile.GitConfig{URL: r.fileURL(), Path: "two"}), nil)
	b.once(state.OutcomeApplied, true)
	b.wantWebhooks("b")
}

func TestGitCloneSurvivesARestart(t *testing.T) {
	r := newRepository(t)
	commit := r.push(two, "one")
	s := r.serve("")
	clone := filepath.Join(t.TempDir(), "clone")
	source, err := reconcile.Git(reconcile.GitConfig{URL: s.url(), CloneDir: clone})
	must(t, err)
	fetch(t, source)
	again := gitSource(t, reconcile.GitConfig{URL: s.url(), CloneDir: clone})
	if _, err := again.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("two sources share a clone: %v", err)
	}
	must(t, source.Close())
	asked := s.requests.Load()
	if snap := fetch(t, again); snap.Revision.ID != commit || read(t, snap.FS, "webhooks/a.yaml") != hook("A") {
		t.Errorf("revision %s", snap.Revision.ID)
	}
	if n := s.requests.Load() - asked; n != 1 {
		t.Errorf("%d requests for a commit that is here, want 1", n)
	}
}

func TestGitDamagedClone(t *testing.T) {
	damages := map[string]func(t *testing.T, path string){
		"emptied":   func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) },
		"cut":       func(t *testing.T, path string) { must(t, os.Truncate(path, 60)) },
		"garbled":   garble,
		"removed":   func(t *testing.T, path string) { must(t, os.Remove(path)) },
		"directory": func(t *testing.T, path string) { must(t, os.Remove(path)); must(t, os.Mkdir(path, 0o755)) },
	}
	for _, kind := range []string{"pack", "idx"} {
		for name, damage := range damages {
			t.Run(kind+" "+name, func(t *testing.T) {
				r := newRepository(t)
				r.push(two, "one")
				clone := filepath.Join(t.TempDir(), "clone")
				s := statetest.Open(t, statetest.SQLite(t))
				source, err := reconcile.Git(reconcile.GitConfig{URL: r.fileURL(), CloneDir: clone})
				must(t, err)
				newBench(t, s, source, nil).once(state.OutcomeApplied, true)
				must(t, source.Close())
				files, err := filepath.Glob(filepath.Join(clone, "clone.git/objects/pack/pack-*."+kind))
				must(t, err)
				for _, file := range files {
					damage(t, file)
				}
				r.push(tree{"webhooks/a.yaml": hook("A"), "webhooks/b.yaml": hook("B"), "webhooks/c.yaml": hook("C")}, "two")
				b := newBench(t, s, gitSource(t, reconcile.GitConfig{URL: r.fileURL(), CloneDir: clone}), nil)
				b.once(state.OutcomeApplied, true)
				b.wantWebhooks("a", "b", "c")
			})
		}
	}
}

// garble overwrites the second half of a file.
func garble(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	must(t, err)
	for i := len(data) / 3; i < len(data); i++ {
		data[i] ^= 0x55
	}
	must(t, os.Chmod(path, 0o600))
	must(t, os.WriteFile(path, data, 0o600))
}

func TestGitCloneStaysSmall(t *testing.T) {
	r := newRepository(t)
	r.push(two, "start")
	clone := filepath.Join(t.TempDir(), "clone")
	source := gitSource(t, reconcile.GitConfig{URL: r.fileURL(), CloneDir: clone})
	for n := range 60 {
		r.push(tree{"webhooks/a.yaml": hook("A"), "webhooks/b.yaml": hook("B"), "n": fmt.Sprint(n)}, "change")
		fetch(t, source)
	}
	if n := len(glob(t, clone, "clone.git/objects/*/*")); n == 0 || n > 160 {
		t.Errorf("%d files in the clone after 60 fetches of three objects each", n)
	}
}

func TestGitRefusesAddresses(t *testing.T) {
	key := token("key")
	tests := []struct {
		name string
		cfg  reconcile.GitConfig
	}{
		{"empty", reconcile.GitConfig{}},
		{"helper program", reconcile.GitConfig{URL: "ext::sh -c touch% /tmp/x"}},
		{"helper program without spaces", reconcile.GitConfig{URL: "ext::sh"}},
		{"fd", reconcile.GitConfig{URL: "fd::17/foo"}},
		{"option", reconcile.GitConfig{URL: "--upload-pack=touch"}},
		{"option as scp path", reconcile.GitConfig{URL: "git@host:-oProxyCommand=x", SSHKey: key, KnownHosts: "x"}},
		{"option as scp host", reconcile.GitConfig{URL: "-oProxyCommand=x:path", SSHKey: key, KnownHosts: "x"}},
		{"option as ssh host", reconcile.GitConfig{URL: "ssh://-oProxyCommand=x/path", SSHKey: key, KnownHosts: "x"}},
		{"option as ssh user", reconcile.GitConfig{URL: "ssh://-l@host/path", SSHKey: key, KnownHosts: "x"}},
		{"git protocol", reconcile.GitConfig{URL: "git://host/r.git"}},
		{"relative path", reconcile.GitConfig{URL: "../r.git"}},
		{"absolute path", reconcile.GitConfig{URL: "/srv/r.git"}},
		{"file on a host", reconcile.GitConfig{URL: "file://host/r.git"}},
		{"credential", reconcile.GitConfig{URL: "https://user:hunter2@host/r.git"}},
		{"credential as user", reconcile.GitConfig{URL: "https://hunter2@host/r.git"}},
		{"ssh password", reconcile.GitConfig{URL: "ssh://git:hunter2@host/r.git", SSHKey: key, KnownHosts: "x"}},
		{"query", reconcile.GitConfig{URL: "https://host/r.git?token=hunter2"}},
		{"newline", reconcile.GitConfig{URL: "https://host/r.git\nx"}},
		{"token in clear", reconcile.GitConfig{URL: "http://example.com/r.git", Token: token("hunter2")}},
		{"ssh without a key", reconcile.GitConfig{URL: "ssh://git@host/r.git", KnownHosts: "x"}},
		{"ssh without known hosts", reconcile.GitConfig{URL: "git@host:r.git", SSHKey: key}},
		{"path outside", reconcile.GitConfig{URL: "https://host/r.git", Path: "../x"}},
		{"branch name", reconcile.GitConfig{URL: "https://host/r.git", Branch: "a..b"}},
		{"short commit", reconcile.GitConfig{URL: "https://host/r.git", Commit: "abc"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.cfg.CloneDir = t.TempDir()
			_, err := reconcile.Git(test.cfg)
			if err == nil {
				t.Fatal("accepted")
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a credential: %v", err)
			}
		})
	}
}

func TestGitCredentialsNeverShow(t *testing.T) {
	r := newRepository(t)
	r.push(two, "one")
	s := r.serve("right")
	secret := "wrong-hunter2"
	source := gitSource(t, reconcile.GitConfig{URL: s.url(), Token: func(context.Context) ([]byte, error) { return []byte(secret), nil }})
	check := func(what string) {
		t.Helper()
		_, err := source.Fetch(t.Context())
		if err == nil {
			t.Fatalf("%s: no error", what)
		}
		for _, leak := range []string{secret, "eC1hY2Nlc3Mt", "Basic "} {
			if strings.Contains(err.Error(), leak) {
				t.Errorf("%s: the error shows a credential: %v", what, err)
			}
		}
		if strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > 500 {
			t.Errorf("%s: the error is not one short line: %q", what, err)
		}
	}
	check("refused credential")
	for _, status := range []int{302, 400, 403, 404, 500, 503} {
		s.answer(func(w http.ResponseWriter, req *http.Request) {
			w.WriteHeader(status)
			fmt.Fprintf(w, "you sent %s\n\x1b[31m%s", req.Header.Get("Authorization"), strings.Repeat("x", 1<<20))
		})
		check(fmt.Sprint("status ", status))
	}
	s.answer(func(w http.ResponseWriter, req *http.Request) {
		_, password, _ := req.BasicAuth()
		fmt.Fprintf(w, "%04xERR %s\x1b[31m\n0000", len(password)+14, password)
	})
	check("error line")
	s.answer(nil)
	secret = "right"
	if fetch(t, source).Revision.ID == "" {
		t.Error("the new value of the secret is not used")
	}
	s.Close()
	check("host down")
}

func TestGitRedirects(t *testing.T) {
	r := newRepository(t)
	commit := r.push(two, "one")
	elsewhere := r.serve("")
	s := r.serve("s3cret")
	source := gitSource(t, reconcile.GitConfig{URL: s.URL + "/old.git", Token: token("s3cret")})
	s.answer(func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, elsewhere.URL+strings.Replace(req.URL.RequestURI(), "old.git", "r.git", 1), http.StatusFound)
	})
	if _, err := source.Fetch(t.Context()); err == nil || elsewhere.requests.Load() != 0 {
		t.Errorf("redirect to another port: error %v, %d requests there", err, elsewhere.requests.Load())
	}
	s.answer(func(w http.ResponseWriter, req *http.Request) {
		s.answer(nil)
		http.Redirect(w, req, strings.Replace(req.URL.RequestURI(), "old.git", "r.git", 1), http.StatusFound)
	})
	if snap := fetch(t, source); snap.Revision.ID != commit {
		t.Errorf("redirect on the same host: revision %s", snap.Revision.ID)
	}
}

func TestGitHostThatDoesNotAnswer(t *testing.T) {
	r := newRepository(t)
	s := r.serve("")
	release := make(chan struct{})
	s.answer(func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	source := gitSource(t, reconcile.GitConfig{URL: s.url(), Timeout: 50 * time.Millisecond})
	if _, err := source.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "not done in") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := source.Fetch(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestGitEmptyRepositoryAndEmptyTree(t *testing.T) {
	r := newRepository(t)
	b := newBench(t, statetest.Open(t, statetest.SQLite(t)), gitSource(t, reconcile.GitConfig{URL: r.fileURL()}), nil)
	if result := b.once(state.OutcomeFailed, true); !strings.Contains(result.Message, "no commits") {
		t.Errorf("message %q", result.Message)
	}
	r.push(two, "one")
	b.once(state.OutcomeApplied, true)
	r.push(tree{}, "all gone")
	if result := b.once(state.OutcomeRefused, true); result.Problems[0].Code != "prune-guard" {
		t.Errorf("problems %+v", result.Problems)
	}
	b.wantWebhooks("a", "b")
}

func TestGitLinksAndSubmodules(t *testing.T) {
	r := newRepository(t)
	sub := r.push(tree{"x": "y"}, "a commit to point to")
	tests := map[string]func(work string){
		"link to a file":      func(work string) { must(t, os.Symlink("/etc/passwd", filepath.Join(work, "webhooks/x.yaml"))) },
		"link as a directory": func(work string) { must(t, os.Symlink("webhooks", filepath.Join(work, "automations"))) },
		"submodule": func(string) {
			r.git("update-index", "--add", "--cacheinfo", "160000,"+sub+",runners")
		},
	}
	for name, do := range tests {
		t.Run(name, func(t *testing.T) {
			r.push(two, "clean")
			do(r.work)
			if name != "submodule" {
				r.git("add", "-A")
			}
			r.git("commit", "-q", "-m", name)
			r.git("push", "-q", "--force", "origin", "main")
			snap := fetch(t, gitSource(t, reconcile.GitConfig{URL: r.fileURL()}))
			loaded := schema.Load(snap.FS, nil)
			if len(loaded.Problems) != 1 || loaded.Problems[0].Code != "symlink" {
				t.Errorf("problems %+v, error %v", loaded.Problems, loaded.Err)
			}
		})
	}
}

func TestGitProxyOfTheURLIsDescribedWithoutSecrets(t *testing.T) {
	r := newRepository(t)
	source := gitSource(t, reconcile.GitConfig{URL: r.fileURL(), Branch: "release", Path: "./ops/"})
	want := state.Source{Kind: "git", URL: r.fileURL(), Branch: "release", Path: "ops"}
	if got := source.Describe(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := url.Parse(source.Describe().URL); err != nil {
		t.Error(err)
	}
}

func glob(tb testing.TB, parts ...string) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(parts...))
	must(tb, err)
	return files
}
