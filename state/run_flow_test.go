package state_test

import (
	"fmt"
	"slices"
	"testing"

	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// TestRunsPerAutomation claims with a bound for each automation: those that are full are passed over.
func TestRunsPerAutomation(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s, "h")
		for i, automation := range []string{"a", "a", "a", "b", "a", "b"} {
			a := h.acceptance("h", fmt.Sprint(i), 1)
			a.Runs[0].AutomationUID = automation
			if _, err := s.Accept(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		claim := func(n int) (automations []string, claims []state.Claim) {
			all, err := s.ClaimRuns(t.Context(), "", ask(n), lease, state.ClaimBounds{Automation: 2, Factory: 3})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range all {
				automations, claims = append(automations, c.Run.AutomationUID), append(claims, c.Claim)
			}
			return automations, claims
		}

		got, claims := claim(5)
		if want := []string{"a", "a", "b"}; !slices.Equal(got, want) {
			t.Fatalf("claimed runs of %v, want %v", got, want)
		}
		if _, err := s.StartRun(t.Context(), claims[0], lease); err != nil {
			t.Fatal(err)
		}
		if _, err := s.FinishRun(t.Context(), claims[0], state.Result{State: state.RunFailed}); err != nil {
			t.Fatal(err)
		}
		if got, _ := claim(5); !slices.Equal(got, []string{"a"}) {
			t.Errorf("claimed runs of %v, want one of a", got)
		}
	})
}

// TestFlowLimits fills an automation with runs that wait, and with conversations.
func TestFlowLimits(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s, "h")
		f, w := h.routed("h")
		send := func(i int, flow state.Flow) state.Accepted {
			a := h.acceptanceAt(f, w, fmt.Sprint("event ", i), 1)
			a.Runs[0].Flow = &flow
			got, err := s.Accept(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}

		waits := state.Flow{Concurrency: &state.FlowConcurrency{Key: "k", Limit: 1, WhenBusy: schema.BusyQueue}}
		for i := range 1001 {
			if got := send(i, waits); len(got.Flow) > 0 {
				t.Fatalf("delivery %d: %+v", i, got.Flow)
			}
		}
		got := send(1001, waits)
		if len(got.Flow) != 1 || got.Flow[0].Decision != "skipped: queue full" || got.Flow[0].RunID != "" {
			t.Errorf("with 1,000 runs waiting: %+v", got.Flow)
		}
		if runs, err := s.WaitingRuns(t.Context(), "auto_0", 2000); err != nil || len(runs) != 1000 {
			t.Errorf("%d runs wait, %v", len(runs), err)
		}
		if all, err := s.FlowDecisions(t.Context(), "auto_0", "", 10); err != nil || len(all) != 1 {
			t.Errorf("skipped: %+v, %v", all, err)
		}
	})
}
