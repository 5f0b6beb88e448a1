// Package provider knows the events of GitHub, GitLab, Linear, Jira and Slack that triggers name: which
// deliveries are which event, and where the values that a trigger's filter compares are in their payloads.
//
// Each provider is a table of events. An event is a row: its name, the condition on the delivery, and the keys
// of its filter. The package reads payloads over their text, never panics on one, and decides nothing by a
// payload that is not the event that its header names.
package provider

import (
	"slices"
	"strings"
	"sync"
)

// tables returns the tables of all providers, in the order of the documentation. Those of one provider know
// the same events with the same keys, as far as their senders have them.
var tables = sync.OnceValue(func() []*table {
	return []*table{githubTable(), giteaTable(), gitlabTable(), linearTable(), jiraTable(), slackTable()}
})

// Names returns the providers, in the order of the documentation.
func Names() []string { return []string{GitHub, GitLab, Linear, Jira, Slack} }

// Known reports whether name is one of Names.
func Known(name string) bool { return slices.Contains(Names(), name) }

// OfScheme returns the provider whose events a webhook with this signature scheme receives, or "".
func OfScheme(scheme string) string {
	if t := tableOf(scheme); t != nil {
		return t.provider
	}
	return ""
}

// Schemes returns the signature schemes of webhooks that receive a provider's events. The first is the
// provider's own.
func Schemes(provider string) (all []string) {
	for _, t := range tables() {
		if t.provider == provider {
			all = append(all, t.schemes...)
		}
	}
	return all
}

// AllSchemes returns the signature schemes of all providers.
func AllSchemes() (all []string) {
	for _, t := range tables() {
		all = append(all, t.schemes...)
	}
	return all
}

// EventHeader returns the name of the header that names the event of a delivery by this scheme, or "".
func EventHeader(scheme string) string {
	if t := tableOf(scheme); t != nil {
		return t.header
	}
	return ""
}

// ForgeKind returns the kind of forge that sends deliveries by a signature scheme, as the settings name it,
// or "".
func ForgeKind(scheme string) string {
	if t := tableOf(scheme); t != nil {
		return t.forge
	}
	return ""
}

func tableOf(scheme string) *table {
	if scheme == "" {
		return nil
	}
	for _, t := range tables() {
		if slices.Contains(t.schemes, scheme) {
			return t
		}
	}
	return nil
}

// tableFor returns the main table of a provider, or nil.
func tableFor(provider string) *table {
	i := slices.IndexFunc(tables(), func(t *table) bool { return t.provider == provider })
	if i < 0 {
		return nil
	}
	return tables()[i]
}

func (t *table) event(name string) *event {
	if t == nil {
		return nil
	}
	i := slices.IndexFunc(t.events, func(e event) bool { return e.name == name })
	if i < 0 {
		return nil
	}
	return &t.events[i]
}

func (e *event) key(name string) *key {
	if e == nil {
		return nil
	}
	i := slices.IndexFunc(e.keys, func(k key) bool { return k.name == name })
	if i < 0 {
		return nil
	}
	return &e.keys[i]
}

// Events returns the events of a provider, in the order of the documentation.
func Events(provider string) (names []string) {
	if t := tableFor(provider); t != nil {
		for i := range t.events {
			names = append(names, t.events[i].name)
		}
	}
	return names
}

// Event describes an event of a provider.
type Event struct {
	Name string
	// Public is set where strangers may cause the event: they comment, mention or review where anybody may
	// write.
	Public bool
	// Never is the reason why no delivery is the event; "" if deliveries are.
	Never string
	// Own is the key that asks for the account of the server at the forge where the filter does not; "" for
	// none.
	Own  string
	Keys []Key
}

// Key describes a key of an event's filter.
type Key struct {
	Name    string
	Integer bool // its values are whole numbers
	Words   []string
	// Unread is the reason why no payload has a value, so that a filter with the key never matches; "" if
	// some do.
	Unread string
	Files  bool // its values are the files of a pull request, which the forge is asked for
}

// Lookup describes an event of a provider.
func Lookup(provider, name string) (Event, bool) {
	e := tableFor(provider).event(name)
	if e == nil {
		return Event{}, false
	}

	out := Event{Name: e.name, Public: e.public, Never: e.never, Own: e.own}
	for i := range e.keys {
		k := &e.keys[i]
		out.Keys = append(out.Keys, Key{k.name, k.compare.integer, k.compare.words, k.unread, k.files})
	}

	return out, true
}

// KeyNames returns the keys of an event's filter, sorted.
func (e Event) KeyNames() []string {
	names := make([]string, len(e.Keys))
	for i, k := range e.Keys {
		names[i] = k.Name
	}
	slices.Sort(names)
	return names
}

// CanonicalKey returns the key of an event's filter that an author wrote in another spelling: in camel case,
// or by the short name that hosted definitions use. It returns "" for what is no key of the event.
func CanonicalKey(provider, eventName, written string) string {
	return Spellings(provider, eventName)[written]
}

// Spellings returns the keys of an event's filter by every spelling that definitions may have.
func Spellings(provider, eventName string) map[string]string {
	e := tableFor(provider).event(eventName)
	if e == nil {
		return nil
	}

	all := map[string]string{}
	for short, meant := range spellings(provider) {
		for _, name := range meant {
			if e.key(name) != nil {
				all[short], all[camelCase(short)] = name, name
			}
		}
	}

	for i := range e.keys {
		name := e.keys[i].name
		all[name], all[camelCase(name)] = name, name
	}

	return all
}

// Hosted reports whether definitions of the hosted service write this key of an event's filter so.
func Hosted(provider, eventName, written string) bool {
	if provider == Linear && slices.Contains([]string{"teams", "projects", "states"}, written) {
		return true
	}
	if tableFor(provider).event(eventName).key(written) == nil || written == "author_associations" {
		return false
	}
	if written != "authors" {
		return true
	}

	switch eventName {
	case "issue_created", "issue_labeled", "check_suite_completed", "workflow_run_completed":
		return provider == GitHub
	case "pull_request_assigned", "pull_request_mentioned", "pull_request_review_requested",
		"pull_request_review_submitted":
		return false
	}

	return provider == GitHub && strings.HasPrefix(eventName, "pull_request_")
}

// spellings are the short names of keys in definitions, with the keys that they mean, by precedence.
func spellings(provider string) map[string][]string {
	switch provider {
	case GitHub, GitLab:
		return map[string][]string{
			"repositories": {"repos"}, "repo": {"repos"}, "repository": {"repos"}, "base_branch": {"base_branches"},
			"branch": {"base_branches", "branches"}, "numbers": {"pr_numbers"}, "pr_number": {"pr_numbers"},
			"states": {"review_states"},
			"teams":  {"reviewer_teams"}, "mentions": {"mentioned"}, "mentioned_users": {"mentioned"},
			"label": {"labels"}, "author": {"authors"}, "assignee": {"assignees"}, "reviewer": {"reviewers"},
			"path": {"paths"}, "files": {"paths"}, "conclusion": {"conclusions"}, "workflow": {"workflows"},
			"workflow_names": {"workflows"}, "action": {"actions"}, "author_association": {"author_associations"},
		}

	case Linear:
		return map[string][]string{
			"teams": {"team_ids"}, "projects": {"project_ids"}, "states": {"state_ids"}, "assignees": {"assignee_ids"},
			"creators": {"creator_ids"}, "issues": {"issue_ids"}, "mentioned": {"mentioned_user_ids"},
			"mentioned_users": {"mentioned_user_ids"}, "users": {"creator_ids"}, "label": {"labels"},
			"team": {"team_ids"}, "project": {"project_ids"}, "state": {"state_ids"}, "keyword": {"keywords"},
		}

	case Jira:
		return map[string][]string{
			"projects": {"project_keys"}, "states": {"status_ids"}, "statuses": {"status_ids"}, "label": {"labels"},
			"project": {"project_keys"}, "status": {"status_ids"}, "keyword": {"keywords"},
		}
	case Slack:
		return map[string][]string{
			"channels": {"channel_ids"}, "users": {"user_ids"}, "item_users": {"item_user_ids"},
			"emoji": {"emojis"}, "reactions": {"emojis"}, "channel": {"channel_ids"}, "user": {"user_ids"},
			"keyword": {"keywords"},
		}
	}

	return nil
}

// camelCase writes base_branches as baseBranches.
func camelCase(text string) string {
	words := strings.Split(text, "_")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// MeantEvent returns the event of a provider that a name from elsewhere means, such as that of its own
// webhooks, or "".
func MeantEvent(provider, written string) string {
	text := strings.ToLower(strings.NewReplacer("-", "_", ".", "_", " ", "_").Replace(written))
	for _, form := range [][2]string{
		{"", ""},
		{"pr_", "pull_request_"},
		{"issues_", "issue_"},
		{"_opened", "_created"},
		{"_created", "_opened"},
		{"_open", "_opened"},
		{"_updated", "_synchronized"},
		{"_synchronize", "_synchronized"},
		{"_pushed", "_synchronized"},
		{"_label_updated", "_labeled"},
		{"_ready_for_review", "_ready"},
		{"_review", "_review_submitted"},
		{"_reviewed", "_review_submitted"},
		{"_approved", "_review_submitted"},
		{"_comment", "_mentioned"},
		{"_commented", "_mentioned"},
		{"_status_changed", "_state_changed"},
		{"issue_status_changed", "status_changed"},
		{"issue_transitioned", "status_changed"},
		{"issue_commented", "comment_created"},
		{"comment", "comment_created"},
		{"message", "message_posted"},
		{"direct_message", "message_dm"},
		{"dm", "message_dm"},
		{"reaction", "reaction_added"},
		{"merge_requests", "merge_request"},
		{"merge_request_opened", "merge_request"},
		{"note", "bot_mentioned"},
		{"comment_mentioned", "bot_mentioned"},
		{"workflow_run", "workflow_run_completed"},
		{"check_suite", "check_suite_completed"},
	} {
		name := text
		if prefix := form[0]; strings.HasSuffix(prefix, "_") {
			name = form[1] + strings.TrimPrefix(text, prefix)
		} else if stem, ok := strings.CutSuffix(text, prefix); ok {
			name = stem + form[1]
		}

		if tableFor(provider).event(name) != nil {
			return name
		}
	}

	return ""
}
