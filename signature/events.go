package signature

import "slices"

// KnownEvent returns a value of the scheme's event header as this package writes it, and "" when it is not
// one that the provider documents. Only what is known may stand where an agent takes words for its
// operator's: the header is not signed by every provider, and may hold anything.
func (s *Scheme) KnownEvent(value string) string {
	known := knownEvents(s.row.name)
	if i := slices.Index(known, value); i >= 0 {
		return known[i]
	}
	return ""
}

// knownEvents are the values of event headers, from the providers' documentation.
func knownEvents(scheme string) []string {
	switch scheme {
	case "github":
		return []string{
			"branch_protection_configuration", "branch_protection_rule", "check_run", "check_suite",
			"code_scanning_alert", "commit_comment", "create", "custom_property", "custom_property_values", "delete",
			"dependabot_alert", "deploy_key", "deployment", "deployment_protection_rule", "deployment_review",
			"deployment_status", "discussion", "discussion_comment", "fork", "github_app_authorization", "gollum",
			"installation", "installation_repositories", "installation_target", "issue_comment", "issue_dependencies",
			"issues", "label", "marketplace_purchase", "member", "membership", "merge_group", "meta", "milestone",
			"org_block", "organization", "package", "page_build", "personal_access_token_request", "ping", "project",
			"project_card", "project_column", "projects_v2", "projects_v2_item", "projects_v2_status_update", "public",
			"pull_request", "pull_request_review", "pull_request_review_comment", "pull_request_review_thread", "push",
			"registry_package", "release", "repository", "repository_advisory", "repository_dispatch",
			"repository_import", "repository_ruleset", "repository_vulnerability_alert", "secret_scanning_alert",
			"secret_scanning_alert_location", "secret_scanning_scan", "security_advisory", "security_and_analysis",
			"sponsorship", "star", "status", "sub_issues", "team", "team_add", "watch", "workflow_dispatch",
			"workflow_job", "workflow_run",
		}

	case "gitlab":
		return []string{
			"Push Hook", "Tag Push Hook", "Issue Hook", "Confidential Issue Hook", "Note Hook", "Confidential Note Hook",
			"Merge Request Hook", "Wiki Page Hook", "Pipeline Hook", "Job Hook", "Deployment Hook", "Member Hook",
			"Subgroup Hook", "Project Hook", "Feature Flag Hook", "Release Hook", "Emoji Hook", "Milestone Hook",
			"Resource Access Token Hook", "Vulnerability Hook", "System Hook",
		}

	case "gitea":
		return []string{
			"create", "delete", "fork", "issues", "issue_assign", "issue_label", "issue_milestone", "issue_comment",
			"package", "pull_request", "pull_request_approved", "pull_request_assign", "pull_request_comment",
			"pull_request_label", "pull_request_milestone", "pull_request_rejected", "pull_request_review_approved",
			"pull_request_review_comment", "pull_request_review_rejected", "pull_request_review_request",
			"pull_request_sync", "push", "release", "repository", "status", "wiki", "workflow_job", "workflow_run",
		}

	case "bitbucket":
		return []string{
			"issue:comment_created", "issue:created", "issue:updated", "pullrequest:approved",
			"pullrequest:changes_request_created", "pullrequest:changes_request_removed", "pullrequest:comment_created",
			"pullrequest:comment_deleted", "pullrequest:comment_reopened", "pullrequest:comment_resolved",
			"pullrequest:comment_updated", "pullrequest:created", "pullrequest:fulfilled", "pullrequest:rejected",
			"pullrequest:unapproved", "pullrequest:updated", "repo:commit_comment_created", "repo:commit_status_created",
			"repo:commit_status_updated", "repo:fork", "repo:push", "repo:transfer", "repo:updated",
		}

	case "linear":
		return []string{
			"AppUserNotification", "Attachment", "Comment", "Customer", "CustomerNeed", "Cycle", "Document", "Initiative",
			"InitiativeUpdate", "Issue", "IssueLabel", "IssueSLA", "OAuthAppRevoked", "PermissionChange", "Project",
			"ProjectUpdate", "Reaction", "User",
		}

	case "sentry":
		return []string{"comment", "error", "event_alert", "installation", "issue", "metric_alert", "seer"}
	case "circleci":
		return []string{"job-completed", "workflow-completed"}
	case "buildkite":
		return []string{
			"agent.connected", "agent.disconnected", "agent.lost", "agent.stopped", "agent.stopping", "build.failing",
			"build.finished", "build.running", "build.scheduled", "build.skipped", "cluster_token.registration_blocked",
			"job.activated", "job.finished", "job.scheduled", "job.started", "ping",
		}

	case "snyk":
		return []string{"ping", "project_snapshot/v0"}
	}

	return nil
}
