package provider_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"millwright/schema/provider"
)

// publishedPayload is a payload of testdata/published: the events that it is, after a change where there is
// one, and the values of keys that match and that do not, beside those of publishedValues.
type publishedPayload struct {
	scheme, name, header string
	events               string
	change               map[string]any
	values               map[string]string // hit | hit … ! miss | miss …
}

var publishedPayloads = []publishedPayload{
	{
		scheme: "github", name: "push", header: "push", events: "push",
		values: map[string]string{"branches": "master|refs/heads/master!main", "paths": "README.md|*.md!docs/**"},
	},
	{
		scheme: "github", name: "push of a tag", header: "push", events: "push",
		values: map[string]string{"branches": "!simple-tag|refs/tags/simple-tag", "paths": ".gitignore!docs/**"},
	},
	{scheme: "github", name: "push that deletes", header: "push"},
	{scheme: "github", name: "issues opened", header: "issues", events: "issue_created"},
	{
		scheme: "github", name: "issues opened", header: "issues", events: "issue_created issue_mentioned",
		change: map[string]any{"issue.body": "For @octocat."},
	},
	{scheme: "github", name: "issues labeled", header: "issues", events: "issue_labeled"},
	{scheme: "github", name: "issues assigned", header: "issues", events: "issue_assigned"},
	{scheme: "github", name: "issue_comment created", header: "issue_comment"},
	{
		scheme: "github", name: "issue_comment created", header: "issue_comment", events: "issue_mentioned",
		change: map[string]any{"comment.body": "You are totally right, @octocat!"},
	},
	{
		scheme: "github", name: "issue_comment created", header: "issue_comment", events: "pull_request_mentioned",
		change: map[string]any{
			"comment.body": "@octocat, fix it", "issue.pull_request": map[string]any{"url": "https://api.github.com/x"},
		},
	},
	{scheme: "github", name: "pull_request opened", header: "pull_request", events: "pull_request_opened"},
	{scheme: "github", name: "pull_request ready_for_review", header: "pull_request", events: "pull_request_ready"},
	{scheme: "github", name: "pull_request closed", header: "pull_request", events: "pull_request_closed"},
	{
		scheme: "github", name: "pull_request closed", header: "pull_request", events: "pull_request_merged",
		change: map[string]any{"pull_request.merged": true},
	},
	{scheme: "github", name: "pull_request labeled", header: "pull_request", events: "pull_request_labeled"},
	{scheme: "github", name: "pull_request synchronize", header: "pull_request", events: "pull_request_synchronized"},
	{scheme: "github", name: "pull_request reopened", header: "pull_request", events: "pull_request_reopened"},
	{scheme: "github", name: "pull_request assigned", header: "pull_request", events: "pull_request_assigned"},
	{
		scheme: "github", name: "pull_request review_requested", header: "pull_request",
		events: "pull_request_review_requested", values: map[string]string{"reviewer_teams": "!octocats"},
	},
	{
		scheme: "github", name: "pull_request review_requested", header: "pull_request",
		events: "pull_request_review_requested", values: map[string]string{"reviewers": "!octocat"},
		change: map[string]any{
			"requested_reviewer": nil, "requested_team": map[string]any{"name": "Octo cats", "slug": "octo-cats"},
		},
	},
	{
		scheme: "github", name: "pull_request_review submitted", header: "pull_request_review",
		events: "pull_request_review_submitted", values: map[string]string{"mentioned": "!octocat"},
	},
	{
		scheme: "github", name: "pull_request_review submitted", header: "pull_request_review",
		events: "pull_request_mentioned pull_request_review_submitted",
		change: map[string]any{"review.body": "@octocat?"},
	},
	{scheme: "github", name: "pull_request_review_comment created", header: "pull_request_review_comment"},
	{
		scheme: "github", name: "pull_request_review_comment created", header: "pull_request_review_comment",
		events: "pull_request_mentioned", change: map[string]any{"comment.body": "More emoji, @octocat."},
	},
	{
		scheme: "github", name: "check_suite completed", header: "check_suite", events: "check_suite_completed",
		values: map[string]string{"labels": "!bug"},
	},
	{
		scheme: "github", name: "check_suite rerequested", header: "check_suite", events: "check_suite_rerequested",
		values: map[string]string{"authors": "octocoders-linter[bot]!Codertocat"},
	},
	{
		scheme: "github", name: "workflow_run completed", header: "workflow_run", events: "workflow_run_completed",
		values: map[string]string{
			"repos": "octo-org/octo-repo!Codertocat/Hello-World", "labels": "!bug", "branches": "master!main",
			"workflows": "test|.github/workflows/test.yml!Test|ci",
		},
	},
	{
		scheme: "github", name: "check_run rerequested", header: "check_run", events: "check_run_rerequested",
		values: map[string]string{"repos": "github/hello-world!Codertocat/Hello-World", "authors": "octocat!Codertocat"},
	},

	{scheme: "gitlab", name: "Push Hook", header: "Push Hook", events: "push"},
	{
		scheme: "gitlab", name: "Merge Request Hook", header: "Merge Request Hook", events: "merge_request",
		values: map[string]string{"repos": "gitlabhq/gitlab-test!mike/diaspora", "authors": "user1!root"},
	},
	{scheme: "gitlab", name: "Note Hook on a merge request", header: "Note Hook"},
	{
		scheme: "gitlab", name: "Note Hook on an issue", header: "Note Hook", events: "bot_mentioned",
		change: map[string]any{"object_attributes.note": "Hello @world"},
		values: map[string]string{"repos": "gitlab-org/gitlab-test!mike/diaspora", "authors": "user1!jsmith"},
	},
}

// publishedValues are the values of keys in the payloads of a scheme.
var publishedValues = map[string]map[string]string{
	"github": {
		"repos": "Codertocat/Hello-World|codertocat/hello-world!octo-org/octo-repo", "labels": "bug|Bug!ready",
		"authors": "Codertocat|@codertocat!octocat", "author_associations": "OWNER|owner!MEMBER",
		"assignees": "Codertocat!octocat", "base_branches": "master|refs/heads/master!changes", "pr_numbers": "2!1|22",
		"paths": "basket/*!other/**", "mentioned": "octocat|@Octocat!Codertocat", "reviewers": "octocat!Codertocat",
		"reviewer_teams": "octo-cats|Octo cats!octocat", "review_states": "commented!approved",
		"conclusions": "success|SUCCESS!failure", "branches": "changes!master",
	},
	"gitlab": {
		"repos": "mike/diaspora!diaspora/mike", "authors": "jsmith!john", "branches": "master!main",
		"paths": "CHANGELOG|app/**/*.rb!*.rb", "actions": "open!close", "base_branches": "master!ms-viewport",
		"mentioned": "world!root",
	},
}

// TestPublished holds that the payloads that GitHub and GitLab publish are the events that they document, each
// event among them, and that every key of its filter matches the values that it should, and no others.
func TestPublished(t *testing.T) {
	matched := map[string]bool{} // scheme/event/key
	answer := answered
	answer.Account = "world"

	for _, p := range publishedPayloads {
		var all map[string]json.RawMessage
		readPublished(t, p.scheme+".json", &all)
		d := provider.Read(p.scheme, p.header, changed(t, all[p.name], p.change))
		if got := strings.Join(d.Events(), " "); got != p.events {
			t.Errorf("%s with %v is %q, want %q", p.name, p.change, got, p.events)
			continue
		}

		d.Learn(answer)
		for _, event := range d.Events() {
			known, _ := provider.Lookup(d.Provider(), event)
			for _, key := range known.Keys {
				values, ok := p.values[key.Name]
				if !ok {
					values = publishedValues[p.scheme][key.Name]
				}
				checkKey(t, d, d.Provider(), event, key, values)
				if !strings.HasPrefix(values, "!") {
					matched[p.scheme+"/"+event+"/"+key.Name] = true
				}
			}
		}
	}

	for scheme := range publishedValues {
		for _, event := range provider.Events(scheme) {
			known, _ := provider.Lookup(scheme, event)
			for _, key := range known.Keys {
				if !matched[scheme+"/"+event+"/"+key.Name] && key.Unread == "" {
					t.Errorf("no published payload of %s/%s has a value of %s", scheme, event, key.Name)
				}
			}
		}
	}
}

// TestExamplesFollowSchemas holds that examples are as the schemas and types that the providers publish: no
// value of another type, and no member that payloads do not have.
func TestExamplesFollowSchemas(t *testing.T) {
	schemas := jsonschema.NewCompiler()
	for _, scheme := range []string{"github", "linear", "slack"} {
		for _, event := range provider.Examples(scheme) {
			header, payload, _ := provider.Example(scheme, event)
			var value map[string]any
			if err := json.Unmarshal(payload, &value); err != nil {
				t.Fatal(err)
			}

			var name string
			switch action, _ := value["action"].(string); scheme {
			case "github":
				name = header + "$" + action
				if event == "push" {
					name = "push$event"
				}
			case "linear":
				name, _ = value["type"].(string)
			case "slack":
				inner, _ := value["event"].(map[string]any)
				name, _ = inner["type"].(string)
			}

			file := filepath.ToSlash(filepath.Join("testdata", "published", scheme+".schema.json"))
			published, err := schemas.Compile(file + "#/definitions/" + name)
			if err != nil {
				t.Errorf("%s/%s: %v", scheme, event, err)
				continue
			}
			if err := published.Validate(any(value)); err != nil {
				t.Errorf("%s/%s: %#v", scheme, event, err)
			}
		}
	}
}

func readPublished(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "published", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}
