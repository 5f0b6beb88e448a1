package dashboard_test

import (
	"html"
	"net/http"
	"slices"
	"strings"
	"testing"

	"millwright/state"
	"millwright/state/audit"
)

func TestDeliveryPage(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleRunner)
		d := w.ciDelivery(`{"status":"failed","note":"it's <b>"}`)
		page := b.page(w.deliveryPath(d))
		saysNot(t, page, "would trigger")
		says(t, page, "Accepted", "triage triggered", `in ["failed"]`, "off", "disabled", "QUEUED", `"status": "failed"`,
			`'Authorization: Bearer '"$CI_TOKEN"`, "X-Service-Delivery-Id", `it'\''s <b>`, "hash of the body")
		saysNot(t, page, ciToken)

		quiet := w.ciDelivery(`{"status":"ok"}`)
		says(t, b.page(w.deliveryPath(quiet)), "triage did not trigger", "status", `"ok"`, `in ["failed"]`,
			"Accepted, started nothing", "Answer 202 accepted", "User-Agent: Go-http-client/1.1")
		saysNot(t, page, "started nothing")
		list := b.page("/factories/" + w.repo + "/deliveries")
		if strings.Count(list, "started nothing") != 1 {
			t.Errorf("the list does not name the one that started nothing: %s", plain(list))
		}

		page = b.follow(w.deliveryPath(d) + "/replay")
		says(t, page, "Replayed as this new delivery", "Replay of", d.UID, "each replay is a delivery of its own", "triage triggered")

		if status := w.deliver(w.webhook(w.repo, "ci").UID, `{"status":"failed","note":"it's <b>"}`, "Authorization", "Bearer "+ciToken); status != http.StatusAccepted {
			t.Fatal(status)
		}
		duplicate := w.deliveries(w.webhook(w.repo, "ci"))[0]
		page = b.page(w.deliveryPath(duplicate))
		says(t, page, "Duplicate", "Duplicate of", d.UID, "Only accepted deliveries keep their payload")
		if a, err := w.apply(t.Context(), w.repo, withFile("automations/late/automation.md", strings.Replace(repoFiles[3].Content, "cause", "reason", 1))); err != nil || a.Outcome != state.OutcomeApplied {
			t.Fatal(a.Problems, err)
		}
		says(t, b.page(w.deliveryPath(d)), "has changed since", "late would trigger", "triage triggered")
		says(t, b.page(w.deliveryPath(quiet)), "triage would not trigger")
		if a := b.post(w.deliveryPath(duplicate) + "/replay"); a.StatusCode != http.StatusConflict {
			t.Errorf("replaying a duplicate: %d", a.StatusCode)
		}
		w.deliver(w.webhook(w.repo, "ci").UID, `{}`, "Authorization", "Bearer nope")
		refused := w.deliveries(w.webhook(w.repo, "ci"))[0]
		says(t, b.page(w.deliveryPath(refused)), "Rejected (auth)", "bearer token", "Answer 401 unauthorized")
		if a := b.get(w.deliveryPath(refused) + "/payload"); a.StatusCode != http.StatusNotFound {
			t.Errorf("payload of a rejected one: %d", a.StatusCode)
		}

		w.deliver(w.webhook(w.repo, "ping").UID+"/ping-token", `{"up":false}`)
		ping := w.deliveries(w.webhook(w.repo, "ping"))[0]
		page = b.page(w.deliveryPath(ping))
		says(t, page, `/"$PING"`, "No automation selects this webhook")
		saysNot(t, page, "ping-token")
	})
}

// TestSelectedDeliveries compares two deliveries, and replays several at once.
func TestSelectedDeliveries(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleRunner)
		base := "/factories/" + w.repo
		one := w.ciDelivery(`{"status":"failed","build":{"n":1,"tags":["a",{"k":null}]},"a.b":"<b>","same":[1,2]}`)
		other := w.ciDelivery(`{"same":[1,2], "status":"failed","build":{"n":2,"tags":["a",{"k":"null"},3]},"new\u202e":true}`)
		w.deliver(w.webhook(w.repo, "ci").UID, `{}`, "Authorization", "Bearer nope")
		refused := w.deliveries(w.webhook(w.repo, "ci"))[0]

		list := b.page(base + "/deliveries")
		if strings.Count(list, `name="delivery" value="dlv_`) != 2 || strings.Contains(list, `value="`+refused.UID) {
			t.Errorf("not the accepted ones can be selected: %s", list)
		}
		page := b.page(base + "/compare?delivery=" + other.UID + "&delivery=" + one.UID)
		says(t, page, "build.n 1 2", `build.tags[1].k null "null"`, "build.tags[2] absent 3", `["a.b"] "<b>" absent`, `["new\u202e"] absent true`, "Side by side")
		saysNot(t, page, "status \"failed\"", "same[")
		if strings.Index(page, one.UID) > strings.LastIndex(page, other.UID) || strings.Contains(page, "<b>") && strings.Contains(page, `"<b>"</code>`) {
			t.Errorf("not the older one on the left, or not escaped: %s", page)
		}
		says(t, b.page(base+"/compare?delivery="+one.UID+"&delivery="+refused.UID), "Its payload is not stored")
		b.page(base + "/compare")
		b.page(base + "/compare?delivery=" + one.UID)
		for path, status := range map[string]int{
			"/compare?delivery=" + one.UID + "&delivery=" + one.UID:                                422,
			"/compare?delivery=" + one.UID + "&delivery=" + other.UID + "&delivery=" + refused.UID: 422,
			"/compare?delivery=" + one.UID + "&delivery=dlv_01h455vb4pex5vsknk084sn02q":            404,
			"/compare?delivery=" + one.UID + "&delivery=%00%3Cb%3E":                                404,
			"/replay?delivery=x": 404,
		} {
			if a := b.get(base + path); a.StatusCode != status {
				t.Errorf("%s: %d, want %d: %s", path, a.StatusCode, status, plain(a.Text))
			}
		}

		// The list of all factories leads there, too.
		says(t, b.page("/deliveries"), "Compare two", `value="`+w.repo+"/"+one.UID+`"`)
		for path, to := range map[string]string{
			"/deliveries/compare?delivery=" + w.repo + "/" + one.UID + "&delivery=" + w.repo + "/" + other.UID: base + "/compare?delivery=" + one.UID + "&delivery=" + other.UID,
			"/deliveries/replay?delivery=" + w.repo + "/" + one.UID:                                            base + "/replay?delivery=" + one.UID,
			"/deliveries/replay":                                                      "/deliveries",
			"/deliveries/replay?delivery=..//example.com/x":                           "",
			"/deliveries/compare?delivery=" + w.repo + "/b&delivery=" + w.held + "/d": "",
		} {
			if a := b.get(path); a.Header.Get("Location") != to {
				t.Errorf("%s leads to %d %s, want %s", path, a.StatusCode, a.Header.Get("Location"), to)
			}
		}

		says(t, b.page(base+"/replay"), "No delivery is selected")
		page = b.page(base + "/replay?delivery=" + other.UID + "&delivery=" + one.UID + "&delivery=" + one.UID + "&delivery=" + refused.UID)
		says(t, page, "Replay 3 deliveries", "not yet")
		a := b.post(base+"/replay", "delivery", one.UID, "delivery", refused.UID, "delivery", other.UID)
		says(t, a.Text, "Replayed 2 of 3.", "started 1 run", "not replayed", "was not accepted (Rejected (auth))")
		var replays []string
		for _, d := range w.deliveries(w.webhook(w.repo, "ci")) {
			if d.ReplayOf != "" {
				replays = append(replays, d.ReplayOf)
			}
		}
		if !slices.Equal(replays, []string{other.UID, one.UID}) {
			t.Errorf("replayed %s", replays)
		}
		entries, err := w.store.Audit().List(t.Context(), audit.Filter{Action: string(audit.DeliveryReplay)}, audit.Position{}, 10)
		if err != nil || len(entries) != 2 {
			t.Errorf("the audit log has %d entries of replays, %v", len(entries), err)
		}

		fields := []string{}
		for range 51 {
			fields = append(fields, "delivery", state.NewID(state.PrefixDelivery))
		}
		if a := b.post(base+"/replay", fields...); a.StatusCode != http.StatusUnprocessableEntity && a.StatusCode != http.StatusBadRequest {
			t.Errorf("51 at once: %d", a.StatusCode)
		}
		viewer := w.signedIn(state.RoleViewer)
		saysNot(t, viewer.page(base+"/deliveries"), "Replay…")
		viewer.page(base + "/replay?delivery=" + one.UID)
		if a := viewer.post(base+"/replay", "delivery", one.UID); a.StatusCode != http.StatusForbidden {
			t.Errorf("by a viewer: %d", a.StatusCode)
		}
	})
}

func TestFilterTester(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleViewer)
		path := "/factories/" + w.repo + "/filter"
		ci := w.webhook(w.repo, "ci")
		var failed state.Delivery
		for i, body := range []string{`{"status":"failed","n":1}`, `{"status":"ok","n":2}`, `{"status":"failed","n":3}`} {
			if d := w.ciDelivery(body); i == 0 {
				failed = d
			}
		}
		page := b.page(path + "?automation=triage")
		says(t, page, "The filter of triage")
		if !strings.Contains(page, "&#34;failed&#34;") || !strings.Contains(page, `value="`+ci.UID+`" checked`) {
			t.Errorf("the form is not filled from the automation: %s", page)
		}
		a := b.post(path, "filter", `{"status":["failed"]}`, "webhook", ci.UID, "delivery", failed.UID)
		says(t, a.Text, "Would trigger", "Webhook check passes", "Payload check passes", "2 of the last 3")
		a = b.post(path, "filter", `{"status":["failed"],"n":{"not_in":[1]}}`, "webhook", w.webhook(w.repo, "hub").UID, "delivery", failed.UID)
		says(t, a.Text, "Would not trigger", "Webhook check fails", "which is not selected", "Payload check fails", "not_in [1]", "There is no accepted delivery")

		// YAML as in the file; a delivery is shown by its ID and payload.
		a = b.post(path, "filter", "status: [failed]\r\nn:\r\n  in: [3]\r\n", "webhook", ci.UID, "payload", `{"status":"failed","n":3}`)
		says(t, a.Text, "Would trigger", "1 of the last 3", failed.UID, "&#34;n&#34;: 2", "status: [failed]\nn:\n  in: [3]")

		// Without a webhook there is no webhook check; a disabled one starts nothing, with any payload.
		a = b.post(path, "filter", "", "payload", `{}`)
		says(t, a.Text, "Webhook check not checked")
		saysNot(t, a.Text, "Webhook check passes")
		disabled := withFile("webhooks/ci.yaml", repoFiles[0].Content+"enabled: false\n")
		if a, err := w.apply(t.Context(), w.repo, disabled); err != nil || a.Outcome != state.OutcomeApplied {
			t.Fatal(a.Problems, err)
		}
		for _, from := range [][]string{{"payload", `{"status":"failed"}`}, {"delivery", failed.UID}} {
			a = b.post(path, append([]string{"filter", "status: [failed]", "webhook", ci.UID}, from...)...)
			says(t, a.Text, "Would not trigger", "Webhook check fails", "is disabled", "Payload check passes", "0 of the last 3")
		}
		if a, err := w.apply(t.Context(), w.repo, repoFiles); err != nil || a.Outcome != state.OutcomeApplied {
			t.Fatal(a.Problems, err)
		}
		a = b.post(path, "filter", `{"n":{"exists":true}}`, "payload", `{"n":1e400}`)
		says(t, a.Text, "Would trigger", "3 of the last 3", `{"n":1e400}`)
		a = b.post(path, "filter", `{"n":{"in":[1]}}`)
		says(t, a.Text, "1 of the last 3", "n is 2; in [1]")
		for _, c := range []struct{ filter, payload, delivery, want string }{
			{"{", "", "", "is not valid JSON"},
			{"a: [", "", "", "cannot be read: line 1"},
			{"a: *b", "", "", "cannot be read: line 1"},
			{`{"a":{}}`, "", "", "filter"},
			{`[]`, "", "", "filter"},
			{`{"a":[]}`, `{`, "", "is not valid JSON"},
			{`{}`, "", "dlv_01h455vb4pex5vsknk084sn02q", "does not exist in this factory"},
			{`{}`, "", "x", "does not exist in this factory"},
		} {
			a := b.post(path, "filter", c.filter, "payload", c.payload, "delivery", c.delivery)
			if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(plain(a.Text), c.want) || !strings.Contains(html.UnescapeString(a.Text), ">\n"+c.filter+"</textarea>") {
				t.Errorf("%+v: %d %s", c, a.StatusCode, plain(a.Text))
			}
		}
	})
}

func TestEventTester(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleViewer)
		path := "/factories/" + w.repo + "/filter"
		says(t, b.page(path), "github/pull_request_opened", "slack/app_mention")
		a := b.post(path, "event", "github/pull_request_opened", "filter", "repos: [acme/shop]")
		says(t, a.Text, "Payload check passes", `repos in ["acme/shop"]`)
		a = b.post(path, "event", "github/pull_request_opened", "filter", "labels: {not_in: [bug]}")
		says(t, a.Text, "Would not trigger", `labels not_in ["bug"]`, "Payload check fails")
		a = b.post(path, "event", "github/push", "filter", "", "payload", `{"action":"opened"}`)
		says(t, a.Text, "Would not trigger", "not push")
		if a = b.post(path, "event", "github/push", "filter", "bases: [main]"); a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("a key that the event does not have: %d", a.StatusCode)
		}
		if a = b.post(path, "event", "github/nothing", "filter", ""); a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("an unknown event: %d", a.StatusCode)
		}
	})
}
