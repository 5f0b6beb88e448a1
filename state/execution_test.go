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

func texts(steps []state.Step) []string {
	var all []string
	for _, step := range steps {
		for _, m := range step.Messages {
			for _, b := range m.Content {
				all = append(all, b.Text)
			}
		}
	}
	return all
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

// TestAnAttemptBeginsItsConversationAnew takes runs away from workers that have said something: what they
// said stays readable, apart from what the next attempt says.
func TestAnAttemptBeginsItsConversationAnew(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		id := create(t, s, newRun("x")).ID
		say := func(c state.Claim, text string) {
			if err := s.AppendEntries(ctx, c, 0, []state.Message{said(text)}); err != nil {
				t.Fatal(err)
			}
		}
		say(start(t, s, id), "killed")
		if got, err := s.ReapRuns(ctx, past(), 10); err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		back := start(t, s, id)
		say(back, "handed back")
		if err := s.ReleaseRun(ctx, back); err != nil {
			t.Fatal(err)
		}
		if err := s.ReleaseRun(ctx, start(t, s, id)); err != nil { // said nothing
			t.Fatal(err)
		}
		for _, text := range []string{"done", "more done"} {
			c := start(t, s, id)
			say(c, text)
			if text == "done" {
				if _, _, err := s.Followup(ctx, id, "more", state.Idempotency{}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.FinishRun(ctx, c, state.Result{State: state.RunSucceeded, From: 1}); err != nil {
				t.Fatal(err)
			}
		}
		steps, err := s.Steps(ctx, run(t, s, id), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := texts(steps); !cmp.Equal(got, []string{"x", "done", "more", "more done"}) {
			t.Errorf("conversation %q", got)
		}
		given := steps[0].Steps
		if got := texts(given); !cmp.Equal(got, []string{"killed", "handed back"}) || len(given) != 2 || given[0].ID != id+".1.1" || given[1].ID != id+".1.2" || len(steps[1].Steps) != 0 {
			t.Errorf("given up: %+v", given)
		}
	})
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
			if r := run(t, s, id); r.Attempt != attempt || r.State != state.RunQueued {
				t.Fatalf("attempt %d: %+v", attempt, r)
			}
			claims = append(claims, start(t, s, id))
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
		if _, err := s.RequestCancel(ctx, id); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Followup(ctx, id, "more", state.Idempotency{}); err != nil {
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
		if _, err := s.RequestCancel(t.Context(), id); err != nil {
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
		if r, err := s.RequestCancel(ctx, id); err != nil || r.State != state.RunCancelled || r.Finished == nil {
			t.Errorf("queued: %+v %v", r, err)
		}
		if got := changes(t, s, id); got != "CANCELLED" {
			t.Errorf("changes %q", got)
		}
		if _, err := s.RequestCancel(ctx, id); !errors.Is(err, state.ErrConflict) {
			t.Errorf("ended: %v", err)
		}
		if _, err := s.RequestCancel(ctx, "x"); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("unknown: %v", err)
		}

		id = create(t, s, newRun("claimed")).ID
		c := claim(t, s, id)
		if r, err := s.RequestCancel(ctx, id); err != nil || r.State != state.RunClaimed || r.CancelRequested == nil {
			t.Errorf("claimed: %+v %v", r, err)
		}
		if cancel, err := s.StartRun(ctx, c, lease); err != nil || !cancel {
			t.Errorf("start: %v %v", cancel, err)
		}
		if cancel, err := s.RenewLease(ctx, c, lease); err != nil || !cancel {
			t.Errorf("renew: %v %v", cancel, err)
		}
		first := run(t, s, id).CancelRequested
		if r, err := s.RequestCancel(ctx, id); err != nil || !r.CancelRequested.Equal(*first) {
			t.Errorf("asked again: %+v %v", r, err)
		}
		if got, err := s.FinishRun(ctx, c, state.Result{State: state.RunCancelled}); err != nil || got != state.RunCancelled {
			t.Errorf("finish: %v %v", got, err)
		}
	})
}

func TestFollowup(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		n := newRun("first")
		n.Envelope = "envelope"
		id := create(t, s, n).ID
		followup := func(text string, want state.FollowupOutcome) {
			t.Helper()
			if uid, got, err := s.Followup(ctx, id, text, state.Idempotency{}); err != nil || got != want || !state.ValidID(state.PrefixFollowup, uid) {
				t.Fatalf("follow-up %q: %s %s %v", text, uid, got, err)
			}
		}
		submitted := func(want string) {
			t.Helper()
			if got, err := s.SubmittedPrompt(ctx, run(t, s, id)); err != nil || got != want {
				t.Fatalf("submitted %q, %v; want %q", got, err, want)
			}
		}
		followup("second", state.FollowupQueued)
		submitted("first\n\nsecond\n\nenvelope")
		c := start(t, s, id)
		followup("third", state.FollowupPending)
		followup("fourth", state.FollowupPending)
		submitted("first\n\nsecond\n\nenvelope")
		if got, err := s.FinishRun(ctx, c, state.Result{State: state.RunFailed, Message: "no", Messages: []state.Message{said("done")}}); err != nil || got != state.RunQueued {
			t.Fatalf("finish with messages waiting: %v %v", got, err)
		}
		lost(t, s, c)
		submitted("third\n\nfourth")
		followup("fifth", state.FollowupQueued)
		submitted("third\n\nfourth\n\nfifth")
		c = claim(t, s, id)
		followup("sixth", state.FollowupPending)
		if err := s.ReleaseRun(ctx, c); err != nil {
			t.Fatal(err)
		}
		submitted("third\n\nfourth\n\nfifth\n\nsixth")
		c = start(t, s, id)
		followup("sixth again", state.FollowupPending)
		if got, _ := s.FinishRun(ctx, c, state.Result{State: state.RunSucceeded}); got != state.RunQueued {
			t.Fatalf("finish: %v", got)
		}
		c = start(t, s, id)
		if got, _ := s.FinishRun(ctx, c, state.Result{State: state.RunSucceeded}); got != state.RunSucceeded {
			t.Fatalf("finish: %v", got)
		}
		followup("seventh", state.FollowupHandoff)
		r := run(t, s, id)
		if r.State != state.RunQueued || r.Execution != 4 || r.Attempt != 1 || r.Finished != nil || r.Started != nil {
			t.Errorf("reopened: %+v", r)
		}
		c = start(t, s, id)
		followup("eighth", state.FollowupPending)
		if _, err := s.RequestCancel(ctx, id); err != nil {
			t.Fatal(err)
		}
		if got, _ := s.FinishRun(ctx, c, state.Result{State: state.RunCancelled}); got != state.RunCancelled {
			t.Errorf("cancelled with a message waiting: %v", got)
		}
		steps, err := s.Steps(ctx, run(t, s, id), 0)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"first\n\nsecond\n\nenvelope", "done", "third", "fourth", "fifth", "sixth", "sixth again", "seventh"}
		if got := texts(steps); len(steps) != 4 || !cmp.Equal(got, want) {
			t.Errorf("conversation %q", got)
		}
		if _, _, err := s.Followup(ctx, state.NewRunID(), "x", state.Idempotency{}); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("unknown run: %v", err)
		}
		runs, err := s.Conversation(ctx, r.ConversationID, "")
		if err != nil || len(runs) != 1 {
			t.Errorf("conversation: %d runs, %v", len(runs), err)
		}
		if _, err := s.Conversation(ctx, "x", ""); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("unknown conversation: %v", err)
		}
	})
}

func TestFollowupsAreBounded(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		id := create(t, s, newRun("x")).ID
		var err error
		n := 0
		for ; err == nil && n < 1000; n++ {
			_, _, err = s.Followup(t.Context(), id, "again", state.Idempotency{})
		}
		if !errors.Is(err, state.ErrFull) || n != 101 {
			t.Errorf("message %d: %v", n, err)
		}
		c := start(t, s, id)
		large := create(t, s, newRun("x")).ID
		for _, want := range []error{nil, state.ErrFull} {
			if _, _, err := s.Followup(t.Context(), large, strings.Repeat("x", 5<<20), state.Idempotency{}); !errors.Is(err, want) {
				t.Errorf("5 MiB: %v, want %v", err, want)
			}
		}
		for range 100 {
			if _, _, err := s.Followup(t.Context(), id, "next", state.Idempotency{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.RequestCancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if _, err := s.FinishRun(t.Context(), c, state.Result{State: state.RunCancelled}); err != nil {
			t.Fatal(err)
		}
		if _, outcome, err := s.Followup(t.Context(), id, "go on", state.Idempotency{}); err != nil || outcome != state.FollowupHandoff {
			t.Errorf("a run that was cancelled while messages waited: %s %v", outcome, err)
		}
	})
}
