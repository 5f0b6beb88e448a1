package worker_test

import (
	"context"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"millwright/forge"
	"millwright/runs/dispatch"
	"millwright/state"
	"millwright/state/statetest"
)

// serveGit serves the repositories of a directory over smart HTTP, to those with the token.
func serveGit(t *testing.T, root, token string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(gitHandler(t, root, token))
	t.Cleanup(server.Close)
	return server
}

func gitHandler(t *testing.T, root, token string) http.Handler {
	t.Helper()
	programs, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}

	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(programs)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1"},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, password, ok := req.BasicAuth(); !ok || password != token {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, req)
	})
}

// newBenchAt is a bench whose factory f may use all repositories of a host of git, with a token.
func newBenchAt(t *testing.T, s *state.Store, host, token string) *bench {
	t.Helper()
	forges, err := forge.Open(forge.Config{
		Forges:  map[string]forge.Settings{"local": {Kind: "git", URL: host + "/{owner}/{name}.git", TokenSecret: "T"}},
		Allowed: map[string][]string{"f": nil},
		Secret:  func(context.Context, string) ([]byte, error) { return []byte(token), nil },
	})
	if err != nil {
		t.Fatal(err)
	}

	d, err := dispatch.Start(t.Context(), dispatch.Config{Store: s, Forges: forges})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(context.Background()) })
	return &bench{t: t, store: s, d: d, dir: t.TempDir()}
}

// TestForgeThatFailsForAWhile has runs wait whose repositories cannot be fetched now. They are executed when the
// forge works again. A repository that is gone, and a token that was revoked, end runs at once.
func TestForgeThatFailsForAWhile(t *testing.T) {
	const token = "s3cret-token-of-the-forge"
	failures := map[string]string{
		"error":  "the forge has an error",
		"busy":   "the forge limits requests",
		"silent": "the forge cannot be reached",
		"broken": "the connection to the forge broke",
	}

	statetest.Each(t, func(t *testing.T, s *state.Store) {
		o := newOrigin(t)
		for name := range failures {
			o.commit("acme/"+name, map[string]string{"a": "the text of " + name})
		}
		var down, revoked atomic.Bool
		down.Store(true)
		works := gitHandler(t, o.dir, token)
		host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			name, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/acme/"), ".git/")
			fetches := req.Method == http.MethodPost
			switch {
			case revoked.Load():
				w.WriteHeader(http.StatusUnauthorized)
			case name == "error" && down.Load():
				w.WriteHeader(http.StatusBadGateway)
			case name == "busy" && down.Load():
				w.WriteHeader(http.StatusTooManyRequests)
			case name == "silent" && down.Load():
				panic(http.ErrAbortHandler)
			case name == "broken" && down.Load() && fetches:
				w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
				w.Header().Set("Content-Length", "1000")
				io.WriteString(w, "0032")
				http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			default:
				works.ServeHTTP(w, req)
			}
		}))
		t.Cleanup(host.Close)
		b := newBenchAt(t, s, host.URL, token)
		b.work(configOf(sh(`cat a`)))

		ids := map[string]string{}
		for name := range failures {
			ids[name] = b.in(b.with(nil, "acme/"+name))
			b.until(ids[name], func(r state.Run) bool { return r.Ended() || r.WaitsFor == "retry" })
		}
		for name, want := range failures {
			r := b.until(ids[name], func(r state.Run) bool { return r.Ended() || r.WaitsFor == "retry" })
			want = "repository acme/" + name + ": " + want + "; the server tries again in "
			if r.Ended() || !strings.HasPrefix(r.StatusMessage, want) || r.Attempt != 1 {
				t.Errorf("%s: run is %s, attempt %d: %s: %s", name, r.State, r.Attempt, r.ErrorCode, r.StatusMessage)
			}
		}

		gone := b.end(b.in(b.with(nil, "acme/gone")))
		wantIn(t, gone.ErrorCode+" "+gone.StatusMessage, "environment_setup_failed", "the repository does not exist")

		down.Store(false)
		for name, id := range ids {
			wantIn(t, b.said(b.succeeded(id)), "the text of "+name)
		}

		revoked.Store(true)
		refused := b.end(b.in(b.with(nil, "acme/busy")))
		wantIn(t, refused.ErrorCode+" "+refused.StatusMessage,
			"environment_setup_failed", "the forge refuses the credential")
	})
}
