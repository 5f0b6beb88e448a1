package worker_test

import (
	"testing"

	"millwright/runs/worker"
	"millwright/schema"
	"millwright/state"
)

// TestRunOverItsBudgetIsStopped has an agent tell of its use and go on: it is stopped.
func TestRunOverItsBudgetIsStopped(t *testing.T) {
	b := newBench(t, 0)
	if err := b.store.SetBudget(t.Context(), schema.Budget{TokensPerRun: 100}); err != nil {
		t.Fatal(err)
	}
	b.work(worker.Config{Default: "h", Harnesses: map[string]worker.Harness{"h": {
		Preset: "claude", SameUser: true, Program: agentScript(t, `
usage='{"type":"assistant","message":{"id":"%s","model":"m","content":[{"type":"text","text":"at work"}],"usage":{"input_tokens":%s,"output_tokens":1}}}\n'
printf "$usage" one 60
printf "$usage" one 60
printf "$usage" two 60
exec sleep 600
`),
	}}})

	id := b.create(nil)
	r := b.end(id)
	if r.State != state.RunFailed || r.ErrorCode != "budget_exceeded" {
		t.Fatalf("run is %s, %s: %s", r.State, r.ErrorCode, r.StatusMessage)
	}
	wantIn(t, r.StatusMessage, "used 122 tokens", "tokensPerRun: 100, limits.budget in the settings")

	// A follow-up starts nothing while the budget is what it was.
	if _, _, err := b.store.Followup(t.Context(), id, "go on", state.Idempotency{}); err != nil {
		t.Fatal(err)
	}
	r = b.until(id, func(r state.Run) bool { return r.Execution == 2 && r.State.Ended() })
	if r.State != state.RunFailed || r.ErrorCode != "budget_exceeded" {
		t.Errorf("run is %s, %s: %s", r.State, r.ErrorCode, r.StatusMessage)
	}
}
