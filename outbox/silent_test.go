package outbox_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"millwright/forge"
	"millwright/outbox"
	"millwright/state"
	"millwright/state/checks"
	"millwright/state/statetest"
)

// TestSilentForge publishes a check at one forge while another, which has many more to get, never answers.
func TestSilentForge(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		var began, ended atomic.Int64
		silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			began.Add(1)
			<-r.Context().Done()
			ended.Add(1)
		}))
		defer silent.Close()
		defer silent.CloseClientConnections()
		h := &appHub{head: strings.Repeat("a", 40), comments: []map[string]any{}}
		good := httptest.NewServer(h)
		defer good.Close()

		forges, err := forge.Open(forge.Config{
			Forges: map[string]forge.Settings{
				"silent": {Kind: forge.GitHub, URL: silent.URL, TokenSecret: "TOKEN"},
				"good":   {Kind: forge.GitHub, URL: good.URL, TokenSecret: "TOKEN"},
			},
			Default: "good",
			Secret:  func(context.Context, string) ([]byte, error) { return []byte("tok"), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		check := func(name, address string, pulls int) (uid string) {
			t.Helper()
			url := address + "/acme/shop.git"
			f, err := s.EnsureFactory(t.Context(), name, state.Source{Kind: "git", URL: url}, false)
			if err != nil {
				t.Fatal(err)
			}
			var open []checks.Check
			for n := range pulls {
				open = append(open, checks.Check{Number: n + 1, URL: url, Commit: h.head})
			}
			rows, err := s.Checks().See(t.Context(), f.UID, open, true)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range rows {
				c.Result, c.Description, c.Public, c.Comment = checks.Success, "fine", "fine", "### fine"
				if err := s.Checks().Checked(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			return f.UID
		}

		check("silent", silent.URL, 40)
		out, err := outbox.New(outbox.Config{
			Store: s, Forges: forges, Checks: func(string) bool { return true },
			Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		running, stop := context.WithCancel(context.Background())
		over := make(chan struct{})
		go func() { defer close(over); out.Run(running) }()
		defer func() { stop(); silent.CloseClientConnections(); <-over }()
		statetest.Until(t, "the silent forge to be asked", func() bool { return began.Load() >= 4 })

		uid := check("good", good.URL, 1)
		statetest.Until(t, "the check at the other forge", func() bool {
			rows, err := s.Checks().Subject(t.Context(), uid, "#1")
			return err == nil && len(rows) == 1 && rows[0].State == checks.Done
		})
		if began.Load() != 4 || ended.Load() != 0 {
			t.Errorf("%d requests at the silent forge, of which %d ended", began.Load(), ended.Load())
		}
	})
}
