package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millwright/api"
	"millwright/reconcile/plan"
	"millwright/state"
	"millwright/state/statetest"
)

// theirMark is in every text of the factory that a limited key must not see.
const theirMark = "zqtheirs"

// tree is a definition whose texts have a mark.
func tree(mark string) fstest.MapFS {
	files := fstest.MapFS{}
	for path, text := range map[string]string{
		"factory.yaml": "schemaVersion: v1alpha1\nname: MARK\ndescription: MARK\nagentDefaults: {model: auto}\n" +
			"repositories: [{owner: acme, name: MARK}]\n",
		"webhooks/MARK.yaml":   "authMode: token\nsecretName: HOOK_MARK\n",
		"agents/MARK/agent.md": "---\nagentType: FOREMAN\nmodel: model-MARK\nenvironmentId: env-MARK\n---\nYou are MARK.\n",
		"skills/MARK/SKILL.md": "---\nname: MARK\ndescription: MARK\n---\nMARK\n",
		"automations/MARK/automation.md": "---\ntriggers:\n  - provider: schedule\n    event: cron_fired\n" +
			"    schedule: {name: nightly-MARK, cron: 0 3 * * *}\n---\nDo MARK.\n",
	} {
		text = strings.ReplaceAll(text, "MARK", mark)
		files[strings.ReplaceAll(path, "MARK", mark)] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

// estate is a factory with all that endpoints name.
type estate struct {
	factory, webhook, delivery, automation, agent, schedule string
	run, conversation, artifact, output                     string
}

// newEstate fills a factory.
func newEstate(t *testing.T, store *state.Store, mark string) estate {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	_, err := store.SetSecret(t.Context(), "HOOK_"+mark, []byte("value-of-"+mark))
	must(err)
	f, err := store.EnsureFactory(t.Context(), mark, state.Source{Kind: "dir", Path: "/srv/" + mark}, false)
	must(err)
	cur, err := store.Current(t.Context(), f.UID)
	must(err)

	p, app := plan.Make(cur, tree(mark), plan.Options{Revision: state.Revision{ID: "r1"}, Now: time.Now()})
	if app == nil {
		t.Fatalf("the definition is refused: %v %v", p.Problems, p.Err)
	}
	must(store.Apply(t.Context(), *app))
	cur, err = store.Current(t.Context(), f.UID)
	must(err)

	e := estate{
		factory:    f.UID,
		webhook:    cur.Webhooks[0].UID,
		automation: cur.UIDs[state.ResourceKey("automation", mark)],
		agent:      cur.UIDs[state.ResourceKey("agent", mark)],
		output:     state.NewID(state.PrefixOutput),
	}

	e.run = state.NewRunID()
	e.conversation = e.run
	e.delivery = state.NewID(state.PrefixDelivery)
	_, err = store.Accept(t.Context(), state.Acceptance{
		UID: e.delivery, FactoryUID: f.UID, Generation: cur.Factory.Generation,
		WebhookID: cur.Webhooks[0].ID, WebhookUID: e.webhook,
		Identity: state.IdentityOf(state.IdentityServiceHeader, mark), Sender: "192.0.2.7",
		Body: []byte(`{"text": "` + mark + `"}`), Received: time.Now().UTC(),
		Runs: []state.NewRun{{
			ID: e.run, RootRunID: e.run, FactoryUID: f.UID, Title: mark, Prompt: mark, Source: "CUSTOM_WEBHOOK",
			ConversationID: e.conversation, Creator: state.Creator{Type: "service_account", DisplayName: mark},
			AutomationUID: e.automation, WebhookUID: e.webhook, DeliveryUID: e.delivery, AgentUID: e.agent,
			At: time.Now(), ConfigName: mark,
		}},
	})
	must(err)

	claim, _, err := store.ClaimRun(t.Context(), e.run, "worker", "worker", time.Minute)
	must(err)
	_, err = store.StartRun(t.Context(), claim, time.Minute)
	must(err)
	left := statetest.Leave(t, store, claim, 1, state.Artifact{Path: mark + ".txt", MimeType: "text/plain"}, []byte(mark))
	e.artifact = left.UID
	must(store.AppendEntries(t.Context(), claim, 0, []state.Message{{
		Role: state.RoleAssistant, At: time.Now(), Content: []state.Block{state.Text(mark)},
	}}))

	_, err = store.FinishRun(t.Context(), claim, state.Result{State: state.RunSucceeded})
	must(err)

	return e
}

// path returns the address of an operation on the estate.
func (e estate) path(op *huma.Operation) string {
	path := strings.TrimPrefix(op.Path, api.Base)
	uid := e.factory
	switch {
	case strings.HasPrefix(path, "/agent/artifacts/"):
		uid = e.artifact
	case strings.HasPrefix(path, "/agent/identities/"):
		uid = e.agent
	}

	return strings.NewReplacer(
		"/secrets/{name}", "/secrets/A_SECRET",
		"{uid}", uid,
		"{runId}", e.run,
		"{taskId}", e.run,
		"{id}", e.conversation,
		"{webhook_uid}", e.webhook,
		"{delivery_id}", e.delivery,
		"{automation}", e.automation,
		"{scheduleId}", e.schedule,
		"{outputUid}", e.output,
		"{revision}", "r1",
		"{path}", "factory.yaml",
		"{fileName}", state.PayloadName,
	).Replace(path)
}

// body returns a request of the operation that names the estate.
func (e estate) body(op *huma.Operation) string {
	switch op.OperationID {
	case "createRun", "createRunAlias":
		return fmt.Sprintf(`{"prompt": "x", "agent_identity_uid": %q}`, e.agent)
	case "createFactoryRun":
		return `{"prompt": "x"}`
	case "createFollowup", "createConversationFollowup":
		return `{"message": "x"}`
	case "answerQuestion":
		return `{"question_id": "x", "choice": "approve"}`
	case "createKey":
		return `{"name": "x", "role": "admin"}`
	case "setSecret":
		return `{"value": "x"}`
	case "putFile":
		return `{"content": "name: x"}`
	case "createWebhook":
		return `{"name": "x"}`
	case "importFiles", "planFactory":
		return `{"files": []}`
	case "testFilter":
		return `{"payload": {}}`
	}
	if op.RequestBody == nil {
		return ""
	}
	return `{}`
}

// TestLimitedKeys calls every operation of the document with keys that are limited to one factory. What concerns
// another factory is as if it did not exist, and nothing of it changes.
func TestLimitedKeys(t *testing.T) {
	store := statetest.Open(t, statetest.SQLite(t))
	a := registered(store)
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close)

	mine, theirs := newEstate(t, store, "mine"), newEstate(t, store, theirMark)
	absent := estate{
		state.NewID(state.PrefixFactory), state.NewID(state.PrefixWebhook), state.NewID(state.PrefixDelivery),
		state.NewID(state.PrefixAutomation), state.NewID(state.PrefixAgent), "auto_x.00000000",
		state.NewRunID(), state.NewRunID(), state.NewID(state.PrefixArtifact), state.NewID(state.PrefixOutput),
	}
	keys := map[string]string{}
	for _, role := range []state.Role{state.RolePlanner, state.RoleViewer, state.RoleRunner, state.RoleAdmin} {
		_, secret, err := store.CreateLimitedKey(t.Context(), "limited", role, nil, []string{mine.factory})
		if err != nil {
			t.Fatal(err)
		}
		keys[string(role)] = secret
	}
	_, boss, err := store.CreateKey(t.Context(), "boss", state.RoleAdmin, nil)
	if err != nil {
		t.Fatal(err)
	}

	call := func(key, method, path, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+api.Base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}

		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()

		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}

	everything := func() string {
		var all strings.Builder
		for _, path := range []string{
			"/agent/runs?limit=500", "/agent/runs/" + theirs.run + "/timeline", "/keys", "/secrets",
			"/agent/conversations/" + theirs.conversation, "/factory/" + theirs.factory,
			"/factory/" + theirs.factory + "/webhooks", "/factory/" + theirs.factory + "/syncs",
			"/factory/" + theirs.factory + "/webhooks/" + theirs.webhook + "/deliveries",
		} {
			status, text := call(boss, http.MethodGet, path, "")
			if status != http.StatusOK {
				t.Fatalf("GET %s: %d %s", path, status, text)
			}
			fmt.Fprintln(&all, path, text)
		}
		return changing.ReplaceAllString(all.String(), "")
	}

	_, text := call(boss, http.MethodGet, "/agent/schedules", "")
	for _, part := range strings.Split(text, `"id":"`)[1:] {
		if id, _, _ := strings.Cut(part, `"`); strings.HasPrefix(id, theirs.automation) {
			theirs.schedule = id
		}
	}
	if theirs.schedule == "" {
		t.Fatalf("no schedule of %s in %s", theirs.automation, text)
	}

	before := everything()
	if !strings.Contains(before, theirMark) {
		t.Fatal("an unlimited key does not see the other factory")
	}

	seen := map[int]int{}
	for path, item := range a.Huma().OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Patch, item.Delete} {
			if op == nil || len(op.Security) == 0 {
				continue
			}

			for _, role := range slices.Sorted(maps.Keys(keys)) {
				status, text := call(keys[role], op.Method, theirs.path(op), theirs.body(op))
				wantStatus, wantText := call(keys[role], op.Method, absent.path(op), absent.body(op))
				seen[status]++

				what := fmt.Sprintf("%s, %s %s", role, op.Method, path)
				if status == http.StatusOK && strings.Contains(path, "{") && !strings.Contains(path, "/agent/skills") {
					t.Errorf("%s: %s", what, text)
				}
				if got, want := theirs.anonymous(text), absent.anonymous(wantText); status != wantStatus || got != want {
					t.Errorf("%s: %d %s\nwhat does not exist: %d %s", what, status, got, wantStatus, want)
				}
				if rest := theirs.anonymous(text); strings.Contains(rest, theirMark) {
					t.Errorf("%s reveals the other factory: %s", what, rest)
				}
			}
		}
	}
	if after := everything(); after != before {
		t.Errorf("a limited key changed something:\n%s\nbefore:\n%s", after, before)
	}
	if seen[http.StatusNotFound] < 100 || seen[http.StatusForbidden] == 0 || seen[http.StatusOK] == 0 {
		t.Errorf("answers: %v", seen)
	}

	// The key is good for its own factory.
	for _, path := range []string{
		"/factory", "/agent/runs", "/agent/tasks", "/agent/schedules", "/agent", "/agent/identities", "/agent/models",
		"/agent/environments", "/agent/runs/" + mine.run, "/agent/conversations/" + mine.conversation,
		"/agent/artifacts/" + mine.artifact, "/factory/" + mine.factory + "/webhooks",
	} {
		status, text := call(keys["viewer"], http.MethodGet, path, "")
		if status != http.StatusOK || !strings.Contains(text, "mine") {
			t.Errorf("GET %s: %d %s", path, status, text)
		}
	}

	// It joins nothing to the other factory.
	for _, more := range []string{
		fmt.Sprintf(`"conversation_id": %q`, theirs.conversation),
		fmt.Sprintf(`"parent_run_id": %q`, theirs.run),
	} {
		body := fmt.Sprintf(`{"prompt": "x", "agent_identity_uid": %q, %s}`, mine.agent, more)
		if status, text := call(keys["runner"], http.MethodPost, "/agent/runs", body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	if status, text := call(keys["admin"], http.MethodPost, "/agent/runs", `{"prompt": "x"}`); status != http.StatusBadRequest {
		t.Errorf("a run of no factory: %d %s", status, text)
	}
	status, text := call(keys["viewer"], http.MethodGet, "/agent/runs?factory_uid="+theirs.factory, "")
	if status != http.StatusOK || !strings.Contains(text, `"runs":[]`) {
		t.Errorf("runs of the other factory: %d %s", status, text)
	}
}

// changing matches members of answers that differ from one to the next.
var changing = regexp.MustCompile(`,"(trace_id|run_time)":"[^"]*"`)

// anonymous returns an answer without the identifiers that the request had.
func (e estate) anonymous(text string) string {
	text = changing.ReplaceAllString(text, "")
	for _, id := range []string{
		e.factory, e.webhook, e.delivery, e.schedule, e.automation, e.agent, e.run, e.conversation, e.artifact, e.output,
	} {
		if id != "" {
			text = strings.ReplaceAll(text, id, "ID")
		}
	}
	return text
}
