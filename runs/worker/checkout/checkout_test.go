//go:build unix

package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"millwright/runs/worker/checkout"
)

const maxBytes = 1 << 30

// remote is a bare repository, with a work tree for its commits.
type remote struct {
	t    *testing.T
	bare string
	work string
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	r := &remote{t, filepath.Join(t.TempDir(), "shop.git"), filepath.Join(t.TempDir(), "shop")}
	r.run("/", "init", "--quiet", "--bare", "--initial-branch=main", r.bare)
	r.run("/", "init", "--quiet", "--initial-branch=main", r.work)
	return r
}

// run calls git and returns what it put out.
func (r *remote) run(dir string, args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit commits files on a branch, pushes it, and returns the commit.
func (r *remote) commit(branch string, files map[string]string) string {
	r.t.Helper()
	r.run(r.work, "checkout", "--quiet", "-B", branch)
	for name, body := range files {
		write(r.t, filepath.Join(r.work, name), body)
	}
	r.run(r.work, "add", "--all", "--force")
	r.run(r.work, "commit", "--quiet", "--message=x")
	r.run(r.work, "push", "--quiet", r.bare, "HEAD:refs/heads/"+branch)
	return r.run(r.work, "rev-parse", "HEAD")
}

func (r *remote) url() string { return "file://" + r.bare }

func write(t *testing.T, file, body string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(body), 0o755); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// made checks a repository out with new mirrors, and returns where.
func made(t *testing.T, m *checkout.Mirrors, s checkout.Source) (string, checkout.Made) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	got, err := m.Checkout(t.Context(), s, dir, filepath.Join(t.TempDir(), "bases", "0"))
	if err != nil {
		t.Fatal(err)
	}
	return dir, got
}

func open(t *testing.T) *checkout.Mirrors { return checkout.Open(t.TempDir(), maxBytes) }

func TestCheckout(t *testing.T) {
	r := newRemote(t)
	first := r.commit("main", map[string]string{"a.txt": "one"})
	r.run(r.work, "tag", "v1")
	r.run(r.work, "push", "--quiet", r.bare, "v1")
	second := r.commit("main", map[string]string{"a.txt": "two"})
	topic := r.commit("feature/x", map[string]string{"a.txt": "three"})
	r.run(r.work, "checkout", "--quiet", "--detach")
	fork := r.commit("gone", map[string]string{"a.txt": "four"})
	r.run(r.bare, "update-ref", "-d", "refs/heads/gone")

	m := open(t)
	for _, test := range []struct {
		name string
		s    checkout.Source
		want checkout.Made
		text string
	}{
		{"default branch", checkout.Source{}, checkout.Made{Commit: second, Branch: "main"}, "two"},
		{"branch", checkout.Source{Ref: "feature/x"}, checkout.Made{Commit: topic, Branch: "feature/x"}, "three"},
		{"full name", checkout.Source{Ref: "refs/heads/main"}, checkout.Made{Commit: second, Branch: "main"}, "two"},
		{"tag", checkout.Source{Ref: "v1"}, checkout.Made{Commit: first}, "one"},
		{"commit", checkout.Source{Commit: first, Ref: "main"}, checkout.Made{Commit: first, Branch: "main"}, "one"},
		{"commit on no branch", checkout.Source{Commit: fork}, checkout.Made{Commit: fork}, "four"},
		{
			"proven commit",
			checkout.Source{Commit: topic, Ref: "feature/x", Proven: true, Base: "main"},
			checkout.Made{Commit: topic, Branch: "feature/x"},
			"three",
		},
		{
			"proven commit of another branch",
			checkout.Source{Commit: first, Ref: "feature/y", Proven: true},
			checkout.Made{Commit: first},
			"one",
		},
		{
			"commit of a fork",
			checkout.Source{Commit: fork, Proven: true, Base: "feature/x"},
			checkout.Made{Commit: topic, Branch: "feature/x", Untrusted: true},
			"three",
		},
		{
			"commit that is nowhere",
			checkout.Source{Commit: strings.Repeat("1", 40), Proven: true},
			checkout.Made{Commit: second, Branch: "main", Untrusted: true},
			"two",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.s.URL, test.s.Author = r.url(), "triage"
			dir, got := made(t, m, test.s)
			if got != test.want || read(t, filepath.Join(dir, "a.txt")) != test.text {
				t.Errorf("made %+v with %q, want %+v", got, read(t, filepath.Join(dir, "a.txt")), test.want)
			}
			if status := r.run(dir, "status", "--porcelain"); status != "" {
				t.Errorf("status: %s", status)
			}
			if url := r.run(dir, "config", "remote.origin.url"); url != r.url() {
				t.Errorf("remote %s", url)
			}
			if branch := r.run(dir, "branch", "--show-current"); branch != test.want.Branch {
				t.Errorf("on branch %q", branch)
			}
		})
	}
}

// TestRefusals has repositories that cannot be checked out. The worker goes on: the same mirrors serve others.
func TestRefusals(t *testing.T) {
	r := newRemote(t)
	empty := newRemote(t)
	full := newRemote(t)
	full.commit("main", map[string]string{"a": strings.Repeat("x", 3000), "b": strings.Repeat("y", 3000)})
	r.commit("main", map[string]string{"a.txt": "one"})

	m := open(t)
	for _, test := range []struct {
		name string
		m    *checkout.Mirrors
		s    checkout.Source
		want string
	}{
		{"gone", m, checkout.Source{URL: "file:///nonexistent/x.git"}, "the repository does not exist"},
		{"empty", m, checkout.Source{URL: empty.url()}, "the repository is empty"},
		{"without the branch", m, checkout.Source{URL: r.url(), Ref: "dev"}, `no branch or tag "dev"`},
		{"option", m, checkout.Source{URL: r.url(), Ref: "--upload-pack=touch /tmp/x"}, "not the name of a branch"},
		{"newline", m, checkout.Source{URL: r.url(), Ref: "a\nb"}, "not the name of a branch"},
		{"range", m, checkout.Source{URL: r.url(), Ref: "main..dev"}, "not the name of a branch"},
		{"no commit", m, checkout.Source{URL: r.url(), Commit: "main"}, "not the name of a commit"},
		{"unknown commit", m, checkout.Source{URL: r.url(), Commit: strings.Repeat("2", 40)}, "does not have the commit"},
		{"helper", m, checkout.Source{URL: "ext::sh -c touch% /tmp/x"}, "want https, http or file"},
		{"ssh", m, checkout.Source{URL: "ssh://git.example.com/x.git"}, "want https, http or file"},
		{"credential in the address", m, checkout.Source{URL: "https://u:p@git.example.com/x.git"}, "has a credential"},
		{"too large", checkout.Open(t.TempDir(), 5000), checkout.Source{URL: full.url()}, "more than 5000 bytes"},
		{"unreachable", m, checkout.Source{URL: "http://127.0.0.1:1/x.git"}, "cannot be reached"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := test.m.Checkout(t.Context(), test.s, filepath.Join(t.TempDir(), "w"), filepath.Join(t.TempDir(), "b"))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}

	made(t, m, checkout.Source{URL: r.url()})
}

// TestMirrorHasDamage damages a mirror in several ways: it is made anew.
func TestMirrorHasDamage(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, mirror string){
		"no HEAD":    func(t *testing.T, mirror string) { remove(t, filepath.Join(mirror, "HEAD")) },
		"no objects": func(t *testing.T, mirror string) { remove(t, filepath.Join(mirror, "objects")) },
		"config":     func(t *testing.T, mirror string) { write(t, filepath.Join(mirror, "config"), "[core\n") },
		"left lock":  func(t *testing.T, mirror string) { write(t, filepath.Join(mirror, "packed-refs.lock"), "") },
		"ref to nothing": func(t *testing.T, mirror string) {
			write(t, filepath.Join(mirror, "refs/heads/main"), strings.Repeat("3", 40))
		},
		"packs": func(t *testing.T, mirror string) { truncate(t, filepath.Join(mirror, "objects")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t)
			commit := r.commit("main", map[string]string{"a.txt": "one"})
			dir := t.TempDir()
			m := checkout.Open(dir, maxBytes)
			made(t, m, checkout.Source{URL: r.url()})

			found, err := filepath.Glob(filepath.Join(dir, "*", "HEAD"))
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			damage(t, filepath.Dir(found[0]))

			work, got := made(t, m, checkout.Source{URL: r.url()})
			if got.Commit != commit || read(t, filepath.Join(work, "a.txt")) != "one" {
				t.Errorf("made %+v", got)
			}
			r.run(work, "fsck", "--strict")
		})
	}
}

func remove(t *testing.T, place string) {
	t.Helper()
	if err := os.RemoveAll(place); err != nil {
		t.Fatal(err)
	}
}

// truncate empties all files below a directory.
func truncate(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if err := os.Chmod(file, 0o600); err != nil {
			return err
		}
		return os.Truncate(file, 0)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMirrorIsShared has two workers with one directory check out at once, while commits come.
func TestMirrorIsShared(t *testing.T) {
	r := newRemote(t)
	r.commit("main", map[string]string{"a.txt": "one"})
	dir := t.TempDir()

	var all sync.WaitGroup
	for worker := range 2 {
		m := checkout.Open(dir, maxBytes)
		for run := range 4 {
			place := filepath.Join(t.TempDir(), fmt.Sprint(worker, run))
			all.Go(func() {
				if _, err := m.Checkout(t.Context(), checkout.Source{URL: r.url()}, place, place+"-base"); err != nil {
					t.Error(err)
				}
			})
		}
	}
	r.commit("main", map[string]string{"a.txt": "two"})
	all.Wait()
}

// TestMirrorDoesNotGrow checks out many times from one mirror.
func TestMirrorDoesNotGrow(t *testing.T) {
	r := newRemote(t)
	r.commit("main", map[string]string{"a.txt": strings.Repeat("text\n", 1000)})
	dir := t.TempDir()
	m := checkout.Open(dir, maxBytes)
	made(t, m, checkout.Source{URL: r.url()})

	before := listing(t, dir)
	for range 5 {
		made(t, m, checkout.Source{URL: r.url()})
	}
	if after := listing(t, dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// listing has the files below a directory with their sizes.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		fmt.Fprintln(&out, file, info.Size())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestCheckoutsAreApart has a run write over everything in its checkout: the mirror stays whole.
func TestCheckoutsAreApart(t *testing.T) {
	r := newRemote(t)
	r.commit("main", map[string]string{"a.txt": "one"})
	m := open(t)
	work, _ := made(t, m, checkout.Source{URL: r.url()})
	truncate(t, work)

	again, _ := made(t, m, checkout.Source{URL: r.url()})
	r.run(again, "fsck", "--strict")
}

// TestCancelledCheckout cancels a checkout whose server does not answer.
func TestCancelledCheckout(t *testing.T) {
	asked := make(chan struct{}, 10)
	ctx, cancel := context.WithCancelCause(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked <- struct{}{}
		<-req.Context().Done()
	}))
	defer server.Close()

	go func() { <-asked; cancel(fmt.Errorf("the run was cancelled")) }()
	_, err := open(t).Checkout(ctx, checkout.Source{URL: server.URL + "/x.git"},
		filepath.Join(t.TempDir(), "w"), filepath.Join(t.TempDir(), "b"))
	if err == nil || !strings.Contains(err.Error(), "the run was cancelled") {
		t.Errorf("error %v", err)
	}
}

const token = "s3cret-token-of-the-forge"

// serveGit serves repositories over smart HTTP, to those with the token.
func serveGit(t *testing.T, root string) *httptest.Server {
	t.Helper()
	exe, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}

	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(exe)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch _, password, ok := req.BasicAuth(); {
		case strings.HasPrefix(req.URL.Path, "/moved/"):
			http.Redirect(w, req, "/"+strings.TrimPrefix(req.URL.RequestURI(), "/moved/"), http.StatusMovedPermanently)
		case strings.HasPrefix(req.URL.Path, "/broken/"):
			http.Error(w, "<html>oops</html>", http.StatusBadGateway)
		case strings.HasPrefix(req.URL.Path, "/busy/"):
			http.Error(w, "slow down", http.StatusTooManyRequests)
		case strings.HasPrefix(req.URL.Path, "/nothing/"):
			panic(http.ErrAbortHandler)
		case strings.HasPrefix(req.URL.Path, "/page/"):
			fmt.Fprint(w, "<html>\nWelcome\n</html>\n")
		case !ok:
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
		case password != token:
			http.Error(w, "no", http.StatusForbidden)
		default:
			backend.ServeHTTP(w, req)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// TestSmartHTTP fetches over HTTP with a credential, which is left nowhere, and from servers that misbehave.
func TestSmartHTTP(t *testing.T) {
	r := newRemote(t)
	r.commit("main", map[string]string{"a.txt": "one"})
	server := serveGit(t, filepath.Dir(r.bare))
	good := checkout.Credential{User: "x-access-token", Password: token}

	dir := t.TempDir()
	m := checkout.Open(dir, maxBytes)
	work, _ := made(t, m, checkout.Source{URL: server.URL + "/shop.git", Credential: good})
	for _, place := range []string{dir, work} {
		err := filepath.WalkDir(place, func(file string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			if body := read(t, file); strings.Contains(body, token) || strings.Contains(file, token) {
				t.Errorf("%s has the token", file)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	for _, test := range []struct {
		name, path string
		credential checkout.Credential
		want       string
		passes     bool
	}{
		{"no credential", "/shop.git", checkout.Credential{}, "the forge asks for a credential", false},
		{"revoked", "/shop.git", checkout.Credential{User: "x", Password: "other-token"}, "the forge refuses the credential", false},
		{"gone", "/none.git", good, "the repository does not exist", false},
		{"renamed", "/moved/shop.git", good, "moved or renamed", false},
		{"broken", "/broken/shop.git", good, "the forge has an error", true},
		{"busy", "/busy/shop.git", good, "limits requests", true},
		{"no git server", "/page/shop.git", good, "no git server", false},
		{"no answer", "/nothing/shop.git", good, "the forge cannot be reached", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := m.Checkout(t.Context(), checkout.Source{URL: server.URL + test.path, Credential: test.credential},
				filepath.Join(t.TempDir(), "w"), filepath.Join(t.TempDir(), "b"))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if errors.Is(err, checkout.ErrLater) != test.passes {
				t.Errorf("error %v: it is a reason to try again: %t", err, !test.passes)
			}
			if err != nil && strings.Contains(err.Error(), token) {
				t.Errorf("the error has the token: %v", err)
			}
		})
	}
}
