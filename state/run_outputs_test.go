package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
	"millwright/state/outputs"
	"millwright/state/statetest"
)

// automated returns a queued run of an automation with these outputs.
func automated(t *testing.T, s *state.Store, o *schema.Outputs) state.Run {
	t.Helper()
	f, _ := factory(t, s)
	allow(t, s, f.UID, o)
	return create(t, s, automatedRun(t, s, f.UID))
}

func automatedRun(t *testing.T, s *state.Store, factoryUID string) state.NewRun {
	t.Helper()
	cur, err := s.Current(t.Context(), factoryUID)
	if err != nil {
		t.Fatal(err)
	}
	n := newRun("mend it")
	n.FactoryUID, n.AutomationUID = factoryUID, cur.UIDs[state.ResourceKey("automation", "mend")]
	return n
}

// allow applies the automation mend with these outputs.
func allow(t *testing.T, s *state.Store, factoryUID string, o *schema.Outputs) {
	t.Helper()
	cur, err := s.Current(t.Context(), factoryUID)
	if err != nil {
		t.Fatal(err)
	}
	app := application(t, s, factoryUID)
	app.Resources = []state.ResourceChange{{
		UID:  cur.UIDs[state.ResourceKey("automation", "mend")],
		Kind: "automation", Name: "mend", Spec: schema.Automation{Name: "mend", Enabled: true, Outputs: o, Prompt: "Mend."},
	}}
	if err := s.Apply(t.Context(), app); err != nil {
		t.Fatal(err)
	}
}

func outputsOf(t *testing.T, s *state.Store, run string) []outputs.Output {
	t.Helper()
	all, err := s.Outputs().Of(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// statusOf returns the status that a run is to have, and whether it is pending.
func statusOf(t *testing.T, s *state.Store, run string) string {
	t.Helper()
	var found []string
	for _, o := range outputsOf(t, s, run) {
		if o.Kind == outputs.Status {
			var b outputs.StatusBody
			if err := json.Unmarshal(o.Body, &b); err != nil {
				t.Fatal(err)
			}
			found = append(found, fmt.Sprint(b.Context, " ", b.State, " ", o.State))
		}
	}
	return strings.Join(found, ", ")
}

// take takes the output that is due, and fails when there is none.
func take(t *testing.T, s *state.Store) outputs.Output {
	t.Helper()
	o, ok, err := s.Outputs().Take(t.Context(), lease)
	if err != nil || !ok {
		t.Fatalf("no output is due: %v", err)
	}
	return o
}

func none(t *testing.T, s *state.Store) {
	t.Helper()
	if o, ok, err := s.Outputs().Take(t.Context(), lease); err != nil || ok {
		t.Fatalf("due: %+v, %v", o, err)
	}
}

func comment(text string) outputs.Output {
	return outputs.Output{
		UID: state.NewID(state.PrefixOutput), Kind: outputs.Comment, State: outputs.Pending,
		Body: json.RawMessage(`{"body":"` + text + `"}`),
	}
}

// TestStatusFollowsItsRun holds that a run has one status, which every claim makes pending and every end sets.
func TestStatusFollowsItsRun(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		r := automated(t, s, &schema.Outputs{Status: &schema.StatusOutput{Context: "agent/{automation}"}})
		if got := statusOf(t, s, r.ID); got != "" {
			t.Errorf("a queued run has the status %s", got)
		}

		ends := map[string]func(state.Claim) error{
			"success": func(c state.Claim) error {
				_, err := s.FinishRun(ctx, c, state.Result{State: state.RunSucceeded})
				return err
			},
			"failure": func(c state.Claim) error {
				_, err := s.FinishRun(ctx, c, state.Result{State: state.RunFailed})
				return err
			},
			"error": func(c state.Claim) error {
				if _, err := s.RequestCancel(ctx, c.RunID, "tester"); err != nil {
					return err
				}
				return s.ReleaseRun(ctx, c)
			},
		}
		for _, want := range []string{"success", "failure", "error"} {
			c := start(t, s, r.ID)
			if got := statusOf(t, s, r.ID); got != "agent/mend pending pending" {
				t.Fatalf("a claimed run has the status %q", got)
			}
			if err := ends[want](c); err != nil {
				t.Fatal(err)
			}
			if got := statusOf(t, s, r.ID); got != "agent/mend "+want+" pending" {
				t.Fatalf("status %q, want %s", got, want)
			}
			if err := s.Outputs().Done(ctx, take(t, s), ""); err != nil {
				t.Fatal(err)
			}
			none(t, s)
			if _, _, err := s.Followup(ctx, r.ID, "again", state.Idempotency{}); err != nil {
				t.Fatal(err)
			}
		}

		for range state.MaxAttempts {
			start(t, s, r.ID)
			if _, err := s.ReapRuns(ctx, past(), 10); err != nil {
				t.Fatal(err)
			}
		}
		if got := statusOf(t, s, r.ID); run(t, s, r.ID).State != state.RunError || got != "agent/mend error pending" {
			t.Errorf("after its worker was lost: %s, status %q", run(t, s, r.ID).State, got)
		}
	})
}

// TestStatusThatChangesWhileItIsSet holds that the newest status is the last one that is set.
func TestStatusThatChangesWhileItIsSet(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		r := automated(t, s, &schema.Outputs{Status: &schema.StatusOutput{Context: "x"}})
		c := start(t, s, r.ID)
		first := take(t, s)
		if _, err := s.FinishRun(ctx, c, state.Result{State: state.RunSucceeded}); err != nil {
			t.Fatal(err)
		}
		none(t, s) // the first one is under way
		if err := s.Outputs().Done(ctx, first, ""); err != nil {
			t.Fatal(err)
		}
		second := take(t, s)
		if got := statusOf(t, s, r.ID); got != "x success doing" || second.UID != first.UID {
			t.Errorf("status %q of %s, which was %s", got, second.UID, first.UID)
		}
	})
}

// TestOutputsComeWithTheEnd holds that outputs are stored with the end of a run, or not at all.
func TestOutputsComeWithTheEnd(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		r := automated(t, s, &schema.Outputs{Comment: &schema.CommentOutput{Max: 2}})
		lost := start(t, s, r.ID)
		if _, err := s.ReapRuns(ctx, past(), 10); err != nil {
			t.Fatal(err)
		}
		result := state.Result{State: state.RunSucceeded, Outputs: []outputs.Output{comment("one"), comment("two")}}
		if _, err := s.FinishRun(ctx, lost, result); !errors.Is(err, state.ErrLost) {
			t.Fatal(err)
		}
		if all := outputsOf(t, s, r.ID); len(all) != 0 {
			t.Fatalf("a lost claim left %+v", all)
		}

		c := start(t, s, r.ID)
		if _, err := s.FinishRun(ctx, c, result); err != nil {
			t.Fatal(err)
		}
		if _, err := s.FinishRun(ctx, c, result); !errors.Is(err, state.ErrLost) {
			t.Fatal(err)
		}
		all := outputsOf(t, s, r.ID)
		if len(all) != 2 || all[0].Execution != 1 || all[0].AutomationUID != r.AutomationUID || all[0].FactoryUID != r.FactoryUID {
			t.Fatalf("%+v", all)
		}
	})
}

// TestOutputsOfAnOverspentRun holds that a run that its budget ends releases nothing, whatever its worker
// reports.
func TestOutputsOfAnOverspentRun(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		h := newHooks(t, s)
		auto := withAutomation(t, h, &schema.Budget{TokensPerRun: 10}, nil)
		r := queued(t, h, auto, time.Now())
		c := start(t, s, r.ID)
		if _, _, err := s.SetUsage(ctx, c, []state.ModelUsage{{Model: "m", InputTokens: 11}}); err != nil {
			t.Fatal(err)
		}

		staged, link := comment("two"), comment("three")
		staged.State, link.Kind, link.State = outputs.Staged, outputs.Reference, outputs.Done
		result := state.Result{State: state.RunSucceeded, Outputs: []outputs.Output{comment("one"), staged, link}}
		if got, err := s.FinishRun(ctx, c, result); err != nil || got != state.RunFailed {
			t.Fatalf("%s, %v", got, err)
		}

		var got []string
		for _, o := range outputsOf(t, s, r.ID) {
			got = append(got, string(o.State)+" "+o.Reason)
		}
		const why = "the run ended as FAILED: only runs that succeed have outputs"
		if want := []string{"refused " + why, "done ", "refused " + why}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		none(t, s)
	})
}

// TestStatusNeedsApprovalAgain holds that who agreed to a status did not agree to the next one.
func TestStatusNeedsApprovalAgain(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx, table := t.Context(), s.Outputs()
		r := automated(t, s, &schema.Outputs{Status: &schema.StatusOutput{Context: "x"}})
		c := start(t, s, r.ID)
		o := take(t, s)
		if err := table.Stop(ctx, o, outputs.Staged, "of a fork"); err != nil {
			t.Fatal(err)
		}
		if _, err := table.Approve(ctx, r.ID, o.UID, "ada"); err != nil {
			t.Fatal(err)
		}
		if o = take(t, s); o.DecidedBy != "ada" {
			t.Errorf("decided by %q", o.DecidedBy)
		}
		if err := table.Done(ctx, o, ""); err != nil {
			t.Fatal(err)
		}

		if _, err := s.FinishRun(ctx, c, state.Result{State: state.RunSucceeded}); err != nil {
			t.Fatal(err)
		}
		if o = take(t, s); o.DecidedBy != "" {
			t.Errorf("the next status was decided by %q", o.DecidedBy)
		}
	})
}

// TestSecretsOfARun holds that the secrets which no output may have are those of the run, of its environment
// and of its MCP servers.
func TestSecretsOfARun(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	ctx := t.Context()
	for _, name := range []string{"OWN", "OF_ENVIRONMENT", "OTHER"} {
		if _, err := s.SetSecret(ctx, name, []byte("value of "+name)); err != nil {
			t.Fatal(err)
		}
	}
	n := newRun("x")
	n.Config, n.Secrets = json.RawMessage(`{"environment_id":"node"}`), []string{"OWN", "WITHOUT_A_VALUE"}
	r := create(t, s, n)

	settings := func() map[string]schema.Environment {
		return map[string]schema.Environment{"node": {Secrets: []string{"OF_ENVIRONMENT"}}, "go": {Secrets: []string{"OTHER"}}}
	}
	got, err := s.SecretValues(ctx, r, settings)
	if want := []string{"value of OWN", "", "value of OF_ENVIRONMENT"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestPolicyOfAnExecution holds that an execution is judged by what was applied when it was claimed.
func TestPolicyOfAnExecution(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		r := automated(t, s, &schema.Outputs{Comment: &schema.CommentOutput{Max: 2}})
		policy := func() string {
			t.Helper()
			p, err := s.Outputs().Policy(ctx, r.ID)
			if err != nil {
				t.Fatal(err)
			}
			if p == nil {
				return "none"
			}
			text, _ := json.Marshal(p)
			return string(text) + string(p.Target)
		}
		c := start(t, s, r.ID)
		if err := s.Outputs().SetTarget(ctx, r.ID, json.RawMessage(`{"Number":7}`)); err != nil {
			t.Fatal(err)
		}
		allow(t, s, r.FactoryUID, &schema.Outputs{Labels: &schema.LabelsOutput{Allow: []string{"x"}, Max: 1}})
		if got := policy(); got != `{"automation":"mend","outputs":{"comment":{"max":2}}}{"Number":7}` {
			t.Errorf("during the execution: %s", got)
		}
		if p, err := s.Outputs().Applied(ctx, r.AutomationUID); err != nil || p == nil || p.Outputs.Labels == nil {
			t.Errorf("applied: %+v, %v", p, err)
		}

		again := func() {
			t.Helper()
			if _, err := s.FinishRun(ctx, c, state.Result{State: state.RunSucceeded}); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Followup(ctx, r.ID, "again", state.Idempotency{}); err != nil {
				t.Fatal(err)
			}
			c = start(t, s, r.ID)
		}
		again()
		if got := policy(); got != `{"automation":"mend","outputs":{"labels":{"allow":["x"],"max":1}}}` {
			t.Errorf("of the next execution: %s", got)
		}
		allow(t, s, r.FactoryUID, nil)
		again()
		if got := policy(); got != "none" {
			t.Errorf("without outputs: %s", got)
		}
		if p, err := s.Outputs().Applied(ctx, r.AutomationUID); err != nil || p != nil {
			t.Errorf("applied: %+v, %v", p, err)
		}
	})
}

// TestTakenOutputs holds that an output is performed by one server at a time, and taken again when that one is silent.
func TestTakenOutputs(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx, table := t.Context(), s.Outputs()
		r := automated(t, s, &schema.Outputs{Comment: &schema.CommentOutput{Max: 2}})
		finish := state.Result{State: state.RunSucceeded, Outputs: []outputs.Output{comment("one")}}
		if _, err := s.FinishRun(ctx, start(t, s, r.ID), finish); err != nil {
			t.Fatal(err)
		}

		silent, ok, err := table.Take(ctx, -time.Second)
		if err != nil || !ok || silent.Attempts != 1 {
			t.Fatalf("%+v, %t, %v", silent, ok, err)
		}
		second := take(t, s)
		if second.UID != silent.UID || second.Attempts != 2 {
			t.Errorf("%+v", second)
		}
		if err := table.Done(ctx, silent, "https://example.com/late"); err != nil {
			t.Fatal(err)
		}
		if got := outputsOf(t, s, r.ID)[0]; got.State != outputs.Doing {
			t.Errorf("a late report changed it: %+v", got)
		}

		if err := table.Later(ctx, second, time.Now().Add(time.Hour), "busy"); err != nil {
			t.Fatal(err)
		}
		none(t, s)
		if at, err := table.Next(ctx); err != nil || time.Until(at) < 50*time.Minute {
			t.Errorf("next %v, %v", at, err)
		}
	})
}

// TestDecisions holds which outputs people may change.
func TestDecisions(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx, table := t.Context(), s.Outputs()
		r := automated(t, s, &schema.Outputs{Comment: &schema.CommentOutput{Max: 2}})
		var all []outputs.Output
		for _, st := range []outputs.State{outputs.Staged, outputs.Staged, outputs.Refused, outputs.Pending} {
			o := comment("x")
			o.State = st
			all = append(all, o)
		}
		if _, err := s.FinishRun(ctx, start(t, s, r.ID), state.Result{State: state.RunSucceeded, Outputs: all}); err != nil {
			t.Fatal(err)
		}

		failing := take(t, s)
		if err := table.Stop(ctx, failing, outputs.Failed, "gone"); err != nil {
			t.Fatal(err)
		}
		none(t, s)
		failed, staged, err := table.Attention(ctx, 10)
		if err != nil || len(failed) != 1 || len(staged) != 2 || failed[0].Reason != "gone" {
			t.Errorf("%+v, %+v, %v", failed, staged, err)
		}
		if counts, err := table.Counts(ctx); err != nil || counts[outputs.Staged] != 2 || counts[outputs.Failed] != 1 {
			t.Errorf("%v, %v", counts, err)
		}

		retry := func(ctx context.Context, run, uid, _ string) (outputs.Output, error) {
			return table.Retry(ctx, run, uid)
		}
		for i, tt := range []struct {
			change func(context.Context, string, string, string) (outputs.Output, error)
			at     int
			want   outputs.State
			err    error
		}{
			{table.Approve, 2, outputs.Refused, outputs.ErrConflict},
			{table.Approve, 3, outputs.Failed, outputs.ErrConflict},
			{retry, 0, outputs.Staged, outputs.ErrConflict},
			{table.Approve, 0, outputs.Pending, nil},
			{table.Approve, 0, outputs.Pending, outputs.ErrConflict},
			{table.Reject, 1, outputs.Rejected, nil},
			{table.Approve, 1, outputs.Rejected, outputs.ErrConflict},
			{retry, 3, outputs.Pending, nil},
		} {
			o, err := tt.change(ctx, r.ID, all[tt.at].UID, "ada")
			if !errors.Is(err, tt.err) || o.State != tt.want {
				t.Errorf("%d: %s, %v", i, o.State, err)
			}
		}
		if _, err := table.Approve(ctx, run(t, s, r.ID).RootRunID, "out_x", "ada"); !errors.Is(err, outputs.ErrNotFound) {
			t.Error(err)
		}
		for _, o := range outputsOf(t, s, r.ID) {
			if decided := o.UID == all[0].UID || o.UID == all[1].UID; (o.DecidedBy == "ada") != decided {
				t.Errorf("%s decided by %q", o.State, o.DecidedBy)
			}
		}
	})
}

// TestPullRequestsOfARunAreInOrder holds that a follow-up's commits do not arrive before those that they build on.
func TestPullRequestsOfARunAreInOrder(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		r := automated(t, s, &schema.Outputs{PullRequest: &schema.PullRequestOutput{Branch: schema.DefaultBranch}})
		pull := func() outputs.Output { o := comment("p"); o.Kind = outputs.PullRequest; return o }
		finish := state.Result{State: state.RunSucceeded, Outputs: []outputs.Output{pull(), comment("c"), pull()}}
		if _, err := s.FinishRun(ctx, start(t, s, r.ID), finish); err != nil {
			t.Fatal(err)
		}
		first, second := take(t, s), take(t, s)
		if first.Kind != outputs.PullRequest || second.Kind != outputs.Comment {
			t.Errorf("%s, then %s", first.Kind, second.Kind)
		}
		none(t, s)
		if err := s.Outputs().Stop(ctx, first, outputs.Failed, "gone"); err != nil {
			t.Fatal(err)
		}
		if third := take(t, s); third.Kind != outputs.PullRequest || third.UID == first.UID {
			t.Errorf("%+v", third)
		}
	})
}

// TestOutputsOfTheLastAttempt holds that a run that is tried again leaves what its last attempt left, once,
// and that its status stays pending until then.
func TestOutputsOfTheLastAttempt(t *testing.T) {
	for name, row := range map[string]struct {
		results      []state.RunState
		cancelled    bool // while it waits for the next attempt
		left, status string
	}{
		"the second succeeds": {[]state.RunState{state.RunError, state.RunSucceeded}, false, "attempt 2", "success"},
		"all fail": {
			[]state.RunState{state.RunError, state.RunError, state.RunError}, false, "attempt 3", "error",
		},
		"a result that is final":     {[]state.RunState{state.RunFailed}, false, "attempt 1", "failure"},
		"cancelled between attempts": {[]state.RunState{state.RunError}, true, "", "error"},
	} {
		t.Run(name, func(t *testing.T) {
			statetest.Each(t, func(t *testing.T, s *state.Store) {
				ctx := t.Context()
				f, _ := factory(t, s)
				allow(t, s, f.UID, &schema.Outputs{
					Comment: &schema.CommentOutput{Max: 2}, Status: &schema.StatusOutput{Context: "x"},
				})
				n := automatedRun(t, s, f.UID)
				n.Flow = &state.Flow{Retry: &state.FlowRetry{Attempts: 3, On: []string{"ERROR"}}}
				r := create(t, s, n)

				for i, end := range row.results {
					if _, err := s.ReleaseDue(ctx); err != nil {
						t.Fatal(err)
					}
					if all := commentsOf(t, s, r.ID); i > 0 && (all != "" || statusOf(t, s, r.ID) != "x pending pending") {
						t.Errorf("before attempt %d: %q, status %s", i+1, all, statusOf(t, s, r.ID))
					}

					c := start(t, s, r.ID)
					result := state.Result{State: end, Outputs: []outputs.Output{comment(fmt.Sprint("attempt ", i+1))}}
					if _, err := s.FinishRun(ctx, c, result); err != nil {
						t.Fatal(err)
					}
					if _, err := s.FinishRun(ctx, c, result); !errors.Is(err, state.ErrLost) { // its answer was lost
						t.Errorf("the end of attempt %d is repeated: %v", i+1, err)
					}
				}
				if row.cancelled {
					if _, err := s.RequestCancel(ctx, r.ID, "tester"); err != nil {
						t.Fatal(err)
					}
				}

				if all := commentsOf(t, s, r.ID); all != row.left || !run(t, s, r.ID).State.Ended() {
					t.Errorf("the run is %s and left %q, want %q", run(t, s, r.ID).State, all, row.left)
				}
				if got := statusOf(t, s, r.ID); got != "x "+row.status+" pending" {
					t.Errorf("status %q, want %s", got, row.status)
				}
			})
		})
	}
}

// commentsOf returns the texts of the comments that a run left.
func commentsOf(t *testing.T, s *state.Store, run string) string {
	t.Helper()
	var all []string
	for _, o := range outputsOf(t, s, run) {
		var b struct{ Body string }
		if err := json.Unmarshal(o.Body, &b); err != nil {
			t.Fatal(err)
		}
		if o.Kind == outputs.Comment {
			all = append(all, b.Body)
		}
	}
	return strings.Join(all, ", ")
}
