package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"millwright/schema"
	"millwright/schema/agentconfig"
	"millwright/state/audit"
	"millwright/state/db"
	"millwright/state/notice"
)

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

// Pin says that a factory serves its applied revision whatever its source has, since a rollback.
type Pin struct {
	By string    `json:"by"` // who rolled back
	At time.Time `json:"at"`
}

const pinSQL = `UPDATE factories
SET pin = $2
WHERE uid = $1`

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
