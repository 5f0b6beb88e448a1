package state_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"millwright/state"
	"millwright/state/statetest"
	"millwright/state/workers"
)

func TestWorkers(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		run := create(t, s, newRun("x"))
		claim, _, err := s.ClaimRun(ctx, run.ID, "key_a", "build-1", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		report := workers.Report{
			UID: state.WorkerUID("key_a", "1"), Worker: "key_a", Name: "build-1\x00", Version: "1.2", Slots: 2,
			Harnesses: []string{"echo", "sh"}, Runs: []string{run.ID, "another"},
		}
		other := report
		other.UID, other.Worker = state.WorkerUID("key_b", "1"), "key_b"
		for _, r := range []workers.Report{report, other} {
			if err := s.Workers().See(ctx, r); err != nil {
				t.Fatal(err)
			}
		}

		all, err := s.Workers().All(ctx)
		if err != nil || len(all) != 2 {
			t.Fatalf("workers %+v, %v", all, err)
		}
		for _, w := range all {
			want := []string{}
			if w.Worker == "key_a" {
				want = []string{run.ID} // of what it says, what it holds
			}
			if !slices.Equal(w.Runs, want) {
				t.Errorf("worker %s executes %q, want %q", w.Worker, w.Runs, want)
			}
			if !w.Live(time.Now()) || w.Live(time.Now().Add(time.Minute)) || w.Slots != 2 || w.Version != "1.2" {
				t.Errorf("worker %+v", w)
			}
		}

		if err := s.ReleaseRun(ctx, claim); err != nil {
			t.Fatal(err)
		}
		if err := s.Workers().Remove(ctx, other.UID); err != nil {
			t.Fatal(err)
		}
		all, err = s.Workers().All(ctx)
		if err != nil || len(all) != 1 || all[0].Worker != "key_a" || len(all[0].Runs) != 0 {
			t.Errorf("at last: %+v, %v", all, err)
		}
	})
}

// TestWorkersAreBounded reports as more processes of one key than are remembered.
func TestWorkersAreBounded(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		for i := range 120 {
			r := workers.Report{
				UID: state.WorkerUID("key_a", fmt.Sprint(i)), Worker: "key_a", Name: fmt.Sprint(i),
			}
			if err := s.Workers().See(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		all, err := s.Workers().All(t.Context())
		if err != nil || len(all) != 100 {
			t.Fatalf("%d workers are remembered, want 100: %v", len(all), err)
		}
		for _, w := range all {
			if w.Name == "0" || w.Name == "19" {
				t.Errorf("process %s, which was seen long ago, is remembered", w.Name)
			}
		}
	})
}
