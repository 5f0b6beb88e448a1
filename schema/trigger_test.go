package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"millwright/schema"
	"millwright/schema/provider"
)

// TestHostedFilters holds which keys of filters definitions of the hosted service do not have, or write in
// another way.
func TestHostedFilters(t *testing.T) {
	r := load(t, nil, "automations/a/automation.md", `---
triggers:
  - {provider: github, event: issue_created, filter: {authors: [ann], repos: [a/b]}}
  - {provider: github, event: push, filter: {authors: [ann]}}
  - {provider: github, event: pull_request_opened, filter: {baseBranches: [main], author_associations: [OWNER]}}
  - {provider: linear, event: issue_created, filter: {teams: [Core], assignees: [ann@example.com]}}
  - {provider: webhook, event: received, filter: {webhook_ids: [wh_01h2xcejqtf2nbrexx3vqjhp41], headers: {X-A: [b]}}}
---
Go.
`)
	var got []string
	for _, p := range r.Hosted() {
		got = append(got, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Hint))
	}
	want := "4:46 ,5:61 write base_branches,5:83 ,6:70 write assignee_ids,7:97 "
	if strings.Join(got, ",") != want {
		t.Errorf("got %q, want %q", strings.Join(got, ","), want)
	}
}

// TestMatcher holds which deliveries the triggers of a provider and of custom webhooks select and match.
func TestMatcher(t *testing.T) {
	named, body, _ := provider.Example("gitea", "pull_request_opened")
	hook := schema.Webhook{AuthMode: schema.AuthSignature, SignatureScheme: "forgejo"}
	opened := schema.Trigger{Provider: "github", Event: "pull_request_opened", Filter: json.RawMessage(`{"repos":["acme/shop"]}`)}
	custom := schema.Trigger{
		Provider: "webhook", Event: "received", WebhookIDs: []string{"wh_1"}, Headers: json.RawMessage(`{"x-kind":["a"]}`),
		Payload: json.RawMessage(`{"action":["opened"]}`),
	}
	if !opened.Selects("wh_2", hook.Source()) || opened.Selects("wh_2", "gitlab") || opened.Selects("wh_2", "") {
		t.Error("the source of a webhook does not decide")
	}
	if !custom.Selects("wh_1", "github") || custom.Selects("wh_2", "github") {
		t.Error("the UIDs of a webhook trigger do not decide")
	}
	never := schema.Trigger{Provider: "jira", Event: "agent_session_created"}
	if never.Fires() || never.Selects("wh_1", "jira") {
		t.Error("an event that no delivery is fires")
	}

	payload, err := schema.ParsePayload(body)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		trigger schema.Trigger
		header  map[string][]string
		want    bool
		reason  string
	}{
		{opened, nil, true, ""},
		{schema.Trigger{Provider: "github", Event: "push"}, nil, false, "not push"},
		{schema.Trigger{Provider: "linear", Event: "issue_created"}, nil, false, "no issue_created"},
		{custom, map[string][]string{"X-Kind": {"a"}}, true, ""},
		{custom, map[string][]string{"X-Kind": {"b"}}, false, ""},
		{custom, map[string][]string{}, false, ""},
		{custom, nil, false, "not kept"},
	} {
		m, err := schema.CompileTrigger(tt.trigger)
		if err != nil {
			t.Fatal(err)
		}
		d := &schema.Delivered{WebhookUID: "wh_1", Scheme: "forgejo", Event: named, Header: tt.header, Body: body, Payload: payload}
		if e := m.Explain(d); m.Match(d) != tt.want || e.Matched != tt.want || !strings.Contains(e.Reason, tt.reason) {
			t.Errorf("%s/%s with %v: %v, explained %+v", tt.trigger.Provider, tt.trigger.Event, tt.header, m.Match(d), e)
		}
	}
	for _, broken := range []schema.Trigger{
		{Provider: "github", Event: "push", Filter: json.RawMessage(`{"bases":["x"]}`)},
		{Provider: "webhook", Event: "received", Payload: json.RawMessage(`[]`)},
		{Provider: "webhook", Event: "received", Headers: json.RawMessage(`[]`)},
	} {
		if m, err := schema.CompileTrigger(broken); m != nil || err == nil {
			t.Errorf("%+v compiles", broken)
		}
	}
}
