package provider

import (
	"slices"
	"strings"
)

// GitHub's events: https://docs.github.com/en/webhooks/webhook-events-and-payloads

func githubTable() *table {
	t := &table{provider: GitHub, schemes: []string{"github"}, title: "GitHub", header: "X-GitHub-Event"}
	t.forge = "github"
	t.events = []event{
		{name: "push", on: []string{"push"}, is: isPush, keys: pushKeys(repositoryName())},
		issueEvent("issue_created", is("issue", "opened"), issueKeys(namesIn("issue.labels"))),
		issueEvent("issue_labeled", is("issue", "labeled"), issueKeys(one("label.name"))),
		issueEvent("issue_assigned", is("issue", "assigned"), assignedKeys("issue", one("assignee.login"))),
		{
			name: "issue_mentioned", on: []string{"issues", "issue_comment"}, is: issueMentioned, public: true,
			keys: mentionedKeys("issue.labels"),
		},
	}

	for _, e := range []struct{ name, action string }{
		{"opened", "opened"},
		{"ready", "ready_for_review"},
		{"closed", "closed"},
		{"merged", "closed"},
		{"labeled", "labeled"},
		{"synchronized", "synchronize"},
		{"reopened", "reopened"},
	} {
		labels := namesIn("pull_request.labels")
		if e.name == "labeled" {
			labels = one("label.name")
		}

		t.events = append(t.events, pullEvent("pull_request_"+e.name, pullIs(e.name, e.action), pullKeys(labels)))
	}

	t.events = append(t.events, []event{
		pullEvent("pull_request_assigned", pullIs("assigned", "assigned"),
			assignedKeys("pull_request", one("assignee.login"))),
		{
			name: "pull_request_mentioned", is: pullMentioned, public: true,
			on:   []string{"pull_request", "issue_comment", "pull_request_review", "pull_request_review_comment"},
			keys: mentionedKeys("issue.labels", "pull_request.labels"),
		},
		pullEvent("pull_request_review_requested", pullIs("review_requested", "review_requested"), reviewRequestKeys()),
		{
			name: "pull_request_review_submitted", on: []string{"pull_request_review"}, public: true,
			is: func(b *body) bool {
				return b.string("action") == "submitted" && b.has("pull_request") && b.has("review")
			},
			keys: reviewKeys("review.body", one("review.state")),
		},
		{
			name: "check_suite_completed", on: []string{"check_suite"},
			is: is("check_suite", "completed"), keys: checkKeys("check_suite"),
		},
		{
			name: "workflow_run_completed", on: []string{"workflow_run"},
			is: is("workflow_run", "completed"), keys: workflowKeys(),
		},
		{
			name: "check_run_rerequested", on: []string{"check_run"},
			is: is("check_run", "rerequested"), keys: rerequestedKeys(),
		},
		{
			name: "check_suite_rerequested", on: []string{"check_suite"},
			is: is("check_suite", "rerequested"), keys: rerequestedKeys(),
		},
	}...)

	return t
}

// is is the condition that a payload has an object and one of the actions.
func is(object string, actions ...string) func(*body) bool {
	return func(b *body) bool {
		action := b.string("action")
		return slices.Contains(actions, action) && b.has(object)
	}
}

func issueEvent(name string, is func(*body) bool, keys []key) event {
	return event{name: name, on: []string{"issues"}, is: is, keys: keys}
}

func pullEvent(name string, is func(*body) bool, keys []key) event {
	return event{name: name, on: []string{"pull_request"}, is: is, keys: keys}
}

// pullIs is the condition of an event of pull requests. A pull request that is closed is merged, or not.
func pullIs(name string, actions ...string) func(*body) bool {
	has := is("pull_request", actions...)
	return func(b *body) bool {
		if name != "closed" && name != "merged" {
			return has(b)
		}
		return has(b) && b.at("pull_request.merged").Bool() == (name == "merged")
	}
}

// isPush reports whether a payload is a push that leaves something: no deletion.
func isPush(b *body) bool {
	return b.string("ref") != "" && b.list("commits") && !b.at("deleted").Bool() && !zeroCommit(b.string("after"))
}

// zeroCommit reports whether a commit stands for none.
func zeroCommit(id string) bool { return id != "" && strings.Trim(id, "0") == "" }

// ofPull reports whether the payload of a comment is about a pull request.
func ofPull(b *body) bool { return b.has("issue.pull_request") || b.at("is_pull").Bool() }

func issueMentioned(b *body) bool {
	switch b.string("action") {
	case "opened":
		return b.has("issue") && !b.has("comment") && b.any(mentioned(b))
	case "created":
		return b.has("issue") && b.has("comment") && !ofPull(b) && b.any(mentioned(b))
	}
	return false
}

func pullMentioned(b *body) bool {
	about := b.has("pull_request") || b.has("issue") && ofPull(b)
	switch b.string("action") {
	case "opened":
		return about && b.has("pull_request") && b.any(mentioned(b))
	case "created":
		return about && b.has("comment") && b.any(mentioned(b))
	case "submitted", "reviewed":
		return about && b.has("review") && b.any(mentioned(b))
	}
	return false
}

// writing returns the object of the payload that somebody has just written.
func writing(b *body) string {
	for _, object := range []string{"comment", "review", "pull_request"} {
		if b.has(object) {
			return object
		}
	}
	return "issue"
}

// mentioned reads the accounts that the new text of a payload mentions.
func mentioned(b *body) reader {
	object := writing(b)
	return mentions(false, object+".body", object+".content")
}

// The keys of GitHub's events.

func repositoryName() key {
	return key{name: "repos", compare: repository(), read: one("repository.full_name")}
}

func namesIn(list string) reader { return each(list, "name") }

func labelKey(read reader) key { return key{name: "labels", compare: folded(), read: read} }

func authorKey(read reader) key {
	return key{name: "authors", compare: login(), read: read, must: true}
}

func associationKey(read reader) key {
	return key{name: "author_associations", compare: associations(), read: read, must: true}
}

func associations() comparison {
	return among("owner", "member", "collaborator", "contributor", "first_timer", "first_time_contributor", "mannequin",
		"none")
}

func assigneeKey(read reader) key { return key{name: "assignees", compare: login(), read: read} }

func assigneesOf(object string) reader {
	return all(each(object+".assignees", "login"), one(object+".assignee.login"))
}

func pushKeys(repos key) []key {
	return []key{
		repos,
		{name: "branches", compare: branch(), read: pushedBranch},
		authorKey(one("sender.login")),
		{name: "paths", compare: globs(), read: pushedPaths},
	}
}

func pushedBranch(b *body, yield func(string) bool) {
	if ref := b.string("ref"); strings.HasPrefix(ref, heads) {
		yield(ref)
	}
}

// pushedPaths yields the files that the commits of a push added, removed or modified.
func pushedPaths(b *body, yield func(string) bool) {
	more := true
	files := func(commit *body, object string) {
		for _, list := range []string{"added", "removed", "modified"} {
			if more {
				each(object+list)(commit, func(path string) bool {
					more = yield(path)
					return more
				})
			}
		}
	}

	eachObject(b, "commits", func(commit *body) bool {
		files(commit, "")
		return more
	})
	files(b, "head_commit.")
}

func issueKeys(labels reader) []key {
	return []key{
		repositoryName(), labelKey(labels), assigneeKey(assigneesOf("issue")), authorKey(one("issue.user.login")),
		associationKey(one("issue.author_association")),
	}
}

func pullKeys(labels reader) []key {
	return []key{
		repositoryName(),
		{name: "base_branches", compare: branch(), read: one("pull_request.base.ref")},
		{name: "pr_numbers", compare: number(), read: first(one("pull_request.number"), one("number"))},
		assigneeKey(assigneesOf("pull_request")),
		authorKey(one("pull_request.user.login")),
		associationKey(one("pull_request.author_association")),
		labelKey(labels),
		{name: "paths", compare: globs(), read: pullFiles, files: true},
	}
}

// pullFiles yields the files of the pull request, as the forge has listed them.
func pullFiles(b *body, yield func(string) bool) {
	for _, path := range b.known.Files {
		if !yield(path) {
			return
		}
	}
}

func assignedKeys(object string, assignee reader) []key {
	return []key{
		repositoryName(), assigneeKey(assignee), labelKey(namesIn(object + ".labels")),
		authorKey(one(object + ".user.login")), associationKey(one(object + ".author_association")),
	}
}

func mentionedKeys(labels ...string) []key {
	var readers []reader
	for _, list := range labels {
		readers = append(readers, namesIn(list))
	}

	return []key{
		repositoryName(),
		{
			name: "mentioned", compare: mention(),
			read: func(b *body, yield func(string) bool) { mentioned(b)(b, yield) },
		},
		labelKey(all(readers...)),
		authorKey(func(b *body, yield func(string) bool) { one(writing(b)+".user.login")(b, yield) }),
		associationKey(func(b *body, yield func(string) bool) { one(writing(b)+".author_association")(b, yield) }),
	}
}

func reviewRequestKeys() []key {
	return []key{
		repositoryName(),
		{name: "reviewers", compare: login(), read: one("requested_reviewer.login")},
		{name: "reviewer_teams", compare: login(), read: one("requested_team.slug", "requested_team.name")},
		authorKey(one("pull_request.user.login")),
		associationKey(one("pull_request.author_association")),
	}
}

func reviewKeys(text string, state reader) []key {
	return []key{
		repositoryName(),
		{name: "mentioned", compare: mention(), read: mentions(false, text)},
		labelKey(namesIn("pull_request.labels")),
		{
			name: "review_states", read: state,
			compare: among("approved", "changes_requested", "commented", "dismissed"),
		},
		authorKey(first(one("review.user.login"), one("sender.login"))),
		associationKey(one("review.author_association")),
	}
}

func conclusionKey(object string) key {
	return key{
		name: "conclusions", read: one(object + ".conclusion"),
		compare: among("success", "failure", "neutral", "cancelled", "skipped", "timed_out", "action_required", "stale",
			"startup_failure"),
	}
}

func checkKeys(object string) []key {
	return []key{
		repositoryName(),
		conclusionKey(object),
		{name: "branches", compare: branch(), read: one(object + ".head_branch")},
		{name: "labels", compare: folded(), unread: "a check's payload has no labels of its pull requests"},
		authorKey(first(one(object+".actor.login"), one("sender.login"))),
	}
}

func workflowKeys() []key {
	return append(checkKeys("workflow_run"), key{
		name: "workflows", compare: exact(),
		read: one("workflow_run.name", "workflow.name", "workflow_run.path", "workflow.path"),
	})
}

func rerequestedKeys() []key { return []key{repositoryName(), authorKey(one("sender.login"))} }
