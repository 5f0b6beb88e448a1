package worker_test

import (
	"fmt"
	"strings"
	"testing"

	"millwright/runs/dispatch"
	"millwright/runs/worker"
	"millwright/state"
)

// TestUsageOfPresets has each agent report what it used twice, the second time in a session that goes on:
// figures that are of the whole session, negative, doubled or missing, and models with and without a price.
func TestUsageOfPresets(t *testing.T) {
	gemini := func(input int) string {
		return fmt.Sprintf(
			`{"type":"result","status":"success","stats":{"input_tokens":%d,"output_tokens":0,"models":{"m":{"input_tokens":%d}}}}`,
			input,
			input,
		)
	}
	codex := func(input int) string {
		return fmt.Sprintf(
			`{"type":"turn.completed","usage":{"input_tokens":%d,"cached_input_tokens":0,"output_tokens":0}}`,
			input,
		)
	}
	step := func(id string, input int) string {
		return fmt.Sprintf(
			`{"type":"step_finish","sessionID":"s","part":{"id":%q,"cost":0,"tokens":{"input":%d,"output":0}}}`,
			id,
			input,
		)
	}
	begins := map[string]string{
		"gemini":   `{"type":"init","session_id":"s"}`,
		"codex":    `{"type":"thread.started","thread_id":"s"}`,
		"opencode": `{"type":"step_start","sessionID":"s","part":{"id":"0"}}`,
	}

	tests := map[string]struct {
		preset, model string
		first, second string
		input         int64
		cost          float64 // less than 0: unknown
	}{
		"gemini":         {"gemini", "m", gemini(100), gemini(50), 150, -1},
		"gemini-doubled": {"gemini", "m", gemini(100) + "\n" + gemini(100), gemini(-7), 100, -1},
		"gemini-missing": {
			"gemini",
			"m",
			`{"type":"result","status":"success"}`,
			`{"type":"result","status":"success","stats":7}`,
			0,
			-1,
		},
		"codex":          {"codex", "known", codex(100), codex(150), 150, 0.0015},
		"codex-anew":     {"codex", "unknown", codex(100), codex(60), 160, -1},
		"codex-negative": {"codex", "known", codex(-100), codex(20), 20, 0.0002},
		"open":           {"opencode", "known", step("1", 100), step("2", 50), 150, 0.0015},
		"open-doubled": {
			"opencode",
			"known",
			step("1", 100) + "\n" + step("1", 100),
			step("2", -50),
			100,
			0.001,
		},
	}

	b := newBench(t, 0)
	b.d.SetPrices(map[string]dispatch.Price{"known": {Input: 10}})
	harnesses := map[string]worker.Harness{}
	for name, test := range tests {
		script := fmt.Sprintf(
			"case \"$*\" in *resume*|*'--session '*)\ncat <<'EOF'\n%s\n%s\nEOF\n;; *)\ncat <<'EOF'\n%s\n%s\nEOF\n;; esac\n",
			begins[test.preset],
			test.second,
			begins[test.preset],
			test.first,
		)
		harnesses[name] = worker.Harness{Preset: test.preset, Program: agentScript(t, script), SameUser: true}
	}
	b.work(worker.Config{Harnesses: harnesses, Slots: 2})

	for name, test := range tests {
		id := b.create(func(n *state.NewRun) {
			n.Config = fmt.Appendf(nil, `{"harness": {"type": %q}, "model_id": %q}`, name, test.model)
		})
		if r := b.end(id); r.State != state.RunSucceeded {
			t.Errorf("%s: run is %s: %s", name, r.State, r.StatusMessage)
			continue
		}

		r := b.goOn(id, "go on")
		input, cost := int64(0), -1.0
		if r.Usage != nil {
			if input = r.Usage.InputTokens; r.Usage.CostUSD != nil {
				cost = *r.Usage.CostUSD
			}
		}
		if input != test.input || fmt.Sprintf("%.6f", cost) != fmt.Sprintf("%.6f", test.cost) {
			t.Errorf("%s: input %d, cost %v; want %d, %v", name, input, cost, test.input, test.cost)
		}
		if applied := strings.Join(b.events(r, "config_applied"), " "); !strings.Contains(
			applied,
			`"session":"resumed"`,
		) {
			t.Errorf("%s: the session does not go on: %s", name, applied)
		}
	}
}
