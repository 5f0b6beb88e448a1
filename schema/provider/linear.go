package provider

import (
	"slices"

	"github.com/tidwall/gjson"
)

// Linear's events: https://linear.app/developers/webhooks

func linearTable() *table {
	return &table{
		provider: Linear, schemes: []string{"linear"}, title: "Linear", field: "type",
		events: []event{
			{
				name: "issue_created", on: []string{"Issue"}, keys: linearIssueKeys(namesIn("data.labels")),
				is: func(b *body) bool { return b.string("action") == "create" && b.has("data") },
			},
			{
				name: "issue_labeled", on: []string{"Issue"}, keys: linearIssueKeys(linearAdded),
				is: func(b *body) bool { return linearChanged(b, "labelIds") && b.any(linearAddedIDs) },
			},
			{
				name: "issue_state_changed", on: []string{"Issue"}, keys: linearIssueKeys(namesIn("data.labels")),
				is: func(b *body) bool { return linearChanged(b, "stateId") },
			},
			{
				name: "issue_assigned", on: []string{"Issue"}, keys: linearIssueKeys(namesIn("data.labels")),
				is: func(b *body) bool {
					return linearChanged(b, "assigneeId") && b.any(one("data.assigneeId", "data.assignee.id"))
				},
			},
			{
				name: "comment_created", on: []string{"Comment"},
				is: func(b *body) bool { return b.string("action") == "create" && b.has("data") },
				keys: []key{
					linearTeam("data.issue"),
					{
						name: "project_ids", compare: identity(),
						unread: "a comment's payload has no project of its issue",
					},
					{name: "state_ids", compare: identity(), unread: "a comment's payload has no state of its issue"},
					{name: "labels", compare: folded(), unread: "a comment's payload has no labels of its issue"},
					{
						name: "issue_ids", compare: identity(),
						read: one("data.issueId", "data.issue.id", "data.issue.identifier"),
					},
					linearMentions("data.bodyData", "data.body"),
					linearPerson("creator_ids", true, "data.user", "data.userId"),
					linearPerson("authors", true, "data.user", "data.userId"),
				},
			},
			{
				name: "agent_session_created", on: []string{"AgentSessionEvent"},
				is: func(b *body) bool { return b.string("action") == "created" && b.has("agentSession") },
				keys: []key{
					linearTeam("agentSession.issue"),
					linearPerson("creator_ids", true, "agentSession.creator", "agentSession.creatorId"),
					linearPerson("authors", true, "agentSession.creator", "agentSession.creatorId"),
					{
						name: "keywords", compare: keyword(),
						read: one("agentSession.comment.body", "agentSession.issue.title",
							"agentSession.issue.description",
							"promptContext"),
					},
				},
			},
		},
	}
}

// linearChanged reports whether an update of an issue changed a field.
func linearChanged(b *body, field string) bool {
	return b.string("action") == "update" && b.has("data") && memberOf(b.at("updatedFrom"), field).Exists()
}

// linearTeam is the key of the team of an issue, by ID, key or name.
func linearTeam(issue string) key {
	return key{
		name: "team_ids", compare: identity(),
		read: one(issue+".teamId", issue+".team.id", issue+".team.key", issue+".team.name"),
	}
}

// linearPerson is a key of a person: by ID or email address. Names of people are theirs to choose.
func linearPerson(name string, must bool, object, id string) key {
	return key{name: name, compare: identity(), read: one(id, object+".id", object+".email"), must: must}
}

func linearIssueKeys(labels reader) []key {
	return []key{
		linearTeam("data"),
		{name: "project_ids", compare: identity(), read: one("data.projectId", "data.project.id", "data.project.name")},
		{name: "state_ids", compare: identity(), read: one("data.stateId", "data.state.id", "data.state.name")},
		labelKey(labels),
		linearPerson("assignee_ids", false, "data.assignee", "data.assigneeId"),
		linearMentions("data.descriptionData", "data.description"),
		linearPerson("creator_ids", true, "data.creator", "data.creatorId"),
		linearPerson("authors", true, "data.creator", "data.creatorId"),
	}
}

// linearAddedIDs yields the IDs of the labels that an update added.
func linearAddedIDs(b *body, yield func(string) bool) {
	var before []string
	each("updatedFrom.labelIds")(b, func(id string) bool {
		before = append(before, id)
		return true
	})
	each("data.labelIds")(b, func(id string) bool { return slices.Contains(before, id) || yield(id) })
}

// linearAdded yields the names of the labels that an update added.
func linearAdded(b *body, yield func(string) bool) {
	linearAddedIDs(b, func(id string) bool {
		more := true
		eachObject(b, "data.labels", func(label *body) bool {
			if scalar(label.at("id")) == id {
				more = yield(label.string("name"))
			}
			return more
		})
		return more
	})
}

// linearMentions is the key of the people that a text mentions: by ID, from the text's structure, or by the
// name after the @.
func linearMentions(structure, text string) key {
	return key{name: "mentioned_user_ids", compare: identity(), read: func(b *body, yield func(string) bool) {
		more := true
		document := b.at(structure)
		if document.Type == gjson.String {
			document = gjson.Parse(document.Str)
		}

		eachNode(document, 0, func(node gjson.Result) bool {
			if memberOf(node, "type").Str == "suggestion_userMentions" {
				if id := scalar(memberOf(memberOf(node, "attrs"), "id")); id != "" {
					more = yield(id)
				}
			}

			return more
		})
		if more {
			mentions(true, text)(b, yield)
		}
	}}
}

// maxNodes bounds the depth of documents that are looked through.
const maxNodes = 32

// eachNode yields the objects of a document and of the content of each, until visit returns false.
func eachNode(node gjson.Result, depth int, visit func(gjson.Result) bool) bool {
	if depth > maxNodes || !node.IsObject() {
		return true
	}
	if !visit(node) {
		return false
	}

	more := true
	content := memberOf(node, "content")
	if !content.IsArray() {
		return true
	}

	content.ForEach(func(_, v gjson.Result) bool {
		more = eachNode(v, depth+1, visit)
		return more
	})

	return more
}
