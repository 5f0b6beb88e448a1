package worker_test

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"millwright/runs/worker"
	"millwright/state"
	"millwright/state/statetest"
)

// TestAcceptanceAgentsACP has real agents speak the Agent Client Protocol against a scripted model: what a run is
// told reaches the model, the agent asks before it uses a tool, and a follow-up loads its session on another worker.
func TestAcceptanceAgentsACP(t *testing.T) {
	args := map[string][]string{"gemini": {"--acp", "--skip-trust"}, "opencode": {"acp"}}
	m := serveModel(t, "measure_depth")
	for _, a := range realAgents(t, m) {
		if a.args = args[a.preset]; a.args != nil {
			t.Run(a.preset, func(t *testing.T) { testACP(t, m, a) })
		}
	}
}

// testACP has an agent execute a run that asks, and its follow-up.
func testACP(t *testing.T, m *model, a realAgent) {
	t.Helper()
	probe, err := filepath.Abs("testdata/probe.mjs")
	if err != nil {
		t.Fatal(err)
	}
	node := statetest.Program(t, "node")
	if a.preset == "opencode" {
		a.env["OPENCODE_PERMISSION"] = `{"*":"ask"}` // else it does not ask
	}

	b := newBench(t, 0)
	f := agentFactory(b, "wells")
	h := a.harness(t)
	h.Preset = "acp"
	unsigned := h
	unsigned.Env = slices.DeleteFunc(slices.Clone(h.Env), func(name string) bool {
		return strings.HasSuffix(name, "_API_KEY")
	})
	cfg := worker.Config{Harnesses: map[string]worker.Harness{"h": h, "unsigned": unsigned}, Default: "h"}
	stop := b.work(cfg)

	id := b.create(func(n *state.NewRun) {
		n.FactoryUID, n.Prompt = f.UID, "MARKED-FIRST prompt"
		n.Config = fmt.Appendf(
			nil,
			`{"model_id": %q, "base_prompt": "MARKED-BASE \"prompt\"", "idle_timeout_minutes": 5,
			"harness": {"reasoning_level": "high"},
			"mcp_servers": {"probe": {"command": %q, "args": [%q], "env": {"PROBE": "***"}}}}`,
			a.model,
			node,
			probe,
		)
		n.Sealed = fmt.Appendf(
			nil,
			`{"probe": {"command": %q, "args": [%q], "env": {"PROBE": "sealed-depth"}}}`,
			node,
			probe,
		)
	})
	answered := func(execution int) state.Run {
		t.Helper()
		r := b.until(id, func(r state.Run) bool {
			return r.Execution == execution && (r.State == state.RunBlocked || r.Ended())
		})
		q := openQuestion(b, r)
		wantIn(t, q.Title, "measure_depth")
		b.answer(r, q, "approve")
		if r = b.end(id); r.State != state.RunSucceeded || r.Execution != execution {
			t.Fatalf("run is %s in execution %d: %s", r.State, r.Execution, r.StatusMessage)
		}
		return r
	}

	before := len(m.requests())
	r := answered(1)
	asked := m.requests()[before:]
	if len(asked) != 2 || asked[0].Model != a.asked || !strings.Contains(asked[0].Key, "test-key") {
		t.Fatalf("the model was asked %d times: %.300v", len(asked), asked)
	}
	wantIn(t, asked[0].Body, "MARKED-BASE", "MARKED-FIRST prompt", "MARKED-SKILL")
	wantIn(t, asked[1].Body, "depth of hello: sealed-depth")
	conversation, err := json.Marshal(b.blocks(r))
	if err != nil {
		t.Fatal(err)
	}
	wantIn(t, string(conversation), answer, "depth of hello: ***", `"idle_timeout_minutes","mcp_servers.probe","model_id"`)
	if a.preset == "opencode" { // it describes a use in pieces
		wantIn(t, string(conversation), `"name":"probe_measure_depth","input":{"text":"hello"`)
	}
	lost := strings.Join(b.events(r, "config_not_applied"), " ")
	if level := strings.Contains(lost, `"reasoning_level"`); level != (a.preset == "gemini") {
		t.Errorf("the reasoning level is reported as lost: %v", level)
	}
	wantIn(t, asked[0].Body, a.reasoning)
	wantACPUsage(t, r, 2, a)

	// A follow-up in the minute in which the session began, on another worker.
	stop()
	b.dir = t.TempDir()
	b.work(cfg)
	if _, _, err := b.store.Followup(t.Context(), id, "MARKED-SECOND prompt", state.Idempotency{}); err != nil {
		t.Fatal(err)
	}
	r = answered(2)
	asked = m.requests()[before+2:]
	if len(asked) != 2 {
		t.Fatalf("the model was asked %d times in the follow-up, want 2", len(asked))
	}
	wantIn(t, asked[0].Body, "MARKED-FIRST prompt", "MARKED-SECOND prompt", answer)
	wantACPUsage(t, r, 4, a)
	if n := strings.Count(b.said(r), answer); n != 2 {
		t.Errorf("the conversation has the answer %d times: %s", n, b.said(r))
	}
	if anew := b.events(r, "session_not_resumed"); len(anew) > 0 {
		t.Errorf("the session was not resumed: %s", anew)
	}

	r = b.end(b.create(func(n *state.NewRun) {
		n.Config = fmt.Appendf(nil, `{"model_id": %q, "harness": {"type": "unsigned"}}`, a.model)
	}))
	if r.State != state.RunFailed || r.ErrorCode != "agent_process_failed" || r.StatusMessage == "" {
		t.Errorf("not signed in: run is %s, %s %q", r.State, r.ErrorCode, r.StatusMessage)
	}
	t.Logf("not signed in: %s", r.StatusMessage)
}

// wantACPUsage checks what a run used after the model answered it so many times. Over the protocol, Gemini CLI
// reports neither cached tokens nor a cost, and opencode the tokens of the last of two answers.
func wantACPUsage(t *testing.T, r state.Run, answers int64, a realAgent) {
	t.Helper()
	counted := answers
	if a.preset == "opencode" {
		counted = answers / 2
	}

	u := r.Usage
	if u == nil || u.InputTokens != counted*inputTokens || u.OutputTokens != counted*outputTokens ||
		len(u.Models) != 1 || u.Models[0].Model != a.model {
		t.Fatalf("%d answers: usage %+v", answers, u)
	}
	if cost := float64(answers) * a.perAnswer; cost > 0 && (u.CostUSD == nil || math.Abs(*u.CostUSD-cost) > 1e-9) {
		t.Errorf("%d answers: cost %v, want %v", answers, u.CostUSD, cost)
	}
}

// TestAcceptanceIdleTimeout leaves a question open for the idle timeout of its run: the worker gives the run
// up, and an answer resumes the session.
func TestAcceptanceIdleTimeout(t *testing.T) {
	b := newBench(t, 0)
	b.work(worker.Config{Default: "h", Harnesses: map[string]worker.Harness{"h": acpHarness(t)}})
	id := b.create(func(n *state.NewRun) {
		n.Prompt = "ask"
		n.Config = []byte(`{"mcp_servers": {"t": {"command": "tool"}}, "idle_timeout_minutes": 1}`)
	})
	r := b.until(id, func(r state.Run) bool { return r.State == state.RunBlocked || r.Ended() })
	if !r.Held() {
		t.Fatalf("run is %s: %s", r.State, r.StatusMessage)
	}

	r = b.until(id, func(r state.Run) bool { return !r.Held() })
	if r.State != state.RunBlocked || r.Finished == nil ||
		r.StatusMessage != "the agent asks: rm -r build-0" {
		t.Fatalf("run is %s, finished %v: %s", r.State, r.Finished, r.StatusMessage)
	}
	b.answer(r, openQuestion(b, r), "yes")
	if r = b.end(id); r.State != state.RunSucceeded || r.Execution != 2 {
		t.Fatalf("run is %s in execution %d: %s", r.State, r.Execution, r.StatusMessage)
	}
	wantIn(t, b.said(r), "The answer is: Allow (yes).", "chose yes")
}
