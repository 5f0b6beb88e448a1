package worker_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"millwright/runs/worker"
	"millwright/state"
	"millwright/state/statetest"
	"millwright/state/workers"
)

// TestWorkersReport reads the reports of a worker: its name, its runs, its end.
func TestWorkersReport(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBenchOn(t, s, 10*time.Second)
		gate := filepath.Join(t.TempDir(), "gate")
		stop := b.work(worker.Config{
			Harnesses: map[string]worker.Harness{"sh": sh("until [ -e " + gate + " ]; do sleep 0.05; done")},
			Default:   "sh", Slots: 3, Name: "build-1", Version: "9.9",
		})

		seen := func(what string, ok func(workers.Worker) bool) {
			t.Helper()
			statetest.Until(t, what, func() bool {
				all, err := s.Workers().All(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return len(all) == 1 && ok(all[0])
			})
		}
		seen("the first report", func(w workers.Worker) bool {
			return w.Name == "build-1" && w.Version == "9.9" && w.Slots == 3 && len(w.Runs) == 0 &&
				slices.Equal(w.Harnesses, []string{"echo", "sh"}) && w.Live(time.Now())
		})

		id := b.create(nil)
		seen("the report of a run", func(w workers.Worker) bool { return slices.Equal(w.Runs, []string{id}) })
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		seen("the report of its end", func(w workers.Worker) bool { return len(w.Runs) == 0 })

		stop()
		if all, err := s.Workers().All(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("after its end: %+v, %v", all, err)
		}
	})
}

// TestALostWorkersRunSaysSo claims a run for a worker that is silent from then on.
func TestALostWorkersRunSaysSo(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBenchOn(t, s, time.Minute)
		id := b.create(nil)
		claim, _, err := s.ClaimRun(t.Context(), id, "key_lost", "build-7", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for lease, unheard := range map[time.Duration]bool{time.Minute: false, 10 * time.Second: true} {
			if _, err := s.StartRun(t.Context(), claim, lease); err != nil {
				t.Fatal(err)
			}
			if _, err := s.RenewLease(t.Context(), claim, lease); err != nil {
				t.Fatal(err)
			}
			r, err := s.Run(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Unheard(r); (got != "") != unheard {
				t.Errorf("with a lease of %s: %q", lease, got)
			}
		}
	})
}
