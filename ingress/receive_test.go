package ingress_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"millwright/ingress"
	"millwright/schema"
	"millwright/state"
)

func TestDeliveryStartsRuns(t *testing.T) {
	each(t, ingress.Config{}, func(t *testing.T, w *world) {
		w.hook(enabled("alerts"))
		w.hook(enabled("other"))
		w.automation("triage", "alerts", "")
		w.automation("critical", "alerts", `{"severity":["critical"]}`)
		w.automation("elsewhere", "other", "")
		w.automationOf(schema.Automation{Name: "off", Triggers: []schema.Trigger{{Provider: "webhook", Event: "received", WebhookIDs: []string{w.uids["alerts"]}}}, Prompt: "p"})

		r := w.deliver("alerts", `{"severity":"critical"}`)
		want(t, r, 202)
		id := r.deliveryID()
		if !state.ValidID(state.PrefixDelivery, id) || r.duplicate() || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("answer %q, %v", r.body, r.Header)
		}
		titles := ""
		for _, run := range w.runs(id) {
			titles += run.Title + " " + run.State + ";"
		}
		if titles != "triage from alerts QUEUED;critical from alerts QUEUED;" && titles != "critical from alerts QUEUED;triage from alerts QUEUED;" {
			t.Errorf("runs %q", titles)
		}
		if body, err := w.store.Payload(t.Context(), w.factory, id); err != nil || string(body) != `{"severity":"critical"}` {
			t.Errorf("payload %q, %v", body, err)
		}
		if r := w.deliver("alerts", `{"severity":"low"}`); len(w.runs(r.deliveryID())) != 1 {
			t.Errorf("the filter did not hold: %v", w.runs(r.deliveryID()))
		}
		again := w.deliver("alerts", `{"severity":"critical"}`)
		want(t, again, 202)
		if again.deliveryID() != id || !again.duplicate() {
			t.Errorf("duplicate answered %q", again.body)
		}
		rows := w.rows("alerts")
		if len(rows) != 3 || rows[0].Outcome != state.DeliveryDuplicate || rows[0].DuplicateOf != id || rows[0].IdentitySource != state.IdentityBodyHash || rows[0].Sender != "127.0.0.1" {
			t.Errorf("log %+v", rows)
		}
	})
}

func TestTokenCredential(t *testing.T) {
	w := onSQLite(t, ingress.Config{FailedAuthPerMinute: 100})
	w.hook(enabled("alerts"))
	w.secret("PENDING", "")
	w.hook(schema.Webhook{Name: "pending", Enabled: true, SecretName: "PENDING"})
	for _, c := range []struct {
		name   string
		hook   string
		values []string
		want   int
	}{
		{"right", "alerts", []string{"Bearer " + tokenSecret}, 202},
		{"lower case", "alerts", []string{"bearer " + tokenSecret}, 202},
		{"two spaces", "alerts", []string{"Bearer  " + tokenSecret}, 202},
		{"identical twice", "alerts", []string{"Bearer " + tokenSecret, "Bearer " + tokenSecret}, 202},
		{"tab", "alerts", []string{"Bearer\t" + tokenSecret}, 401},
		{"tab after space", "alerts", []string{"Bearer \t" + tokenSecret}, 401},
		{"none", "alerts", nil, 401},
		{"empty", "alerts", []string{""}, 401},
		{"no token", "alerts", []string{"Bearer "}, 401},
		{"other scheme", "alerts", []string{"Basic " + tokenSecret}, 401},
		{"bare", "alerts", []string{tokenSecret}, 401},
		{"prefix", "alerts", []string{"Bearer " + tokenSecret[:len(tokenSecret)-1]}, 401},
		{"longer", "alerts", []string{"Bearer " + tokenSecret + "x"}, 401},
		{"right then wrong", "alerts", []string{"Bearer " + tokenSecret, "Bearer x"}, 401},
		{"wrong then right", "alerts", []string{"Bearer x", "Bearer " + tokenSecret}, 401},
		{"joined", "alerts", []string{"Bearer " + tokenSecret + ", Bearer x"}, 401},
		{"pending", "pending", []string{"Bearer " + tokenSecret}, 401},
		{"pending, empty", "pending", []string{"Bearer "}, 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			var headers []string
			for _, v := range c.values {
				headers = append(headers, "Authorization", v)
			}
			r := w.post(w.url(c.hook), `{"n":"`+c.name+`"}`, headers...)
			want(t, r, c.want)
			if c.want == 401 && (r.Header.Get("WWW-Authenticate") != "Bearer" || r.body != `{"error":"unauthorized"}`+"\n") {
				t.Errorf("%v %q", r.Header, r.body)
			}
		})
	}
	for _, row := range w.rows("alerts") {
		if row.Outcome == state.DeliveryRejectedAuth && (row.Reason == "" || strings.Contains(row.Reason, tokenSecret)) {
			t.Errorf("reason %q", row.Reason)
		}
	}
	if strings.Contains(w.log.String(), tokenSecret) {
		t.Error("the token is in the log")
	}
}

func TestRunGetsTheAutomationsConfiguration(t *testing.T) {
	each(t, ingress.Config{}, func(t *testing.T, w *world) {
		w.hook(enabled("live"))
		w.automationOf(schema.Automation{
			Name: "a", Enabled: true, Prompt: "look", Triggers: []schema.Trigger{{Provider: "webhook", Event: "received", WebhookIDs: []string{w.uids["live"]}}},
			Execution: schema.Execution{Model: "m1", EnvironmentID: "env1", Secrets: []string{"KEY"}, MCPServers: map[string]json.RawMessage{
				"tool": json.RawMessage(`{"url":"https://tool.example","headers":{"Authorization":"c4nary"},"timeout":5}`),
			}},
		})
		r := w.deliver("live", `1`)
		runs := w.runs(r.deliveryID())
		if len(runs) != 1 {
			t.Fatalf("%+v", runs)
		}
		run, err := w.store.Run(t.Context(), runs[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(run.Config); !strings.Contains(got, `"model_id":"m1"`) || !strings.Contains(got, `"environment_id":"env1"`) || !strings.Contains(got, `"Authorization":"***"`) || !strings.Contains(got, `"timeout":5`) || strings.Contains(got, "c4nary") {
			t.Errorf("config %s", got)
		}
		if run.Source != "CUSTOM_WEBHOOK" || run.Creator.Type != "service_account" || run.Creator.DisplayName != "a" || run.Prompt != "look" || run.WebhookUID != w.uids["live"] || run.DeliveryUID != r.deliveryID() {
			t.Errorf("%+v", run)
		}
	})
}

// TestDeliveriesDoNotGrow receives bodies of many values on a webhook with filters. What the whole way into
// the state allocates is a small multiple of their bytes.
func TestDeliveriesDoNotGrow(t *testing.T) {
	each(t, ingress.Config{DeliveriesPerMinute: -1}, func(t *testing.T, w *world) {
		w.hook(enabled("ci"))
		w.automation("numbers", "ci", `{"n": {"in": [1]}}`)
		w.automation("objects", "ci", `{"o": {"p": {"q": {"exists": true}}}}`)
		var bodies []string
		for i, shape := range [][3]string{
			{`[`, `0,`, `0]`}, {`{"n":[`, `0,`, `1]}`}, {`{"o":[`, `{},`, `{"p":{"q":0}}]}`}, {`{"o":{"p":{`, `"":0,`, `"q":1}}}`},
		} {
			for size := range 5 {
				n := (200<<10 + size + i*10<<10) / len(shape[1])
				bodies = append(bodies, shape[0]+strings.Repeat(shape[1], n)+shape[2])
			}
		}
		w.deliver("ci", `{}`)

		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		sent, started := 0, 0
		for _, body := range bodies {
			r := w.deliver("ci", body)
			want(t, r, 202)
			started += len(w.runs(r.deliveryID()))
			sent += len(body)
		}
		runtime.ReadMemStats(&after)

		if started != 15 {
			t.Errorf("%d runs started", started)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(20*sent) {
			t.Errorf("%d bytes allocated for %d", took, sent)
		}
	})
}
