package provider

import (
	"slices"
	"strings"
)

// Jira's events: https://developer.atlassian.com/cloud/jira/platform/webhooks/

func jiraTable() *table {
	projects := key{name: "project_keys", compare: exact(), read: one("issue.fields.project.key")}
	author := key{
		name: "authors", compare: identity(), must: true,
		read: one("user.accountId", "user.emailAddress", "user.name"),
	}

	return &table{
		provider: Jira, schemes: []string{"jira"}, title: "Jira", field: "webhookEvent",
		events: []event{
			{
				name: "issue_created", on: []string{"jira:issue_created"},
				is: func(b *body) bool { return b.has("issue") },
				keys: []key{
					projects, {name: "labels", compare: exact(), read: each("issue.fields.labels")}, author,
				},
			},
			{
				name: "issue_labeled", on: []string{"jira:issue_updated"},
				is:   func(b *body) bool { return b.has("issue") && b.any(jiraAdded) },
				keys: []key{projects, {name: "labels", compare: exact(), read: jiraAdded}, author},
			},
			{
				name: "status_changed", on: []string{"jira:issue_updated"},
				is: func(b *body) bool { return b.has("issue") && b.any(jiraStatus) },
				keys: []key{
					projects, {name: "status_ids", compare: exact(), read: jiraStatus}, author,
				},
			},
			{
				name: "agent_session_created", on: []string{"agent_session_created"},
				is:    func(*body) bool { return false },
				never: "Jira sends no event for a session of an agent",
				keys: []key{
					projects,
					{name: "labels", compare: exact(), unread: "Jira sends no such event"},
					{name: "keywords", compare: keyword(), unread: "Jira sends no such event"},
				},
			},
		},
	}
}

// eachChange visits the changes of a field in the changelog of an update.
func eachChange(b *body, field string, visit func(change *body) bool) {
	eachObject(b, "changelog.items", func(change *body) bool {
		if change.string("fieldId") != field && change.string("field") != field {
			return true
		}
		return visit(change)
	})
}

// jiraAdded yields the labels that an update added.
func jiraAdded(b *body, yield func(string) bool) {
	eachChange(b, "labels", func(change *body) bool {
		before := strings.Fields(change.string("fromString"))
		for _, label := range strings.Fields(change.string("toString")) {
			if !slices.Contains(before, label) && !yield(label) {
				return false
			}
		}
		return true
	})
}

// jiraStatus yields the ID and the name of the status that an update moved the issue to.
func jiraStatus(b *body, yield func(string) bool) {
	eachChange(b, "status", func(change *body) bool {
		more := true
		one("to", "toString")(change, func(text string) bool {
			more = yield(text)
			return more
		})
		return more
	})
}
