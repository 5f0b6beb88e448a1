package runs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// defined applies a definition with agents, a skill and schedules, and returns the factory and what it has.
func (w *world) defined() (state.Factory, state.Current) {
	w.t.Helper()
	cron := func(expression, name string) schema.Trigger {
		return schema.Trigger{Provider: "schedule", Event: "cron_fired", Schedule: &schema.Schedule{Cron: expression, Name: name}}
	}
	f := w.factory("acme",
		agent("boss", "MAIN", "You lead.", schema.Execution{}),
		agent("coder", "IMPLEMENT", "You code.", schema.Execution{
			Harness: &schema.Harness{Type: "own", Model: "gemini-3", ReasoningLevel: "high"}, EnvironmentID: "env-b", Secrets: []string{"OWN"}, Runner: "big",
			MCPServers: map[string]json.RawMessage{"docs": json.RawMessage(`{"url":"https://docs","headers":{"X":"hunter2"}}`)},
		}),
		state.ResourceChange{Kind: "skill", Name: "triage", Spec: schema.Skill{Name: "triage", Path: "skills/triage/SKILL.md", Description: "Sorts", Body: "Sort the tickets."}},
		state.ResourceChange{Kind: "automation", Name: "nightly", Spec: schema.Automation{
			Name: "nightly", Enabled: true, Prompt: "Tidy up", Execution: schema.Execution{EnvironmentID: "env-a", Model: "claude-opus"},
			Triggers: []schema.Trigger{cron("0 3 * * *", "tidy"), cron("0 4 * * *", "")},
		}},
		state.ResourceChange{Kind: "automation", Name: "off", Spec: schema.Automation{
			Name: "off", Prompt: "Rest", Triggers: []schema.Trigger{cron("0 5 * * *", "")},
		}},
	)
	current, err := w.store.Current(w.t.Context(), f.UID)
	if err != nil {
		w.t.Fatal(err)
	}
	return f, current
}

func list(v map[string]any, key string) (all []map[string]any) {
	for _, item := range v[key].([]any) {
		all = append(all, item.(map[string]any))
	}
	return all
}

func TestIdentities(t *testing.T) {
	each(t, func(w *world) {
		if got := w.call(state.RoleViewer, "GET", "/agent/identities", "").ok(); len(list(got, "agents")) != 0 {
			w.t.Errorf("no definition: %v", got)
		}
		f, current := w.defined()
		agents := list(w.call(state.RoleViewer, "GET", "/agent/identities?factory_uid="+f.UID, "").ok(), "agents")
		if len(agents) != 2 || agents[0]["name"] != "boss" || agents[0]["agent_type"] != "FOREMAN" || agents[0]["base_model"] != "default-model" {
			w.t.Fatalf("agents %v", agents)
		}

		uid := current.UIDs[state.ResourceKey("agent", "coder")]
		one := w.call(state.RoleViewer, "GET", "/agent/identities/"+uid, "")
		coder := one.ok()
		for key, want := range map[string]string{
			"uid": uid, "factory_uid": f.UID, "agent_type": "IMPLEMENT", "prompt": "You code.", "base_model": "gemini-3", "base_harness": "own",
			"harness": "map[model_id:gemini-3 reasoning_level:high]", "environment_id": "env-b", "default_runner_uid": "big", "available": "true",
			"secrets": "[map[name:ALL] map[name:OWN]]", "skills": "[factory/acme:skills/triage/SKILL.md]", "mcp_servers": "map[docs:map[headers:map[X:***] url:https://docs]]",
			"memory": "map[attached_stores:[] auto_memory:map[enabled:false]]",
		} {
			if got := fmt.Sprint(coder[key]); got != want {
				w.t.Errorf("%s is %s, want %s", key, got, want)
			}
		}
		if strings.Contains(one.text, "hunter2") {
			w.t.Errorf("a secret: %s", one.text)
		}

		if got := w.call(state.RoleViewer, "GET", "/agent/identities?factory_uid=other", "").ok(); len(list(got, "agents")) != 0 {
			w.t.Errorf("another factory: %v", got)
		}
		w.call(state.RoleViewer, "GET", "/agent/identities/agt_none", "").problem(404, "resource_not_found", "agt_none")
		w.call(state.RoleWorker, "GET", "/agent/identities", "").problem(403, "not_authorized")
		for _, change := range [][2]string{{"POST", "/agent/identities"}, {"PUT", "/agent/identities/" + uid}, {"DELETE", "/agent/identities/" + uid}} {
			w.call(state.RoleAdmin, change[0], change[1], `{}`).problem(422, "operation_not_supported", "/agent.md")
			w.call(state.RoleRunner, change[0], change[1], `{}`).problem(403, "not_authorized")
		}
	})
}

func TestSchedules(t *testing.T) {
	each(t, func(w *world) {
		f, current := w.defined()
		uid := current.UIDs[state.ResourceKey("automation", "nightly")]
		schedules := list(w.call(state.RoleViewer, "GET", "/agent/schedules", "").ok(), "schedules")
		if len(schedules) != 3 {
			w.t.Fatalf("schedules %v", schedules)
		}
		tidy, second, off := schedules[0], schedules[1], schedules[2]
		for key, want := range map[string]string{
			"name": "tidy", "cron_schedule": "0 3 * * *", "enabled": "true", "prompt": "Tidy up", "automation_id": uid, "factory_uid": f.UID,
		} {
			if got := fmt.Sprint(tidy[key]); got != want {
				w.t.Errorf("%s is %s, want %s", key, got, want)
			}
		}
		next, err := time.Parse(time.RFC3339, tidy["history"].(map[string]any)["next_run"].(string))
		if err != nil || next.Hour() != 3 || !next.After(time.Now()) || time.Until(next) > 24*time.Hour {
			w.t.Errorf("fires next %v, %v", next, err)
		}
		if second["name"] != "nightly" || second["id"] == tidy["id"] || off["enabled"] != false || off["history"].(map[string]any)["next_run"] != nil {
			w.t.Errorf("schedules %v %v", second, off)
		}
		if c := tidy["agent_config"].(map[string]any); c["model_id"] != "claude-opus" || c["environment_id"] != "env-a" {
			w.t.Errorf("configuration %v", c)
		}

		path := "/agent/schedules/" + tidy["id"].(string)
		if got := w.call(state.RoleViewer, "GET", path, "").ok(); got["id"] != tidy["id"] {
			w.t.Errorf("one: %v", got)
		}
		w.call(state.RoleViewer, "GET", "/agent/schedules/none", "").problem(404, "resource_not_found")
		for _, change := range [][2]string{
			{"POST", "/agent/schedules"}, {"PUT", path}, {"DELETE", path}, {"POST", path + "/pause"}, {"POST", path + "/resume"},
		} {
			w.call(state.RoleAdmin, change[0], change[1], `{}`).problem(422, "operation_not_supported", "automation.md")
		}

		// The runs of a schedule are listed by it.
		id := state.NewRunID()
		_, err = w.store.CreateRun(w.t.Context(), state.NewRun{
			ID: id, FactoryUID: f.UID, AutomationUID: uid, Prompt: "Tidy up", Source: "SCHEDULED_AGENT", Creator: state.Creator{Type: "service_account"},
			Metadata: map[string]string{"schedule": "tidy"}, Config: json.RawMessage("{}"),
		}, nil, state.Idempotency{})
		if err != nil {
			w.t.Fatal(err)
		}
		for query, want := range map[string]int{
			tidy["id"].(string): 1, tidy["id"].(string) + "&source=api": 0, tidy["id"].(string) + "&automation_id=other": 0, off["id"].(string): 0, "none": 0,
		} {
			if got := list(w.call(state.RoleViewer, "GET", "/agent/runs?schedule_id="+query, "").ok(), "runs"); len(got) != want {
				w.t.Errorf("schedule_id=%s: %d runs, want %d", query, len(got), want)
			}
		}
	})
}

func TestEnvironmentsModelsAndSkills(t *testing.T) {
	each(t, func(w *world) {
		w.defined()
		environments := func(query string) string {
			got := ""
			for _, e := range list(w.call(state.RoleViewer, "GET", "/agent/environments"+query, "").ok(), "environments") {
				got += fmt.Sprint(e["uid"], " ", e["config"].(map[string]any)["name"], " ", e["setup_failed"], "; ")
			}
			return got
		}
		for _, query := range []string{"", "?sort_by=name", "?sort_by=last_updated"} {
			if got := environments(query); got != "env-a env-a false; env-b env-b false; " {
				w.t.Errorf("environments%s: %s", query, got)
			}
		}
		w.call(state.RoleViewer, "GET", "/agent/environments?sort_by=size", "").problem(400, "invalid_request", "sort_by")

		models := w.call(state.RoleViewer, "GET", "/agent/models", "").ok()
		got := ""
		for _, m := range list(models, "models") {
			got += fmt.Sprint(m["id"], " ", m["provider"], "; ")
		}
		if want := "anthropic/claude-5 ANTHROPIC; claude-opus ANTHROPIC; default-model UNKNOWN; gemini-3 GOOGLE; gpt-6 OPENAI; "; got != want || models["default_model_id"] != "gpt-6" {
			w.t.Errorf("models %s, by default %v; want %s", got, models["default_model_id"], want)
		}

		skills := func(query string) []map[string]any {
			return list(w.call(state.RoleViewer, "GET", "/agent"+query, "").ok(), "agents")
		}
		all := skills("?sort_by=name&include_malformed_skills=true")
		if len(all) != 1 || all[0]["name"] != "triage" {
			w.t.Fatalf("skills %v", all)
		}
		variant := list(all[0], "variants")[0]
		if variant["id"] != "factory/acme:skills/triage/SKILL.md" || variant["base_prompt"] != "Sort the tickets." || variant["description"] != "Sorts" {
			w.t.Errorf("skill %v", variant)
		}
		if n := len(skills("?repo=factory/acme")); n != 1 {
			w.t.Errorf("%d skills of the repository", n)
		}
		if n := len(skills("?repo=o/r")); n != 0 {
			w.t.Errorf("%d skills of another repository", n)
		}
	})
}

// TestSkillsOfARepository names the skills of a definition in a repository by that.
func TestSkillsOfARepository(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)))
	n := 0
	for address, want := range map[string]string{
		"https://git.example.com/team/sub/acme.git": "sub/acme:def/skills/x/SKILL.md",
		"git@github.com:acme/factory.git":           "acme/factory:def/skills/x/SKILL.md",
		"ssh://git@host:22/acme/factory":            "acme/factory:def/skills/x/SKILL.md",
	} {
		n++
		f, err := w.store.EnsureFactory(t.Context(), fmt.Sprint("f", n), state.Source{Kind: "git", URL: address, Path: "def"}, false)
		if err != nil {
			t.Fatal(err)
		}
		skill := state.ResourceChange{Kind: "skill", Name: "x", Spec: schema.Skill{Name: "x", Path: "skills/x/SKILL.md"}}
		if err := w.store.Apply(t.Context(), state.ChangeSet{FactoryUID: f.UID, Base: f.Generation, BaseRevision: f.Applied.ID, Started: time.Now(), Revision: state.Revision{ID: address}, Resources: []state.ResourceChange{skill}}); err != nil {
			t.Fatal(err)
		}
		all := list(w.call(state.RoleViewer, "GET", "/agent", "").ok(), "agents")
		if got := fmt.Sprint(list(all[0], "variants")); !strings.Contains(got, "id:"+want+" ") {
			t.Errorf("%s: %v, want %s", address, got, want)
		}
	}
}

// TestTimelineAndTranscript follows a run through what clients of other servers read.
func TestTimelineAndTranscript(t *testing.T) {
	each(t, func(w *world) {
		w.work(nil)
		id := w.create(`{"prompt": "first"}`)
		w.end(id)
		conversation := w.get(id)["conversation_id"].(string)

		types := func() (all []string) {
			seen := map[any]bool{}
			for _, e := range list(w.call(state.RoleViewer, "GET", "/agent/runs/"+id+"/timeline", "").ok(), "events") {
				if seen[e["event_uuid"]] || e["run_id"] != id {
					w.t.Errorf("event %v", e)
				}
				seen[e["event_uuid"]] = true
				all = append(all, fmt.Sprint(e["event_type"], " ", e["execution_id"]))
			}
			return all
		}
		once := "oz_run_created 1,oz_run_claimed 1,agent_started 1,oz_run_done 1"
		if got := strings.Join(types(), ","); got != once {
			w.t.Errorf("timeline %s", got)
		}

		answer := w.call(state.RoleRunner, "POST", "/agent/conversations/"+conversation+"/followups", `{"message": "again"}`).ok()
		if answer["outcome"] != "handoff_execution" || answer["run_id"] != id || answer["followup_id"] == "" {
			w.t.Errorf("follow-up %v", answer)
		}
		statetest.Until(w.t, "the second execution ends", func() bool { return len(types()) == 8 })
		if got := strings.Join(types(), ","); got != once+",oz_run_created 2,oz_run_claimed 2,agent_started 2,oz_run_done 2" {
			w.t.Errorf("timeline %s", got)
		}

		for path, same := range map[string]string{
			"/agent/runs/" + id + "/transcript":                    "/agent/runs/" + id + "/conversation",
			"/agent/conversations/" + conversation + "/transcript": "/agent/conversations/" + conversation,
		} {
			file := w.call(state.RoleViewer, "GET", path, "", "Accept", "application/octet-stream")
			var got, want any
			if err := json.Unmarshal([]byte(file.text), &got); err != nil || file.status != 200 || !strings.HasPrefix(file.header.Get("Content-Disposition"), "attachment;") {
				w.t.Errorf("%s: %d %v %v", path, file.status, file.header, err)
			}
			if want = w.call(state.RoleViewer, "GET", same, "").ok(); fmt.Sprint(got) != fmt.Sprint(want) {
				w.t.Errorf("%s: %v, want %v", path, got, want)
			}
		}

		tasks := w.call(state.RoleViewer, "GET", "/agent/tasks?limit=1", "").ok()
		if got := list(tasks, "tasks"); len(got) != 1 || got[0]["task_id"] != id {
			w.t.Errorf("tasks %v", tasks)
		}
		if got := w.call(state.RoleViewer, "GET", "/agent/tasks/"+id, "").ok(); got["run_id"] != id {
			w.t.Errorf("task %v", got)
		}

		none := state.NewRunID()
		for _, path := range []string{
			"/agent/runs/" + none + "/timeline", "/agent/runs/x/timeline", "/agent/runs/" + none + "/transcript", "/agent/tasks/x",
			"/agent/conversations/" + none + "/transcript", "/agent/conversations/x/transcript",
		} {
			w.call(state.RoleViewer, "GET", path, "").problem(404, "resource_not_found")
		}
		for _, c := range []string{none, "x"} {
			w.call(state.RoleRunner, "POST", "/agent/conversations/"+c+"/followups", `{"message": "x"}`).problem(404, "resource_not_found")
		}
		w.call(state.RoleRunner, "POST", "/agent/conversations/"+conversation+"/followups", `{}`).problem(400, "invalid_request", "message")
		w.call(state.RoleViewer, "POST", "/agent/conversations/"+conversation+"/followups", `{"message": "x"}`).problem(403, "not_authorized")
	})
}

// TestUnsupported calls what other servers with this API do and this one does not.
func TestUnsupported(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)))
	for call, mention := range map[string]string{
		"POST /agent/runs/x/interrupt":             "/cancel",
		"POST /agent/conversations/x/interrupt":    "/cancel",
		"GET /factory/fac_x/tasks?limit=5":         "/agent/runs?factory_uid=",
		"POST /factory/fac_x/tasks":                "tasks",
		"PATCH /factory/fac_x/tasks/t":             "tasks",
		"GET /factory/fac_x/task-by-run?run_id=x":  "tasks",
		"GET /agent/runs/x/handoff/attachments":    "artifacts",
		"GET /agent/sessions/x/redirect":           "session_link",
		"GET /networking/egress-ranges":            "workers",
		"GET /agent/run-by-external-reference?u=v": "artifacts",
		"POST /agent/runs/x/attachments/prepare":   "attachments",
	} {
		method, path, _ := strings.Cut(call, " ")
		body := ""
		if method != http.MethodGet {
			body = `{"anything": 1}`
		}
		w.call(state.RoleAdmin, method, path, body).problem(422, "operation_not_supported", mention)
		w.call("", method, path, body).problem(401, "authentication_required")
	}
	w.call(state.RoleViewer, "POST", "/agent/runs/x/interrupt", "").problem(403, "not_authorized")
	w.call(state.RoleViewer, "DELETE", "/agent/runs/x/interrupt", "").problem(405, "invalid_request")
}

// TestListValues gives a list of runs values that other clients write in their own way.
func TestListValues(t *testing.T) {
	each(t, func(w *world) {
		id := w.create(`{"prompt": "x"}`, "X-Millwright-Client", "cli")
		created, err := time.Parse(time.RFC3339, w.get(id)["created_at"].(string))
		if err != nil {
			w.t.Fatal(err)
		}
		hour := created.Add(-time.Hour).UTC()
		for query, want := range map[string]int{
			"source=cli": 1, "source=Cli&source=mcp": 1, "source=CUSTOM_WEBHOOK": 0, "source=azure_devops_webhook": 0,
			"created_after=" + hour.Format("2006-01-02T15:04:05"):                         1,
			"created_after=" + hour.Format("2006-01-02T15:04:05.000"):                     1,
			"created_before=" + hour.Format("2006-01-02T15:04:05"):                        0,
			"created_after=" + strings.ReplaceAll(hour.Format(time.DateTime), " ", "%20"): 1,
			"updated_after=" + hour.Format("2006-01-02T15:04:05Z"):                        1,
			"updated_before=" + hour.Format("2006-01-02T15:04:05Z"):                       0,
			"created_after=" + hour.Format("2006-01-02T15:04:05") + "-00:30":              1,
			"created_before=" + hour.AddDate(0, 0, -2).Format("2006-01-02"):               0,
		} {
			if got := list(w.call(state.RoleViewer, "GET", "/agent/runs?"+query, "").ok(), "runs"); len(got) != want {
				w.t.Errorf("%s: %d runs, want %d", query, len(got), want)
			}
		}
		for _, bad := range []string{"NOPE", "api%20", "API,CLI"} {
			w.call(state.RoleViewer, "GET", "/agent/runs?source="+bad, "").problem(400, "invalid_request", "source", "CUSTOM_WEBHOOK", "WEB_APP")
		}
		for _, bad := range []string{"soon", "2026-13-01", "12:00", "1700000000"} {
			w.call(state.RoleViewer, "GET", "/agent/runs?created_after="+bad, "").problem(400, "invalid_request", "created_after", "such as 2026-01-02T15:04:05Z")
		}
	})
}
