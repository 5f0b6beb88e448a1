package forge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"millwright/forge"
	"millwright/forge/forgetest"
)

// withSecret returns a set with one forge, whose token is value.
func withSecret(t *testing.T, s forge.Settings, value string) *forge.Set {
	t.Helper()
	set, err := forge.Open(forge.Config{
		Forges: map[string]forge.Settings{"acme": s},
		Secret: func(context.Context, string) ([]byte, error) { return []byte(value), nil },
	})
	must(t, err)
	return set
}

// answer is a bad answer of a forge, and the error that it becomes.
type answer struct {
	status int
	header map[string]string
	body   string
	kind   error
	words  string
	wait   time.Duration
}

var jsonType = map[string]string{"Content-Type": "application/json"}

func with(header map[string]string, more ...string) map[string]string {
	all := map[string]string{}
	for k, v := range header {
		all[k] = v
	}
	for i := 0; i+1 < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

var answers = map[string]answer{
	"unauthorized":      {401, jsonType, `{"message": "Bad credentials ` + testToken + `"}`, forge.ErrDenied, "Bad credentials ***", 0},
	"forbidden":         {403, jsonType, `{"message": "Resource not accessible by integration"}`, forge.ErrDenied, "Resource not accessible by integration (403)", 0},
	"rate limit":        {403, with(jsonType, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9999999999"), `{"message": "API rate limit exceeded"}`, forge.ErrLater, "API rate limit exceeded", time.Hour},
	"secondary limit":   {403, with(jsonType, "Retry-After", "61"), `{"message": "You have exceeded a secondary rate limit"}`, forge.ErrLater, "secondary rate limit", 61 * time.Second},
	"too many requests": {429, with(jsonType, "Retry-After", "120"), `{"message": "Retry later"}`, forge.ErrLater, "Retry later (429)", 2 * time.Minute},
	"plain 429":         {429, map[string]string{"Content-Type": "text/plain", "Retry-After": "soon"}, "Retry later\n", forge.ErrLater, "Too Many Requests (429)", 0},
	"gone":              {410, jsonType, `{"message": "Issues are disabled"}`, forge.ErrNotFound, "Issues are disabled", 0},
	"conflict":          {409, jsonType, `{"message": ["Another open merge request already exists"]}`, forge.ErrConflict, "Another open merge request already exists", 0},
	"invalid":           {422, jsonType, `{"message": "Validation Failed", "errors": [{"field": "head", "code": "invalid"}]}`, forge.ErrRefused, `Validation Failed: [{"field":"head","code":"invalid"}]`, 0},
	"server error":      {500, jsonType, `{"message": "database is down"}`, forge.ErrLater, "database is down (500)", 0},
	"HTML of a proxy":   {502, map[string]string{"Content-Type": "text/html"}, "<html><h1>Bad Gateway</h1>", forge.ErrLater, "Bad Gateway (502)", 0},
	"HTML of a page":    {200, map[string]string{"Content-Type": "text/html; charset=utf-8"}, "<html>Sign in", forge.ErrLater, "the answer is text/html, not JSON: check the forge's url", 0},
	"nothing":           {200, nil, "", forge.ErrLater, "not JSON", 0},
	"empty JSON":        {200, jsonType, "", forge.ErrLater, "the answer is empty", 0},
	"cut JSON":          {200, jsonType, `{"login": "x`, forge.ErrLater, "the answer is cut, or not the JSON", 0},
	"no JSON":           {200, jsonType, `login: x`, forge.ErrLater, "the answer is cut, or not the JSON", 0},
	"other JSON":        {200, jsonType, `{"id": "text", "login": 7, "username": []}`, forge.ErrLater, "the answer is cut, or not the JSON that the forge's documentation describes", 0},
	"null":              {200, jsonType, `null`, forge.ErrLater, "the answer is cut, or not the JSON", 0},
	"too large":         {200, jsonType, `{"login": "` + strings.Repeat("x", 9<<20) + `"}`, forge.ErrRefused, "more than 8 MiB", 0},
	"terminal codes":    {400, jsonType, `{"message": "\u001b[31mno\r\nsecond line"}`, forge.ErrRefused, "[31mno second line (400)", 0},
	"long words":        {400, jsonType, `{"message": "` + strings.Repeat("é", 5000) + `"}`, forge.ErrRefused, "…", 0},
	"a cut token":       {400, jsonType, `{"message": "` + strings.Repeat("x", 290) + testToken + `"}`, forge.ErrRefused, "x***", 0},
	"no words":          {418, jsonType, `{}`, forge.ErrRefused, "I'm a teapot (418)", 0},
}

// TestBadAnswers gives each client of an API each bad answer.
func TestBadAnswers(t *testing.T) {
	for _, kind := range []string{forge.GitHub, forge.GitLab, forge.Gitea} {
		for name, a := range answers {
			t.Run(kind+"/"+name, func(t *testing.T) {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					for k, v := range a.header {
						w.Header().Set(k, v)
					}
					w.WriteHeader(a.status)
					_, _ = io.WriteString(w, a.body)
				}))
				defer server.Close()

				f, err := one(t, forge.Settings{Kind: kind, URL: server.URL, TokenSecret: "TOKEN"}).Of(tool)
				must(t, err)
				_, err = f.Login(t.Context())
				is(t, err, a.kind)
				if text := fmt.Sprint(err); !strings.Contains(text, a.words) || len(text) > 500 {
					t.Errorf("error %q, want %q", text, a.words)
				}
				if got := forge.RetryAfter(err); got != a.wait {
					t.Errorf("retry after %v, want %v", got, a.wait)
				}
			})
		}
	}
}

// TestSilentForge ends requests that the forge does not answer, and those that nobody takes.
func TestSilentForge(t *testing.T) {
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hung.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()

	for _, kind := range []string{forge.GitHub, forge.GitLab, forge.Gitea} {
		f, err := one(t, forge.Settings{Kind: kind, URL: closed.URL, TokenSecret: "TOKEN"}).Of(tool)
		must(t, err)
		_, err = f.Login(t.Context())
		is(t, err, forge.ErrLater)

		f, err = one(t, forge.Settings{Kind: kind, URL: hung.URL, TokenSecret: "TOKEN"}).Of(tool)
		must(t, err)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { _, err := f.Login(ctx); done <- err }()
		stop()
		is(t, <-done, context.Canceled)
	}
}

// TestRedirects follows redirects on the same host only, as from a renamed repository, and sends the token to
// no other.
func TestRedirects(t *testing.T) {
	var stolen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stolen = append(stolen, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{}`)
	}))
	defer other.Close()

	for _, kind := range []string{forge.GitHub, forge.GitLab, forge.Gitea} {
		t.Run(kind, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.Contains(r.URL.Path, "renamed"):
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"id": 1, "body": "there"}`)
				case r.Method == http.MethodPost:
					http.Redirect(w, r, "/renamed", http.StatusTemporaryRedirect)
				case strings.Contains(r.URL.EscapedPath(), "stolen"):
					http.Redirect(w, r, other.URL+r.URL.Path, http.StatusMovedPermanently)
				default:
					http.Redirect(w, r, r.URL.Path, http.StatusFound) // for ever
				}
			}))
			defer server.Close()

			f, err := one(t, forge.Settings{Kind: kind, URL: server.URL, TokenSecret: "TOKEN"}).Of(tool)
			must(t, err)
			_, err = f.Branch(t.Context(), forge.Repository{Owner: "acme", Name: "stolen"}, "")
			is(t, err, forge.ErrRefused)
			_, err = f.Login(t.Context())
			is(t, err, forge.ErrRefused)
			_, err = f.CreateComment(t.Context(), tool, forge.Thread{Number: 1}, "body")
			must(t, err)
		})
	}

	if len(stolen) > 0 {
		t.Errorf("another host got requests with %q", stolen)
	}
}

// TestManyPulls ends a list of open pull requests that has no end.
func TestManyPulls(t *testing.T) {
	for _, kind := range []string{forge.GitHub, forge.GitLab, forge.Gitea} {
		var asked int
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			page, _ := strconv.Atoi(r.URL.Query().Get("page"))
			next := *r.URL
			query := next.Query()
			query.Set("page", strconv.Itoa(page+1))
			next.RawQuery = query.Encode()
			w.Header().Set("Link", fmt.Sprintf(`<http://%s%s>; rel="next"`, r.Host, next.RequestURI()))
			w.Header().Set("X-Next-Page", strconv.Itoa(page+1))
			w.Header().Set("Content-Type", "application/json")
			var all []string
			for i := range 100 {
				n := page*100 + i
				all = append(all, fmt.Sprintf(`{"number": %[1]d, "iid": %[1]d, "base": {"ref": "main"}}`, n))
			}
			_, _ = io.WriteString(w, "["+strings.Join(all, ",")+"]")
		}))
		defer server.Close()

		f, err := one(t, forge.Settings{Kind: kind, URL: server.URL, TokenSecret: "TOKEN"}).Of(tool)
		must(t, err)
		open, whole, err := f.Pulls(t.Context(), tool, "main")
		must(t, err)
		if len(open) != forge.MaxPulls || whole || asked > 12 {
			t.Errorf("%s: %d pull requests, whole %t, %d requests", kind, len(open), whole, asked)
		}
	}
}

// TestMemory asks a forge again only for what changed.
func TestMemory(t *testing.T) {
	sent, tag := 0, `"one"`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		sent++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `[{"number": %d}]`, sent)
	}))
	defer server.Close()

	f, err := one(t, forge.Settings{Kind: forge.GitHub, URL: server.URL, TokenSecret: "TOKEN"}).Of(tool)
	must(t, err)
	ctx := forge.WithMemory(t.Context(), &forge.Memory{})
	for i, step := range []struct {
		tag  string
		want int
	}{{`"one"`, 1}, {`"one"`, 1}, {`"two"`, 2}, {`"two"`, 2}, {"", 3}, {"", 4}} {
		tag = step.tag
		open, _, err := f.Pulls(ctx, tool, "main")
		must(t, err)
		if len(open) != 1 || open[0].Number != step.want {
			t.Errorf("answer %d: %+v, want %d", i, open, step.want)
		}
	}
	if sent != 4 {
		t.Errorf("%d answers were sent, want 4", sent)
	}
}

// TestManyFiles refuses pull requests that change more files than a list may have.
func TestManyFiles(t *testing.T) {
	for _, kind := range []string{forge.GitHub, forge.GitLab, forge.Gitea} {
		var asked int
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			w.Header().Set("Content-Type", "application/json")
			if kind == forge.GitLab && !strings.HasSuffix(r.URL.Path, "/diffs") {
				_, _ = io.WriteString(w, `{"changes_count": "4000"}`)
				return
			}
			page, _ := strconv.Atoi(r.URL.Query().Get("page"))
			_, _ = io.WriteString(w, "[")
			for i := range 100 {
				if i > 0 {
					_, _ = io.WriteString(w, ",")
				}
				fmt.Fprintf(w, `{"filename": "%[1]d/%[2]d", "new_path": "%[1]d/%[2]d", "old_path": "%[1]d/%[2]d"}`, page, i)
			}
			_, _ = io.WriteString(w, "]")
		}))
		defer server.Close()

		f, err := one(t, forge.Settings{Kind: kind, URL: server.URL, TokenSecret: "TOKEN"}).Of(tool)
		must(t, err)
		_, err = f.PullFiles(t.Context(), tool, 1)
		is(t, err, forge.ErrRefused)
		if asked > 40 {
			t.Errorf("%s: %d requests", kind, asked)
		}
	}
}

// TestSparseAnswers gives each method answers in which everything is absent or null.
func TestSparseAnswers(t *testing.T) {
	for _, kind := range []string{forge.GitHub, forge.GitLab, forge.Gitea} {
		for _, body := range []string{
			`{}`, `[]`, `[null]`, `[{}]`, `{"commit": null, "user": null, "head": null, "base": null, "author": null, "default_branch": "main"}`,
			`[{"user": null, "head": null, "base": null, "author": null, "position": null}]`,
		} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, body)
			}))
			defer server.Close()

			f, err := one(t, forge.Settings{Kind: kind, URL: server.URL, TokenSecret: "TOKEN"}).Of(tool)
			must(t, err)
			ctx, on := t.Context(), forge.Thread{Number: 1, Pull: true}
			_, err1 := f.Login(ctx)
			_, err2 := f.Branch(ctx, tool, "")
			_, err3 := f.Reachable(ctx, tool, headCommit, "x")
			_, err4 := f.Pull(ctx, tool, 1)
			_, err5 := f.PullOf(ctx, tool, "x")
			_, err6 := f.CreatePull(ctx, tool, forge.NewPull{})
			_, err7 := f.Comments(ctx, tool, on)
			_, err8 := f.CreateComment(ctx, tool, on, "x")
			_, err9 := f.Reviews(ctx, tool, 1)
			_, err10 := f.CreateReview(ctx, tool, 1, forge.Review{Event: forge.ReviewComment})
			_, _, err11 := f.Pulls(ctx, tool, "main")
			_, err12 := f.Private(ctx, tool)
			for _, err := range []error{
				err1, err2, err3, err4, err5, err6, err7, err8, err9, err10, err11, err12, f.UpdateComment(ctx, tool, on, 1, "x"),
				f.Labels(ctx, tool, on, []string{"a"}, []string{"b"}), f.SetStatus(ctx, tool, headCommit, forge.Status{}),
			} {
				withoutToken(t, err)
			}
		}
	}
}

// TestUnsupported names what a host without an API lacks.
func TestUnsupported(t *testing.T) {
	f, err := one(t, forge.Settings{Kind: forge.Git, URL: "https://git.example.com/{owner}/{name}.git"}).Of(tool)
	must(t, err)
	ctx, on := t.Context(), forge.Thread{Number: 1}
	_, err1 := f.Login(ctx)
	_, err2 := f.Pull(ctx, tool, 1)
	_, err3 := f.PullOf(ctx, tool, "x")
	_, err4 := f.PullFiles(ctx, tool, 1)
	_, err5 := f.CreatePull(ctx, tool, forge.NewPull{})
	_, err6 := f.Comments(ctx, tool, on)
	_, err7 := f.CreateComment(ctx, tool, on, "x")
	_, err8 := f.Reviews(ctx, tool, 1)
	_, err9 := f.CreateReview(ctx, tool, 1, forge.Review{Event: forge.ReviewComment})
	_, _, err10 := f.Pulls(ctx, tool, "main")
	_, err11 := f.Private(ctx, tool)
	for _, err := range []error{
		err1, err2, err3, err4, err5, err6, err7, err8, err9, err10, err11,
		f.UpdateComment(ctx, tool, on, 1, "x"), f.Labels(ctx, tool, on, nil, nil), f.SetStatus(ctx, tool, headCommit, forge.Status{}),
	} {
		is(t, err, forge.ErrUnsupported)
	}
}

// giteaGone renames and deletes repositories between requests.
func giteaGone(t *testing.T, server *forgetest.Server) {
	server.Repository("acme", "before", map[string]string{"a.txt": "one\n"})
	issue := forge.Thread{Number: server.Issue("acme", "before", "It fails")}
	repo := forge.Repository{Owner: "acme", Name: "before"}
	f, err := server.Forges(func() string { return server.Token }).Of(repo)
	must(t, err)

	name := "after"
	_, _, err = server.API().EditRepo("acme", "before", gitea.EditRepoOption{Name: &name})
	must(t, err)
	ref, err := f.Branch(t.Context(), repo, "")
	must(t, err)
	equal(t, "branch of a renamed repository", ref.Branch, "main")
	_, err = f.CreateComment(t.Context(), repo, issue, "still here")
	is(t, err, forge.ErrRefused)
	if want := "the repository has another name"; !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("error %v, want %s", err, want)
	}

	_, err = server.API().DeleteRepo("acme", "after")
	must(t, err)
	_, err = f.Branch(t.Context(), repo, "")
	is(t, err, forge.ErrNotFound)
	_, err = f.CreateComment(t.Context(), repo, issue, "nobody reads this")
	is(t, err, forge.ErrNotFound)
}

// giteaRevoked revokes a token between requests.
func giteaRevoked(t *testing.T, server *forgetest.Server) {
	token := server.User("robot")
	f, err := server.Forges(func() string { return token }).Of(tool)
	must(t, err)
	login, err := f.Login(t.Context())
	must(t, err)
	equal(t, "login", login, "robot")

	server.Revoke("robot")
	_, err = f.Login(t.Context())
	is(t, err, forge.ErrDenied)
	if strings.Contains(fmt.Sprint(err), token) {
		t.Error("the error has the token")
	}
	if _, err = f.CreateComment(t.Context(), tool, forge.Thread{Number: 1}, "x"); !errors.Is(err, forge.ErrDenied) {
		t.Errorf("error %v", err)
	}
}
