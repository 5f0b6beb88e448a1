package admin_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"millwright/admin"
	"millwright/schema/provider"
	"millwright/state"
)

func TestFilterTests(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		f, byName := w.withHooks("payments")
		other, otherHooks := w.withHooks("other")
		bearer, linked := byName["bearer"], byName["linked"]
		stored := w.accept(f, bearer, "1", `{"action": "opened", "labels": [{"name": "bug"}], "big": 1e400}`).DeliveryUID
		foreign := w.accept(other, otherHooks["bearer"], "1", `{}`).DeliveryUID
		path := "/factory/" + f.UID + "/filter-tests"

		for _, c := range []struct {
			body                      string
			trigger, webhook, payload bool
		}{
			{`{"filter": {"action": ["opened"]}, "webhook_ids": ["` + bearer.UID + `"], "delivery_id": "` + stored + `"}`, true, true, true},
			{`{"filter": {"action": ["closed"]}, "webhook_ids": ["` + bearer.UID + `"], "delivery_id": "` + stored + `"}`, false, true, false},
			{`{"filter": {"action": ["opened"]}, "webhook_ids": ["` + linked.UID + `"], "delivery_id": "` + stored + `"}`, false, false, true},
			{`{"filter": {"action": ["opened"]}, "webhook_ids": [], "delivery_id": "` + stored + `"}`, false, false, true},
			{`{"filter": {"labels": {"name": {"in": ["bug"]}}}, "delivery_id": "` + stored + `"}`, true, true, true},
			{`{"filter": {"big": [1e400]}, "delivery_id": "` + stored + `"}`, true, true, true},
			{`{"filter_text": "action: [opened]", "webhook_ids": ["` + bearer.UID + `"], "delivery_id": "` + stored + `"}`, true, true, true},
			{`{"filter_text": "webhook_ids: [` + bearer.UID + `]\npayload:\n  action: [closed]", "delivery_id": "` + stored + `"}`, false, true, false},
			{`{"filter_text": "webhook_ids: [` + linked.UID + `]\npayload: {action: [opened]}", "delivery_id": "` + stored + `"}`, false, false, true},
			{`{"filter_text": "big: [9007199254740993]", "payload": {"big": 9007199254740992}}`, false, true, false},
			{`{"delivery_id": "` + stored + `"}`, true, true, true},
			{`{"filter": null, "payload": 7}`, true, true, true},
			{`{"filter": {}, "payload": null}`, true, true, true},
			{`{"filter": {"a": {"exists": true}}, "payload": [1]}`, false, true, false},
			{`{"filter": {"n": [1.0]}, "payload": {"n": 1}, "webhook_ids": ["` + bearer.UID + `"]}`, true, true, true},
			{`{"filter": {"n": [9007199254740993]}, "payload": {"n": 9007199254740992}}`, false, true, false},
			{`{"filter": {"n": [1]}, "payload": {"n": 1}, "webhook_ids": ["` + linked.UID + `"]}`, false, false, true},
			{`{"filter": {"n": [1]}, "payload": {"n": 1}, "webhook_ids": ["wh_x"]}`, false, false, true},
			{`{"headers": {"X-Kind": ["push"]}, "payload": {}, "request_headers": {"x-kind": "push"}}`, true, true, true},
			{`{"headers": {"X-Kind": ["push"]}, "payload": {}}`, false, true, false},
			{`{"headers": {"X-Kind": ["push"]}, "filter": {"n": [1]}, "payload": {"n": 2}, "request_headers": {"X-KIND": "push"}}`, false, true, false},
			{`{"filter_text": "webhook_ids: [` + bearer.UID + `]\nheaders: {X-Kind: [push]}", "payload": {}, "request_headers": {"X-Kind": "push"}}`, true, true, true},
			{`{"headers": {"X-Kind": ["push"]}, "delivery_id": "` + stored + `"}`, false, true, false},
		} {
			r := w.call(state.RoleViewer, "POST", path, c.body).want(200)
			r.hasKeys("would_trigger webhook_check webhook_reason payload_check explanation")
			if r.at("would_trigger") != c.trigger || r.at("webhook_check") != c.webhook || r.at("payload_check") != c.payload || r.at("explanation", "matched") != c.payload {
				t.Errorf("%s: %s", c.body, r.body)
			}
		}

		for body, field := range map[string]string{
			`{}`: "payload", `{"filter": {}}`: "payload", `{"payload": {}, "delivery_id": "` + stored + `"}`: "payload",
			`{"filter_text": "a: [", "payload": {}}`:                                                           "filter_text",
			`{"filter_text": "a: 1\na: 2", "payload": {}}`:                                                     "filter_text",
			`{"filter": {}, "filter_text": "a: [1]", "payload": {}}`:                                           "filter_text",
			`{"filter": [1], "payload": {}}`:                                                                   "filter",
			`{"filter": {"a": {"in": []}}, "payload": {}}`:                                                     "filter.a.in",
			`{"filter": {"a": 1, "b": {"in": [1], "c": 2}}, "payload": {}}`:                                    "filter.a",
			`{"filter": ` + strings.Repeat(`{"a":`, 12) + `[1]` + strings.Repeat(`}`, 12) + `, "payload": {}}`: "",
			`{"webhook_ids": "` + bearer.UID + `", "payload": {}}`:                                             "",
			`{"delivery_id": 7}`: "", `[`: "", `{"payload": {}} x`: "", ``: "",
		} {
			r := w.call(state.RoleViewer, "POST", path, body).problem(400, "invalid_request")
			if field != "" && r.at("errors", 0, "field") != field {
				t.Errorf("%s: %s", body, r.body)
			}
		}
		for _, uid := range []string{"nonsense", "dlv_00000000000000000000000000", foreign} {
			w.call(state.RoleViewer, "POST", path, `{"delivery_id": "`+uid+`"}`).problem(404, "resource_not_found")
		}
		w.reject(f, bearer, state.DeliveryRejectedAuth, "wrong")
		rejected := w.call(state.RoleViewer, "GET", "/factory/"+f.UID+"/webhooks/"+bearer.UID+"/deliveries?outcome=rejected_auth", "").at("deliveries", 0, "delivery_id").(string)
		w.call(state.RoleViewer, "POST", path, `{"delivery_id": "`+rejected+`"}`).problem(409, "conflict")
		w.call(state.RoleViewer, "POST", "/factory/fac_00000000000000000000000000/filter-tests", `{"payload": 1}`).problem(404, "resource_not_found")
		if _, err := w.store.ConfigureFactories(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		w.call(state.RoleViewer, "POST", path, `{"delivery_id": "`+stored+`"}`).want(200)
	})
}

// TestFilterOfAnEvent tests triggers of a provider with its example, a body and a stored delivery.
func TestFilterOfAnEvent(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		f, byName := w.withHooks("payments")
		w.apply(f.UID, hooks)
		f, err := w.store.Factory(context.Background(), f.UID)
		if err != nil {
			t.Fatal(err)
		}
		hook := byName["signed"] // as GitHub does
		named, payload, _ := provider.Example("github", "pull_request_closed")
		uid := state.NewID(state.PrefixDelivery)
		if _, err := w.store.Accept(context.Background(), state.Acceptance{
			UID: uid, FactoryUID: f.UID, Generation: f.Generation, WebhookID: hook.ID, WebhookUID: hook.UID,
			Sender: "192.0.2.7", Event: named, Body: payload, Received: time.Now().UTC(),
		}); err != nil {
			t.Fatal(err)
		}

		path := "/factory/" + f.UID + "/filter-tests"
		for _, tt := range []struct {
			body           string
			hook, payloads bool
		}{
			{`{"provider":"github","event":"pull_request_opened","example":true,"filter":{"repos":["acme/shop"]}}`, true, true},
			{`{"provider":"github","event":"pull_request_opened","example":true,"filter_text":"repos: [acme/other]"}`, true, false},
			{`{"provider":"github","event":"pull_request_opened","delivery_id":"` + uid + `"}`, true, false},
			{`{"provider":"github","event":"pull_request_closed","delivery_id":"` + uid + `"}`, true, true},
			{`{"provider":"github","event":"push","payload":{"ref":"refs/heads/main","commits":[]}}`, true, true},
			{`{"provider":"github","event":"push","payload":[]}`, true, false},
			{`{"provider":"github","event":"push","payload":{"ref":"refs/heads/main","commits":[]},"request_headers":{"x-github-event":"issues"}}`, true, false},
			{`{"provider":"github","event":"pull_request_opened","example":true,"filter":{"paths":["**"]}}`, true, false},
			{`{"provider":"linear","event":"issue_created","example":true}`, false, true},
			{`{"provider":"linear","event":"issue_created","delivery_id":"` + uid + `"}`, false, false},
		} {
			r := w.call(state.RoleViewer, "POST", path, tt.body).want(200)
			if r.at("webhook_check") != tt.hook || r.at("payload_check") != tt.payloads || r.at("would_trigger") != (tt.hook && tt.payloads) {
				t.Errorf("%s: %s", tt.body, r.body)
			}
		}
		for _, body := range []string{
			`{"provider":"github","event":"pushed","example":true}`, `{"provider":"acme","event":"push","example":true}`,
			`{"provider":"webhook","event":"received","example":true}`, `{"provider":"github","event":"push"}`,
			`{"provider":"github","event":"push","example":true,"delivery_id":"` + uid + `"}`,
			`{"provider":"github","event":"push","example":true,"filter":{"bases":["x"]}}`,
			`{"provider":"github","event":"push","example":true,"filter_text":"["}`,
		} {
			w.call(state.RoleViewer, "POST", path, body).problem(400, "invalid_request")
		}
	})
}
