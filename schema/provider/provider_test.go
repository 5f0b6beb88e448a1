package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"millwright/schema/provider"
)

// compile compiles a filter that has no problem.
func compile(t *testing.T, name, event, filter string) *provider.Filter {
	t.Helper()
	f, problems := provider.Compile(name, event, []byte(filter))
	if f == nil || len(problems) > 0 {
		t.Fatalf("%s/%s %s: %v", name, event, filter, problems)
	}
	return f
}

// hits are values of each key that match the example of an event, and misses are values that do not, by
// scheme, event and key: hit | hit … ! miss | miss …. A key of "*" is of all events that do not name it.
var hits = map[string]map[string]map[string]string{
	"github": {
		"*": {
			"repos": "acme/shop|Acme/Shop!acme/shopping|other/shop", "authors": "ann|@Ann!annie|bob",
			"author_associations": "MEMBER|member!NONE|OWNER", "labels": "bug|BUG!bugs|ready",
			"assignees": "bob|Bob!carol|ann", "base_branches": "main|refs/heads/main!Main|keep-last-item",
			"pr_numbers": "12!1|13|120", "mentioned": "acme-bot|@Acme-Bot|acme-bot[bot]!nobody|somebody|acme",
			"paths": "basket/*|**/*.go!other/**|*.go", "branches": "keep-last-item|refs/heads/keep-last-item!main|keep", "conclusions": "failure|FAILURE!success",
		},
		"push": {
			"branches": "main|refs/heads/main!mai|Main",
			"paths":    "basket/**|**/*.go|docs/*.md|basket/old_test.go|**/last.go|basket/!docs/**/*.go|*.go|last.go|shop/**",
		},
		"issue_labeled":                 {"labels": "ready|Ready!bug"},
		"issue_assigned":                {"assignees": "carol!bob"},
		"issue_mentioned":               {"authors": "bob!ann", "author_associations": "COLLABORATOR!MEMBER"},
		"pull_request_labeled":          {"labels": "ready!bug"},
		"pull_request_assigned":         {"assignees": "carol!bob"},
		"pull_request_mentioned":        {"authors": "bob!ann", "author_associations": "COLLABORATOR!MEMBER"},
		"pull_request_review_requested": {"reviewers": "carol|CAROL!bob", "reviewer_teams": "!shop"},
		"pull_request_review_submitted": {
			"authors": "bob!ann", "author_associations": "COLLABORATOR!MEMBER",
			"review_states": "changes_requested|CHANGES_REQUESTED!approved|commented",
		},
		"check_suite_completed":  {"labels": "!bug"},
		"workflow_run_completed": {"labels": "!bug", "workflows": "CI|.github/workflows/ci.yml!ci"},
	},
	"gitea": {
		"*": {
			"repos": "acme/shop!other/shop", "authors": "ann!bob", "author_associations": "!MEMBER", "labels": "bug!other",
			"assignees": "bob!ann", "base_branches": "main!dev", "pr_numbers": "12!7", "mentioned": "acme-bot!nobody",
			"paths": "basket/*!other/**", "branches": "keep-last-item!main", "conclusions": "failure!success",
		},
		"push":                          {"branches": "main!dev", "paths": "basket/*!other/**"},
		"issue_labeled":                 {"labels": "ready|bug!other"},
		"issue_assigned":                {"assignees": "carol!bob"},
		"issue_mentioned":               {"authors": "bob!ann"},
		"pull_request_mentioned":        {"authors": "bob!ann"},
		"pull_request_labeled":          {"labels": "ready!other"},
		"pull_request_assigned":         {"assignees": "carol!bob"},
		"pull_request_review_requested": {"reviewers": "carol!bob", "reviewer_teams": "!shop"},
		"pull_request_review_submitted": {"authors": "bob!ann", "review_states": "changes_requested!approved"},
		"workflow_run_completed":        {"labels": "!bug", "workflows": "CI!ci"},
	},
	"gitlab": {
		"*":             {"repos": "acme/shop|ACME/shop!acme/other", "authors": "ann!bob"},
		"merge_request": {"actions": "open|OPEN!close|merge", "base_branches": "main!keep-last-item"},
		"push":          {"branches": "main!dev", "paths": "**/*.go!**/*.js"},
		"bot_mentioned": {"mentioned": "acme-bot!nobody"},
	},
	"linear": {
		"*": {
			"team_ids":    "9cfb482a-81e3-4154-b5b9-2c805e70a02d|ENG|Engineering!engineering|OPS",
			"project_ids": "4a1ec2b5-f9f4-47a8-b1a0-6f6e9d3b7a10|Shop!Other",
			"state_ids":   "134e0171-235d-4466-8742-a30808bab93d|In Progress!Done", "labels": "Bug|bug!Ready",
			"assignee_ids":       "aacdca22-6266-4c0a-ab3c-8fa70a26765c|Bot@Example.com!b5ea5f1f-8adc-4f52-b4bd-ab4e84cf51ba|Bot",
			"mentioned_user_ids": "aacdca22-6266-4c0a-ab3c-8fa70a26765c|bot!b5ea5f1f-8adc-4f52-b4bd-ab4e84cf51ba",
			"creator_ids":        "b5ea5f1f-8adc-4f52-b4bd-ab4e84cf51ba|ANN@example.com!Ann",
			"authors":            "ann@example.com!bob@example.com",
		},
		"issue_labeled": {"labels": "Ready|ready!Bug"},
		"comment_created": {
			"issue_ids": "a9e64f4d-ff97-49cf-83d1-9b17b4f0f3c1|ENG-7!ENG-8", "mentioned_user_ids": "bot!nobody",
			"project_ids": "!Shop", "state_ids": "!Done", "labels": "!Bug",
		},
		"agent_session_created": {"keywords": "INVESTIGATE|last item!fix"},
	},
	"jira": {
		"*": {
			"project_keys": "ENG!eng|OPS", "labels": "Bug!bug|Bu",
			"authors": "99:27935d01-92a7-4687-8272-a9b8d3b2ae2e|Ann@example.com!Ann",
		},
		"issue_labeled":  {"labels": "ready!Bug|Ready"},
		"status_changed": {"status_ids": "10003|In Progress!10001|To Do"},
	},
	"slack": {
		"*": {
			"channel_ids": "C0SHOPSHO!C0SHOP|c0shopsho", "user_ids": "U0ANNANNA!U0BOBBOBB", "authors": "U0ANNANNA!U0BOTBOTB",
			"keywords": "Investigate|the basket!baskets",
		},
		"message_dm":     {"channel_ids": "D0ANNANNA!C0SHOPSHO"},
		"message_im":     {"channel_ids": "D0ANNANNA!C0SHOPSHO"},
		"message_mpim":   {"channel_ids": "G0GROUPGR!C0SHOPSHO"},
		"reaction_added": {"emojis": ":eyes:|eyes|Eyes|:eyes::skin-tone-3:!eye", "item_user_ids": "U0BOBBOBB!U0ANNANNA", "keywords": "!basket"},
	},
}

// TestExamples holds that the documented payload of every event is that event, and that every key of its
// filter matches the values that it should, and no others.
func TestExamples(t *testing.T) {
	for scheme, events := range hits {
		name := provider.OfScheme(scheme)
		examples := provider.Examples(scheme)
		for _, event := range provider.Events(name) {
			known, _ := provider.Lookup(name, event)
			if !slices.Contains(examples, event) && scheme != "gitea" && known.Never == "" {
				t.Errorf("%s has no example of %s", scheme, event)
			}
		}

		for _, event := range examples {
			header, payload, _ := provider.Example(scheme, event)
			d := provider.Read(scheme, header, payload)
			if !slices.Contains(d.Events(), event) {
				t.Errorf("the example of %s/%s is %v: %s", scheme, event, d.Events(), d.Describe())
				continue
			}
			d.Learn(answered)
			if !compile(t, name, event, "").Match(d) || !compile(t, name, event, "{}").Match(d) {
				t.Errorf("%s/%s does not match without a filter", scheme, event)
			}

			known, _ := provider.Lookup(name, event)
			for _, key := range known.Keys {
				values, ok := events[event][key.Name]
				if !ok {
					values, ok = events["*"][key.Name]
				}
				if !ok {
					t.Errorf("%s/%s: no values of %s are tested", scheme, event, key.Name)
					continue
				}
				hit, miss, _ := strings.Cut(values, "!")
				lacks := scheme == "gitea" || key.Name == "reviewer_teams" // a request is of a reviewer or of a team
				if miss == "" || hit == "" && key.Unread == "" && !lacks {
					t.Errorf("%s/%s: %s has no value that matches, or none that does not: %q", scheme, event, key.Name, values)
				}
				checkKey(t, d, name, event, key, values)
			}
		}
	}
}

// answered is what the forge says of the examples.
var answered = provider.Answer{
	Ask: provider.Ask{Files: true, Account: true}, Files: []string{"basket/item.go"}, Account: "acme-bot",
}

// checkKey checks the values of a key: in as a list and under in, and the reverse under not_in.
func checkKey(t *testing.T, d *provider.Delivery, name, event string, key provider.Key, values string) {
	t.Helper()
	hit, miss, _ := strings.Cut(values, "!")
	check := func(value string, want bool) {
		text := fmt.Sprintf("%q", value)
		if key.Integer {
			text = value
		}
		for filter, want := range map[string]bool{
			fmt.Sprintf(`{%q:[%s]}`, key.Name, text):            want,
			fmt.Sprintf(`{%q:{"in":[%s]}}`, key.Name, text):     want,
			fmt.Sprintf(`{%q:{"not_in":[%s]}}`, key.Name, text): !want,
		} {
			f := compile(t, name, event, filter)
			e := f.Explain(d)
			if key.Unread != "" || len(e.Keys) == 1 && len(e.Keys[0].Found) == 0 && strings.Contains(filter, "not_in") {
				want = want && e.Matched // without a value the rule of the key decides
			}
			if f.Match(d) != want || e.Matched != want {
				t.Errorf("%s/%s %s: matched %v, explained %+v", name, event, filter, f.Match(d), e)
			}
		}
	}

	for _, value := range strings.Split(hit, "|") {
		if value != "" {
			check(value, true)
		}
	}
	for _, value := range strings.Split(miss, "|") {
		check(value, false)
	}
}

// TestEventsOfDeliveries holds which deliveries are which events, beside the examples.
func TestEventsOfDeliveries(t *testing.T) {
	tests := []struct {
		name, scheme, example string
		change                map[string]any // by path; nil deletes
		header                string         // in place of the example's
		want                  string
	}{
		{name: "deleted branch", scheme: "github", example: "push", change: map[string]any{"deleted": true}},
		{name: "deleted branch by its commit", scheme: "gitlab", example: "push", change: map[string]any{"after": strings.Repeat("0", 40)}},
		{name: "push of another header", scheme: "github", example: "push", header: "pull_request"},
		{name: "pull request under the header of a push", scheme: "github", example: "pull_request_opened", header: "push"},
		{name: "pull request under the header of an issue", scheme: "github", example: "pull_request_opened", header: "issues"},
		{name: "no header", scheme: "github", example: "push", header: " "},
		{name: "ping", scheme: "github", example: "push", header: "ping"},
		{name: "closed", scheme: "github", example: "pull_request_merged", change: map[string]any{"pull_request.merged": false}, want: "pull_request_closed"},
		{name: "merged of another type", scheme: "github", example: "pull_request_merged", change: map[string]any{"pull_request.merged": nil}, want: "pull_request_closed"},
		{name: "edited", scheme: "github", example: "pull_request_opened", change: map[string]any{"action": "edited"}},
		{name: "action of another type", scheme: "github", example: "pull_request_opened", change: map[string]any{"action": 5}},
		{name: "pull request of another type", scheme: "github", example: "pull_request_opened", change: map[string]any{"pull_request": "x"}},
		{name: "opened and mentions", scheme: "github", example: "pull_request_opened", change: map[string]any{"pull_request.body": "cc @bob"}, want: "pull_request_opened pull_request_mentioned"},
		{name: "issue opened and mentions", scheme: "github", example: "issue_created", change: map[string]any{"issue.body": "@bob"}, want: "issue_created issue_mentioned"},
		{name: "comment without a mention", scheme: "github", example: "issue_mentioned", change: map[string]any{"comment.body": "mail ann@example.com"}},
		{name: "edited comment", scheme: "github", example: "issue_mentioned", change: map[string]any{"action": "edited"}},
		{name: "comment on a pull request", scheme: "github", example: "pull_request_mentioned", want: "pull_request_mentioned"},
		{name: "review comment", scheme: "github", example: "pull_request_review_submitted", change: map[string]any{"action": "created", "comment": map[string]any{"body": "@bob"}}, header: "pull_request_review_comment", want: "pull_request_mentioned"},
		{name: "dismissed review", scheme: "github", example: "pull_request_review_submitted", change: map[string]any{"action": "dismissed"}},
		{name: "requested suite", scheme: "github", example: "check_suite_completed", change: map[string]any{"action": "requested"}},
		{name: "edited note", scheme: "gitlab", example: "bot_mentioned", change: map[string]any{"object_attributes.action": "update"}},
		{name: "note of an older version", scheme: "gitlab", example: "bot_mentioned", change: map[string]any{"object_attributes.action": nil}, want: "bot_mentioned"},
		{name: "note of the system", scheme: "gitlab", example: "bot_mentioned", change: map[string]any{"object_attributes.system": true}},
		{name: "pushed tag", scheme: "gitlab", example: "push", header: "Tag Push Hook"},
		{name: "linear update of a title", scheme: "linear", example: "issue_state_changed", change: map[string]any{"updatedFrom": map[string]any{"title": "x"}}},
		{name: "linear label taken off", scheme: "linear", example: "issue_labeled", change: map[string]any{"data.labelIds": []any{}}},
		{name: "linear assignee taken off", scheme: "linear", example: "issue_assigned", change: map[string]any{"data.assigneeId": nil, "data.assignee": nil}},
		{name: "linear update of an older version", scheme: "linear", example: "issue_assigned", change: map[string]any{"updatedFrom": nil}},
		{name: "linear removed", scheme: "linear", example: "issue_created", change: map[string]any{"action": "remove"}},
		{name: "jira label taken off", scheme: "jira", example: "issue_labeled", change: map[string]any{"changelog.items": []any{map[string]any{"field": "labels", "fromString": "a b", "toString": "a"}}}},
		{name: "jira without changelog", scheme: "jira", example: "status_changed", change: map[string]any{"changelog": nil}},
		{name: "jira two changes", scheme: "jira", example: "issue_labeled", change: map[string]any{"changelog.items": []any{map[string]any{"field": "labels", "toString": "a"}, map[string]any{"field": "status", "to": "3"}}}, want: "issue_labeled status_changed"},
		{name: "slack edit", scheme: "slack", example: "message_posted", change: map[string]any{"event.subtype": "message_changed"}},
		{name: "slack deletion", scheme: "slack", example: "message_posted", change: map[string]any{"event.subtype": "message_deleted"}},
		{name: "slack own message", scheme: "slack", example: "message_posted", change: map[string]any{"event.app_id": "A0AAAAAAA", "event.bot_id": "B1"}},
		{name: "slack own user", scheme: "slack", example: "message_posted", change: map[string]any{"event.user": "U0BOTBOTB"}},
		{name: "slack own reaction", scheme: "slack", example: "reaction_added", change: map[string]any{"event.user": "U0BOTBOTB"}},
		{name: "slack message of another bot", scheme: "slack", example: "message_posted", change: map[string]any{"event.app_id": "A1", "event.subtype": "bot_message"}, want: "message_posted"},
		{name: "slack file", scheme: "slack", example: "message_posted", change: map[string]any{"event.subtype": "file_share"}, want: "message_posted"},
		{name: "slack private channel", scheme: "slack", example: "message_posted", change: map[string]any{"event.channel_type": "group"}, want: "message_posted"},
		{name: "slack direct", scheme: "slack", example: "message_im", want: "message_dm message_im"},
		{name: "slack rate limit", scheme: "slack", example: "message_im", change: map[string]any{"type": "app_rate_limited"}},
		{name: "forgejo", scheme: "forgejo", example: "pull_request_synchronized", want: "pull_request_synchronized"},
		{name: "gitea review that approves", scheme: "gitea", example: "pull_request_review_submitted", header: "pull_request_approved", change: map[string]any{"review.type": "pull_request_review_approved", "review.content": ""}, want: "pull_request_review_submitted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			header, payload, ok := provider.Example(tt.scheme, tt.example)
			if !ok {
				t.Fatalf("there is no example of %s/%s", tt.scheme, tt.example)
			}
			if tt.header != "" {
				header = strings.TrimSpace(tt.header)
			}
			d := provider.Read(tt.scheme, header, changed(t, payload, tt.change))
			if got := strings.Join(d.Events(), " "); got != tt.want {
				t.Errorf("got %q, want %q (%s)", got, tt.want, d.Describe())
			}
		})
	}
}

// changed returns a payload with other values at some paths.
func changed(t *testing.T, payload []byte, change map[string]any) []byte {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(payload, &root); err != nil {
		t.Fatal(err)
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
	return out
}

// TestOwn holds that a payload without an author never passes a filter that restricts who may start a run.
func TestOwn(t *testing.T) {
	for _, scheme := range slices.Sorted(maps.Keys(hits)) {
		for _, event := range provider.Examples(scheme) {
			name := provider.OfScheme(scheme)
			known, _ := provider.Lookup(name, event)
			header, payload, _ := provider.Example(scheme, event)
			for _, key := range known.Keys {
				if !slices.Contains([]string{"authors", "author_associations", "creator_ids", "user_ids"}, key.Name) {
					continue
				}
				f := compile(t, name, event, fmt.Sprintf(`{%q:{"not_in":["none"]}}`, key.Name))
				bare := withoutPeople(t, payload)
				if d := provider.Read(scheme, header, bare); slices.Contains(d.Events(), event) && f.Match(d) {
					t.Errorf("%s/%s: a payload without people passes %s", scheme, event, key.Name)
				}
			}
		}
	}
}

// withoutPeople deletes whatever names a person.
func withoutPeople(t *testing.T, payload []byte) []byte {
	t.Helper()
	var root any
	if err := json.Unmarshal(payload, &root); err != nil {
		t.Fatal(err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range []string{
				"user", "sender", "actor", "author_association", "creator", "creatorId", "userId", "user_username",
			} {
				delete(v, key)
			}
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(root)
	out, _ := json.Marshal(root)
	return out
}

// TestSpellings holds how authors may write keys, and that two spellings of one are refused.
func TestSpellings(t *testing.T) {
	for _, tt := range []struct{ name, event, written, want string }{
		{"github", "pull_request_opened", "baseBranches", "base_branches"},
		{"github", "pull_request_opened", "prNumbers", "pr_numbers"},
		{"github", "pull_request_opened", "base_branches", "base_branches"},
		{"github", "pull_request_opened", "branches", ""},
		{"github", "push", "base_branches", ""},
		{"github", "push", "baseBranches", ""},
		{"github", "pull_request_review_submitted", "states", "review_states"},
		{"linear", "issue_created", "teams", "team_ids"},
		{"linear", "issue_created", "teamIds", "team_ids"},
		{"linear", "issue_created", "projects", "project_ids"},
		{"linear", "issue_state_changed", "states", "state_ids"},
		{"linear", "comment_created", "assignees", ""},
		{"jira", "status_changed", "projects", "project_keys"},
		{"jira", "status_changed", "statuses", "status_ids"},
		{"slack", "app_mention", "channels", "channel_ids"},
		{"slack", "app_mention", "users", "user_ids"},
		{"slack", "app_mention", "emojis", ""},
		{"slack", "reaction_added", "itemUserIds", "item_user_ids"},
		{"acme", "x", "y", ""},
	} {
		if got := provider.CanonicalKey(tt.name, tt.event, tt.written); got != tt.want {
			t.Errorf("%s/%s %s: %q, want %q", tt.name, tt.event, tt.written, got, tt.want)
		}
	}
}

// TestProblems holds what a filter may not be.
func TestProblems(t *testing.T) {
	for _, tt := range []struct{ filter, where, says string }{
		{`{"repos":["a/b"],"base_branches":null,"labels":{},"paths":[],"authors":{"in":null,"not_in":[]}}`, "", ""},
		{`null`, "", ""},
		{`[]`, "", "mapping"},
		{`{"repos":"a/b"}`, "repos", "list"},
		{`{"repos":["b"]}`, "repos.0", "full name"},
		{`{"repos":["https://github.com/a/b"]}`, "repos.0", "full name"},
		{`{"base_branches":["a"],"baseBranches":["a"]}`, "baseBranches", "one key"},
		{`{"labels":{"in":["a"],"not_in":["b","A"]}}`, "labels.not_in.1", "both"},
		{`{"labels":{"notIn":["b"]}}`, "labels.notIn", "operator"},
		{`{"labels":{"in":"b"}}`, "labels.in", "list"},
		{`{"labels":["a",true]}`, "labels.1", "texts"},
		{`{"labels":[["a"]]}`, "labels.0", "texts"},
		{`{"labels":[" "]}`, "labels.0", "blank"},
		{`{"labels":[""]}`, "labels.0", "blank"},
		{`{"pr_numbers":["12"]}`, "pr_numbers.0", "whole numbers"},
		{`{"pr_numbers":[1.5]}`, "pr_numbers.0", "whole numbers"},
		{`{"labels":[` + strings.TrimSuffix(strings.Repeat(`"a",`, 101), ",") + `]}`, "labels", "more than 100"},
	} {
		f, problems := provider.Compile("github", "pull_request_opened", []byte(tt.filter))
		if tt.says == "" {
			if f == nil || len(problems) > 0 || len(f.Keys()) > 1 {
				t.Errorf("%s: %v", tt.filter, problems)
			}
			continue
		}
		if f != nil || len(problems) != 1 || strings.Join(problems[0].Path, ".") != tt.where || !strings.Contains(problems[0].Message, tt.says) {
			t.Errorf("%.80s: %+v", tt.filter, problems)
		}
	}

	if f, problems := provider.Compile("github", "push", []byte(`{"bases":["x"]}`)); f != nil || len(problems) != 1 || problems[0].Unknown != "bases" {
		t.Errorf("an unknown key: %+v", problems)
	}
	if f, problems := provider.Compile("jira", "issue_labeled", []byte(`{"labels":{"in":["Bug"],"not_in":["bug"]}}`)); f == nil {
		t.Errorf("labels of Jira that differ in case: %+v", problems)
	}
	if f, problems := provider.Compile("slack", "reaction_added", []byte(`{"emojis":{"in":[":eyes:"],"not_in":["eyes"]}}`)); f != nil || len(problems) != 1 {
		t.Errorf("one emoji in two spellings: %+v", problems)
	}
	if f, problems := provider.Compile("github", "pull_request_review_submitted", []byte(`{"review_states":["aproved"]}`)); f == nil || len(problems) != 1 || problems[0].Word != "aproved" {
		t.Errorf("an unknown word: %+v", problems)
	}
}

// TestOddValues holds which values hardly anybody means. They are compared all the same.
func TestOddValues(t *testing.T) {
	for _, tt := range []struct{ event, filter, says string }{
		{"push", `{"branches":["release/*"]}`, "matches nothing"},
		{"push", `{"repos":{"not_in":["acme/*"]}}`, "matches nothing"},
		{"push", `{"paths":["!docs/**"]}`, "does not exclude"},
		{"push", `{"paths":["{a,b}/**"]}`, "braces"},
		{"push", `{"paths":["app/{id}.ts","[id].tsx","a/!b","}{","{a}, {b}"]}`, ""},
		{"push", `{"branches":["feature/{a,b}","!x"]}`, ""},
		{"issue_labeled", `{"labels":["team-*","!no"]}`, ""},
	} {
		f, problems := provider.Compile("github", tt.event, []byte(tt.filter))
		if f == nil || tt.says == "" && len(problems) > 0 {
			t.Errorf("%s: %v", tt.filter, problems)
		}
		if tt.says != "" && (len(problems) != 1 || !problems[0].Odd || !strings.Contains(problems[0].Message, tt.says)) {
			t.Errorf("%s: %+v", tt.filter, problems)
		}
	}
}

// TestTargets holds what deliveries are about.
func TestTargets(t *testing.T) {
	const head = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"
	pull := provider.Target{
		Repository: "acme/shop", Number: 12, IsPull: true, Commit: head, Branch: "keep-last-item", BaseBranch: "main",
		HeadRepository: "acme/shop",
	}
	check := pull
	check.HeadRepository = ""
	for _, tt := range []struct {
		scheme, event string
		change        map[string]any
		want          provider.Target
	}{
		{"github", "pull_request_opened", nil, pull},
		{"gitea", "pull_request_opened", nil, pull},
		{"gitlab", "merge_request", nil, pull},
		{"gitlab", "bot_mentioned", nil, pull},
		{"github", "check_suite_completed", nil, check},
		{"github", "check_run_rerequested", nil, check},
		{"github", "workflow_run_completed", nil, pull},
		{"github", "push", nil, provider.Target{Repository: "acme/shop", Commit: head, Branch: "main", HeadRepository: "acme/shop"}},
		{"gitlab", "push", nil, provider.Target{Repository: "acme/shop", Commit: head, Branch: "main", HeadRepository: "acme/shop"}},
		{"github", "push", map[string]any{"deleted": true}, provider.Target{Repository: "acme/shop"}},
		{"github", "issue_mentioned", nil, provider.Target{Repository: "acme/shop", Number: 7}},
		{"github", "pull_request_mentioned", nil, provider.Target{Repository: "acme/shop", Number: 12, IsPull: true}},
		{"github", "pull_request_opened", map[string]any{"pull_request.head.repo": nil, "pull_request.head.sha": "x;y"}, provider.Target{
			Repository: "acme/shop", Number: 12, IsPull: true, Branch: "keep-last-item", BaseBranch: "main",
		}},
		{"linear", "issue_created", nil, provider.Target{}},
	} {
		_, payload, _ := provider.Example(tt.scheme, tt.event)
		if got := provider.Read(tt.scheme, "", changed(t, payload, tt.change)).Target(); got != tt.want {
			t.Errorf("%s/%s: %+v, want %+v", tt.scheme, tt.event, got, tt.want)
		}
	}
}

// TestOrigins holds who caused deliveries, by which object.
func TestOrigins(t *testing.T) {
	for _, tt := range []struct{ scheme, event, want string }{
		{"github", "push", "ann push  "},
		{"github", "issue_mentioned", "bob comment 492700400 https://github.com/acme/shop/issues/7#issuecomment-492700400"},
		{"github", "pull_request_review_submitted", "bob review 237895671 https://github.com/acme/shop/pull/12#pullrequestreview-237895671"},
		{"github", "pull_request_opened", "ann pull_request 279147437 https://github.com/acme/shop/pull/12"},
		{"gitea", "issue_mentioned", "bob comment 900 https://git.example.com/acme/shop/issues/7#issuecomment-900"},
		{"gitlab", "bot_mentioned", "ann comment 1244 https://gitlab.example.com/acme/shop/-/merge_requests/12#note_1244"},
		{"gitlab", "push", "ann push  "},
	} {
		_, payload, _ := provider.Example(tt.scheme, tt.event)
		o, ok := provider.Read(tt.scheme, "", payload).Origin()
		if got := fmt.Sprint(o.Sender, " ", o.Object, " ", o.ObjectID, " ", o.URL); !ok || got != tt.want {
			t.Errorf("%s/%s: %q, want %q", tt.scheme, tt.event, got, tt.want)
		}
	}

	const sha = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
	for _, tt := range []struct{ scheme, payload, want string }{
		{"github", `{"sha":"` + sha + `","context":"agent/x","target_url":"https://m/runs/1","sender":{"login":"ann"}}`, "status  agent/x https://m/runs/1 false "},
		{"gitea", `{"sha":"` + sha + `","ref":"agent/x","ref_type":"branch","sender":{"login":"ann"}}`, "branch agent/x   false "},
		{"github", `{"ref":"agent/x","ref_type":"branch","master_branch":"main","sender":{"login":"ann"}}`, "branch agent/x   false "},
		{"github", `{"ref":"agent/x","ref_type":"branch","pusher_type":"user","sender":{"login":"ann"}}`, "    false "},
		{"github", `{"action":"labeled","issue":{"id":1},"label":{"name":"bug"},"sender":{"login":"ann"}}`, "issue    true bug"},
		{"gitea", `{"action":"label_updated","issue":{"id":1},"sender":{"login":"ann"}}`, "issue    true "},
		{"gitlab", `{"object_kind":"issue","object_attributes":{"action":"update"},"changes":{"labels":{}},"user":{"username":"ann"}}`, "issue    true "},
		{"gitlab", `{"object_kind":"issue","object_attributes":{"action":"update"},"changes":{"title":{}},"user":{"username":"ann"}}`, "issue    false "},
	} {
		o, ok := provider.Read(tt.scheme, "", []byte(tt.payload)).Origin()
		got := fmt.Sprint(o.Object, " ", o.Target.Branch, " ", o.Context, " ", o.URL, " ", o.Labels, " ", o.Label)
		if !ok || got != tt.want {
			t.Errorf("%s: %q, want %q", tt.payload, got, tt.want)
		}
	}
	moved := `{"object_kind":"merge_request","object_attributes":{"action":"update","oldrev":"` + sha + `"},"user":{"username":"ann"}}`
	if o, _ := provider.Read("gitlab", "", []byte(moved)).Origin(); o.Action != "synchronized" {
		t.Errorf("the action of new commits is %q", o.Action)
	}
	if _, ok := provider.Read("slack", "", []byte(`{}`)).Origin(); ok {
		t.Error("a delivery of Slack has an origin")
	}
}

// TestLargest reads a payload of 256 KB with 3,000 commits.
func TestLargest(t *testing.T) {
	_, payload, _ := provider.Example("github", "push")
	var commits []any
	for i := range 3000 {
		commits = append(commits, map[string]any{"id": fmt.Sprintf("%040x", i+1), "added": []any{fmt.Sprintf("d/%d.go", i)}})
	}
	body := changed(t, payload, map[string]any{"commits": commits})
	if len(body) < 200<<10 || len(body) > 300<<10 {
		t.Fatalf("the payload has %d bytes", len(body))
	}
	d := provider.Read("github", "push", body)
	if !compile(t, "github", "push", `{"paths":["**/2999.go"]}`).Match(d) || compile(t, "github", "push", `{"paths":["**/3000.go"]}`).Match(d) {
		t.Error("the last commit is not read")
	}
}

// FuzzDelivery reads foreign bytes.
func FuzzDelivery(f *testing.F) {
	for scheme := range hits {
		for _, event := range provider.Examples(scheme) {
			header, payload, _ := provider.Example(scheme, event)
			f.Add(scheme, header, payload)
		}
	}
	f.Add("github", "push", []byte(`{"ref":"refs/heads/main","commits":[{"added":["a",1,null,{}]},5,"x"],"ref":{}}`))
	f.Add("linear", "", []byte(`{"type":"Issue","action":"update","data":{"descriptionData":"{\"content\":[{\"type\":"}}`))

	filters := map[string][]*provider.Filter{}
	for _, name := range provider.Names() {
		for _, event := range provider.Events(name) {
			known, _ := provider.Lookup(name, event)
			for _, key := range known.Keys {
				value := `"a/b"`
				if key.Integer {
					value = "1"
				}
				for _, form := range []string{`{%q:[%s]}`, `{%q:{"not_in":[%s]}}`} {
					filter, _ := provider.Compile(name, event, fmt.Appendf(nil, form, key.Name, value))
					filters[name] = append(filters[name], filter)
				}
			}
		}
	}

	f.Fuzz(func(t *testing.T, scheme, header string, body []byte) {
		d := provider.Read(scheme, header, body)
		d.Target()
		d.Origin()
		if d == nil {
			return
		}
		d.Describe()
		for _, filter := range filters[d.Provider()] {
			if filter == nil {
				t.Fatal("a filter does not compile")
			}
			e := filter.Explain(d)
			failed := slices.ContainsFunc(e.Keys, func(k provider.KeyExplanation) bool { return !k.Passed })
			if gjson.ValidBytes(body) && e.Matched != (len(e.Keys) > 0 && !failed) {
				t.Fatalf("explained as %v", e)
			}
		}
	})
}

// FuzzFilter compiles foreign filters.
func FuzzFilter(f *testing.F) {
	f.Add("github", "push", []byte(`{"repos":["a/b"],"paths":{"in":["**"],"not_in":["*?/"]}}`))
	_, payload, _ := provider.Example("github", "push")
	f.Fuzz(func(t *testing.T, name, event string, filter []byte) {
		compiled, problems := provider.Compile(name, event, filter)
		if compiled == nil && len(problems) == 0 {
			t.Fatal("neither a filter nor a problem")
		}
		if compiled != nil {
			d := provider.Read("github", "push", payload)
			if compiled.Match(d) != compiled.Explain(d).Matched {
				t.Fatal("match and explanation differ")
			}
		}
	})
}

// TestRepeatedKeys holds that the last value of a repeated key counts, in payloads of few and many members.
func TestRepeatedKeys(t *testing.T) {
	for _, n := range []int{0, 100} {
		body := `{"action":"opened","issue":{"user":{"login":"eve"}},"action":"closed",` + strings.Repeat(`"x":1,`, n) +
			`"repository":{"full_name":"a/b","full_name":"acme/shop"},"action":"opened","issue":{"user":{"login":"ann"}}}`
		d := provider.Read("github", "issues", []byte(body))
		if !compile(t, "github", "issue_created", `{"authors":["ann"],"repos":["acme/shop"]}`).Match(d) {
			t.Errorf("with %d more members: %s", n, d.Describe())
		}
	}
}
