package ingress_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"millwright/ingress"
	"millwright/schema"
	"millwright/schema/provider"
	"millwright/state"
)

// exampleWith returns the example of an event with other members; nil deletes one. A path is joined by dots.
func exampleWith(t *testing.T, scheme, event string, change map[string]any) (named, body string) {
	t.Helper()
	named, payload, ok := provider.Example(scheme, event)
	var root map[string]any
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.UseNumber()
	if err := decoder.Decode(&root); err != nil || !ok {
		t.Fatalf("the example of %s/%s: %v", scheme, event, err)
	}

	for path, value := range change {
		at, keys := root, strings.Split(path, ".")
		for _, key := range keys[:len(keys)-1] {
			at, _ = at[key].(map[string]any)
		}
		if last := keys[len(keys)-1]; value == nil {
			delete(at, last)
		} else {
			at[last] = value
		}
	}

	out, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return named, string(out)
}

// commits returns n commits, of which the last one changes basket/last.go.
func commits(n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = map[string]any{"id": fmt.Sprintf("%040x", i+1), "added": []any{fmt.Sprintf("d/%d.go", i)}}
	}
	all[n-1] = map[string]any{"modified": []any{"basket/last.go"}}
	return all
}

// TestBadProviderDeliveries holds what signed deliveries start that are not as their provider documents them,
// and what explains it.
func TestBadProviderDeliveries(t *testing.T) {
	opened := schema.Trigger{
		Provider: "github", Event: "pull_request_opened", Filter: json.RawMessage(`{"base_branches":["main"],"authors":["ann"]}`),
	}
	pushed := schema.Trigger{Provider: "github", Event: "push", Filter: json.RawMessage(`{"paths":["basket/*"]}`)}
	tests := []struct {
		name, event string
		change      map[string]any
		header      string // in place of the event's
		body        string // in place of the example
		trigger     schema.Trigger
		started     bool
		why         string // part of the explanation
	}{
		{name: "as documented", event: "pull_request_opened", trigger: opened, started: true},
		{name: "the header of another event", event: "pull_request_opened", header: "push", trigger: opened, why: "push"},
		{name: "the payload of another event", event: "issue_created", header: "pull_request", trigger: opened, why: "opened"},
		{name: "an unknown event", event: "pull_request_opened", header: "pull_requests", trigger: opened, why: "no event that triggers name"},
		{name: "no header", event: "pull_request_opened", header: "-", trigger: opened, why: "without an event in X-GitHub-Event"},
		{name: "a huge header", event: "push", header: strings.Repeat("p", 4000), trigger: pushed, why: "no event that triggers name"},
		{name: "an older version", event: "pull_request_opened", trigger: opened, started: true, change: map[string]any{
			"pull_request.draft": nil, "pull_request.author_association": nil, "pull_request.labels": nil, "sender": nil,
		}},
		{name: "without an action", event: "pull_request_opened", change: map[string]any{"action": nil}, trigger: opened, why: "no event"},
		{name: "an action of another type", event: "pull_request_opened", change: map[string]any{"action": []any{"opened"}}, trigger: opened, why: "no event"},
		{name: "without the pull request", event: "pull_request_opened", change: map[string]any{"pull_request": nil}, trigger: opened, why: "no event"},
		{name: "a pull request of another type", event: "pull_request_opened", change: map[string]any{"pull_request": "12"}, trigger: opened, why: "no event"},
		{name: "without an author", event: "pull_request_opened", change: map[string]any{"pull_request.user": nil}, trigger: opened, why: "authors"},
		{name: "an author of another type", event: "pull_request_opened", change: map[string]any{"pull_request.user": []any{"ann"}}, trigger: opened, why: "authors"},
		{name: "a base of another type", event: "pull_request_opened", change: map[string]any{"pull_request.base": 5}, trigger: opened, why: "base_branches"},
		{name: "an array", body: `[{"action":"opened"}]`, event: "pull_request_opened", trigger: opened, why: "no event"},
		{name: "a text", body: `"opened"`, event: "pull_request_opened", trigger: opened, why: "no event"},
		{name: "3,000 commits", event: "push", change: map[string]any{"commits": commits(3000)}, trigger: pushed, started: true},
		{name: "3,000 commits of others", event: "push", trigger: pushed, why: "paths", change: map[string]any{
			"commits": commits(3000)[:2999], "head_commit": nil,
		}},
		{name: "commits of another type", event: "push", change: map[string]any{"commits": map[string]any{"added": "basket/x"}}, trigger: pushed, why: "no event"},
		{name: "files of another type", event: "push", trigger: pushed, why: "paths", change: map[string]any{
			"commits":     []any{1, nil, "basket/x", map[string]any{"added": "basket/x", "modified": map[string]any{"basket/x": 1}, "removed": []any{[]any{"basket/x"}, 7}}},
			"head_commit": nil,
		}},
		{name: "a deleted branch", event: "push", change: map[string]any{"deleted": true}, trigger: pushed, why: "no event"},
	}

	each(t, ingress.Config{DeliveriesPerMinute: -1}, func(t *testing.T, w *world) {
		w.secret("GH", "gh-secret")
		uid := w.hook(signed("github", "github", "GH"))
		w.automationOf(schema.Automation{Name: "a", Enabled: true, Prompt: "x", Triggers: []schema.Trigger{opened, pushed}})
		for _, tt := range tests {
			named, body := exampleWith(t, "github", tt.event, tt.change)
			switch {
			case tt.header == "-":
				named = ""
			case tt.header != "":
				named = tt.header
			}
			if tt.body != "" {
				body = tt.body
			}

			r := w.sendBody("github", "github", "gh-secret", named, body)
			if got := w.started(r); (got == "a from github") != tt.started || !tt.started && got != "" {
				t.Errorf("%s: started %q", tt.name, got)
			}

			m, err := schema.CompileTrigger(tt.trigger)
			if err != nil {
				t.Fatal(err)
			}
			e := m.Explain(&schema.Delivered{WebhookUID: uid, Scheme: "github", Event: named, Body: []byte(body)})
			text := e.Reason
			for _, leaf := range e.Leaves {
				if !leaf.Passed {
					text += " " + leaf.Where
				}
			}
			if e.Matched != tt.started || !strings.Contains(text, tt.why) {
				t.Errorf("%s: explained as %v: %q", tt.name, e.Matched, text)
			}
		}
	})
}

// TestProviderDeliveriesInAnyOrder holds that each of two webhooks of a provider starts runs of its own, a
// delivery that comes again starts none, and an event that comes before the one it follows starts its run.
func TestProviderDeliveriesInAnyOrder(t *testing.T) {
	each(t, ingress.Config{DeliveriesPerMinute: -1}, func(t *testing.T, w *world) {
		w.secret("GH", "gh-secret")
		w.hook(signed("one", "github", "GH"))
		w.hook(signed("two", "github", "GH"))
		w.automationOf(schema.Automation{
			Name: "issues", Enabled: true, Prompt: "x",
			Triggers: []schema.Trigger{
				{Provider: "github", Event: "issue_created"}, {Provider: "github", Event: "issue_labeled"},
			},
			Flow: schema.Flow{Conversation: &schema.Conversation{Key: []string{"issue.id"}}},
		})

		labeled := w.send("one", "github", "gh-secret", "issue_labeled")
		if got := w.started(labeled); got != "issues from one" {
			t.Errorf("the label before the issue started %q", got)
		}
		created := w.send("one", "github", "gh-secret", "issue_created")
		if got := w.started(created); got != "" || w.decisions("one", created.deliveryID()) != "follow-up ()" {
			t.Errorf("the issue behind its label started %q: %s", got, w.decisions("one", created.deliveryID()))
		}
		if got := w.started(w.send("two", "github", "gh-secret", "issue_created")); got != "issues from two" {
			t.Errorf("the issue at the other webhook started %q", got)
		}

		named, payload, _ := provider.Example("github", "issue_created")
		headers := headersOf(t, "github", "gh-secret", "", string(payload), state.NewID("evt"), time.Now())
		headers = append(headers, "X-GitHub-Event", named)
		first := w.post(w.url("two"), string(payload), headers...)
		again := w.post(w.url("two"), string(payload), headers...)
		if !again.duplicate() || again.deliveryID() != first.deliveryID() || w.decisions("two", first.deliveryID()) != "follow-up ()" {
			t.Errorf("the first: %s, again: %s", first.body, again.body)
		}
	})
}
