package state_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"millwright/state"
	"millwright/state/statetest"
)

const lease = time.Minute

// past is a deadline by which every lease has run out.
func past() time.Time { return time.Now().Add(2 * lease) }

func claim(t *testing.T, s *state.Store, id string) state.Claim {
	t.Helper()
	c, _, err := s.ClaimRun(t.Context(), id, "key_w", "worker", lease)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func start(t *testing.T, s *state.Store, id string) state.Claim {
	t.Helper()
	c := claim(t, s, id)
	if _, err := s.StartRun(t.Context(), c, lease); err != nil {
		t.Fatal(err)
	}
	return c
}

func run(t *testing.T, s *state.Store, id string) state.Run {
	t.Helper()
	r, err := s.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func said(text string) state.Message {
	return state.Message{Role: state.RoleAssistant, Content: []state.Block{state.Text(text)}, At: time.Now()}
}

// changes returns the states that a run went through, as its entries tell them.
func changes(t *testing.T, s *state.Store, id string) string {
	t.Helper()
	entries, err := s.Entries(t.Context(), id, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	var last int64
	for _, e := range entries {
		if e.Seq != last+1 {
			t.Errorf("entry %d follows %d", e.Seq, last)
		}
		last = e.Seq
		if e.Change != nil {
			all = append(all, string(e.Change.State))
		}
	}
	return strings.Join(all, " ")
}

func TestExecution(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		id := create(t, s, newRun("do it")).ID
		c := claim(t, s, id)
		if len(c.Token) != 32 {
			t.Errorf("token of %d characters", len(c.Token))
		}
		if r := run(t, s, id); r.State != state.RunClaimed || r.Worker != "key_w" || r.Started != nil {
			t.Errorf("claimed: %+v", r)
		}
		if _, _, err := s.ClaimRun(ctx, id, "key_x", "x", lease); !errors.Is(err, state.ErrConflict) {
			t.Errorf("second claim: %v", err)
		}
		if _, err := s.FinishRun(ctx, c, state.Result{State: state.RunSucceeded}); !errors.Is(err, state.ErrLost) {
			t.Errorf("finish before start: %v", err)
		}
		for range 2 { // an answer was lost
			if cancel, err := s.StartRun(ctx, c, lease); err != nil || cancel {
				t.Errorf("start: %v %v", cancel, err)
			}
		}
		if err := s.AppendEntries(ctx, c, 0, []state.Message{said("one"), said("two")}); err != nil {
			t.Fatal(err)
		}
		for _, from := range []int{0, 1} { // answers that were lost
			if err := s.AppendEntries(ctx, c, from, []state.Message{said("one"), said("two")}[from:]); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.AppendEntries(ctx, c, 3, []state.Message{said("four")}); !errors.Is(err, state.ErrConflict) {
			t.Errorf("a gap: %v", err)
		}
		if err := s.SetSkills(ctx, c, []byte(`[{"name":"a"}]`)); err != nil {
			t.Fatal(err)
		}
		if cancel, err := s.RenewLease(ctx, c, lease); err != nil || cancel {
			t.Errorf("renew: %v %v", cancel, err)
		}
		if got, err := s.FinishRun(ctx, c, state.Result{State: state.RunSucceeded, From: 1, Messages: []state.Message{said("two"), said("three")}}); err != nil || got != state.RunSucceeded {
			t.Fatalf("finish: %v %v", got, err)
		}
		r := run(t, s, id)
		if r.State != state.RunSucceeded || r.Finished == nil || r.Started == nil || string(r.Skills) != `[{"name":"a"}]` || r.WorkerName != "worker" {
			t.Errorf("finished: %+v", r)
		}
		steps, err := s.Steps(ctx, r, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := texts(steps); !cmp.Equal(got, []string{"do it", "one", "two", "three"}) {
			t.Errorf("conversation %q", got)
		}
		if got := changes(t, s, id); got != "CLAIMED INPROGRESS SUCCEEDED" {
			t.Errorf("changes %q", got)
		}
		lost(t, s, c)
	})
}

// lost checks that nothing can be done with a claim.
func lost(t *testing.T, s *state.Store, c state.Claim) {
	t.Helper()
	before := run(t, s, c.RunID)
	_, start := s.StartRun(t.Context(), c, lease)
	_, renew := s.RenewLease(t.Context(), c, lease)
	_, finish := s.FinishRun(t.Context(), c, state.Result{State: state.RunFailed, Messages: []state.Message{said("late")}})
	for what, err := range map[string]error{
		"start": start, "renew": renew, "finish": finish,
		"append":  s.AppendEntries(t.Context(), c, 0, []state.Message{said("late")}),
		"skills":  s.SetSkills(t.Context(), c, []byte(`[]`)),
		"release": s.ReleaseRun(t.Context(), c),
	} {
		if !errors.Is(err, state.ErrLost) {
			t.Errorf("%s with a claim that is gone: %v", what, err)
		}
	}
	if diff := cmp.Diff(before, run(t, s, c.RunID), cmp.AllowUnexported(state.Run{})); diff != "" {
		t.Errorf("a claim that is gone changed the run: %s", diff)
	}
}

func TestClaimsAreBoundToTheirWorker(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		c := start(t, s, create(t, s, newRun("x")).ID)
		other := c
		other.Worker = "key_x"
		lost(t, s, other)
		forged := c
		forged.Token = strings.Repeat("0", 32)
		lost(t, s, forged)
		if err := s.AppendEntries(t.Context(), c, 0, []state.Message{said("mine")}); err != nil {
			t.Error(err)
		}
	})
}

func TestReapRuns(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		id := create(t, s, newRun("x")).ID
		if got, err := s.ReapRuns(ctx, past(), 10); err != nil || len(got) != 0 {
			t.Fatalf("reaped %v, %v", got, err)
		}
		var claims []state.Claim
		for attempt := 1; attempt <= state.MaxAttempts; attempt++ {
			r := run(t, s, id)
			if r.Attempt != attempt || r.State != state.RunQueued {
				t.Fatalf("attempt %d: %+v", attempt, r)
			}
			if told := strings.Contains(r.StatusMessage, "was lost"); told != (attempt > 1) {
				t.Errorf("attempt %d: %q", attempt, r.StatusMessage)
			}
			claims = append(claims, start(t, s, id))
			if r := run(t, s, id); r.StatusMessage != "" {
				t.Errorf("begun again: %q", r.StatusMessage)
			}
			if got, _ := s.ReapRuns(ctx, time.Now(), 10); len(got) != 0 {
				t.Fatalf("a live lease was reaped: %v", got)
			}
			if got, err := s.ReapRuns(ctx, past(), 10); err != nil || len(got) != 1 {
				t.Fatalf("reaped %v, %v", got, err)
			}
		}
		r := run(t, s, id)
		if r.State != state.RunError || r.ErrorCode != "infrastructure_timeout" || r.StatusMessage == "" {
			t.Errorf("after the last attempt: %+v", r)
		}
		for _, c := range claims {
			lost(t, s, c)
		}

		id = create(t, s, newRun("cancelled")).ID
		start(t, s, id)
		if _, _, err := s.Followup(ctx, id, "more", state.Idempotency{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.RequestCancel(ctx, id, "tester"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReapRuns(ctx, past(), 10); err != nil {
			t.Fatal(err)
		}
		if r := run(t, s, id); r.State != state.RunCancelled {
			t.Errorf("lost with a cancel request: %s", r.State)
		}
	})
}

func TestReleaseRun(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		id := create(t, s, newRun("x")).ID
		for range 2 * state.MaxAttempts {
			if err := s.ReleaseRun(t.Context(), start(t, s, id)); err != nil {
				t.Fatal(err)
			}
		}
		if r := run(t, s, id); r.State != state.RunQueued || r.Attempt != 1 {
			t.Errorf("handed back: %+v", r)
		}
		c := claim(t, s, id)
		if _, err := s.RequestCancel(t.Context(), id, "tester"); err != nil {
			t.Fatal(err)
		}
		if err := s.ReleaseRun(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if r := run(t, s, id); r.State != state.RunCancelled {
			t.Errorf("handed back with a cancel request: %s", r.State)
		}
	})
}

func TestRequestCancel(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		id := create(t, s, newRun("queued")).ID
		if r, err := s.RequestCancel(ctx, id, "tester"); err != nil || r.State != state.RunCancelled || r.Finished == nil {
			t.Errorf("queued: %+v %v", r, err)
		}
		if got := changes(t, s, id); got != "CANCELLED" {
			t.Errorf("changes %q", got)
		}
		if _, err := s.RequestCancel(ctx, id, "tester"); !errors.Is(err, state.ErrConflict) {
			t.Errorf("ended: %v", err)
		}
		if _, err := s.RequestCancel(ctx, "x", "tester"); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("unknown: %v", err)
		}

		id = create(t, s, newRun("claimed")).ID
		c := claim(t, s, id)
		if r, err := s.RequestCancel(ctx, id, "tester"); err != nil || r.State != state.RunClaimed || r.CancelRequested == nil {
			t.Errorf("claimed: %+v %v", r, err)
		}
		if cancel, err := s.StartRun(ctx, c, lease); err != nil || !cancel {
			t.Errorf("start: %v %v", cancel, err)
		}
		if cancel, err := s.RenewLease(ctx, c, lease); err != nil || !cancel {
			t.Errorf("renew: %v %v", cancel, err)
		}
		first := run(t, s, id).CancelRequested
		if r, err := s.RequestCancel(ctx, id, "tester"); err != nil || !r.CancelRequested.Equal(*first) {
			t.Errorf("asked again: %+v %v", r, err)
		}
		if got, err := s.FinishRun(ctx, c, state.Result{State: state.RunCancelled}); err != nil || got != state.RunCancelled {
			t.Errorf("finish: %v %v", got, err)
		}
	})
}

// TestStartAgainProlongsTheLease holds that a worker which starts a run once more, since the answer was lost, has the
// lease that it asked for.
func TestStartAgainProlongsTheLease(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		c := claim(t, s, create(t, s, newRun("prompt")).ID)
		for _, long := range []time.Duration{lease, 10 * lease} {
			if _, err := s.StartRun(t.Context(), c, long); err != nil {
				t.Fatal(err)
			}
		}
		if reaped, err := s.ReapRuns(t.Context(), past(), 100); err != nil || len(reaped) > 0 {
			t.Errorf("%d runs are taken back, %v", len(reaped), err)
		}
	})
}
