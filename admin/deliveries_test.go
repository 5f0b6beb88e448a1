package admin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/admin"
	"millwright/schema/provider"
	"millwright/state"
)

// accept stores a delivery as the ingress does, with a run of each of the automations.
func (w *world) accept(f state.Factory, hook state.Webhook, id, body string, automations ...string) state.Accepted {
	w.t.Helper()
	f, err := w.store.Factory(context.Background(), f.UID)
	if err != nil {
		w.t.Fatal(err)
	}
	a := state.Acceptance{
		UID: state.NewID(state.PrefixDelivery), FactoryUID: f.UID, Generation: f.Generation, WebhookID: hook.ID, WebhookUID: hook.UID,
		Identity: state.IdentityOf(state.IdentityServiceHeader, id), Sender: "192.0.2.7", Body: []byte(body), Received: time.Now().UTC(),
	}
	for _, uid := range automations {
		run := state.NewRunID()
		a.Runs = append(a.Runs, state.NewRun{
			ID: run, RootRunID: run, FactoryUID: f.UID, Title: "Look", Prompt: "Look", Source: "CUSTOM_WEBHOOK", ConversationID: run,
			Creator: state.Creator{Type: "service_account"}, AutomationUID: uid, WebhookUID: hook.UID, DeliveryUID: a.UID, At: time.Now(),
		})
	}
	got, err := w.store.Accept(context.Background(), a)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

func (w *world) reject(f state.Factory, hook state.Webhook, outcome state.DeliveryOutcome, reason string) {
	w.t.Helper()
	size := int64(300_000)
	err := w.store.RecordRejected(context.Background(), state.Rejection{
		FactoryUID: f.UID, WebhookID: hook.ID, WebhookUID: hook.UID, Outcome: outcome, Reason: reason, Size: &size, Sender: "192.0.2.8", Received: time.Now().UTC(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

const deliveryKeys = "delivery_id outcome label reason size_bytes received_at count identity identity_source sender runs"

// automation returns the file of an automation that selects a webhook.
func automation(webhookUID, rest string) string {
	return "---\n" + rest + "triggers:\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids: [" + webhookUID + "]\n      payload: {action: [opened], n: {in: [1]}}\n---\nLook at it.\n"
}

func TestDeliveries(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		f, byName := w.withHooks("payments")
		hook := byName["bearer"]
		base := "/factory/" + f.UID + "/webhooks/" + hook.UID + "/deliveries"
		r := w.call(state.RoleViewer, "GET", base, "").want(200)
		r.hasKeys("deliveries page_info")
		r.length(0, "deliveries")

		first := w.accept(f, hook, "id-1", `{"n": 1.0,  "n": 12345678901234567890}`, "auto_1", "auto_2")
		w.accept(f, hook, "id-1", `{}`)
		w.reject(f, hook, state.DeliveryTooLarge, "Content-Length 300000")
		w.reject(f, hook, state.DeliveryRejectedAuth, "wrong token")
		w.accept(f, byName["signed"], "id-1", `{}`) // of another webhook

		r = w.call(state.RoleViewer, "GET", base, "").want(200)
		r.length(4, "deliveries")
		r.hasKeys(deliveryKeys, "deliveries", 0)
		r.hasKeys(deliveryKeys+" duplicate_of", "deliveries", 2)
		var outcomes, labels []string
		for i := range 4 {
			outcomes = append(outcomes, r.at("deliveries", i, "outcome").(string))
			labels = append(labels, r.at("deliveries", i, "label").(string))
		}
		if !slices.Equal(outcomes, []string{"rejected_auth", "rejected_too_large", "duplicate", "accepted"}) ||
			!slices.Equal(labels, []string{"Rejected (auth)", "Rejected (too large)", "Duplicate", "Accepted"}) {
			t.Errorf("outcomes %v, labels %v", outcomes, labels)
		}
		if r.at("deliveries", 0, "reason") != "wrong token" || r.at("deliveries", 2, "duplicate_of") != first.DeliveryUID ||
			fmt.Sprint(r.at("deliveries", 1, "size_bytes")) != "300000" || r.at("deliveries", 3, "identity_source") != "service_header" || r.at("deliveries", 0, "identity_source") != "" {
			t.Errorf("answer %s", r.body)
		}
		r.length(0, "deliveries", 0, "runs")
		r.length(2, "deliveries", 3, "runs")
		r.hasKeys("run_id title state automation_id", "deliveries", 3, "runs", 0)
		if r.at("deliveries", 3, "runs", 0, "state") != "QUEUED" {
			t.Errorf("runs %v", r.at("deliveries", 3, "runs"))
		}
		if strings.Contains(string(r.body), "payload") {
			t.Error("the list has payloads")
		}

		one := base + "/" + first.DeliveryUID
		r = w.call(state.RoleViewer, "GET", one, "").want(200)
		r.hasKeys(deliveryKeys + " payload automations trigger_events definition_changed")
		if !bytes.Contains(r.body, []byte(`{"n":1.0,"n":12345678901234567890}`)) {
			t.Errorf("payload in %s", r.body)
		}
		duplicate := w.call(state.RoleViewer, "GET", base+"?outcome=duplicate", "").want(200)
		duplicate.length(1, "deliveries")
		r = w.call(state.RoleViewer, "GET", base+"/"+duplicate.at("deliveries", 0, "delivery_id").(string), "").want(200)
		r.hasKeys(deliveryKeys + " duplicate_of automations trigger_events definition_changed")

		counts := w.call(state.RoleViewer, "GET", "/factory/"+f.UID+"/webhooks/"+hook.UID, "").at("counts").(map[string]any)
		for k, want := range map[string]string{"accepted": "1", "duplicate": "1", "rejected_auth": "1", "rejected_too_large": "1", "rejected_invalid_json": "0", "handshake": "0"} {
			if fmt.Sprint(counts[k]) != want {
				t.Errorf("counts %v", counts)
			}
		}

		for range 5 {
			w.accept(f, hook, state.NewID("x"), `{}`)
		}
		for _, limit := range []int{1, 4, 9, 500} {
			got := w.all(base, "deliveries", "delivery_id", limit)
			if len(got) != 9 || len(slices.Compact(slices.Clone(got))) != 9 || !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) {
				t.Errorf("limit %d: %v", limit, got)
			}
		}
		next := w.call(state.RoleViewer, "GET", base+"?limit=1", "").at("page_info", "next_cursor").(string)
		w.call(state.RoleViewer, "GET", "/factory/"+f.UID+"/webhooks/"+byName["signed"].UID+"/deliveries?cursor="+next, "").problem(400, "invalid_request")
		w.call(state.RoleViewer, "GET", base+"?outcome=Accepted", "").problem(400, "invalid_request")
		for _, uid := range []string{"nonsense", "dlv_00000000000000000000000000", hook.UID} {
			w.call(state.RoleViewer, "GET", base+"/"+uid, "").problem(404, "resource_not_found")
		}
		w.call(state.RoleViewer, "GET", "/factory/"+f.UID+"/webhooks/"+byName["signed"].UID+"/deliveries/"+first.DeliveryUID, "").problem(404, "resource_not_found")
	})
}

func TestDeliverySaysWhatAutomationsMakeOfIt(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		f, byName := w.withHooks("payments")
		hook := byName["bearer"]
		tree := map[string]string{
			"automations/b-on/automation.md":    automation(hook.UID, ""),
			"automations/a-off/automation.md":   automation(hook.UID, "enabled: false\n"),
			"automations/other/automation.md":   automation(byName["signed"].UID, ""),
			"automations/foreign/automation.md": "---\ntriggers: [{provider: github, event: push}]\n---\nX\n",
		}
		for path, text := range hooks {
			tree[path] = text
		}
		w.apply(f.UID, tree)
		base := "/factory/" + f.UID + "/webhooks/" + hook.UID + "/deliveries/"
		good := w.accept(f, hook, "1", `{"action": "opened", "n": 1e0}`)
		bad := w.accept(f, hook, "2", `{"action": "closed"}`)
		deep := w.accept(f, hook, "3", strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000))

		r := w.call(state.RoleViewer, "GET", base+good.DeliveryUID, "").want(200)
		r.length(2, "automations")
		r.hasKeys("automation_id name verdict explanation triggers", "automations", 0)
		r.hasKeys("matched leaves", "automations", 1, "explanation")
		r.hasKeys("path where operator expected present found passed", "automations", 1, "explanation", "leaves", 0)
		if r.at("automations", 0, "verdict") != "disabled" || r.at("automations", 1, "verdict") != "matched" || r.at("definition_changed") != false {
			t.Errorf("answer %s", r.body)
		}
		r = w.call(state.RoleViewer, "GET", base+bad.DeliveryUID, "").want(200)
		if r.at("automations", 1, "verdict") != "not_matched" || r.at("automations", 1, "explanation", "matched") != false {
			t.Errorf("answer %s", r.body)
		}
		r = w.call(state.RoleViewer, "GET", base+deep.DeliveryUID, "").want(200) // too deep to stand in an answer
		r.hasKeys(deliveryKeys + " automations trigger_events definition_changed started_nothing")

		tree["automations/b-on/automation.md"] = automation(hook.UID, "enabled: false\n")
		w.apply(f.UID, tree)
		r = w.call(state.RoleViewer, "GET", base+good.DeliveryUID, "").want(200)
		if r.at("automations", 1, "verdict") != "disabled" || r.at("definition_changed") != true {
			t.Errorf("answer %s", r.body)
		}
	})
}

func TestReplay(t *testing.T) {
	var w *world
	var fail error
	each(t, admin.Config{
		Replay: func(_ context.Context, factory, webhook, delivery string, by state.Key) (string, error) {
			if fail != nil {
				return "", fail
			}
			f, hook := state.Factory{UID: factory}, state.Webhook{}
			for _, h := range w.hooksOf(f) {
				if h.UID == webhook {
					hook = h
				}
			}
			return w.accept(f, hook, "replay of "+delivery+" by "+string(by.Role), `{}`, "auto_1").DeliveryUID, nil
		},
	}, func(now *world) {
		w, fail = now, nil
		f, byName := w.withHooks("payments")
		hook := byName["bearer"]
		base := "/factory/" + f.UID + "/webhooks/" + hook.UID + "/deliveries/"
		old := w.accept(f, hook, "id-1", `{}`).DeliveryUID
		w.call(state.RoleViewer, "POST", base+old+"/replay", "").problem(403, "not_authorized")
		r := w.call(state.RoleRunner, "POST", base+old+"/replay", "").want(200)
		r.hasKeys("delivery_id replay_of runs")
		r.length(1, "runs")
		if r.at("replay_of") != old || r.at("delivery_id") == old {
			t.Errorf("answer %s", r.body)
		}
		made := w.call(state.RoleViewer, "GET", base+r.at("delivery_id").(string), "").want(200)
		if made.at("identity") != "replay of "+old+" by runner" {
			t.Errorf("replayed by %v", made.at("identity"))
		}

		w.reject(f, hook, state.DeliveryInvalidJSON, "not JSON")
		rejected := w.call(state.RoleViewer, "GET", strings.TrimSuffix(base, "/")+"?outcome=rejected_invalid_json", "").at("deliveries", 0, "delivery_id").(string)
		w.call(state.RoleRunner, "POST", base+rejected+"/replay", "").problem(409, "conflict")
		w.call(state.RoleRunner, "POST", base+"dlv_00000000000000000000000000/replay", "").problem(404, "resource_not_found")
		fail = fmt.Errorf("replay: %w", state.ErrUnavailable)
		if r := w.call(state.RoleRunner, "POST", base+old+"/replay", "").problem(503, "resource_unavailable"); r.header.Get("Retry-After") == "" || r.at("retryable") != true {
			t.Errorf("headers %v, %s", r.header, r.body)
		}
		fail = errors.New("a bug")
		w.call(state.RoleRunner, "POST", base+old+"/replay", "").problem(500, "internal_error")
		w.apply(f.UID, map[string]string{})
		w.call(state.RoleRunner, "POST", base+old+"/replay", "").problem(409, "conflict")
	})
}

// TestDeliveryExplainsEvents holds that a delivery of a provider names its event, and for each trigger
// which key of its filter failed on what value.
func TestDeliveryExplainsEvents(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		f, byName := w.withHooks("payments")
		hook := byName["signed"] // as GitHub does
		tree := maps.Clone(hooks)
		tree["automations/pulls/automation.md"] = `---
triggers:
  - {provider: github, event: pull_request_closed}
  - {provider: github, event: pull_request_opened, filter: {repos: [acme/shop], labels: {not_in: [bug]}}}
  - {provider: gitlab, event: push}
---
X
`
		w.apply(f.UID, tree)
		f, err := w.store.Factory(context.Background(), f.UID)
		if err != nil {
			t.Fatal(err)
		}
		named, payload, _ := provider.Example("github", "pull_request_opened")
		uid := state.NewID(state.PrefixDelivery)
		if _, err := w.store.Accept(context.Background(), state.Acceptance{
			UID: uid, FactoryUID: f.UID, Generation: f.Generation, WebhookID: hook.ID, WebhookUID: hook.UID,
			Sender: "192.0.2.7", Event: named, Body: payload, Received: time.Now().UTC(),
		}); err != nil {
			t.Fatal(err)
		}

		r := w.call(state.RoleViewer, "GET", "/factory/"+f.UID+"/webhooks/"+hook.UID+"/deliveries/"+uid, "").want(200)
		if got := fmt.Sprint(r.at("trigger_events")); got != "[github/pull_request_opened]" {
			t.Errorf("events %s", got)
		}
		r.length(1, "automations")
		r.length(2, "automations", 0, "triggers")
		closed := r.at("automations", 0, "triggers", 0, "explanation", "reason")
		if closed != "the delivery is github/pull_request_opened, not pull_request_closed" {
			t.Errorf("the first trigger: %v", closed)
		}
		labels := []any{"automations", 0, "triggers", 1, "explanation", "leaves", 1}
		if r.at("automations", 0, "verdict") != "not_matched" || r.at(append(labels, "passed")...) != false ||
			r.at(append(labels, "where")...) != "labels" || r.at(append(labels, "found")...) != `["bug"]` {
			t.Errorf("the second trigger: %v", r.at("automations", 0))
		}
	})
}
