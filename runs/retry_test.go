package runs_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"millwright/schema"
	"millwright/state"
)

// TestRetry starts runs of different kinds again.
func TestRetry(t *testing.T) {
	each(t, func(w *world) {
		data := base64.StdEncoding.EncodeToString([]byte("a, b"))
		for _, body := range []string{
			`{"prompt": "x"}`,
			`{"prompt": "x", "title": "Nightly", "metadata": {"team": "shop"}, "attachments": [{"file_name": "a.csv", "data": "` + data + `"}]}`,
			`{"skill": "acme/tools:triage", "config": {"model_id": "large", "mcp_servers": {"docs": {"url": "https://docs", "headers": {"X": "s3cret-value"}}}}}`,
		} {
			id := w.create(body)
			w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/retry", "").problem(409, "conflict")
			w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/cancel", "")
			w.call(state.RoleViewer, "POST", "/agent/runs/"+id+"/retry", "").problem(403, "not_authorized")

			again := w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/retry", "", "X-Millwright-Client", "cli").ok()
			first, second := w.get(id), w.get(again["run_id"].(string))
			if second["run_id"] == id || second["conversation_id"] == first["conversation_id"] || second["state"] != "QUEUED" || second["source"] != "CLI" {
				t.Errorf("the retry: %v", second)
			}
			if second["metadata"].(map[string]any)["retry_of"] != id {
				t.Errorf("metadata %v", second["metadata"])
			}
			for _, key := range []string{"title", "prompt", "submitted_prompt", "agent_config", "attachments"} {
				if got, want := asJSON(second[key]), asJSON(first[key]); got != want {
					t.Errorf("%s %s, want %s", key, got, want)
				}
			}
			if strings.Contains(asJSON(second), "s3cret-value") {
				t.Errorf("the retry shows a value: %v", second)
			}

			r, err := w.store.Run(t.Context(), again["run_id"].(string))
			if err != nil {
				t.Fatal(err)
			}
			servers, err := w.store.Servers(t.Context(), r)
			if err != nil || strings.Contains(body, "s3cret-value") != strings.Contains(string(servers), "s3cret-value") {
				t.Errorf("servers %v, %v", len(servers), err)
			}
		}
	})
}

// TestRepeatedRetry sends one request twice.
func TestRepeatedRetry(t *testing.T) {
	each(t, func(w *world) {
		id, other := w.create(`{"prompt": "x"}`), w.create(`{"prompt": "x"}`)
		for _, id := range []string{id, other} {
			w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/cancel", "")
		}

		retry := func(id string) response {
			return w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/retry", "", "Idempotency-Key", "one")
		}
		if first, again := retry(id).text, retry(id).text; first != again {
			t.Errorf("repeats: %s %s", first, again)
		}
		retry(other).problem(409, "conflict")
		w.call(state.RoleRunner, "POST", "/agent/runs/nonsense/retry", "").problem(404, "resource_not_found")
		w.call(state.RoleRunner, "POST", "/agent/runs/0199d3a4-0000-7000-8000-000000000001/retry", "").problem(404, "resource_not_found")
	})
}

// TestRetryWithSecretsOfOldDefinition retries a run whose secrets its definition no longer grants.
func TestRetryWithSecretsOfOldDefinition(t *testing.T) {
	each(t, func(w *world) {
		f := w.factory("acme", agent("boss", schema.AgentForeman, "You lead.", schema.Execution{Secrets: []string{"OWN"}}))
		id := w.call(state.RoleRunner, "POST", "/factory/"+f.UID+"/runs", `{"prompt": "x"}`).ok()["run_id"].(string)
		w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/cancel", "")
		w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/retry", "").ok()

		current, err := w.store.Current(w.t.Context(), f.UID)
		if err != nil {
			w.t.Fatal(err)
		}
		boss := agent("boss", schema.AgentForeman, "You lead.", schema.Execution{})
		boss.UID = current.UIDs[state.ResourceKey("agent", "boss")]
		w.factory("acme", boss)
		w.call(state.RoleRunner, "POST", "/agent/runs/"+id+"/retry", "").problem(403, "not_authorized")
		w.call(state.RoleAdmin, "POST", "/agent/runs/"+id+"/retry", "").ok()
	})
}

func asJSON(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}
