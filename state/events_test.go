package state_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
	"millwright/state/events"
	"millwright/state/outputs"
	"millwright/state/statetest"
)

// notified applies notifications and an automation to the factory of the tests.
func notified(t *testing.T, h *hooks, all ...schema.Notification) (automation string) {
	t.Helper()
	change := state.ChangeSet{Resources: []state.ResourceChange{{
		Kind: "automation", Name: "triage", Spec: schema.Automation{
			Name: "triage", Path: "automations/triage/automation.md",
			Execution: schema.Execution{Budget: &schema.Budget{RunsPerDay: 6}},
		},
	}}}
	for _, n := range all {
		n.Enabled, n.Format = true, schema.FormatStandard
		change.Resources = append(change.Resources, state.ResourceChange{Kind: "notification", Name: n.Name, Spec: n})
	}
	h.apply(change)
	c, err := h.s.Current(t.Context(), h.factory)
	if err != nil {
		t.Fatal(err)
	}
	return c.UIDs[state.ResourceKey("automation", "triage")]
}

// eventsOf returns the types of the events of a notification, oldest first, and the newest event.
func eventsOf(t *testing.T, h *hooks, notification string) (types []string, newest events.Data) {
	t.Helper()
	all, err := h.s.Events().List(t.Context(), h.factory, events.Filter{Notification: notification}, "", 5000)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) > 0 {
		if err := json.Unmarshal(all[0].Data, &newest); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range slices.Backward(all) {
		types = append(types, e.Type)
	}
	return types, newest
}

// everyEvent is all that a notification may ask for.
var everyEvent = []string{
	schema.EventRunSucceeded, schema.EventRunFailed, schema.EventRunError, schema.EventRunBlocked,
	schema.EventRunCancelled, schema.EventOutputFailed, schema.EventFactoryRefused, schema.EventFactoryApplied,
	schema.EventBudgetExceeded,
}

// TestEvents writes an event in the transaction of each thing that a notification may tell of, once.
func TestEvents(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s)
		ctx := t.Context()
		auto := notified(t, h, schema.Notification{Name: "all", Events: everyEvent},
			schema.Notification{Name: "narrow", Events: everyEvent, Filter: schema.NotificationFilter{
				Automation: []string{"triage"}, State: []string{"CANCELLED"},
			}},
			schema.Notification{Name: "other", Events: []string{schema.EventRunFailed}, Filter: schema.NotificationFilter{
				Automation: []string{"other"},
			}})
		run := func() state.Run {
			n := newRun("say hello")
			n.FactoryUID, n.AutomationUID = h.factory, auto
			return create(t, s, n)
		}
		finish := func(c state.Claim, result state.Result) {
			if _, err := s.FinishRun(ctx, c, result); err != nil {
				t.Fatal(err)
			}
		}

		n := newRun("say hello")
		n.FactoryUID, n.AutomationUID, n.Title = h.factory, auto, "A title of its own"
		finish(start(t, s, create(t, s, n).ID), state.Result{State: state.RunSucceeded})
		if _, d := eventsOf(t, h, "all"); d.Run.Title != n.Title || d.Run.Automation.Name != "triage" || d.Factory.UID != h.factory {
			t.Errorf("%+v", d)
		}
		finish(start(t, s, run().ID), state.Result{State: state.RunFailed, Message: "no"})
		if _, d := eventsOf(t, h, "all"); d.Run.Title != "" {
			t.Errorf("a title that the prompt has: %q", d.Run.Title)
		}
		finish(start(t, s, run().ID), state.Result{State: state.RunError, ErrorCode: "internal_error"})
		if _, err := s.RequestCancel(ctx, run().ID, "ann"); err != nil {
			t.Fatal(err)
		}

		asks := start(t, s, run().ID) // it is blocked, and its session ends so
		if _, err := s.AskQuestion(ctx, asks, state.Question{Title: "May I?", Choices: []state.Choice{{ID: "y", Name: "Yes"}}}); err != nil {
			t.Fatal(err)
		}
		finish(asks, state.Result{State: state.RunBlocked})

		err := s.Refuse(ctx, state.Attempt{
			FactoryUID: h.factory, Started: time.Now(), Outcome: state.OutcomeRefused, Revision: state.Revision{ID: "bad"},
			Problems: []schema.Problem{{Path: "a.yaml", Line: 3, Code: "x", Severity: schema.SeverityError, Message: "wrong"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, d := eventsOf(t, h, "all"); d.Apply.Errors != 1 || d.Apply.Problems[0].Message != "wrong" {
			t.Errorf("%+v", d.Apply)
		}
		want := []string{
			"factory.applied", "run.succeeded", "run.failed", "run.error", "run.cancelled", "run.blocked", "factory.refused",
		}
		if got, _ := eventsOf(t, h, "all"); !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
		want = []string{"factory.applied", "run.cancelled", "factory.refused"}
		if got, _ := eventsOf(t, h, "narrow"); !slices.Equal(got, want) {
			t.Errorf("the filter admits %v, want %v", got, want)
		}
		if got, _ := eventsOf(t, h, "other"); len(got) > 0 {
			t.Errorf("another automation is told of: %v", got)
		}

		// An output that fails, and a claim that is lost: nothing is told of what is not kept.
		last := run()
		c := start(t, s, last.ID)
		out := outputs.Output{UID: state.NewID(state.PrefixOutput), Kind: outputs.Comment, State: outputs.Pending, Body: []byte(`{}`)}
		finish(c, state.Result{State: state.RunSucceeded, Outputs: []outputs.Output{out}})
		if _, err := s.FinishRun(ctx, c, state.Result{State: state.RunFailed}); !errors.Is(err, state.ErrLost) {
			t.Errorf("a second end: %v", err)
		}
		taken, ok, err := s.Outputs().Take(ctx, time.Minute)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if err := s.Outputs().Stop(ctx, taken, outputs.Failed, "the forge said no"); err != nil {
			t.Fatal(err)
		}
		if _, d := eventsOf(t, h, "all"); d.Output == nil || d.Output.Reason != "the forge said no" || d.Run.RunID != last.ID {
			t.Errorf("%+v", d)
		}

		// The budget of the day is told of once.
		for range 3 {
			run()
		}
		claimed(t, s, "", 5)
		claimed(t, s, "", 5)
		got, d := eventsOf(t, h, "all")
		if n := strings.Count(strings.Join(got, " "), "budget.exceeded"); n != 1 || d.Budget == nil || d.Budget.Limit != "runsPerDay: 6" {
			t.Errorf("%v, %+v", got, d.Budget)
		}
	})
}

// TestEventsWaiting bounds the events that wait for a notification, and what is kept of those that ended.
func TestEventsWaiting(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		h := newHooks(t, s)
		notified(t, h, schema.Notification{Name: "ops", Events: []string{schema.EventRunFailed}})
		table := s.Events()
		for range events.MaxWaiting + 2 {
			if _, err := table.Ask(t.Context(), state.NewID(state.PrefixEvent), h.factory, "ops"); err != nil {
				t.Fatal(err)
			}
		}
		counts, err := table.Counts(t.Context())
		if err != nil || counts[events.Pending] != events.MaxWaiting || counts[events.Dead] != 2 {
			t.Errorf("%v, %v", counts, err)
		}
		if err := s.ExpireEvents(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
