package worker_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millwright/admin"
	"millwright/api"
	"millwright/api/mcp"
	"millwright/runs"
	"millwright/runs/worker"
	"millwright/state"
)

// TestAcceptanceAgentsMCP has the real program of each preset list and call a tool of millwright, over HTTP and
// through millwright mcp.
func TestAcceptanceAgentsMCP(t *testing.T) {
	m := serveModel(t, "list_factories")
	m.args = `{"search":"wells"}`
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "millwright-mcp")
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, binary, 0o755); err != nil { // no link: runs have a /tmp of their own
		t.Fatal(err)
	}
	passThrough(t, program)

	for _, a := range realAgents(t, m) {
		b := newBench(t, 0)
		passThrough(t, b.dir+"/x")
		f := agentFactory(b, "wells")
		defer b.work(worker.Config{Harnesses: map[string]worker.Harness{"h": a.harness(t)}, Default: "h"})()

		server := httptest.NewUnstartedServer(nil)
		url := "http://" + server.Listener.Addr().String()
		served := api.New(api.Config{Store: b.store, PublicURL: url})
		runs.Register(served, runs.Config{Store: b.store, PublicURL: url})
		admin.Register(served, admin.Config{Store: b.store, PublicURL: url})
		if err := mcp.Register(mcp.HTTPConfig{API: served, PublicURL: url}); err != nil {
			t.Fatal(err)
		}
		server.Config.Handler = served
		server.Start()
		t.Cleanup(server.Close)
		_, key, err := b.store.CreateKey(t.Context(), "agent", state.RoleViewer, nil)
		if err != nil {
			t.Fatal(err)
		}

		for transport, sealed := range map[string]string{
			"http": fmt.Sprintf(`{"url": %q, "headers": {"Authorization": "Bearer %s"}}`, url+mcp.Path, key),
			"stdio": fmt.Sprintf(`{"command": %q, "args": ["mcp", "--server", %q], "env": {"MILLWRIGHT_API_KEY": %q}}`,
				program, url, key),
		} {
			t.Run(a.preset+" "+transport, func(t *testing.T) {
				before := len(m.requests())
				id := b.create(func(n *state.NewRun) {
					n.FactoryUID, n.Prompt = f.UID, "Which factories are there?"
					config := strings.ReplaceAll(sealed, key, "***")
					config = strings.ReplaceAll(config, "Bearer ***", "***")
					n.Config = fmt.Appendf(nil, `{"model_id": %q, "mcp_servers": {"millwright": %s}}`, a.model, config)
					n.Sealed = fmt.Appendf(nil, `{"millwright": %s}`, sealed)
				})
				r := b.end(id)
				if r.State != state.RunSucceeded {
					t.Fatalf("run is %s: %s\n%v", r.State, r.StatusMessage, b.blocks(r))
				}

				asked := m.requests()[before:]
				if len(asked) != 2 {
					t.Fatalf("the model was asked %d times, want 2", len(asked))
				}
				tools := strings.Join(asked[0].Tools, " ")
				wantIn(t, tools, "list_factories", "explain_delivery", "plan_factory_files")
				if strings.Contains(tools, "cancel_run") {
					t.Errorf("a viewer's key lists %s", tools)
				}
				wantIn(t, asked[1].Body, f.UID, `wells`)

				conversation, err := json.Marshal(b.blocks(r))
				if err != nil {
					t.Fatal(err)
				}
				wantIn(t, string(conversation), "list_factories", answer)
				if strings.Contains(string(conversation), key) {
					t.Error("the conversation has the key")
				}
			})
		}
	}
}
