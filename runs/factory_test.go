package runs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
)

// factory applies a definition with a foreman, another agent and skills.
func (w *world) factory(name string, resources ...state.ResourceChange) state.Factory {
	w.t.Helper()
	return w.factoryOf(name, state.Source{Kind: "dir", Path: "x"}, resources...)
}

func (w *world) factoryOf(name string, source state.Source, resources ...state.ResourceChange) state.Factory {
	w.t.Helper()
	f, err := w.store.EnsureFactory(w.t.Context(), name, source, false)
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.store.Apply(w.t.Context(), state.ChangeSet{
		FactoryUID: f.UID, Base: f.Generation, BaseRevision: f.Applied.ID, Started: time.Now(), Revision: state.Revision{ID: "r1"}, Resources: resources,
		FileChanged: true, File: &schema.FactoryFile{Name: "Display", Secrets: []string{"ALL"}, AgentDefaults: schema.Execution{Model: "default-model"}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

func agent(name, kind, prompt string, exec schema.Execution) state.ResourceChange {
	return state.ResourceChange{Kind: "agent", Name: name, Spec: schema.Agent{Name: name, AgentType: kind, Prompt: prompt, Execution: exec}}
}

func TestRunsOfAgents(t *testing.T) {
	each(t, func(w *world) {
		f := w.factory("acme",
			agent("boss", schema.AgentForeman, "You lead.", schema.Execution{}),
			agent("coder", schema.AgentCustom, "You code.", schema.Execution{
				Harness: &schema.Harness{Type: "claude", Model: "big"}, EnvironmentID: "env", Secrets: []string{"OWN"},
				MCPServers: map[string]json.RawMessage{"docs": json.RawMessage(`{"url":"https://docs","headers":{"X":"hunter2"}}`)},
			}),
			state.ResourceChange{Kind: "skill", Name: "triage", Spec: schema.Skill{Name: "triage", Body: "Sort the tickets."}})
		current, err := w.store.Current(w.t.Context(), f.UID)
		if err != nil {
			w.t.Fatal(err)
		}
		uid := current.UIDs[state.ResourceKey("agent", "coder")]

		id := w.create(`{"prompt": "x", "agent_identity_uid": "` + uid + `"}`)
		got := w.get(id)
		config, _ := json.Marshal(got["agent_config"])
		want := `{"base_prompt":"You code.","environment_id":"env","harness":{"model_id":"big","type":"claude"},"mcp_servers":{"docs":{"headers":{"X":"***"},"url":"https://docs"}},"model_id":"big","name":"coder"}`
		if string(config) != want || got["factory_uid"] != f.UID {
			w.t.Errorf("run of an agent: factory %v, configuration\n%s, want\n%s", got["factory_uid"], config, want)
		}
		r, err := w.store.Run(w.t.Context(), id)
		if err != nil || strings.Join(r.Secrets, " ") != "ALL OWN" || r.AgentUID != uid {
			w.t.Errorf("secrets %v, agent %s, %v", r.Secrets, r.AgentUID, err)
		}
		if servers, err := w.store.Servers(w.t.Context(), r); err != nil || !strings.Contains(string(servers), "hunter2") {
			w.t.Errorf("servers %s %v", servers, err)
		}

		got = w.get(w.create(`{"prompt": "x", "agent_identity_uid": "` + uid + `", "config": {"name": "mine", "model_id": "small", "base_prompt": "No.", "harness": {"type": "echo"}}}`))
		config, _ = json.Marshal(got["agent_config"])
		for _, want := range []string{`"name":"mine"`, `"model_id":"small"`, `"base_prompt":"No."`, `"harness":{"type":"echo"}`, `"environment_id":"env"`} {
			if !strings.Contains(string(config), want) {
				w.t.Errorf("overridden: %s is not in %s", want, config)
			}
		}

		got = w.get(w.create(`{"skill": "acme/factory:triage", "agent_identity_uid": "` + uid + `"}`))
		if c := got["agent_config"].(map[string]any); c["base_prompt"] != "Sort the tickets." || c["name"] != "triage" {
			w.t.Errorf("a skill of the tree: %v", c)
		}

		answer := w.call(state.RoleRunner, "POST", "/factory/"+f.UID+"/runs", `{"prompt": "Plan it", "title": "T", "ticket_ref": "ABC-1", "ticket_url": "https://tracker/ABC-1"}`).ok()
		runID := answer["run_id"].(string)
		if answer["factory_uid"] != f.UID || answer["foreman_agent"] != "boss" || answer["state"] != "QUEUED" || answer["ticket_ref"] != "ABC-1" || answer["run_url"] != "https://mill.example.com/runs/"+runID {
			w.t.Errorf("factory run: %v", answer)
		}
		got = w.get(runID)
		if c := got["agent_config"].(map[string]any); c["base_prompt"] != "You lead." || c["model_id"] != "default-model" || got["trigger_url"] != "https://tracker/ABC-1" || got["title"] != "T" || got["metadata"].(map[string]any)["ticket_ref"] != "ABC-1" {
			w.t.Errorf("factory run: %v", got)
		}
		w.call(state.RoleRunner, "POST", "/factory/"+f.UID+"/runs", `{}`).problem(400, "invalid_request", "prompt")
		w.call(state.RoleRunner, "POST", "/factory/"+f.UID+"/runs", `{"prompt": "x", "ticket_url": "javascript:1"}`).problem(400, "invalid_request", "ticket_url")
		w.call(state.RoleRunner, "POST", "/factory/fac_none/runs", `{"prompt": "x"}`).problem(404, "resource_not_found")
		w.call(state.RoleViewer, "POST", "/factory/"+f.UID+"/runs", `{"prompt": "x"}`).problem(403, "not_authorized")
		list := w.call(state.RoleViewer, "GET", "/agent/runs?factory_uid=other&factory_uid="+f.UID, "").ok()
		if n := len(list["runs"].([]any)); n != 4 {
			w.t.Errorf("%d runs of the factory", n)
		}

		plain := w.factory("plain")
		answer = w.call(state.RoleRunner, "POST", "/factory/"+plain.UID+"/runs", `{"prompt": "x"}`).ok()
		if answer["foreman_agent"] != "" {
			w.t.Errorf("no foreman: %v", answer)
		}
		if _, err := w.store.ConfigureFactories(w.t.Context(), nil); err != nil {
			w.t.Fatal(err)
		}
		w.call(state.RoleRunner, "POST", "/factory/"+f.UID+"/runs", `{"prompt": "x"}`).problem(404, "resource_not_found")
	})
}

// TestSkillsOfTheOwnRepository asks for skills of the repository that a factory is defined in.
func TestSkillsOfTheOwnRepository(t *testing.T) {
	each(t, func(w *world) {
		source := state.Source{Kind: "git", URL: "https://git.example.com/acme/factory.git", Path: "def"}
		f := w.factoryOf("acme", source,
			agent("boss", schema.AgentForeman, "You lead.", schema.Execution{}),
			state.ResourceChange{Kind: "skill", Name: "triage", Spec: schema.Skill{Name: "triage", Path: "skills/triage/SKILL.md", Body: "Sort."}})
		for spec, known := range map[string]bool{
			"acme/factory:triage":                     true,
			"acme/factory:def/skills/triage/SKILL.md": true,
			"acme/factory:tools/x/SKILL.md":           true, // outside of the definition
			"acme/other:absent":                       true,
			"acme/factory:absent":                     false,
			"acme/factory:def/skills/absent/SKILL.md": false,
		} {
			for _, config := range []string{`"skill_spec": "` + spec + `"`, `"skills": ["` + spec + `"]`} {
				a := w.call(state.RoleRunner, "POST", "/factory/"+f.UID+"/runs", `{"prompt": "x", "config": {`+config+`}}`)
				if known {
					a.ok()
				} else if problem := a.problem(400, "invalid_request"); !strings.Contains(fmt.Sprint(problem), "it has triage") {
					w.t.Errorf("%s: %v", spec, problem)
				}
			}
		}
	})
}

func TestRunOfADelivery(t *testing.T) {
	each(t, func(w *world) {
		ctx := w.t.Context()
		if _, err := w.store.SetSecret(ctx, "S", []byte("value")); err != nil {
			w.t.Fatal(err)
		}
		f := w.factory("acme")
		current, err := w.store.Current(ctx, f.UID)
		if err != nil {
			w.t.Fatal(err)
		}
		uid := state.WebhookUID(current.Key, "hook", 0)
		if err := w.store.Apply(ctx, state.ChangeSet{FactoryUID: f.UID, Base: current.Factory.Generation, BaseRevision: current.Factory.Applied.ID, Started: time.Now(), Webhooks: []state.WebhookChange{
			{UID: uid, Spec: schema.Webhook{Name: "hook", AuthMode: "token", SecretName: "S", Enabled: true}, SecretVersion: 1},
		}}); err != nil {
			w.t.Fatal(err)
		}
		if current, err = w.store.Current(ctx, f.UID); err != nil {
			w.t.Fatal(err)
		}
		id, delivery := state.NewRunID(), state.NewID(state.PrefixDelivery)
		payload := ` {"a": "\ud800", "n": 1e400} `
		_, err = w.store.Accept(ctx, state.Acceptance{
			UID: delivery, FactoryUID: f.UID, Generation: current.Factory.Generation, WebhookID: current.Webhooks[0].ID, WebhookUID: uid,
			Identity: state.IdentityOf(state.IdentityServiceHeader, "1"), Body: []byte(payload), Received: time.Now(),
			Runs: []state.NewRun{{
				ID: id, RootRunID: id, ConversationID: id, FactoryUID: f.UID, Title: "t", Prompt: "Look", Envelope: "The envelope.", Source: "CUSTOM_WEBHOOK",
				Creator: state.Creator{Type: "service_account", UID: "auto_1", DisplayName: "a"}, AutomationUID: "auto_1", WebhookUID: uid, DeliveryUID: delivery, At: time.Now(),
			}},
		})
		if err != nil {
			w.t.Fatal(err)
		}
		w.work(nil)
		events := w.end(id)
		for _, want := range []string{"Look\\n\\nThe envelope.", "event-payload.json (application/json, 29 bytes)", `1e400`} {
			if !strings.Contains(events, want) {
				w.t.Errorf("%s is not in:\n%s", want, events)
			}
		}
		got := w.get(id)
		meta := got["metadata"].(map[string]any)
		if got["state"] != "SUCCEEDED" || got["submitted_prompt"] != "Look\n\nThe envelope." || meta["automation_id"] != "auto_1" || meta["webhook_id"] != uid || meta["delivery_id"] != delivery {
			w.t.Errorf("run %v", got)
		}
		if file := w.call(state.RoleViewer, "GET", "/agent/runs/"+id+"/attachments/event-payload.json", ""); file.text != payload {
			w.t.Errorf("payload %q", file.text)
		}
		for _, query := range []string{"delivery_id=" + delivery, "webhook_id=" + uid, "automation_id=auto_1", "metadata[delivery_id]=" + delivery} {
			if v := w.call(state.RoleViewer, "GET", "/agent/runs?"+query, "").ok(); len(v["runs"].([]any)) != 1 {
				w.t.Errorf("%s: %v", query, v)
			}
		}
	})
}
