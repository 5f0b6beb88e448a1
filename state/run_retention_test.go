package state_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"millwright/state"
	"millwright/state/statetest"
)

// TestExpireLargeRuns deletes what is large of a run in transactions of bounded size, and nothing of a run
// that goes on.
func TestExpireLargeRuns(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		large := func(parts int) string {
			id := create(t, s, newRun("x")).ID
			c := start(t, s, id)
			statetest.Leave(t, s, c, 0, state.Artifact{Path: "f"}, make([]byte, parts*state.ArtifactPart))
			finish(t, s, c, state.RunSucceeded)
			return id
		}

		id := large(70)
		var got []int64
		for range 3 {
			n, err := s.DropContents(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, n)
		}
		if want := []int64{64, 6, 0}; !slices.Equal(got, want) {
			t.Errorf("transactions delete %v parts, want %v", got, want)
		}

		again := large(2)
		if _, _, err := s.Followup(ctx, again, "more", state.Idempotency{}); err != nil {
			t.Fatal(err)
		}
		if n, err := s.DropContents(ctx, again); n != 0 || err != nil {
			t.Errorf("%d parts of a run that goes on, %v", n, err)
		}

		third := large(2)
		if n, err := s.ExpireRuns(ctx, time.Nanosecond); n != 2 || err != nil {
			t.Errorf("%d runs expired, %v", n, err)
		}
		if _, err := s.Run(ctx, third); !errors.Is(err, state.ErrNotFound) {
			t.Error(err)
		}
		if got := names(t, s, again); got != "f 1" {
			t.Errorf("a run that goes on has %q", got)
		}
	})
}

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
