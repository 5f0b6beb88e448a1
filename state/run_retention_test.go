package state_test

import (
	"errors"
	"testing"
	"time"

	"millwright/state"
	"millwright/state/statetest"
)

func TestExpireRuns(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		var ended []string
		for range 3 {
			n := newRun("x")
			n.Metadata = map[string]string{"k": "v"}
			r := create(t, s, n, state.Attachment{Name: "a", MimeType: "b/c", Body: []byte("x")})
			c := start(t, s, r.ID)
			if _, _, err := s.Followup(ctx, r.ID, "more", state.Idempotency{}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.RequestCancel(ctx, r.ID, "tester"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.FinishRun(ctx, c, state.Result{State: state.RunCancelled, Messages: []state.Message{said("x")}}); err != nil {
				t.Fatal(err)
			}
			ended = append(ended, r.ID)
		}
		queued, held := create(t, s, newRun("x")).ID, create(t, s, newRun("x")).ID
		start(t, s, held)
		for age, want := range map[time.Duration]int{0: 0, time.Hour: 0} {
			if n, err := s.ExpireRuns(ctx, age); err != nil || n != want {
				t.Fatalf("age %s: %d runs expired, %v", age, n, err)
			}
		}
		if n, err := s.ExpireRuns(ctx, time.Nanosecond); err != nil || n != 3 {
			t.Fatalf("%d runs expired, %v", n, err)
		}
		for _, id := range ended {
			if _, err := s.Run(ctx, id); !errors.Is(err, state.ErrNotFound) {
				t.Errorf("run %s: %v", id, err)
			}
			if entries, err := s.Entries(ctx, id, 0, 10); err != nil || len(entries) != 0 {
				t.Errorf("entries of run %s: %v %v", id, entries, err)
			}
		}
		if got := list(t, s, state.RunFilter{Metadata: map[string]string{"k": "v"}}, state.RunOrder{}, 10); got != "" {
			t.Errorf("metadata of expired runs: %s", got)
		}
		for _, id := range []string{queued, held} {
			run(t, s, id)
		}
	})
}
