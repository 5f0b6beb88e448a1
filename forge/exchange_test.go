package forge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"millwright/forge"
	"millwright/forge/forgetest"
)

// testToken is the token of the tests. No error may have it.
const testToken = "tok-2f1c9d0a7e"

// exchange is a request and its answer, in the shape that the forge's documentation publishes. {url} in it is
// the server's address.
type exchange struct {
	Request string            `json:"request"` // GET /path?sorted=query
	Body    json.RawMessage   `json:"body,omitempty"`
	Status  int               `json:"status"`
	Header  map[string]string `json:"header,omitempty"`
	Answer  json.RawMessage   `json:"answer,omitempty"`
}

// recorded serves the exchanges of a file, each once, equal requests in their order. The test fails on other
// requests, other bodies, what the forge does not document, and without the token.
func recorded(t *testing.T, file string) (address string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}

	documented := published(t, file)
	var mu sync.Mutex
	var left []exchange
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()

		if got := r.Header.Get("Authorization"); got != "Bearer "+testToken {
			t.Errorf("%s: Authorization %q", r.URL, got)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}

		request := describe(r)
		for i, e := range left {
			if e.Request != request {
				continue
			}

			left = append(left[:i:i], left[i+1:]...)
			for _, wrong := range documented(r, body, e) {
				t.Errorf("%s: the forge documents otherwise: %s", request, wrong)
			}
			if e.Body != nil && !sameJSON(t, e.Body, body) {
				t.Errorf("%s: the body differs:\n%s", request, cmp.Diff(string(e.Body), string(body)))
			}
			for name, value := range e.Header {
				w.Header().Set(name, value)
			}
			if e.Answer != nil {
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
			}
			w.WriteHeader(e.Status)
			_, _ = w.Write(e.Answer)
			return
		}

		t.Errorf("a request that is not recorded: %s %s", request, body)
		http.Error(w, "not recorded", http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		for _, e := range left {
			t.Errorf("never asked: %s", e.Request)
		}
	})

	text = bytes.ReplaceAll(text, []byte("{url}"), []byte(server.URL))
	if err := json.Unmarshal(text, &left); err != nil {
		t.Fatal(err)
	}

	return server.URL
}

// describe returns the method, the escaped path and the sorted query of a request.
func describe(r *http.Request) string {
	text := r.Method + " " + r.URL.EscapedPath()
	if query := r.URL.Query().Encode(); query != "" {
		text += "?" + query
	}
	return text
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		return false
	}
	return cmp.Equal(x, y)
}

// recording returns a set whose exchanges with a real Gitea become testdata/gitea.json.
func recording(t *testing.T, gitea *forgetest.Server) *forge.Set {
	t.Helper()
	var all []exchange
	origin, err := url.Parse(gitea.URL)
	must(t, err)

	proxy := httputil.NewSingleHostReverseProxy(origin)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))

		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		e := exchange{Request: describe(r), Body: body, Status: answer.Code}
		if answer.Body.Len() > 0 {
			e.Answer = shorten(t, bytes.ReplaceAll(answer.Body.Bytes(), []byte(gitea.URL), []byte("{url}")))
		}
		all = append(all, e)

		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		text, err := json.MarshalIndent(all, "", " ")
		if err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(filepath.Join("testdata", "gitea.json"), append(text, '\n'), 0o644); err != nil {
			t.Error(err)
		}
	})

	set, err := forge.Open(forge.Config{
		Forges: map[string]forge.Settings{"gitea": {URL: server.URL, TokenSecret: "TOKEN"}},
		Secret: func(context.Context, string) ([]byte, error) { return []byte(gitea.Token), nil },
	})
	must(t, err)
	return set
}

// shorten keeps the names of repositories and users in an answer, and leaves out the rest of them.
func shorten(t *testing.T, text []byte) []byte {
	t.Helper()
	kept := map[string]bool{"id": true, "login": true, "name": true, "full_name": true, "default_branch": true}
	var walk func(v any, within bool) any
	walk = func(v any, within bool) any {
		switch v := v.(type) {
		case map[string]any:
			maps.DeleteFunc(v, func(k string, _ any) bool { return within && !kept[k] })
			for k, sub := range v {
				v[k] = walk(sub, slices.Contains([]string{"repo", "user", "creator", "author", "committer", "owner"}, k))
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i], false)
			}
		}
		return v
	}

	var value any
	must(t, json.Unmarshal(text, &value))
	short, err := json.Marshal(walk(value, false))
	must(t, err)
	return short
}

// withoutToken fails the test if an error has the token, or is not one printable line.
func withoutToken(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if text := err.Error(); strings.Contains(text, testToken) || strings.ContainsAny(text, "\n\r\x1b") {
		t.Errorf("error %q", text)
	}
}
