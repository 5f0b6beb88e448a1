package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"millwright/schema"
	"millwright/state"
)

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

var kindOrder = []string{
	KindFactory, KindWebhook, KindAutomation, KindAgent, KindRunner, KindSkill, KindNotification, KindSecret,
}

// add appends changes in their order, which it also gives to the argument.
func (p *Plan) add(changes []Change) {
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(
			slices.Index(kindOrder, a.Kind)-slices.Index(kindOrder, b.Kind),
			strings.Compare(a.Name, b.Name),
		)
	})
	p.Changes = append(p.Changes, changes...)
}

// update sets the action and the fields of a change between two specs of a resource. It reports whether the
// resource begins at another line, which is stored but not a change.
func (c *Change) update(old, new any) (moved bool) {
	if reflect.DeepEqual(old, new) { // the usual case: equal specs have equal text
		c.Action = ActionUnchanged
		return false
	}

	before, after := members(old), members(new)
	moved = before["line"] != after["line"]
	delete(before, "line")
	delete(after, "line")
	for name, value := range after {
		if !reflect.DeepEqual(before[name], value) {
			c.Fields = append(c.Fields, Field{Name: name, Old: before[name], New: value})
		}
	}

	for name, value := range before {
		if _, kept := after[name]; !kept {
			c.Fields = append(c.Fields, Field{Name: name, Old: value})
		}
	}

	slices.SortFunc(c.Fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	c.Action = ActionUnchanged
	if len(c.Fields) > 0 {
		c.Action = ActionUpdate
	}

	return moved
}

// members returns the members of a spec's JSON object, with numbers as written.
func members(spec any) map[string]any {
	text, err := json.Marshal(spec)
	var m map[string]any
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		err = d.Decode(&m)
	}

	if err != nil { // not for specs that came from a loaded tree or from the state; it shows as a change
		return map[string]any{"error": err.Error()}
	}

	return m
}
