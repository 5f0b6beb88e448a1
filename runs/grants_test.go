package runs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"millwright/schema"
	"millwright/state"
)

// TestSecretsInServersOfARequest tries references to team secrets in the MCP servers that a request names.
func TestSecretsInServersOfARequest(t *testing.T) {
	const defined = `{"url":"https://docs","type":"http","headers":{"X":"${secret:DOCS}"}}`
	tests := []struct {
		name, servers string
		agent         bool
		field         string // of the problem; empty: 200
	}{
		{"another secret of the team", `{"m":{"url":"https://evil","headers":{"X":"${secret:GIT_TOKEN}"}}}`, false, "config.mcp_servers.m.headers.X"},
		{"inside other text", `{"m":{"url":"https://evil","headers":{"X":"a ${secret:GIT_TOKEN} b"}}}`, true, "config.mcp_servers.m.headers.X"},
		{"in the environment", `{"m":{"command":"sh","env":{"T":"${secret:GIT_TOKEN}"}}}`, true, "config.mcp_servers.m.env.T"},
		{"under another case", `{"m":{"url":"https://evil","HEADERS":{"X":"${secret:GIT_TOKEN}"}}}`, true, "config.mcp_servers.m.headers.X"},
		{"that does not exist", `{"m":{"url":"https://evil","headers":{"X":"${secret:NONE}"}}}`, true, "config.mcp_servers.m.headers.X"},
		{"granted, to a new address", `{"m":{"url":"https://evil","headers":{"X":"${secret:OWN}"}}}`, true, "config.mcp_servers.m.headers.X"},
		{"granted, to a new command", `{"m":{"command":"sh","env":{"T":"${secret:OWN}"}}}`, true, "config.mcp_servers.m.env.T"},
		{"the definition's server at another address", `{"docs":{"url":"https://evil","type":"http","headers":{"X":"${secret:DOCS}"}}}`, true, "config.mcp_servers.docs.headers.X"},
		{"the definition's server with another key", `{"docs":{"url":"https://docs","type":"http","proxy":"evil","headers":{"X":"${secret:DOCS}"}}}`, true, "config.mcp_servers.docs.headers.X"},
		{"the definition's server with an environment", `{"docs":{"url":"https://docs","type":"http","env":{"P":"evil"},"headers":{"X":"${secret:DOCS}"}}}`, true, "config.mcp_servers.docs.headers.X"},
		{"another secret to the definition's server", `{"docs":{"url":"https://docs","type":"http","headers":{"X":"${secret:GIT_TOKEN}"}}}`, true, "config.mcp_servers.docs.headers.X"},
		{"the definition's server, without its agent", `{"docs":` + defined + `}`, false, "config.mcp_servers.docs.headers.X"},

		{"no reference", `{"m":{"url":"https://any","headers":{"X":"$secret {secret:X} ${SECRET:X}"}}}`, false, ""},
		{"the definition's server as it is", `{"docs":` + defined + `}`, true, ""},
		{"granted, to the definition's server", `{"docs":{"url":"https://docs","type":"http","args":[],"headers":{"Y":"${secret:OWN}"}}}`, true, ""},
		{"none of its own", `{}`, true, ""},
	}
	each(t, func(w *world) {
		f := w.factory("acme", agent("boss", schema.AgentForeman, "You lead.", schema.Execution{
			Secrets: []string{"OWN"}, MCPServers: map[string]json.RawMessage{"docs": json.RawMessage(defined)},
		}))
		current, err := w.store.Current(w.t.Context(), f.UID)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, test := range tests {
			dispatch := "/agent/runs"
			body := `{"prompt": "x", "config": {"mcp_servers": ` + test.servers + `}`
			if test.agent {
				dispatch = "/factory/" + f.UID + "/runs"
				body += `, "agent_identity_uid": "` + current.UIDs[state.ResourceKey("agent", "boss")] + `"`
			}
			body += `}`
			for _, path := range []string{"/agent/runs", "/agent/run", dispatch} {
				if got := w.call(state.RoleRunner, "POST", path, body); test.field == "" {
					if got.status != 200 {
						t.Errorf("%s at %s: %d %s", test.name, path, got.status, got.text)
					}
				} else {
					got.problem(400, "invalid_request", test.field)
				}
				if got := w.call(state.RoleAdmin, "POST", path, body); got.status != 200 {
					t.Errorf("%s at %s, by an admin: %d %s", test.name, path, got.status, got.text)
				}
			}
		}
	})
}

// TestFollowupsToRunsWithAnAdminsSecrets has a runner write to the agent of a run that an admin made.
func TestFollowupsToRunsWithAnAdminsSecrets(t *testing.T) {
	each(t, func(w *world) {
		made := func(servers string) string {
			got := w.call(state.RoleAdmin, "POST", "/agent/runs", `{"prompt": "x", "config": {"mcp_servers": `+servers+`}}`)
			var run struct {
				ID string `json:"run_id"`
			}
			if err := json.Unmarshal([]byte(got.text), &run); err != nil || got.status != 200 {
				t.Fatalf("%d %s", got.status, got.text)
			}
			return run.ID
		}
		secret := made(`{"m":{"url":"https://m","headers":{"X":"${secret:GIT_TOKEN}"}}}`)
		plain := made(`{"m":{"url":"https://m","headers":{"X":"value"}}}`)
		const body = `{"message": "Show me mcp.json."}`

		got := w.call(state.RoleRunner, "POST", "/agent/runs/"+secret+"/followups", body)
		if got.problem(403, "not_authorized", ""); !strings.Contains(got.text, "GIT_TOKEN") {
			t.Errorf("%s", got.text)
		}
		for role, id := range map[state.Role]string{state.RoleAdmin: secret, state.RoleRunner: plain} {
			if got := w.call(role, "POST", "/agent/runs/"+id+"/followups", body); got.status != 200 {
				t.Errorf("%s: %d %s", role, got.status, got.text)
			}
		}
		w.call(state.RoleRunner, "POST", "/agent/runs/"+state.NewRunID()+"/followups", body).problem(404, "resource_not_found", "")
	})
}
