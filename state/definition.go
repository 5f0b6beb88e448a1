package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"millwright/schema"
	"millwright/schema/agentconfig"
	"millwright/state/audit"
	"millwright/state/db"
	"millwright/state/events"
	"millwright/state/notice"
	"millwright/state/trees"
)

// definition is the automations, agents, runners and skills of a factory as one generation of it has them.
// Only its routes ever change.
type definition struct {
	generation int64
	tree       schema.Factory    // without the file and the webhooks; lists are in the order of resource names
	uids       map[string]string // by ResourceKey

	mu     sync.Mutex
	routes map[string]RoutedAutomation // by UID; those that were asked for
	file   string                      // factory.yaml that they were made with
}

// definitions are the definitions of attached factories that this process used last, one each.
type definitions struct {
	mu  sync.Mutex
	all map[string]*definition // by factory UID
}

func (d *definitions) get(factoryUID string) *definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[factoryUID]
}

// put keeps a definition, unless there is a newer one.
func (d *definitions) put(factoryUID string, next *definition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[string]*definition{}
	}
	if was := d.all[factoryUID]; was == nil || was.generation < next.generation {
		d.all[factoryUID] = next
	}
}

func (d *definitions) drop(factoryUID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, factoryUID)
}

// maxChanges is how many changed resources are put into the definition before. With more it is read anew.
const maxChanges = 64

// applied returns what a factory has at its present generation, as tx sees it. Only what changed since the
// last time is read. The result is shared: do not change it.
func (s *Store) applied(ctx context.Context, tx db.Reader, factoryUID string, generation int64) (*definition, error) {
	was := s.definitions.get(factoryUID)
	if was != nil && was.generation == generation {
		return was, nil
	}

	if was != nil && was.generation < generation {
		rows, err := resourceRows(
			ctx,
			tx,
			`factory_uid = $1 AND base >= $2 ORDER BY deleted_at IS NULL LIMIT $3`,
			factoryUID,
			was.generation,
			maxChanges+1,
		)
		if err != nil {
			return nil, err
		}

		if len(rows) <= maxChanges {
			next, err := was.with(rows, generation)
			if err == nil {
				s.definitions.put(factoryUID, next)
			}

			return next, err
		}
	}

	rows, err := resourceRows(ctx, tx, `factory_uid = $1 AND deleted_at IS NULL`, factoryUID)
	if err != nil {
		return nil, err
	}

	slices.SortFunc(rows, func(a, b resourceRow) int { return strings.Compare(a.name, b.name) })
	next, err := (&definition{uids: make(map[string]string, len(rows))}).with(rows, generation)
	if err == nil && (was == nil || was.generation < generation) {
		s.definitions.put(factoryUID, next)
	}

	return next, err
}

// with returns the changed definition; deletions come first.
func (d *definition) with(changes []resourceRow, generation int64) (*definition, error) {
	next := &definition{generation: generation, uids: maps.Clone(d.uids), tree: schema.Factory{
		Automations: slices.Clone(d.tree.Automations), Agents: slices.Clone(d.tree.Agents),
		Runners: slices.Clone(d.tree.Runners), Skills: slices.Clone(d.tree.Skills),
		Environments:  slices.Clone(d.tree.Environments),
		Notifications: slices.Clone(d.tree.Notifications),
	}}
	d.mu.Lock()
	next.routes, next.file = maps.Clone(d.routes), d.file
	d.mu.Unlock()
	for _, r := range changes {
		key := ResourceKey(r.kind, r.name)
		if !r.live && next.uids[key] != r.uid {
			continue // it came and went in between
		}

		var err error
		switch t := &next.tree; r.kind {
		case "automation":
			delete(next.routes, r.uid)
			t.Automations, err = change(t.Automations, r, func(a schema.Automation) string { return a.Name })
		case "agent":
			clear(next.routes) // any of them may be its
			t.Agents, err = change(t.Agents, r, func(a schema.Agent) string { return a.Name })
		case "runner":
			t.Runners, err = change(t.Runners, r, func(v schema.Runner) string { return v.Name })
		case "environment":
			t.Environments, err = change(t.Environments, r, func(v schema.Environment) string { return v.Name })
		case "notification":
			t.Notifications, err = change(t.Notifications, r, func(v schema.Notification) string { return v.Name })
		case "skill":
			t.Skills, err = change(
				t.Skills,
				r,
				func(v schema.Skill) string { return strings.TrimPrefix(v.Agent+"/"+v.Name, "/") },
			)
		}

		if err != nil {
			return nil, fmt.Errorf("%s %q: %w: %w", r.kind, r.name, ErrUnreadable, err)
		}

		if r.live {
			next.uids[key] = r.uid
		} else {
			delete(next.uids, key)
		}
	}

	return next, nil
}

// change puts a resource into a list that is in the order of names, or takes it out.
func change[T any](list []T, r resourceRow, name func(T) string) ([]T, error) {
	i, found := slices.BinarySearchFunc(list, r.name, func(v T, n string) int { return strings.Compare(name(v), n) })
	if !r.live {
		if found {
			list = slices.Delete(list, i, i+1)
		}
		return list, nil
	}

	var v T
	err := json.Unmarshal([]byte(r.spec), &v)
	if found {
		list[i] = v
	} else {
		list = slices.Insert(list, i, v)
	}

	return list, err
}

// route returns the automations with what runs of them get, by name. spec is the applied factory.yaml, and
// file what it says.
func (d *definition) route(spec string, file *schema.FactoryFile) ([]RoutedAutomation, error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.routes == nil || d.file != spec {
		d.routes, d.file = make(map[string]RoutedAutomation, len(d.tree.Automations)), spec
	}

	tree := d.tree
	tree.File = file
	all := make([]RoutedAutomation, 0, len(tree.Automations))
	for _, a := range tree.Automations {
		uid := d.uids[ResourceKey("automation", a.Name)]
		routed, known := d.routes[uid]
		if !known {
			var err error
			if routed, err = routeAutomation(tree, d.uids, a); err != nil {
				return nil, err
			}

			d.routes[uid] = routed
		}

		all = append(all, routed)
	}

	return all, nil
}

// resourceRow is a stored resource.
type resourceRow struct {
	uid, kind, name, spec string
	live                  bool
}

func resourceRows(ctx context.Context, tx db.Reader, where string, args ...any) ([]resourceRow, error) {
	return db.All(ctx, tx, func(row db.Row) (r resourceRow, err error) {
		err = row.Scan(&r.uid, &r.kind, &r.name, &r.spec, &r.live)
		return r, err
	}, `SELECT uid, kind, name, spec, deleted_at IS NULL FROM resources WHERE `+where,
		args...)
}

// ResourceKey names a resource of a factory: its kind and name.
func ResourceKey(kind, name string) string { return kind + "/" + name }

// RoutedAutomation is an automation with what a run of it gets.
type RoutedAutomation struct {
	UID     string
	Spec    schema.Automation
	Config  json.RawMessage // AmbientAgentConfig resolved from the definition, secret values masked
	Sealed  []byte          // the mcp_servers of Config with their secret values; nil when Config masks nothing
	Model   string
	Env     string   // environment ID
	Agent   string   // UID of the agent, or empty
	Secrets []string // names of the team secrets that the harness gets
}

func routeAutomation(tree schema.Factory, uids map[string]string, a schema.Automation) (RoutedAutomation, error) {
	exec, basePrompt, agent := tree.Resolve(a)
	config, err := agentconfig.FromDefinition(exec, basePrompt, a.Name)
	if err != nil {
		return RoutedAutomation{}, err
	}

	sealed, err := config.Mask()
	if err != nil {
		return RoutedAutomation{}, err
	}

	raw, err := json.Marshal(config)
	r := RoutedAutomation{
		UID:     uids[ResourceKey("automation", a.Name)],
		Spec:    a,
		Config:  raw,
		Sealed:  sealed,
		Model:   config.ModelID,
		Env:     config.EnvironmentID,
		Secrets: exec.Secrets,
	}
	if agent != "" {
		r.Agent = uids[ResourceKey("agent", agent)]
	}

	return r, err
}

var resourcePrefix = map[string]string{
	"automation": PrefixAutomation,
	"agent":      PrefixAgent,
	"runner":     PrefixRunner,

	"environment": PrefixEnvironment,
	"skill":       PrefixSkill,

	"notification": PrefixNotification,
}

// tellApplied writes the events of an attempt that applied a definition, or that was refused.
func tellApplied(ctx context.Context, tx *db.Tx, a Attempt, counts []byte) error {
	if a.Outcome != OutcomeApplied && a.Outcome != OutcomeRefused {
		return nil
	}

	return events.Applied(ctx, tx, newEventID, a.FactoryUID, events.Apply{
		Outcome:  string(a.Outcome),
		Revision: a.Revision.ID,
		Author:   a.Revision.Author,
		Subject:  a.Revision.Subject,
		Counts:   counts,
		Message:  a.Message,
	}, a.Problems, a.Finished)
}

// audited returns the rows of the audit log about the application, and about the secrets in the definition.
// A source whose new revision changes nothing has none.
func (a *ChangeSet) audited(ctx context.Context) audit.Entries {
	e := a.Audit
	e.FactoryUID, e.Actor = a.FactoryUID, audit.ActorOf(ctx)
	automatic := e.Actor.Kind == audit.KindServer
	if automatic && a.Empty() && a.Edit == nil {
		return nil
	}

	if automatic && a.Revision.Author != "" && !a.Revision.Managed {
		e.Actor = audit.Actor{Kind: audit.KindSource, Name: a.Revision.Author}
	}
	if e.Action == "" {
		e.Action, e.Subject = audit.FactoryApply, a.FactoryUID
	}

	e.Detail = strings.TrimPrefix(e.Detail+"; ", "; ") + fmt.Sprintf("revision %s: %d created, %d updated, %d deleted",
		a.Revision.ID, a.Counts.Created, a.Counts.Updated, a.Counts.Deleted)

	all := audit.One(e)
	secret := func(action, name string) {
		all = append(all, audit.Entry{
			FactoryUID: a.FactoryUID, Actor: e.Actor, Action: action, Subject: name,
			Detail: "in the definition, revision " + a.Revision.ID,
		})
	}
	for _, s := range a.Own {
		secret(audit.SecretSet, s.Name)
	}
	for _, name := range a.DeleteOwn {
		secret(audit.SecretDelete, name)
	}

	return all
}

// Pin says that a factory serves its applied revision whatever its source has, since a rollback.
type Pin struct {
	By string    `json:"by"` // who rolled back
	At time.Time `json:"at"`
}

// PinMessage describes a factory that was rolled back, and what its source has.
func (f Factory) PinMessage() string {
	if f.Pin == nil {
		return ""
	}

	text := fmt.Sprintf("suspended at revision %s since %s rolled back", f.Applied.ID, f.Pin.By)
	switch {
	case f.SyncState == SyncFailed:
		text += "; the source cannot be read: " + f.Message
	case f.SyncState == SyncRefused:
		text += fmt.Sprintf("; revision %s would be refused: %s", f.Attempted.ID, f.Message)
	case f.Attempted.ID != f.Applied.ID:
		text += fmt.Sprintf("; revision %s is valid and waits", f.Attempted.ID)
	}

	return text + "; resume the factory to follow its source again"
}

const pinSQL = `UPDATE factories
SET pin = $2
WHERE uid = $1`

// keepFiles keeps the files that are applied, or notes which kept ones a rollback applies.
func (a *ChangeSet) keepFiles(ctx context.Context, tx *db.Tx, now time.Time) error {
	revision, err := json.Marshal(a.Revision)
	if err != nil {
		return err
	}

	switch {
	case a.Rollback != "":
		pin, err := json.Marshal(Pin{By: audit.ActorOf(ctx).Name, At: now.UTC()})
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, pinSQL, a.FactoryUID, db.Text(string(pin))); err != nil {
			return err
		}

		return trees.Serve(ctx, tx, a.FactoryUID, a.Rollback, now)
	case a.Files != nil:
		return trees.Keep(ctx, tx, a.FactoryUID, revision, a.Files, now)
	case a.Empty():
		return trees.Revise(ctx, tx, a.FactoryUID, revision)
	}

	return trees.Replace(ctx, tx, a.FactoryUID, now)
}

// checkPin refuses a change of a factory that was rolled back, other than by another rollback.
func (f Factory) checkPin(a ChangeSet) error {
	if f.Pin == nil || a.Rollback != "" {
		return nil
	}
	return refuse(ErrConflict, "factory %q is %s", f.Name, f.PinMessage())
}

const resumeSQL = `UPDATE factories
SET pin = 'null', updated_at = $2
WHERE uid = $1 AND pin <> 'null'`

// Resume has a factory follow its source again after a rollback. ErrConflict when it was not rolled back.
func (s *Store) Resume(ctx context.Context, factoryUID string) error {
	err := s.audit.Write(ctx, func(ctx context.Context, tx *db.Tx) (audit.Entries, error) {
		err := tx.ExecOne(ctx, resumeSQL, factoryUID, db.Micros(time.Now()))
		if errors.Is(err, db.ErrNoRow) {
			err = refuse(ErrConflict, "the factory is not suspended by a rollback")
		}

		return audit.One(audit.Entry{
			FactoryUID: factoryUID,
			Action:     audit.FactoryResume,
			Subject:    factoryUID,
		}), err
	})
	if err != nil {
		return err
	}

	s.Notify(notice.Source, factoryUID)
	s.Notify(notice.Sync, factoryUID)
	return nil
}

// Deaf names an automation of the applied definition that selects a webhook which does not exist, and counts
// the others; it is empty when there is none.
func (f Factory) Deaf() string {
	first, n := "", 0
	for _, p := range f.Problems {
		if p.Code != schema.RuleWebhookUnknown.Code() {
			continue
		}
		if n++; n == 1 {
			first = fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message)
		}
	}

	if n > 1 {
		first += fmt.Sprintf(" (and %d more)", n-1)
	}
	return first
}
