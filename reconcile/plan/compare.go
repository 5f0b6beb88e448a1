package plan

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"millwright/schema"
	"millwright/state"
)

// Make loads the tree at the root of fsys and compares it with cur. The returned change set makes the
// change; it is nil if the tree has errors or could not be read.
func Make(cur state.Current, fsys fs.FS, opts Options) (Plan, *state.ChangeSet) {
	return Compare(cur, schema.Load(fsys, nil), opts)
}

// Compare is Make for a loaded tree. It runs the rules that need state on loaded.
func Compare(cur state.Current, loaded *schema.Result, opts Options) (Plan, *state.ChangeSet) {
	p, app := compare(cur, loaded, opts)
	for i, found := range p.Problems { // the application's are the same
		p.Problems[i].Excerpt = schema.Excerpt(loaded.Source(found.Path), found)
	}
	return p, app
}

func compare(cur state.Current, loaded *schema.Result, opts Options) (Plan, *state.ChangeSet) {
	p := Plan{
		BaseRevision: cur.Factory.Applied.ID, HeadRevision: opts.Revision.ID,
		Changes: []Change{}, Secrets: []Secret{}, Problems: []schema.Problem{},
	}
	known := &schema.Known{}
	if opts.Public {
		cur.Restorable, cur.LastInUse = nil, false
	} else {
		known = Known(cur, loaded.WebhookNames(), opts)
	}

	own := openSecrets(cur, loaded.SealedSecrets(), opts, known)
	loaded.Check(*known)
	p.WebhookUIDs = known.UIDs
	for _, id := range loaded.WebhookIDs() {
		if name, gone := known.Gone[id]; gone && known.KnownUIDs[id] == "" {
			if p.Gone == nil {
				p.Gone = map[string]string{}
			}
			p.Gone[id] = name
		}
	}

	p.Problems = append(p.Problems, loaded.Problems...)

	guarded := []string{ // checked by guard, below
		schema.RuleWebhookRenamed.Code(), schema.RulePruneGuard.Code(), schema.RuleSenderContract.Code(),
		schema.RuleWebhookLast.Code(), schema.RuleDeliveriesLimit.Code(),
	}
	for _, rule := range loaded.NotChecked {
		if loaded.Factory == nil || !slices.Contains(guarded, rule) {
			p.NotChecked = append(p.NotChecked, rule)
		}
	}

	if loaded.Err != nil {
		p.Err = fmt.Errorf("read the definition: %w", loaded.Err)
		return p, nil
	}
	if loaded.Factory == nil {
		return p, nil
	}

	app := &state.ChangeSet{
		FactoryUID: cur.Factory.UID, Base: cur.Factory.Generation, BaseRevision: cur.Factory.Applied.ID,
		Started: opts.Now, Revision: opts.Revision, File: loaded.Factory.File,
	}
	p.compareFile(cur, loaded.Factory.File, app)
	p.compareWebhooks(cur, loaded.Factory.Webhooks, own, opts, app)
	p.compareResources(cur, loaded.Factory, app)
	p.compareSecrets(cur, own, opts, app)
	p.guard(cur, loaded.Factory, opts)
	schema.SortProblems(p.Problems)
	for _, c := range p.Changes {
		count(&app.Counts, c.Action)
	}

	if opts.Public {
		p.withhold()
	}
	if slices.ContainsFunc(p.Problems, func(q schema.Problem) bool { return q.Severity == schema.SeverityError }) {
		return p, nil
	}

	p.WouldApply = true
	app.Problems, app.Changes = p.Problems, record(p.Changes)
	return p, app
}

func (p *Plan) compareFile(cur state.Current, file *schema.FactoryFile, app *state.ChangeSet) {
	c := Change{
		Kind:   KindFactory,
		Name:   "factory.yaml",
		Fields: []Field{},
		UID:    cur.Factory.UID,
		File:   "factory.yaml",
		Line:   1,
	}

	switch old := cur.Tree.File; {
	case old == nil && file == nil:
		return
	case old == nil:
		c.Action = ActionCreate
	case file == nil:
		c.Action = ActionDelete
	default:
		c.update(old, file)
	}

	app.FileChanged = c.Action != ActionUnchanged
	p.Changes = append(p.Changes, c)
}

// secretVersion returns the version of the secret that a webhook uses from the apply on. If the webhook is registered
// at a forge, the apply makes a secret that has no value.
func secretVersion(cur state.Current, w schema.Webhook, app *state.ChangeSet) int64 {
	info := cur.Secrets[w.SecretName]
	if w.Register == nil || info.Version > 0 && !info.Pending {
		return info.Version
	}

	made := state.SecretChange{Name: w.SecretName, Version: info.Version + 1, Generate: true}
	if !slices.ContainsFunc(app.Secrets, func(c state.SecretChange) bool { return c.Name == w.SecretName }) {
		app.Secrets = append(app.Secrets, made)
	}

	return made.Version
}

func (p *Plan) compareWebhooks(
	cur state.Current,
	webhooks []schema.Webhook,
	own map[string]ownSecret,
	opts Options,
	app *state.ChangeSet,
) {
	live := liveByName(cur, opts)
	picked := map[string]*Secret{}
	var changes []Change
	for _, w := range webhooks {
		secret, isOwn := own[w.SecretName]
		version := secret.version
		if !isOwn {
			version = secretVersion(cur, w, app)
		}

		old, exists := live[w.Name]
		delete(live, w.Name)
		c := Change{Kind: KindWebhook, Name: w.Name, Fields: []Field{}, UID: old.UID, File: w.Path, Line: w.Line}
		first, ordinal, moved := old.FirstName, old.Ordinal, false
		back, returns := cur.Restorable[w.Name]
		switch {
		case exists:
			moved = c.update(old.Spec, w)
		case returns:
			c.update(back.Spec, w)
			c.Action, c.UID = ActionRestore, back.UID
			first, ordinal = back.FirstName, back.Ordinal
		default:
			first, ordinal = w.Name, cur.Ordinals[w.Name]
			c.Action, c.UID = ActionCreate, state.WebhookUID(cur.Key, w.Name, ordinal)
		}

		stale := exists && old.Spec.SecretName == w.SecretName &&
			(old.SecretVersion != version || old.SecretOwn != isOwn)
		if stale {
			s := picked[w.SecretName]
			if s == nil {
				s = &Secret{Name: w.SecretName, Version: version}
				picked[w.SecretName] = s
			}

			s.Webhooks = append(s.Webhooks, w.Name)
			app.Counts.Secrets++
		}

		if stale || moved || c.Action != ActionUnchanged {
			app.Webhooks = append(
				app.Webhooks,
				state.WebhookChange{
					UID: c.UID, FirstName: first, Ordinal: ordinal, Spec: w, SecretVersion: version, SecretOwn: isOwn,
				},
			)
		}

		changes = append(changes, c)
	}

	for name, w := range live {
		changes = append(
			changes,
			Change{
				Kind:   KindWebhook,
				Name:   name,
				Action: ActionDelete,
				Fields: []Field{},
				UID:    w.UID,
				File:   w.Spec.Path,
				Line:   max(w.Spec.Line, 1),
			},
		)
	}

	p.add(changes)
	for _, c := range changes {
		if c.Action == ActionDelete {
			app.DeleteWebhooks = append(app.DeleteWebhooks, c.UID)
		}
	}

	for _, s := range picked {
		p.Secrets = append(p.Secrets, *s)
	}

	slices.SortFunc(p.Secrets, func(a, b Secret) int { return strings.Compare(a.Name, b.Name) })
}

// resource is an automation, agent, runner or skill.
type resource struct {
	kind, name, file string
	line             int
	spec             any
}

// resources lists what a tree has besides factory.yaml and webhooks, kind by kind.
func resources(tree *schema.Factory) []resource {
	var all []resource
	for _, a := range tree.Automations {
		all = append(all, resource{KindAutomation, a.Name, a.Path, a.Line, a})
	}

	for _, a := range tree.Agents {
		all = append(all, resource{KindAgent, a.Name, a.Path, a.Line, a})
	}

	for _, r := range tree.Runners {
		all = append(all, resource{KindRunner, r.Name, r.Path, r.Line, r})
	}

	for _, e := range tree.Environments {
		all = append(all, resource{KindEnvironment, e.Name, e.Path, e.Line, e})
	}

	for _, n := range tree.Notifications {
		all = append(all, resource{KindNotification, n.Name, n.Path, n.Line, n})
	}

	for _, s := range tree.Skills {
		name := s.Name
		if s.Agent != "" {
			name = s.Agent + "/" + s.Name
		}

		all = append(all, resource{KindSkill, name, s.Path, s.Line, s})
	}

	return all
}

func (p *Plan) compareResources(cur state.Current, tree *schema.Factory, app *state.ChangeSet) {
	applied := map[string]resource{}
	for _, r := range resources(&cur.Tree) {
		applied[state.ResourceKey(r.kind, r.name)] = r
	}

	var changes []Change
	for _, r := range resources(tree) {
		key := state.ResourceKey(r.kind, r.name)
		c := Change{Kind: r.kind, Name: r.name, Fields: []Field{}, UID: cur.UIDs[key], File: r.file, Line: r.line}
		moved := false
		if old, exists := applied[key]; exists {
			moved = c.update(old.spec, r.spec)
			delete(applied, key)
		} else {
			c.Action = ActionCreate
		}

		if moved || c.Action != ActionUnchanged {
			app.Resources = append(
				app.Resources,
				state.ResourceChange{UID: c.UID, Kind: r.kind, Name: r.name, Spec: r.spec},
			)
		}

		changes = append(changes, c)
	}

	for key, r := range applied {
		changes = append(
			changes,
			Change{
				Kind:   r.kind,
				Name:   r.name,
				Action: ActionDelete,
				Fields: []Field{},
				UID:    cur.UIDs[key],
				File:   r.file,
				Line:   max(r.line, 1),
			},
		)
	}

	p.add(changes)
	for _, c := range changes {
		if c.Action == ActionDelete {
			app.DeleteResources = append(app.DeleteResources, c.UID)
		}
	}
}
