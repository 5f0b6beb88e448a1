package dashboard_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
)

// told returns an event of a worker.
func told(name, data string) state.Block {
	return state.Block{Type: "event", Name: name, Data: json.RawMessage(data)}
}

// TestGivenAndApplied shows what a run's configuration resolved to, and what of it reached the agent of the
// latest execution.
func TestGivenAndApplied(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		b := w.signedIn(state.RoleViewer)
		r, err := w.store.CreateRun(t.Context(), state.NewRun{
			Title: "a run", Prompt: "Measure the wells.", Source: "API", Creator: state.Creator{Type: "service_account"},
			Config: json.RawMessage(
				`{"model_id": "large", "base_prompt": "Be <brief>.", "harness": {"reasoning_level": "high"},
				"mcp_servers": {"maps": {"command": "maps", "args": ["--serve"]}, "depths": {"url": "https://depths.example.com"}}}`,
			),
		}, nil, state.Idempotency{})
		if err != nil {
			t.Fatal(err)
		}
		path := "/runs/" + r.ID
		inOrder(
			t,
			b.page(path),
			"Given and applied",
			"The default harness",
			"large",
			"Be <brief>.",
			"maps --serve",
		)
		saysNot(t, b.page(path), ">applied<", "in files")

		w.finish(r.ID, state.RunSucceeded, said(
			told(
				"config_not_applied",
				`{"field": "reasoning_level", "harness": "agent", "reason": "it has no such level"}`,
			),
			told("config_applied", `{"harness": "agent", "preset": "claude", "session": "new",
				"fields": ["base_prompt", "mcp_servers.depths", "mcp_servers.maps", "model_id", "skills.wells"]}`),
			told("session", `{"model": "large-2", "session_id": "s", "tools": ["Bash", "mcp__depths"]}`),
			told("mcp_server_failed", `{"name": "maps"}`),
			state.Text("Done."),
		))
		inOrder(
			t,
			b.page(path),
			"Given and applied",
			"agent",
			"new session",
			"large-2",
			"Prompt",
			"applied",
			"18 B, in the conversation",
			"Model",
			"applied",
			"Effort",
			"not applied",
			"it has no such level",
			"Base prompt",
			"applied",
			"MCP server depths",
			"applied",
			"MCP server maps",
			"failed",
			"does not start",
			"Skill",
			"applied",
			"wells",
			"Tools, as the agent reports them",
			"Bash, mcp__depths",
		)

		// A follow-up that a command executes: what was before does not count.
		if _, _, err := w.store.Followup(t.Context(), r.ID, "Again.", state.Idempotency{}); err != nil {
			t.Fatal(err)
		}
		w.finish(
			r.ID,
			state.RunSucceeded,
			said(told("config_not_applied", `{"field": 7}`), state.Text("Done.")),
		)
		_, panel, _ := strings.Cut(b.page(path), "Given and applied")
		inOrder(t, panel, "Prompt", "applied", "Model", "in files", "large")
		saysNot(t, panel, "no such level", "large-2")
	})
}

// TestUsePages shows what runs used by automation, factory and day, and what is left of each budget.
func TestUsePages(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		files := append(
			slices.Clone(repoFiles),
			schema.File{Path: "automations/costly/automation.md", Content: "---\n" +
				"triggers:\n  - {provider: webhook, event: received, filter: {webhook_ids: [CI], payload: {to: [costly]}}}\n" +
				"budget: {tokensPerDay: 1000, usdPerRun: 9}\n---\nGo.\n"},
		)
		if a, err := w.apply(t.Context(), w.repo, files); err != nil || a.Outcome != state.OutcomeApplied {
			t.Fatalf("%+v, %v", a, err)
		}
		if err := w.store.SetBudget(t.Context(), schema.Budget{USDPerDay: 20, RunsPerDay: 50}); err != nil {
			t.Fatal(err)
		}

		b := w.signedIn(state.RoleViewer)
		w.ciDelivery(`{"to":"costly"}`)
		runs, _, err := w.store.Runs(t.Context(), state.RunFilter{}, state.RunOrder{}, nil, 1)
		if err != nil || len(runs) != 1 {
			t.Fatal(runs, err)
		}
		cost := 1.5
		c := w.claimed(runs[0].ID)
		if _, _, err := w.store.SetUsage(t.Context(), c, []state.ModelUsage{
			{Model: "large", InputTokens: 600, OutputTokens: 100, CostUSD: &cost},
		}); err != nil {
			t.Fatal(err)
		}

		day := fmt.Sprintf("%s 1 700 $1.50", today())
		base := "/factories/" + w.repo
		inOrder(
			t,
			plain(b.page("/")),
			"tokensPerDay: 1000",
			"700",
			"300",
			"repo: budget in automations/costly/automation.md",
			"usdPerDay: 20",
			"$1.50",
			"$18.50",
			"limits.budget in the settings",
			day,
		)
		inOrder(t, plain(b.page(base)), "usdPerDay: 20", "$18.50", day)
		inOrder(t, plain(b.page(base+"/automations")), "costly", "1 run, 700 tokens, $1.50")
		inOrder(t, plain(b.page(base+"/automations/costly")), "tokensPerDay: 1000", "300", day)

		// A model without a price leaves a part of the cost unknown. No message waits.
		if _, _, err := w.store.SetUsage(t.Context(), c, []state.ModelUsage{
			{Model: "large", InputTokens: 600, OutputTokens: 100, CostUSD: &cost}, {Model: "small", InputTokens: 5},
		}); err != nil {
			t.Fatal(err)
		}
		page := b.page("/runs/" + runs[0].ID)
		says(
			t,
			page,
			"605 in (0 cached), 100 out",
			"$1.5000, and an unknown part for 5 tokens",
			"large 700 tokens, $1.5000",
			"small 5 tokens",
		)
		saysNot(t, page, "waits for the next execution")
	})
}

// today is the present day as pages write it.
func today() string { return time.Now().UTC().Format(time.DateOnly) }
