package outbox_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"millwright/forge"
	"millwright/outbox"
	"millwright/state"
	"millwright/state/statetest"
)

// TestLooked reads the state of a pull request again when somebody looks at its run, once a minute, and waits
// for no forge.
func TestLooked(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		var asked atomic.Int64
		answer := make(chan string, 1)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			select {
			case state := <-answer:
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"number":7,"state":"closed",%s}`, state)
			case <-r.Context().Done():
			}
		}))
		defer server.Close()
		forges, err := forge.Open(forge.Config{
			Forges:  map[string]forge.Settings{"hub": {Kind: forge.GitHub, URL: server.URL}},
			Allowed: map[string][]string{"mill": {"acme/shop"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		out, err := outbox.New(outbox.Config{Store: s, Forges: forges})
		if err != nil {
			t.Fatal(err)
		}

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); out.Run(ctx) }()
		defer func() { stop(); <-ended }()

		f, err := s.EnsureFactory(ctx, "mill", state.Source{Kind: "managed"}, false)
		if err != nil {
			t.Fatal(err)
		}
		left := func(repository, url string) []state.Artifact {
			t.Helper()
			run, err := s.CreateRun(ctx, state.NewRun{FactoryUID: f.UID, Title: "x", Source: "API", Creator: state.Creator{Type: "user"}},
				nil, state.Idempotency{})
			if err != nil {
				t.Fatal(err)
			}
			err = s.PutLink(ctx, run.ID, state.Artifact{
				Type: state.ArtifactPullRequest, Repository: repository, Path: url,
				Facts: state.ArtifactFacts{Branch: "agent/x", Status: forge.PullOpen, Number: 7},
			})
			if err != nil {
				t.Fatal(err)
			}
			all, err := s.Artifacts(ctx, run.ID)
			if err != nil {
				t.Fatal(err)
			}
			return all[run.ID]
		}
		status := func(a state.Artifact) string {
			all, err := s.Artifacts(ctx, a.RunID)
			if err != nil {
				t.Fatal(err)
			}
			return all[a.RunID][0].Facts.Status
		}

		elsewhere := left("mallory/shop", "https://example.com/1")
		merged, closed := left("acme/shop", "https://example.com/2"), left("acme/shop", "https://example.com/3")
		out.Looked(elsewhere) // which the settings do not allow
		out.Looked(merged)
		out.Looked(merged)
		statetest.Until(t, "a request", func() bool { return asked.Load() == 1 })
		out.Looked(merged) // while the forge does not answer
		if got := status(merged[0]); got != forge.PullOpen {
			t.Errorf("before the answer it is %s", got)
		}

		answer <- `"merged":true`
		statetest.Until(t, "the merged pull request", func() bool { return status(merged[0]) == forge.PullMerged })
		out.Looked(merged)
		out.Looked(closed)
		answer <- `"merged":false`
		statetest.Until(t, "the closed pull request", func() bool { return status(closed[0]) == forge.PullClosed })
		if n := asked.Load(); n != 2 || status(elsewhere[0]) != forge.PullOpen {
			t.Errorf("%d requests", n)
		}
	})
}
