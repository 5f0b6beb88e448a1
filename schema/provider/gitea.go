package provider

import "strings"

// The events of Gitea, Forgejo and Gogs, which are GitHub's with other actions:
// https://docs.gitea.com/usage/webhooks

func giteaTable() *table {
	issues := []string{"issues", "issue_assign", "issue_label"}
	pulls := []string{
		"pull_request", "pull_request_assign", "pull_request_label", "pull_request_sync", "pull_request_review_request",
	}
	reviews := []string{
		"pull_request_approved", "pull_request_rejected", "pull_request_comment", "pull_request_review_approved",
		"pull_request_review_rejected", "pull_request_review_comment",
	}

	t := &table{
		provider: GitHub, schemes: []string{"gitea", "forgejo", "gogs"}, title: "Gitea", header: "X-Gitea-Event",
		forge: "gitea",
	}
	t.events = []event{
		{name: "push", on: []string{"push"}, is: isPush, keys: pushKeys(repositoryName())},
		{name: "issue_created", on: issues, is: is("issue", "opened"), keys: issueKeys(namesIn("issue.labels"))},
		{
			name: "issue_labeled", on: issues, is: is("issue", "label_updated", "labeled"),
			keys: issueKeys(first(one("label.name"), namesIn("issue.labels"))),
		},
		{
			name: "issue_assigned", on: issues, is: is("issue", "assigned"),
			keys: assignedKeys("issue", first(one("assignee.login"), assigneesOf("issue"))),
		},
		{
			name: "issue_mentioned", on: []string{"issues", "issue_comment"}, is: issueMentioned, public: true,
			keys: mentionedKeys("issue.labels"),
		},
	}

	for _, e := range []struct {
		name    string
		actions []string
	}{
		{"opened", []string{"opened"}},
		{"ready", []string{"ready_for_review"}},
		{"closed", []string{"closed"}},
		{"merged", []string{"closed"}},
		{"labeled", []string{"label_updated", "labeled"}},
		{"synchronized", []string{"synchronized", "synchronize"}},
		{"reopened", []string{"reopened"}},
	} {
		labels := namesIn("pull_request.labels")
		if e.name == "labeled" {
			labels = first(one("label.name"), labels)
		}

		t.events = append(t.events, event{
			name: "pull_request_" + e.name, on: pulls, is: pullIs(e.name, e.actions...), keys: pullKeys(labels),
		})
	}

	t.events = append(t.events, []event{
		{
			name: "pull_request_assigned", on: pulls, is: pullIs("assigned", "assigned"),
			keys: assignedKeys("pull_request", first(one("assignee.login"), assigneesOf("pull_request"))),
		},
		{
			name: "pull_request_mentioned", is: pullMentioned, public: true,
			on:   append([]string{"pull_request", "issue_comment"}, reviews...),
			keys: mentionedKeys("issue.labels", "pull_request.labels"),
		},
		{
			name: "pull_request_review_requested", on: pulls,
			is: pullIs("review_requested", "review_requested"), keys: reviewRequestKeys(),
		},
		{
			name: "pull_request_review_submitted", on: reviews, public: true,
			is: func(b *body) bool {
				return b.string("action") == "reviewed" && b.has("pull_request") && b.has("review")
			},
			keys: reviewKeys("review.content", giteaReviewState),
		},
		{
			name: "workflow_run_completed", on: []string{"workflow_run"},
			is: is("workflow_run", "completed"), keys: workflowKeys(),
		},
	}...)

	return t
}

// giteaReviewState yields the state of a review as GitHub names it.
func giteaReviewState(b *body, yield func(string) bool) {
	switch strings.TrimPrefix(strings.TrimPrefix(b.string("review.type"), "pull_request_"), "review_") {
	case "approved":
		yield("approved")
	case "rejected":
		yield("changes_requested")
	case "comment":
		yield("commented")
	}
}
