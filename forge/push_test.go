package forge_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"millwright/forge"
	"millwright/forge/forgetest"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

// commit commits a file and returns the commit.
func commit(t *testing.T, dir, name, text string) string {
	t.Helper()
	write(t, dir, name, text)
	forgetest.Git(t, dir, "add", "--all")
	forgetest.Git(t, dir, "commit", "--quiet", "--message", "Change "+name)
	return forgetest.Git(t, dir, "rev-parse", "HEAD")
}

// bare makes a repository with one commit on main below root, and returns a clone of it.
func bare(t *testing.T, root string) (dir, base string) {
	t.Helper()
	path := filepath.Join(root, "acme", "tool.git")
	must(t, os.MkdirAll(path, 0o755))
	forgetest.Git(t, path, "init", "--quiet", "--bare", "--initial-branch=main")
	forgetest.Git(t, path, "config", "http.receivepack", "true")

	dir = t.TempDir()
	forgetest.Git(t, dir, "clone", "--quiet", path, ".")
	forgetest.Git(t, dir, "checkout", "--quiet", "-B", "main")
	base = commit(t, dir, "a.txt", "one\n")
	forgetest.Git(t, dir, "push", "--quiet", "origin", "main")
	return dir, base
}

// smartHTTP serves repositories with git's own program, to those who send the token.
func smartHTTP(t *testing.T, root string) string {
	t.Helper()
	backend := filepath.Join(forgetest.Git(t, root, "--exec-path"), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}

	git := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=millwright"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case user == "":
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
		case password != testToken:
			http.Error(w, "I do not know "+password+", "+r.Header.Get("Authorization"), http.StatusForbidden)
		default:
			git.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestPush pushes over both protocols, to a host that has git alone.
func TestPush(t *testing.T) {
	for _, protocol := range []string{"file", "http"} {
		t.Run(protocol, func(t *testing.T) {
			root := t.TempDir()
			dir, base := bare(t, root)
			s := forge.Settings{Kind: forge.Git, URL: "file://" + root + "/{owner}/{name}.git"}
			if protocol == "http" {
				s.URL, s.TokenSecret = smartHTTP(t, root)+"/{owner}/{name}.git", "TOKEN"
			}
			pushes(t, one(t, s), dir, base)
		})
	}
}

// pushes pushes changes of acme/tool from a clone of it.
func pushes(t *testing.T, set *forge.Set, dir, base string) {
	ctx := t.Context()
	f, err := set.Of(tool)
	must(t, err)

	first := commit(t, dir, "b.txt", "two\n")
	change := forge.Change{Base: base, Head: first, Branch: "agent/fixer/1", Prefix: "agent/"}
	packed := forgetest.Bundle(t, dir, base, first)
	push := func(c forge.Change, b []byte) error {
		c.Bundle = bytes.NewReader(b)
		err := forge.Push(ctx, f, tool, c)
		withoutToken(t, err)
		return err
	}
	at := func(branch, commit string) {
		t.Helper()
		ref, err := f.Branch(ctx, tool, branch)
		must(t, err)
		equal(t, branch, ref.Commit, commit)
	}

	must(t, push(change, packed))
	at("agent/fixer/1", first)
	must(t, push(change, packed)) // as after a crash
	at("main", base)

	second := commit(t, dir, "c.txt", "three\n")
	onTop := forge.Change{Base: first, Head: second, Branch: change.Branch, Prefix: "agent/", Old: first}
	must(t, push(onTop, forgetest.Bundle(t, dir, first, second)))
	at("agent/fixer/1", second)

	third := commit(t, dir, "d.txt", "four\n")
	fromBase := forge.Change{Base: base, Head: third, Branch: change.Branch, Prefix: "agent/", Old: second}
	must(t, push(fromBase, forgetest.Bundle(t, dir, base, third)))
	at("agent/fixer/1", third)

	forgetest.Git(t, dir, "checkout", "--quiet", base)
	other := commit(t, dir, "e.txt", "five\n")
	aside := forgetest.Bundle(t, dir, base, other)
	for name, c := range map[string]struct {
		change forge.Change
		bundle []byte
		kind   error
		words  string
	}{
		"branch exists":  {forge.Change{Base: base, Head: other, Branch: change.Branch, Prefix: "agent/"}, aside, forge.ErrConflict, "the branch exists"},
		"branch moved":   {forge.Change{Base: base, Head: other, Branch: change.Branch, Prefix: "agent/", Old: second}, aside, forge.ErrConflict, "the branch moved to " + third},
		"other line":     {forge.Change{Base: base, Head: other, Branch: change.Branch, Prefix: "agent/", Old: third}, aside, forge.ErrConflict, "do not follow"},
		"branch is gone": {forge.Change{Base: base, Head: other, Branch: "agent/gone", Prefix: "agent/", Old: third}, aside, forge.ErrConflict, "the branch is gone"},
		"beside prefix":  {forge.Change{Base: base, Head: other, Branch: "main", Prefix: "agent/", Old: base}, aside, forge.ErrRefused, "not below"},
		"no prefix":      {forge.Change{Base: base, Head: other, Branch: "x"}, aside, forge.ErrRefused, "not below"},
		"climbing":       {forge.Change{Base: base, Head: other, Branch: "agent/../main", Prefix: "agent/"}, aside, forge.ErrRefused, "no valid name"},
		"option":         {forge.Change{Base: base, Head: other, Branch: "--upload-pack=x", Prefix: "-"}, aside, forge.ErrRefused, "no valid name"},
		"other head":     {forge.Change{Base: base, Head: third, Branch: "agent/x", Prefix: "agent/"}, aside, forge.ErrRefused, "another head"},
		"other base":     {forge.Change{Base: second, Head: other, Branch: "agent/x", Prefix: "agent/"}, aside, forge.ErrRefused, "needs the commit " + base},
		"no commit":      {forge.Change{Base: "main", Head: other, Branch: "agent/x", Prefix: "agent/"}, aside, forge.ErrRefused, "needs the commit " + base},
		"no bundle":      {forge.Change{Base: base, Head: other, Branch: "agent/x", Prefix: "agent/"}, []byte("<html>"), forge.ErrRefused, "not a git bundle"},
		"damaged pack":   {forge.Change{Base: base, Head: other, Branch: "agent/x", Prefix: "agent/"}, append(aside[:len(aside)-60:len(aside)-60], make([]byte, 60)...), forge.ErrRefused, "damaged pack"},
	} {
		t.Run(name, func(t *testing.T) {
			err := push(c.change, c.bundle)
			is(t, err, c.kind)
			if !strings.Contains(fmt.Sprint(err), c.words) {
				t.Errorf("error %v, want %s", err, c.words)
			}
		})
	}

	at("agent/fixer/1", third)
	at("main", base)
	_, err = f.Branch(ctx, tool, "agent/gone")
	is(t, err, forge.ErrNotFound)

	forgetest.Git(t, dir, "checkout", "--quiet", third)
	fourth := commit(t, dir, "f.txt", "six\n")
	unknown := forge.Change{Base: third, Head: fourth, Branch: "agent/y", Prefix: "agent/"}
	forgetest.Git(t, dir, "push", "--quiet", "origin", "--delete", "agent/fixer/1")
	forgetest.Git(t, forgetest.Git(t, dir, "remote", "get-url", "origin"), "gc", "--quiet", "--prune=now")
	if err := push(unknown, forgetest.Bundle(t, dir, third, fourth)); !errors.Is(err, forge.ErrRefused) && !errors.Is(err, forge.ErrConflict) {
		t.Errorf("onto a commit that the host has lost: %v", err)
	}
}

// giteaPush pushes to a real Gitea, also to branches that it protects.
func giteaPush(t *testing.T, server *forgetest.Server) {
	server.Repository("acme", "pushed", map[string]string{"a.txt": "one\n"})
	dir := t.TempDir()
	forgetest.Git(t, dir, "clone", "--quiet", server.Remote("acme", "pushed"), ".")
	base := forgetest.Git(t, dir, "rev-parse", "HEAD")

	set := server.Forges(func() string { return server.Token })
	repo := forge.Repository{Owner: "acme", Name: "pushed"}
	f, err := set.Of(repo)
	must(t, err)

	head := commit(t, dir, "b.txt", "two\n")
	packed := forgetest.Bundle(t, dir, base, head)
	push := func(branch, old string) error {
		return forge.Push(t.Context(), f, repo, forge.Change{
			Bundle: bytes.NewReader(packed), Base: base, Head: head, Branch: branch, Prefix: "agent/", Old: old,
		})
	}

	must(t, push("agent/one", ""))
	must(t, push("agent/one", ""))
	ref, err := f.Branch(t.Context(), repo, "agent/one")
	must(t, err)
	equal(t, "branch", ref.Commit, head)

	server.Protect("acme", "pushed", "agent/protected")
	err = push("agent/protected", "")
	is(t, err, forge.ErrConflict)
	if err != nil && !strings.Contains(err.Error(), "protected") {
		t.Errorf("error %v", err)
	}

	server.Repository("acme", "empty", nil)
	_, err = f.Branch(t.Context(), forge.Repository{Owner: "acme", Name: "empty"}, "")
	is(t, err, forge.ErrNotFound)
}

// TestPushMeetsAnother pushes while another push, as one of a server that was killed, holds the lock of the branch.
func TestPushMeetsAnother(t *testing.T) {
	root := t.TempDir()
	dir, base := bare(t, root)
	head := commit(t, dir, "b.txt", "two\n")
	s := forge.Settings{Kind: forge.Git, URL: smartHTTP(t, root) + "/{owner}/{name}.git", TokenSecret: "TOKEN"}
	f, err := one(t, s).Of(tool)
	must(t, err)

	push := func() error {
		return forge.Push(t.Context(), f, tool, forge.Change{
			Bundle: bytes.NewReader(forgetest.Bundle(t, dir, base, head)), Base: base, Head: head, Branch: "agent/x", Prefix: "agent/",
		})
	}

	heads := filepath.Join(root, "acme", "tool.git", "refs", "heads", "agent")
	must(t, os.Mkdir(heads, 0o755))
	lock := filepath.Join(heads, "x.lock")
	must(t, os.WriteFile(lock, nil, 0o644))
	is(t, push(), forge.ErrLater)

	must(t, os.Remove(lock))
	must(t, push())
}

// TestPushDenied pushes with a token that the host does not accept.
func TestPushDenied(t *testing.T) {
	root := t.TempDir()
	dir, base := bare(t, root)
	head := commit(t, dir, "b.txt", "two\n")
	url := smartHTTP(t, root)
	for name, value := range map[string]string{"wrong": "other-" + testToken, "none": ""} {
		t.Run(name, func(t *testing.T) {
			s := forge.Settings{Kind: forge.Git, URL: url + "/{owner}/{name}.git", TokenSecret: "TOKEN"}
			if value == "" {
				s.TokenSecret = ""
			}

			f, err := withSecret(t, s, value).Of(tool)
			must(t, err)
			err = forge.Push(t.Context(), f, tool, forge.Change{
				Bundle: bytes.NewReader(forgetest.Bundle(t, dir, base, head)), Base: base, Head: head, Branch: "agent/x", Prefix: "agent/",
			})
			is(t, err, forge.ErrDenied)
			sent := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + value))
			if text := fmt.Sprint(err); strings.Contains(text, "other-") || strings.Contains(text, sent[:12]) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestPushRedirected holds that a push goes to the repository that was named, and not to where it moved.
func TestPushRedirected(t *testing.T) {
	var moved atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/mallory/") {
			moved.Add(1)
		}
		http.Redirect(w, r, strings.Replace(r.URL.String(), "/acme/", "/mallory/", 1), http.StatusMovedPermanently)
	}))
	defer server.Close()

	dir, base := bare(t, t.TempDir())
	head := commit(t, dir, "b.txt", "two\n")
	f, err := one(t, forge.Settings{Kind: forge.Git, URL: server.URL + "/{owner}/{name}.git", TokenSecret: "TOKEN"}).Of(tool)
	must(t, err)
	err = forge.Push(t.Context(), f, tool, forge.Change{
		Bundle: bytes.NewReader(forgetest.Bundle(t, dir, base, head)), Base: base, Head: head, Branch: "agent/x", Prefix: "agent/",
	})
	is(t, err, forge.ErrRefused)
	if n := moved.Load(); n > 0 || !strings.Contains(fmt.Sprint(err), "another name") {
		t.Errorf("%d requests to the other repository, %v", n, err)
	}
}
