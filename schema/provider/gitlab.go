package provider

// GitLab's events: https://docs.gitlab.com/user/project/integrations/webhook_events/

func gitlabTable() *table {
	repos := key{name: "repos", compare: repository(), read: one("project.path_with_namespace")}
	author := authorKey(first(one("user.username"), one("user_username")))

	return &table{
		provider: GitLab, schemes: []string{"gitlab"}, title: "GitLab", header: "X-Gitlab-Event",
		forge: "gitlab",
		events: []event{
			{
				name: "merge_request", on: []string{"Merge Request Hook"},
				is: func(b *body) bool {
					return b.string("object_kind") == "merge_request" && b.has("object_attributes")
				},
				keys: []key{
					repos,
					{name: "actions", read: one("object_attributes.action"), compare: mergeRequestActions()},
					{name: "base_branches", compare: branch(), read: one("object_attributes.target_branch")},
					author,
				},
			},
			{
				name: "push", on: []string{"Push Hook"},
				is: func(b *body) bool { return b.string("object_kind") == "push" && isPush(b) },
				keys: []key{
					repos,
					{name: "branches", compare: branch(), read: pushedBranch},
					author,
					{name: "paths", compare: globs(), read: pushedPaths},
				},
			},
			{
				name: "bot_mentioned", on: []string{"Note Hook", "Confidential Note Hook"}, is: isNote, public: true,
				own: "mentioned",
				keys: []key{
					repos,
					{name: "mentioned", compare: mention(), read: mentions(true, "object_attributes.note")},
					author,
				},
			},
		},
	}
}

func mergeRequestActions() comparison {
	return among("open", "close", "reopen", "update", "approved", "unapproved", "approval", "unapproval", "merge")
}

// isNote reports whether a payload is a new note that mentions somebody. Older versions name no action.
func isNote(b *body) bool {
	action := b.string("object_attributes.action")
	return b.string("object_kind") == "note" && (action == "" || action == "create") &&
		!b.at("object_attributes.system").Bool() && b.any(mentions(true, "object_attributes.note"))
}
