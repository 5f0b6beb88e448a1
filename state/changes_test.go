package state_test

import (
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
