package outbox_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/forge"
	"millwright/outbox"
	"millwright/state"
	"millwright/state/checks"
	"millwright/state/statetest"
)

// appHub serves what a GitHub App needs for the check of a pull request.
type appHub struct {
	mu       sync.Mutex
	head     string
	answers  []int // statuses for check runs that are refused, in turn
	checked  []string
	comments []map[string]any
}

func (h *appHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()

	var body map[string]any
	text, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(text, &body)
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}

	path := strings.TrimPrefix(r.URL.Path, "/api/v3")
	of, _ := strings.CutPrefix(path, "/repos/acme/shop")
	switch {
	case path == "/app":
		answer(http.StatusOK, map[string]any{"id": 1, "slug": "mill"})
	case of == "/installation":
		answer(http.StatusOK, map[string]any{"id": 7, "app_id": 1})
	case strings.HasSuffix(path, "/access_tokens"):
		answer(http.StatusCreated, map[string]any{"token": "ghs_1", "expires_at": time.Now().Add(time.Hour)})
	case of == "":
		answer(http.StatusOK, map[string]any{"private": true})
	case of == "/pulls/1":
		answer(http.StatusOK, map[string]any{
			"number": 1, "state": "open",
			"head": map[string]any{"sha": h.head},
			"base": map[string]any{"ref": "main"},
		})
	case of == "/check-runs" && len(h.answers) > 0:
		answer(h.answers[0], map[string]any{"message": "Resource not accessible by integration"})
		h.answers = h.answers[1:]
	case of == "/check-runs":
		h.checked = append(h.checked, string(text))
		answer(http.StatusCreated, map[string]any{"id": 4})
	case of == "/issues/1/comments" && r.Method == http.MethodGet:
		answer(http.StatusOK, h.comments)
	case of == "/issues/1/comments":
		body["id"], body["user"] = len(h.comments)+1, map[string]any{"login": "mill[bot]"}
		h.comments = append(h.comments, body)
		answer(http.StatusCreated, body)
	default: // statuses, and edits of comments
		answer(http.StatusOK, map[string]any{})
	}
}

// TestAnnotatesProblems shows the problems of a pull request at their lines. A forge that is away does it later,
// and one that denies it has the comment alone.
func TestAnnotatesProblems(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})

	for name, row := range map[string]struct {
		answers []int
		made    int
	}{"shown": {nil, 1}, "later": {[]int{503}, 1}, "denied": {[]int{403, 403, 403}, 0}} {
		t.Run(name, func(t *testing.T) {
			statetest.Each(t, func(t *testing.T, s *state.Store) {
				t.Parallel()
				h := &appHub{head: strings.Repeat("a", 40), answers: row.answers, comments: []map[string]any{}}
				server := httptest.NewServer(h)
				defer server.Close()
				ctx := t.Context()
				forges, err := forge.Open(forge.Config{
					Forges: map[string]forge.Settings{
						"hub": {Kind: forge.GitHub, URL: server.URL, App: &forge.App{ID: 1, PrivateKeySecret: "KEY"}},
					},
					Secret: func(context.Context, string) ([]byte, error) { return pemKey, nil },
				})
				if err != nil {
					t.Fatal(err)
				}
				url := server.URL + "/acme/shop.git"
				f, err := s.EnsureFactory(ctx, "mill", state.Source{Kind: "git", URL: url}, false)
				if err != nil {
					t.Fatal(err)
				}

				out, err := outbox.New(outbox.Config{
					Store: s, Forges: forges, PublicURL: "https://mill.example.com",
					Checks: func(string) bool { return true }, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
				})
				if err != nil {
					t.Fatal(err)
				}
				running, stop := context.WithCancel(context.Background())
				ended := make(chan struct{})
				go func() { defer close(ended); out.Run(running) }()
				defer func() { stop(); <-ended }()

				rows, err := s.Checks().See(ctx, f.UID, []checks.Check{{Number: 1, URL: url, Commit: h.head}}, true)
				if err != nil {
					t.Fatal(err)
				}
				c := rows[0]
				c.Result, c.Description, c.Public, c.Comment = checks.Failure, "refused", "refused", "### refused"
				c.Pull.Problems = []checks.Problem{
					{Path: "def/a.yaml", Line: 3, Code: "unknown-key", Text: "unknown key"},
					{Path: "def/b.yaml", Line: 4, Warning: true, Code: "unused", Text: "not used"},
				}
				if err := s.Checks().Checked(ctx, c); err != nil {
					t.Fatal(err)
				}
				statetest.Until(t, "the published check", func() bool {
					rows, err = s.Checks().Subject(ctx, f.UID, "#1")
					return err == nil && len(rows) == 1 && rows[0].State != checks.Waiting && rows[0].State != checks.Doing
				})
				if rows[0].State != checks.Done {
					t.Fatalf("the check is %s: %s", rows[0].State, rows[0].Reason)
				}

				h.mu.Lock()
				defer h.mu.Unlock()
				if len(h.checked) != row.made || len(h.comments) != 1 {
					t.Fatalf("%d check runs, %d comments", len(h.checked), len(h.comments))
				}
				for _, want := range []string{
					`"name":"millwright/mill problems"`, `"conclusion":"failure"`, `"head_sha":"` + h.head, `"path":"def/b.yaml"`,
					`"start_line":4`, `"annotation_level":"warning"`, fmt.Sprintf(`factories/%s#pull-requests`, f.UID),
				} {
					if row.made > 0 && !strings.Contains(h.checked[0], want) {
						t.Errorf("the check run lacks %s: %s", want, h.checked[0])
					}
				}
			})
		})
	}
}
