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

func TestChanges(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		r, err := s.CreateRun(ctx, state.NewRun{Title: "t", Prompt: "p", Source: "API", Creator: state.Creator{Type: "user", UID: "key_1"}}, nil, state.Idempotency{})
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := s.ClaimRun(ctx, r.ID, "w1", "mill-1", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.StartRun(ctx, c, time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := s.AppendEntries(ctx, c, 0, []state.Message{{Role: state.RoleAssistant, Content: []state.Block{state.Text("hello")}, At: time.Now()}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.FinishRun(ctx, c, state.Result{State: state.RunFailed, Message: "exit 2", ErrorCode: "agent_process_failed"}); err != nil {
			t.Fatal(err)
		}
		states := func(limit int) (all []state.RunState) {
			t.Helper()
			changes, err := s.Changes(ctx, r.ID, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range changes {
				all = append(all, e.Change.State)
			}
			return all
		}
		if diff := cmp.Diff([]state.RunState{state.RunClaimed, state.RunInProgress, state.RunFailed}, states(10)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]state.RunState{state.RunInProgress, state.RunFailed}, states(2)); diff != "" {
			t.Error(diff)
		}
		changes, err := s.Changes(ctx, r.ID, 10)
		if err != nil || changes[0].Change.Worker != "mill-1" || changes[2].Change.Message != "exit 2" {
			t.Errorf("changes %+v, %v", changes, err)
		}
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
		submitted("third\n\nfourth\n\nenvelope")
		followup("fifth", state.FollowupQueued)
		submitted("third\n\nfourth\n\nfifth\n\nenvelope")
		c = claim(t, s, id)
		followup("sixth", state.FollowupPending)
		if err := s.ReleaseRun(ctx, c); err != nil {
			t.Fatal(err)
		}
		submitted("third\n\nfourth\n\nfifth\n\nsixth\n\nenvelope")
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
		if _, err := s.RequestCancel(ctx, id, "tester"); err != nil {
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
		if _, err := s.RequestCancel(t.Context(), id, "tester"); err != nil {
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
