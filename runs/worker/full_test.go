package worker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"millwright/runs/worker"
	"millwright/state"
	"millwright/state/statetest"
)

// TestAcceptanceFullFactory has the runs of one factory fill the queue, all slots that they may have, and
// their share of the log with output. The runs of another factory are executed meanwhile.
func TestAcceptanceFullFactory(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBenchOn(t, s, 6*time.Second)
		b.d.SetBounds(2, 0)
		factories := map[string]string{}
		for _, name := range []string{"full", "other"} {
			f, err := s.EnsureFactory(context.Background(), name, state.Source{Kind: "managed"}, false)
			if err != nil {
				t.Fatal(err)
			}
			factories[name] = f.UID
		}

		release := filepath.Join(t.TempDir(), "go")
		b.work(worker.Config{Slots: 3, Default: "h", Harnesses: map[string]worker.Harness{"h": sh(
			"if ! grep -q full prompt.md; then echo fine; exit; fi; " +
				"head -c 17000000 /dev/zero | tr '\\0' x | fold -w 1000; " +
				"while ! [ -e " + release + " ]; do sleep 0.02; done",
		)}})

		of := func(name string) string {
			return b.create(func(n *state.NewRun) { n.FactoryUID, n.Prompt = factories[name], name })
		}
		var full []string
		for range 5 {
			full = append(full, of("full"))
		}
		for _, id := range full[:2] {
			b.until(id, func(r state.Run) bool { return r.State == state.RunInProgress })
		}

		for i := range 5 {
			if r := b.end(of("other")); r.State != state.RunSucceeded || b.said(r) != "fine" {
				t.Errorf("run %d of the other factory is %s: %s", i, r.State, r.StatusMessage)
			}
		}

		q, err := s.Queue(t.Context())
		if err != nil || q.Held > 2 {
			t.Errorf("queue %+v, %v: want two runs held", q, err)
		}
		if err := os.WriteFile(release, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		statetest.Drain(t, "every run of the full factory has ended", func() int {
			q, err := s.Queue(t.Context())
			if err != nil {
				t.Fatal(fmt.Errorf("queue: %w", err))
			}
			return q.Queued + q.Held
		})
	})
}
