package schema

// Resource is a definition file of a tree.
type Resource struct {
	Kind  string // the name of its JSON Schema: automation, webhook and so on
	Name  string
	Agent string // of an agent's own skill
	Path  string
}

// Resources returns the definition files of the tree, by path, also those with errors.
func (r *Result) Resources() []Resource {
	all := make([]Resource, 0, len(r.entries))
	for _, e := range r.entries {
		if e.kind != kindSecret {
			all = append(all, Resource{Kind: documentOf(e.kind), Name: e.name, Agent: e.agent, Path: e.path})
		}
	}
	return all
}

// Reference is a place in a tree that names a resource or a secret.
type Reference struct {
	Kind string // agent, automation, environment, runner, secret or webhook
	Name string // as it is written; of a webhook its UID or the name of its file
	Path string

	// The place of the value in its file, in bytes. Quote is the quotes around it, or 0.
	Start, End int
	Quote      byte
}

// References returns the places of the tree that name resources and secrets, also those of files with errors.
// Values that stand on several lines are left out.
func (r *Result) References() []Reference {
	if r.tree == nil {
		return nil
	}

	kinds := map[factKind]string{
		factAgent: "agent", factEnvironment: "environment", factRunner: "runner", factWebhookID: "webhook",
		factSecret: "secret", factGrant: "secret", factAutomation: "automation",
	}

	var all []Reference
	for i := range r.tree.facts {
		f := &r.tree.facts[i]
		if kind := kinds[f.kind]; kind != "" && f.end > f.start {
			all = append(all, Reference{kind, f.value, f.path, int(f.start), int(f.end), f.quote})
		}
	}

	return all
}

// WebhookFile returns the name of the webhook of the tree whose file a text names, with or without its
// directory and ending.
func (r *Result) WebhookFile(text string) (name string, ok bool) {
	if r.tree == nil {
		return "", false
	}
	return r.tree.webhookFile(text)
}

// ValidName reports whether a resource may have this name.
func ValidName(name string) bool {
	var t tree
	if name != "" {
		t.checkName(name, name)
	}
	return name != "" && len(t.problems) == 0
}
