package state

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"millwright/schema"
)

// Source says where a factory's definition comes from.
type Source struct {
	Kind   string `json:"kind"` // git, dir or managed
	URL    string `json:"url,omitempty"`
	Branch string `json:"branch,omitempty"`
	Path   string `json:"path,omitempty"`
}

// Revision is a version of a definition tree.
type Revision struct {
	ID      string     `json:"revision"`          // a git commit, sha256:… of the tree's content, or r12 of one that the server holds
	Author  string     `json:"author,omitempty"`  // where the source knows it
	Subject string     `json:"subject,omitempty"` // first line of the commit message
	At      *time.Time `json:"at,omitempty"`      // of the commit, UTC
	Tree    string     `json:"tree,omitempty"`    // names the content alone: two revisions with the same one say the same
	Held    bool       `json:"held,omitempty"`    // the server itself holds it: see HeldRevision
}

// SyncState is the outcome of a factory's last attempt to apply.
type SyncState string

// The values of SyncState.
const (
	SyncPending SyncState = "pending" // no attempt yet
	SyncApplied SyncState = "applied"
	SyncRefused SyncState = "refused" // the definition has errors; the last applied one serves
	SyncFailed  SyncState = "failed"  // the source could not be read; the last applied one serves
)

// Outcome is what became of one attempt to apply.
type Outcome string

// The values of Outcome.
const (
	OutcomeApplied   Outcome = "applied"
	OutcomeRefused   Outcome = "refused"
	OutcomeUnchanged Outcome = "unchanged"
	OutcomeFailed    Outcome = "failed"
)

// Factory is a configured factory and where its definition stands.
type Factory struct {
	UID           string
	Name          string // its identity: the name in the settings
	Source        Source
	Spec          *schema.FactoryFile // factory.yaml of the applied definition; nil when it has none
	Detached      bool                // no longer configured
	Suspended     bool
	Generation    int64
	SyncState     SyncState
	SyncSince     time.Time // when SyncState last changed
	Attempted     Revision
	Applied       Revision
	LastAttempted *time.Time
	LastApplied   *time.Time
	Problems      []schema.Problem // of the last attempt
	Message       string           // why the last attempt failed, when it did
	Created       time.Time
	Updated       time.Time
}

const factoryColumns = `uid, name, generation, source, spec, detached, suspended, sync_state, sync_since, attempted_revision, applied_revision,
	last_attempted_at, last_applied_at, problems, message, created_at, updated_at`

type scanner interface{ Scan(...any) error }

func scanFactory(row scanner) (Factory, error) {
	var f Factory
	var source, spec, attempted, appliedRev, problems string
	var lastAttempted, lastApplied sql.NullInt64
	var since, created, updated int64
	err := row.Scan(&f.UID, &f.Name, &f.Generation, &source, &spec, &f.Detached, &f.Suspended, &f.SyncState, &since, &attempted, &appliedRev,
		&lastAttempted, &lastApplied, &problems, &f.Message, &created, &updated)
	if err != nil {
		return Factory{}, err
	}
	f.LastAttempted, f.LastApplied = timeOrNil(lastAttempted), timeOrNil(lastApplied)
	f.SyncSince, f.Created, f.Updated = timeOf(since), timeOf(created), timeOf(updated)
	return f, errors.Join(json.Unmarshal([]byte(source), &f.Source), json.Unmarshal([]byte(spec), &f.Spec),
		json.Unmarshal([]byte(attempted), &f.Attempted), json.Unmarshal([]byte(appliedRev), &f.Applied),
		json.Unmarshal([]byte(problems), &f.Problems))
}

// EnsureFactory makes the factory of this name exist, attached, with the given source. Its UID and its
// key for webhook UIDs are made the first time and never change. A factory that was detached, or whose
// source or suspension changed, keeps its applied definition.
func (s *Store) EnsureFactory(ctx context.Context, name string, source Source, suspended bool) (Factory, error) {
	src, err := json.Marshal(source)
	if err != nil {
		return Factory{}, err
	}
	var key [32]byte
	rand.Read(key[:])
	var f Factory
	var generation int64
	err = s.tx(ctx, func(tx *sql.Tx) error {
		now := micros(time.Now())
		uid := NewID(PrefixFactory)
		if _, err := tx.ExecContext(ctx, `INSERT INTO factories (uid, name, uid_key, generation, source, sync_since, created_at, updated_at)
			VALUES ($1, $2, $3, 0, $4, $5, $5, $5) ON CONFLICT (name) DO NOTHING`, uid, name, s.seal.seal("factory "+uid, key[:]), string(src), now); err != nil {
			return err
		}
		if f, err = scanFactory(tx.QueryRowContext(ctx, `SELECT `+factoryColumns+` FROM factories WHERE name = $1`+s.dialect.forUpdate(), name)); err != nil {
			return err
		}
		if f.Generation != 0 && !f.Detached && f.Source == source && f.Suspended == suspended {
			generation = 0
			return nil
		}
		f.Source, f.Detached, f.Suspended = source, false, suspended
		if _, err := tx.ExecContext(ctx, `UPDATE factories SET source = $1, detached = 0, suspended = $2, updated_at = $3 WHERE uid = $4`, string(src), flag(suspended), now, f.UID); err != nil {
			return err
		}
		generation, err = s.bump(ctx, tx, f.UID)
		f.Generation = generation
		return err
	})
	if err != nil {
		return Factory{}, err
	}
	if generation == 0 {
		return f, nil
	}
	return f, s.announce(ctx, generation)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// DetachFactories detaches every factory whose name is not in keep: its webhooks answer 404, its
// history stays readable, and it gets its UIDs back when it is configured again.
func (s *Store) DetachFactories(ctx context.Context, keep []string) error {
	kept := map[string]bool{}
	for _, name := range keep {
		kept[name] = true
	}
	all, err := s.Factories(ctx)
	if err != nil {
		return err
	}
	for _, f := range all {
		if kept[f.Name] || f.Detached {
			continue
		}
		var generation int64
		if err := s.tx(ctx, func(tx *sql.Tx) (err error) {
			if _, err := tx.ExecContext(ctx, `UPDATE factories SET detached = 1, updated_at = $1 WHERE uid = $2`, micros(time.Now()), f.UID); err != nil {
				return err
			}
			generation, err = s.bump(ctx, tx, f.UID)
			return err
		}); err != nil {
			return err
		}
		s.definitions.drop(f.UID)
		if err := s.announce(ctx, generation); err != nil {
			return err
		}
	}
	return nil
}

// Factories returns every factory, detached ones included, by name.
func (s *Store) Factories(ctx context.Context) ([]Factory, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT `+factoryColumns+` FROM factories ORDER BY name`)
	if err != nil {
		return nil, s.classify(err)
	}
	defer rows.Close()
	var all []Factory
	for rows.Next() {
		f, err := scanFactory(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, s.classify(rows.Err())
}

// Factory returns the factory with this UID or, failing that, this name. ErrNotFound when there is none.
func (s *Store) Factory(ctx context.Context, uidOrName string) (Factory, error) {
	f, err := scanFactory(s.read.QueryRowContext(ctx, `SELECT `+factoryColumns+` FROM factories WHERE uid = $1 OR name = $1 ORDER BY CASE WHEN uid = $1 THEN 0 ELSE 1 END LIMIT 1`, uidOrName))
	if errors.Is(err, sql.ErrNoRows) {
		return f, fmt.Errorf("factory %q: %w", uidOrName, ErrNotFound)
	}
	return f, s.classify(err)
}

// Current is what a plan compares a tree with: one consistent view of a factory's applied definition
// and of the team's secrets. The tree and the UIDs are shared: read them only.
type Current struct {
	Factory   Factory
	Key       []byte // of the factory, for WebhookUID
	Tree      schema.Factory
	Webhooks  []Webhook         // live, by name
	UIDs      map[string]string // of live automations, agents, runners and skills, by ResourceKey
	Ordinals  map[string]int    // how many webhooks of a name there have ever been, live one included
	Secrets   map[string]SecretInfo
	PlannedAt time.Time
}

// ResourceKey names a resource of a factory: its kind and name.
func ResourceKey(kind, name string) string { return kind + "/" + name }

// Webhook is a webhook of a factory, live or deleted.
type Webhook struct {
	ID            int64
	UID           string
	FactoryUID    string
	Spec          schema.Webhook
	Ordinal       int
	SecretVersion int64 // that was applied; 0 when deleted
	SecretStale   bool  // the secret has a newer version, which waits for the next apply
	SecretPending bool  // the applied version has no value yet
	Created       time.Time
	Updated       time.Time
	Deleted       *time.Time
}

const webhookColumns = `w.id, w.uid, w.factory_uid, w.spec, w.ordinal, coalesce(w.secret_version, 0), coalesce(s.version, 0), coalesce(v.sealed IS NULL AND v.name IS NOT NULL, FALSE), w.created_at, w.updated_at, w.deleted_at`

const webhookTables = ` FROM webhooks w LEFT JOIN secrets s ON s.name = w.secret_name
	LEFT JOIN secret_versions v ON v.name = w.secret_name AND v.version = w.secret_version `

func scanWebhook(row scanner) (Webhook, error) {
	var w Webhook
	var spec string
	var latest, created, updated int64
	var deleted sql.NullInt64
	if err := row.Scan(&w.ID, &w.UID, &w.FactoryUID, &spec, &w.Ordinal, &w.SecretVersion, &latest, &w.SecretPending, &created, &updated, &deleted); err != nil {
		return Webhook{}, err
	}
	w.SecretStale = w.SecretVersion != 0 && latest > w.SecretVersion
	w.Created, w.Updated, w.Deleted = timeOf(created), timeOf(updated), timeOrNil(deleted)
	return w, json.Unmarshal([]byte(spec), &w.Spec)
}

// Current reads what a plan for the factory compares with.
func (s *Store) Current(ctx context.Context, factoryUID string) (Current, error) {
	var c Current
	err := s.view(ctx, func(tx *sql.Tx) (err error) {
		c, err = s.current(ctx, tx, factoryUID)
		return err
	})
	c.PlannedAt = time.Now()
	return c, s.classify(err)
}

func (s *Store) current(ctx context.Context, tx *sql.Tx, factoryUID string) (Current, error) {
	c := Current{Ordinals: map[string]int{}}
	var err error
	if c.Factory, err = scanFactory(tx.QueryRowContext(ctx, `SELECT `+factoryColumns+` FROM factories WHERE uid = $1`, factoryUID)); errors.Is(err, sql.ErrNoRows) {
		return c, fmt.Errorf("factory %q: %w", factoryUID, ErrNotFound)
	} else if err != nil {
		return c, err
	}
	var sealed []byte
	if err := tx.QueryRowContext(ctx, `SELECT uid_key FROM factories WHERE uid = $1`, factoryUID).Scan(&sealed); err != nil {
		return c, err
	}
	if c.Key, err = s.seal.open("factory "+factoryUID, sealed); err != nil {
		return c, err
	}
	d, err := s.applied(ctx, tx, factoryUID, c.Factory.Generation)
	if err != nil {
		return c, err
	}
	c.Tree, c.UIDs = d.tree, d.uids
	if c.Webhooks, err = liveWebhooks(ctx, tx, factoryUID); err != nil {
		return c, err
	}
	c.Tree.File = c.Factory.Spec
	for _, w := range c.Webhooks {
		c.Tree.Webhooks = append(c.Tree.Webhooks, w.Spec)
	}
	if err := ordinals(ctx, tx, factoryUID, c.Ordinals); err != nil {
		return c, err
	}
	c.Secrets, err = secretInfos(ctx, tx)
	return c, err
}

func liveWebhooks(ctx context.Context, tx *sql.Tx, factoryUID string) ([]Webhook, error) {
	rows, err := tx.QueryContext(ctx, `SELECT `+webhookColumns+webhookTables+`WHERE w.factory_uid = $1 AND w.deleted_at IS NULL ORDER BY w.name`, factoryUID)
	if err != nil {
		return nil, err
	}
	return scanAll(rows, scanWebhook)
}

// scanAll reads every row, closes rows, and returns what scan makes of them.
func scanAll[T any](rows *sql.Rows, scan func(scanner) (T, error)) ([]T, error) {
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

func ordinals(ctx context.Context, tx *sql.Tx, factoryUID string, into map[string]int) error {
	rows, err := tx.QueryContext(ctx, `SELECT name, count(*) FROM webhooks WHERE factory_uid = $1 GROUP BY name`, factoryUID)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var n int
		if err := rows.Scan(&name, &n); err != nil {
			return err
		}
		into[name] = n
	}
	return rows.Err()
}
