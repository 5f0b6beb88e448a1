package state_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// withAutomation applies an automation and an agent with budgets, and returns the UID of the automation.
func withAutomation(t *testing.T, h *hooks, of, agent *schema.Budget) string {
	t.Helper()
	c, err := h.s.Current(t.Context(), h.factory)
	if err != nil {
		t.Fatal(err)
	}
	key := state.ResourceKey("automation", "triage")
	h.apply(state.ChangeSet{Resources: []state.ResourceChange{
		{
			UID: c.UIDs[key], Kind: "automation", Name: "triage",
			Spec: schema.Automation{Name: "triage", Path: "automations/triage/automation.md", Execution: schema.Execution{Budget: of}},
		},
		{
			UID: c.UIDs[state.ResourceKey("agent", "lead")], Kind: "agent", Name: "lead",
			Spec: schema.Agent{Name: "lead", Path: "agents/lead/agent.md", Execution: schema.Execution{Budget: agent}, Prompt: `"budget":`},
		},
	}})
	if c, err = h.s.Current(t.Context(), h.factory); err != nil {
		t.Fatal(err)
	}
	return c.UIDs[key]
}

// queued makes a run of an automation.
func queued(t *testing.T, h *hooks, automation string, at time.Time) state.Run {
	t.Helper()
	n := newRun("x")
	n.FactoryUID, n.AutomationUID, n.At = h.factory, automation, at
	return create(t, h.s, n)
}

// TestBudgetOfRuns has the runs of an automation wait when its runs of the day are used up.
func TestBudgetOfRuns(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s)
		auto := withAutomation(t, h, &schema.Budget{RunsPerDay: 2}, nil)
		var ids []string
		for range 4 {
			ids = append(ids, queued(t, h, auto, time.Now()).ID)
		}
		other := create(t, s, newRun("of no factory")).ID

		claims, err := s.ClaimRuns(t.Context(), "", ask(5), lease, state.ClaimBounds{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]state.Claim{}
		for _, c := range claims {
			got[c.Run.ID] = c.Claim
		}
		if _, ok := got[other]; !ok || len(got) != 3 {
			t.Errorf("claimed %v", got)
		}

		waits := run(t, s, ids[3])
		midnight := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		if waits.State != state.RunQueued || waits.ParkedUntil == nil || !waits.ParkedUntil.Equal(midnight) {
			t.Errorf("the last run is %s, parked until %v, want %v", waits.State, waits.ParkedUntil, midnight)
		}
		for _, want := range []string{"runsPerDay: 2", "budget in automations/triage/automation.md", midnight.Format("2006-01-02") + " 00:00 UTC"} {
			if !strings.Contains(waits.Waits(), want) {
				t.Errorf("%q lacks %q", waits.Waits(), want)
			}
		}
		if q, err := s.Queue(t.Context()); err != nil || q.Queued != 0 {
			t.Errorf("queue %+v, %v: runs that wait for a budget wait for no worker", q, err)
		}

		// What is handed back counts once, and goes on.
		if err := s.ReleaseRun(t.Context(), got[ids[0]]); err != nil {
			t.Fatal(err)
		}
		if again := claimed(t, s, "", 2); len(again) != 1 || again[0] != ids[0] {
			t.Errorf("claimed %v of a spent budget, want the run that was handed back", again)
		}

		// A larger budget frees the others at once.
		withAutomation(t, h, &schema.Budget{RunsPerDay: 4}, nil)
		if again := claimed(t, s, "", 5); len(again) != 2 {
			t.Errorf("claimed %v after the budget was raised", again)
		}
		days, err := s.UseByDay(t.Context(), auto, 1)
		if err != nil || len(days) != 1 || days[0].Runs != 4 {
			t.Errorf("days %+v, %v", days, err)
		}
	})
}

// TestBudgetHoldsAcrossServers has several servers claim at once.
func TestBudgetHoldsAcrossServers(t *testing.T) {
	s := statetest.Postgres(t)
	var stores []*state.Store
	for range 3 {
		one := statetest.Open(t, s)
		if err := one.SetBudget(t.Context(), schema.Budget{RunsPerDay: 7}); err != nil {
			t.Fatal(err)
		}
		stores = append(stores, one)
	}
	for range 30 {
		create(t, stores[0], newRun("x"))
	}

	var mu sync.Mutex
	var wg sync.WaitGroup
	taken := map[string]bool{}
	for i := range 9 {
		wg.Go(func() {
			for range 4 {
				all, err := stores[i%3].ClaimRuns(t.Context(), "", ask(1+i%3), lease, state.ClaimBounds{Factory: 10 * (i % 2)})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, c := range all {
					taken[c.Run.ID] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(taken) != 7 {
		t.Errorf("%d runs were claimed, want 7", len(taken))
	}
}

// TestBudgetOfUse has runs wait for tokens and dollars that others have used.
func TestBudgetOfUse(t *testing.T) {
	for name, test := range map[string]struct {
		budget, agent *schema.Budget
		want          string
	}{
		"tokens of the automation": {&schema.Budget{TokensPerDay: 110}, nil, "tokensPerDay: 110, budget in automations/triage/automation.md"},
		"dollars":                  {&schema.Budget{USDPerDay: 0.75}, nil, "usdPerDay: 0.75"},
		"the agent's":              {nil, &schema.Budget{TokensPerDay: 100}, "tokensPerDay: 100, budget in agents/lead/agent.md"},
		"enough":                   {&schema.Budget{TokensPerDay: 111, USDPerDay: 0.76}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			statetest.Each(t, func(t *testing.T, s *state.Store) {
				h := newHooks(t, s)
				auto := withAutomation(t, h, test.budget, test.agent)
				c, err := s.Current(t.Context(), h.factory)
				if err != nil {
					t.Fatal(err)
				}
				n := newRun("x")
				n.FactoryUID, n.AutomationUID, n.AgentUID = h.factory, auto, c.UIDs[state.ResourceKey("agent", "lead")]
				first, second := create(t, s, n).ID, create(t, s, n).ID

				held := start(t, s, first)
				for _, tokens := range []int64{500, 100} { // the agent corrects itself
					used := []state.ModelUsage{
						{Model: "m", InputTokens: tokens, OutputTokens: 5, CostUSD: new(0.75)}, {Model: "new", InputTokens: 5},
					}
					if _, _, err := s.SetUsage(t.Context(), held, used); err != nil {
						t.Fatal(err)
					}
				}

				got := claimed(t, s, "", 1)
				waits := run(t, s, second).Waits()
				if (len(got) == 1) != (test.want == "") || !strings.Contains(waits, test.want) {
					t.Errorf("claimed %v, the run waits: %q, want %q", got, waits, test.want)
				}
				days, err := s.UseByDay(t.Context(), auto, 1)
				if err != nil || len(days) != 1 || days[0].Tokens != 110 || days[0].USD != 0.75 || days[0].Unpriced != 5 {
					t.Errorf("days %+v, %v", days, err)
				}
			})
		})
	}
}

// TestRunOverItsBudget ends as FAILED, whatever its worker says, and follow-ups start nothing.
func TestRunOverItsBudget(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		if err := s.SetBudget(t.Context(), schema.Budget{TokensPerRun: 100, USDPerRun: 1}); err != nil {
			t.Fatal(err)
		}
		for i, test := range []struct {
			used   state.ModelUsage
			result state.RunState
			want   string
		}{
			{state.ModelUsage{InputTokens: 90, OutputTokens: 10}, state.RunSucceeded, ""},
			{state.ModelUsage{InputTokens: 91, OutputTokens: 10}, state.RunSucceeded, "used 101 tokens, more than its budget: tokensPerRun: 100, limits.budget in the settings"},
			{state.ModelUsage{InputTokens: 1, CostUSD: new(1.5)}, state.RunBlocked, "cost $1.5000, more than its budget: usdPerRun: 1"},
			{state.ModelUsage{InputTokens: 1e12}, state.RunCancelled, ""},
		} {
			id := create(t, s, newRun(fmt.Sprint(i))).ID
			c := start(t, s, id)
			_, r, err := s.SetUsage(t.Context(), c, []state.ModelUsage{test.used})
			if err != nil {
				t.Fatal(err)
			}
			over, err := s.OverBudget(t.Context(), r)
			if err != nil || !strings.Contains(over, test.want) {
				t.Errorf("%d: over %q, %v, want %q", i, over, err, test.want)
			}

			if _, _, err := s.Followup(t.Context(), id, "go on", state.Idempotency{}); err != nil {
				t.Fatal(err)
			}
			now, err := s.FinishRun(t.Context(), c, state.Result{State: test.result})
			if err != nil {
				t.Fatal(err)
			}
			r = run(t, s, id)
			failed := now == state.RunFailed && r.ErrorCode == "budget_exceeded" && r.StatusMessage == over
			if failed != (test.want != "") {
				t.Errorf("%d: the run is %s: %s %s", i, now, r.ErrorCode, r.StatusMessage)
			}
		}

		_, today, err := s.Budgets(t.Context())
		if err != nil || today.Stopped != 2 {
			t.Errorf("today %+v, %v", today, err)
		}
	})
}

// TestWaitForBudgetEnds has a run wait for as long as it may, and others go on when the day is over.
func TestWaitForBudgetEnds(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s)
		auto := withAutomation(t, h, &schema.Budget{RunsPerDay: 1}, nil)
		now := time.Now()
		first := queued(t, h, auto, now.Add(-30*time.Hour)).ID
		old := queued(t, h, auto, now.Add(-25*time.Hour)).ID
		young := queued(t, h, auto, now).ID
		if got := claimed(t, s, "", 3); len(got) != 1 || got[0] != first {
			t.Fatalf("claimed %v", got)
		}

		ended, err := s.ReviewParked(t.Context(), now)
		if err != nil || len(ended) != 1 || ended[0].ID != old {
			t.Fatalf("ended %+v, %v", ended, err)
		}
		r := run(t, s, old)
		if r.State != state.RunFailed || r.ErrorCode != "budget_exceeded" || !strings.Contains(r.StatusMessage, "waited 24 hours for its budget: runsPerDay: 1, budget in automations/triage") {
			t.Errorf("the run is %s: %s %s", r.State, r.ErrorCode, r.StatusMessage)
		}
		if r := run(t, s, young); r.ParkedUntil == nil {
			t.Errorf("the young run does not wait: %+v", r)
		}

		if ended, err := s.ReviewParked(t.Context(), now.Add(24*time.Hour)); err != nil || len(ended) != 0 {
			t.Errorf("ended %+v, %v", ended, err)
		}
		if r := run(t, s, young); r.ParkedUntil != nil || r.StatusMessage != "" {
			t.Errorf("the run still waits on the next day: %+v", r)
		}
		if r, err := s.RequestCancel(t.Context(), young, "ada"); err != nil || r.State != state.RunCancelled {
			t.Errorf("cancelled: %+v, %v", r, err)
		}
	})
}

// TestCancelDropsFollowups cancels a run with messages that wait: they do not come back.
func TestCancelDropsFollowups(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		id := create(t, s, newRun("x")).ID
		c := start(t, s, id)
		if _, _, err := s.Followup(ctx, id, "dropped", state.Idempotency{}); err != nil {
			t.Fatal(err)
		}
		r, err := s.RequestCancel(ctx, id, "ada")
		if err != nil || r.StatusMessage != "cancelled by ada" {
			t.Fatalf("%+v, %v", r, err)
		}
		if _, _, err := s.Followup(ctx, id, "too early", state.Idempotency{}); err == nil {
			t.Error("a message to a run that is being cancelled was taken")
		}
		if now, err := s.FinishRun(ctx, c, state.Result{State: state.RunCancelled}); err != nil || now != state.RunCancelled {
			t.Fatal(now, err)
		}
		if r := run(t, s, id); r.StatusMessage != "cancelled by ada" {
			t.Errorf("status message %q", r.StatusMessage)
		}

		if _, outcome, err := s.Followup(ctx, id, "kept", state.Idempotency{}); err != nil || outcome != state.FollowupHandoff {
			t.Fatal(outcome, err)
		}
		if prompt, err := s.SubmittedPrompt(ctx, run(t, s, id)); err != nil || prompt != "kept" {
			t.Errorf("prompt %q, %v", prompt, err)
		}
	})
}
