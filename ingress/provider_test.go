package ingress_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/ingress"
	"millwright/schema"
	"millwright/schema/provider"
	"millwright/state"
)

// triggered creates an automation with the triggers that are given as provider/event and filter.
func (w *world) triggered(name string, triggers ...string) {
	w.t.Helper()
	a := schema.Automation{Name: name, Enabled: true, Prompt: "look into it"}
	for i := 0; i < len(triggers); i += 2 {
		from, event, _ := strings.Cut(triggers[i], "/")
		t := schema.Trigger{Provider: from, Event: event}
		if triggers[i+1] != "" {
			t.Filter = json.RawMessage(triggers[i+1])
		}
		if from == "webhook" {
			t.WebhookIDs, t.Filter = []string{w.uids[triggers[i+1]]}, nil
		}
		a.Triggers = append(a.Triggers, t)
	}
	w.automationOf(a)
}

// send posts the example of an event to a webhook, signed, and returns the answer.
func (w *world) send(hook, scheme, secret, event string) reply {
	w.t.Helper()
	named, payload, ok := provider.Example(scheme, event)
	if !ok {
		w.t.Fatalf("there is no example of %s/%s", scheme, event)
	}
	return w.sendBody(hook, scheme, secret, named, string(payload))
}

func (w *world) sendBody(hook, scheme, secret, named, body string) reply {
	w.t.Helper()
	headers := headersOf(w.t, scheme, secret, w.url(hook), body, state.NewID("evt"), time.Now())
	if header := provider.EventHeader(scheme); header != "" && named != "" {
		headers = append(headers, header, named)
	}
	return w.post(w.url(hook), body, headers...)
}

// started returns the titles of the runs that an answered delivery started, sorted.
func (w *world) started(r reply) string {
	w.t.Helper()
	want(w.t, r, 202)
	var titles []string
	for _, run := range w.runs(r.deliveryID()) {
		titles = append(titles, run.Title)
	}
	slices.Sort(titles)
	return strings.Join(titles, ", ")
}

// TestProviderTriggers holds that a provider's trigger fires for every delivery of every enabled webhook of its
// provider, and that one delivery starts an automation at most once.
func TestProviderTriggers(t *testing.T) {
	each(t, ingress.Config{DeliveriesPerMinute: -1}, func(t *testing.T, w *world) {
		for name, scheme := range map[string]string{
			"github": "github", "second": "github", "forge": "forgejo", "lab": "gitlab", "linear": "linear", "jira": "jira",
			"slack": "slack",
		} {
			w.secret("S_"+strings.ToUpper(name), "secret of "+name)
			w.hook(signed(name, scheme, "S_"+strings.ToUpper(name)))
		}
		w.secret("OFF", "secret of off")
		off := signed("off", "github", "OFF")
		off.Enabled = false
		w.hook(off)
		w.hook(enabled("custom"))

		w.triggered("pulls", "github/pull_request_opened", `{"repos":["Acme/Shop"],"base_branches":["refs/heads/main"]}`,
			"github/pull_request_synchronized", "", "webhook/received", "github", "github/pull_request_opened", "")
		w.triggered("other", "github/pull_request_opened", `{"repos":["acme/other"]}`)
		w.triggered("lab", "gitlab/merge_request", `{"actions":["open"]}`)
		w.triggered("linear", "linear/issue_labeled", `{"labels":["ready"]}`)
		w.triggered("jira", "jira/status_changed", "")
		w.triggered("chat", "slack/app_mention", `{"keywords":["investigate"]}`)
		w.triggered("all", "webhook/received", "custom", "linear/issue_created", "")

		for _, tt := range []struct{ hook, scheme, event, want string }{
			{"github", "github", "pull_request_opened", "pulls from github"},
			{"second", "github", "pull_request_opened", "pulls from second"},
			{"second", "github", "pull_request_closed", ""},
			{"github", "github", "pull_request_closed", "pulls from github"}, // its custom trigger
			{"forge", "gitea", "pull_request_synchronized", "pulls from forge"},
			{"lab", "gitlab", "merge_request", "lab from lab"},
			{"lab", "gitlab", "push", ""},
			{"linear", "linear", "issue_labeled", "linear from linear"},
			{"linear", "linear", "issue_created", "all from linear"},
			{"jira", "jira", "status_changed", "jira from jira"},
			{"jira", "jira", "issue_labeled", ""},
			{"slack", "slack", "app_mention", "chat from slack"},
			{"slack", "slack", "message_posted", ""},
		} {
			if got := w.started(w.send(tt.hook, tt.scheme, "secret of "+tt.hook, tt.event)); got != tt.want {
				t.Errorf("%s of %s started %q, want %q", tt.event, tt.hook, got, tt.want)
			}
		}
		want(t, w.send("off", "github", "secret of off", "pull_request_opened"), 404)
		want(t, w.send("github", "github", "another secret", "pull_request_opened"), 401)

		_, payload, _ := provider.Example("github", "pull_request_opened")
		if got := w.started(w.deliver("custom", string(payload), "X-GitHub-Event", "pull_request")); got != "all from custom" {
			t.Errorf("an unsigned webhook started %q", got)
		}
		for _, header := range []string{"", "push", "issues"} {
			if got := w.started(w.sendBody("second", "github", "secret of second", header, string(payload))); got != "" {
				t.Errorf("a pull request with the event %q started %q", header, got)
			}
		}
		for _, body := range []string{`[]`, `{}`, `{"action":"opened","pull_request":5,"repository":[]}`, `"x"`} {
			if got := w.started(w.sendBody("second", "github", "secret of second", "pull_request", body)); got != "" {
				t.Errorf("the payload %s started %q", body, got)
			}
		}
	})
}

// TestProviderTriggersOnce holds that a delivery that comes twice starts a provider's trigger once, and a replay
// starts it again by the event that was stored.
func TestProviderTriggersOnce(t *testing.T) {
	each(t, ingress.Config{DeliveriesPerMinute: -1}, func(t *testing.T, w *world) {
		w.secret("GH", "gh-secret")
		w.hook(signed("github", "github", "GH"))
		w.triggered("pulls", "github/pull_request_opened", "")

		named, payload, _ := provider.Example("github", "pull_request_opened")
		headers := append(headersOf(t, "github", "gh-secret", "", string(payload), "one", time.Now()), "X-GitHub-Event", named)
		first := w.post(w.url("github"), string(payload), headers...)
		again := w.post(w.url("github"), string(payload), headers...)
		if w.started(first) != "pulls from github" || !again.duplicate() || again.deliveryID() != first.deliveryID() {
			t.Errorf("the first %s, again %s", first.body, again.body)
		}

		replayed, err := w.in.Replay(context.Background(), w.factory, w.uids["github"], first.deliveryID())
		if err != nil || len(replayed.Runs) != 1 {
			t.Errorf("the replay started %v: %v", replayed.Runs, err)
		}

		w.triggered("more", "github/pull_request_opened", "")
		w.triggered("others", "github/pull_request_closed", "")
		replayed, err = w.in.Replay(context.Background(), w.factory, w.uids["github"], first.deliveryID())
		if err != nil || len(replayed.Runs) != 2 {
			t.Errorf("a replay under another definition started %v: %v", replayed.Runs, err)
		}
	})
}

// TestHeaderFilter holds that a custom webhook's trigger judges headers, also in a replay.
func TestHeaderFilter(t *testing.T) {
	each(t, ingress.Config{DeliveriesPerMinute: -1}, func(t *testing.T, w *world) {
		uid := w.hook(enabled("custom"))
		w.automationOf(schema.Automation{Name: "kinds", Enabled: true, Prompt: "x", Triggers: []schema.Trigger{{
			Provider: "webhook", Event: "received", WebhookIDs: []string{uid},
			Headers: json.RawMessage(`{"x-kind":["push","tag"],"X-Other":{"not_in":["no"]}}`),
		}}})

		hit := w.deliver("custom", `{"n":1}`, "X-KIND", "push")
		if got := w.started(hit); got != "kinds from custom" {
			t.Errorf("a header that matches started %q", got)
		}
		for i, headers := range [][]string{{}, {"X-Kind", "Push"}, {"X-Kind", "push", "X-Other", "no"}} {
			if got := w.started(w.deliver("custom", `{"m":`+string(rune('1'+i))+`}`, headers...)); got != "" {
				t.Errorf("the headers %v started %q", headers, got)
			}
		}

		replayed, err := w.in.Replay(context.Background(), w.factory, uid, hit.deliveryID())
		if err != nil || len(replayed.Runs) != 1 {
			t.Errorf("the replay started %v: %v", replayed.Runs, err)
		}
		headers, _, err := w.store.Request(context.Background(), w.factory, hit.deliveryID())
		if err != nil || strings.Contains(string(headers), tokenSecret) || !strings.Contains(string(headers), "push") {
			t.Errorf("kept headers %q: %v", headers, err)
		}
	})
}

// TestOwnDeliveries holds that a delivery of what this server did starts nothing, and its row has the reason.
func TestOwnDeliveries(t *testing.T) {
	down := errors.New("down")
	var origin provider.Origin
	answer, fails := "", error(nil)
	cfg := ingress.Config{DeliveriesPerMinute: -1, Own: func(_ context.Context, o provider.Origin) (string, error) {
		origin = o
		return answer, fails
	}}
	each(t, cfg, func(t *testing.T, w *world) {
		w.secret("GH", "gh-secret")
		w.hook(signed("github", "github", "GH"))
		w.triggered("comments", "github/issue_mentioned", "", "webhook/received", "github")

		answer, fails = "our account made this comment", nil
		r := w.send("github", "github", "gh-secret", "issue_mentioned")
		if got := w.started(r); got != "" || origin.Sender != "bob" || origin.ObjectID != "492700400" {
			t.Errorf("our own comment started %q, its origin is %+v", got, origin)
		}
		if row := w.rows("github")[0]; !strings.Contains(row.Reason, "starts nothing: our account made this comment") {
			t.Errorf("the log says %q", row.Reason)
		}

		answer, fails = "", down
		want(t, w.send("github", "github", "gh-secret", "issue_mentioned"), 503)
		fails = nil
		if got := w.started(w.send("github", "github", "gh-secret", "issue_mentioned")); got != "comments from github" {
			t.Errorf("a comment of somebody else started %q", got)
		}
	})
}
