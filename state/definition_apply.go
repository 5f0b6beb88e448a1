package state

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"millwright/schema"
	"millwright/state/audit"
	"millwright/state/budget"
	"millwright/state/db"
	"millwright/state/notice"
	"millwright/state/registrations"
)

// Attempt is one attempt to make the state equal to a revision.
type Attempt struct {
	ID         int64
	FactoryUID string
	Source     Source // of the factory at that time; what is recorded takes it from the factory
	Started    time.Time
	Finished   time.Time
	Revision   Revision
	Outcome    Outcome
	Counts     Counts
	Problems   []schema.Problem
	Message    string          // why it failed or was refused, in one line; empty when it was applied
	CheckURL   string          // address of the git source, whose forge is owed a status of the revision; empty: none
	Changes    json.RawMessage // what was applied, as the planner wrote it; only [Store.Attempt] reads it
}

// Counts says how many resources an attempt created, updated, deleted and left alone.
type Counts struct {
	Created   int `json:"created"`
	Updated   int `json:"updated"`
	Deleted   int `json:"deleted"`
	Unchanged int `json:"unchanged"`
	Secrets   int `json:"secrets"` // webhooks that picked up a new version of their secret
}

// historyKept is how many attempts are kept of each factory.
const historyKept = 200

// ChangeSet is a planned change of a factory, ready to be made. Everything that can be wrong with it
// has been looked at, except what others did since the plan was made.
type ChangeSet struct {
	FactoryUID   string
	Base         int64  // the factory's generation that the plan compared with
	BaseRevision string // the ID of the applied revision that it compared with
	Started      time.Time
	Revision     Revision
	Counts       Counts
	Changes      json.RawMessage  // what the application does, for people who look at it later
	Problems     []schema.Problem // warnings and notices
	CheckURL     string           // as that of an Attempt

	File            *schema.FactoryFile
	FileChanged     bool
	Webhooks        []WebhookChange // created or updated, or with a new secret version
	DeleteWebhooks  []string        // UIDs
	ForgetWebhooks  []string        // those of DeleteWebhooks that do not come back with their file
	Resources       []ResourceChange
	DeleteResources []string // UIDs

	// Secrets get new values together with the change, and Edit, if it is not nil, is the next revision of
	// a managed definition: Revision names it.
	Secrets []SecretChange
	Edit    *ManagedEdit

	// Files are kept for a rollback. A rollback has the digest of the kept files that it applies instead, and
	// suspends the factory.
	Files    []schema.File
	Rollback string

	// Audit describes the change in the audit log; without an action it is an apply.
	Audit audit.Entry

	Own       []OwnSecret // of the definition: new, or with another file
	DeleteOwn []string    // names of those whose file is gone
}

// OwnSecret is a secret of the factory's definition.
type OwnSecret struct {
	Name    string
	Value   []byte // never nil
	Digest  string // of the file
	Version int64  // that this value gets
}

// SecretChange gives a secret a new value; nil makes it pending.
type SecretChange struct {
	Name    string
	Value   []byte
	Version int64 // that this value gets: ErrMoved when another one came first

	Generate bool // the value is made when it is stored
}

// WebhookChange creates or updates a webhook.
type WebhookChange struct {
	UID           string
	FirstName     string // that the webhook had when it was made
	Ordinal       int    // how many had that name first, before it
	Spec          schema.Webhook
	SecretVersion int64
	SecretOwn     bool // the secret is one of the factory's definition
}

// ResourceChange creates or updates an automation, agent, runner or skill.
type ResourceChange struct {
	UID  string // empty: a new one
	Kind string
	Name string
	Spec any
}

// Empty reports whether the application changes nothing but the revision.
func (a *ChangeSet) Empty() bool {
	return !a.FileChanged && len(a.Webhooks)+len(a.DeleteWebhooks)+len(a.Resources)+len(a.DeleteResources)+
		len(a.Own)+len(a.DeleteOwn) == 0
}

// Apply makes the planned change in one transaction, and returns when every replica serves it.
// ErrMoved: the factory, or a secret it needs, changed since the plan was made; nothing was changed,
// plan again. ErrSuperseded, which is one of these: what was planned is no longer the newest revision that
// the server holds. Any other error before the commit changes nothing either.
func (s *Store) Apply(ctx context.Context, a ChangeSet) error {
	var generation, freed int64
	err := s.audit.Write(ctx, func(ctx context.Context, tx *db.Tx) (audit.Entries, error) {
		have, err := scanFactory(
			tx.QueryRow(
				ctx,
				`SELECT `+factoryColumns+` FROM factories WHERE uid = $1`+s.db.ForUpdate(),
				a.FactoryUID,
			),
		)
		if err != nil {
			return nil, err
		}
		if have.Generation != a.Base || have.Applied.ID != a.BaseRevision {
			return nil, ErrMoved
		}
		if err := have.checkPin(a); err != nil {
			return nil, err
		}
		if err := checkNewest(ctx, tx, a.FactoryUID, a.Revision, a.Edit); err != nil && a.Rollback == "" {
			return nil, err
		}

		now := time.Now()
		for _, c := range a.Secrets {
			if c.Generate {
				c.Value = []byte(rand.Text())
			}
			if info, err := s.setSecret(ctx, tx, c.Name, c.Value, now); err != nil {
				return nil, err
			} else if info.Version != c.Version {
				return nil, fmt.Errorf("secret %q got another value: %w", c.Name, ErrMoved)
			}
		}

		a := a
		a.FileChanged = a.FileChanged || have.unreadable
		outcome := OutcomeUnchanged
		generation = 0
		if !a.Empty() {
			outcome = OutcomeApplied
			if err := s.change(ctx, tx, a, db.Micros(now)); err != nil {
				return nil, err
			}
			if err := budget.Read(ctx, tx, a.FactoryUID); err != nil {
				return nil, err
			}
			if freed, err = tx.Exec(ctx, unparkFactorySQL, a.FactoryUID); err != nil {
				return nil, err
			}
			if generation, err = s.bump(ctx, tx, a.FactoryUID); err != nil {
				return nil, err
			}
		}

		if err := registrations.Repair(ctx, tx, a.FactoryUID); err != nil {
			return nil, err
		}

		if a.Edit != nil {
			if err := addRevision(ctx, tx, a.FactoryUID, a.Revision, a.Edit, now); err != nil {
				return nil, err
			}
		}

		if err := a.keepFiles(ctx, tx, now); err != nil {
			return nil, err
		}

		return a.audited(ctx), s.record(
			ctx,
			tx,
			Attempt{
				FactoryUID: a.FactoryUID,
				Started:    a.Started,
				Finished:   now,
				Revision:   a.Revision,
				Outcome:    outcome,
				Counts:     a.Counts,
				Changes:    a.Changes,
				Problems:   a.Problems,
				CheckURL:   a.CheckURL,
			},
		)
	})
	if db.IsForeignKey(err) {
		return fmt.Errorf("%w: a secret was deleted or replaced", ErrMoved)
	}
	if err != nil {
		return err
	}

	for _, c := range a.Secrets {
		s.Notify(notice.Secret, c.Name)
	}

	s.Notify(notice.Sync, a.FactoryUID)
	if freed > 0 {
		s.Publish(notice.Notice{Topic: notice.Queued})
	}
	if generation == 0 {
		return nil
	}

	return s.announce(ctx, generation)
}

const setFactorySpecSQL = `UPDATE factories
SET spec = $1, updated_at = $2
WHERE uid = $3`

const deleteWebhookSQL = `UPDATE webhooks
SET
	deleted_at = $1,
	updated_at = $1,
	restorable_until = $3,
	secret_name = NULL,
	secret_version = NULL
WHERE uid = $2 AND deleted_at IS NULL`

// writeWebhookSQL makes a webhook, changes it, or brings it back.
const writeWebhookSQL = `INSERT INTO webhooks (
	uid, factory_uid, name, first_name, ordinal, spec, secret_name, secret_version, created_at, updated_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
ON CONFLICT (uid) DO UPDATE SET
	name = excluded.name,
	spec = excluded.spec,
	secret_name = excluded.secret_name,
	secret_version = excluded.secret_version,
	updated_at = excluded.updated_at,
	deleted_at = NULL,
	restorable_until = NULL`

const deleteResourceSQL = `UPDATE resources
SET deleted_at = $1, updated_at = $1, base = $3
WHERE uid = $2 AND deleted_at IS NULL`

const upsertResourceSQL = `INSERT INTO resources (
	uid, factory_uid, kind, name, spec, base, created_at, updated_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
ON CONFLICT (uid) DO UPDATE SET
	spec = excluded.spec,
	base = excluded.base,
	updated_at = excluded.updated_at`

func (s *Store) change(ctx context.Context, tx *db.Tx, a ChangeSet, now int64) error {
	if a.FileChanged {
		file, err := json.Marshal(a.File)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, setFactorySpecSQL, string(file), now, a.FactoryUID); err != nil {
			return err
		}
	}

	if err := s.writeOwnSecrets(ctx, tx, a, now); err != nil {
		return err
	}

	for _, uid := range a.DeleteWebhooks {
		var restorable any = now + RestoreWindow.Microseconds()
		if slices.Contains(a.ForgetWebhooks, uid) {
			restorable = nil
		}

		if err := tx.ExecOne(ctx, deleteWebhookSQL, now, uid, restorable); err != nil {
			return orMoved(err)
		}
		if err := registrations.Drop(ctx, tx, uid); err != nil {
			return err
		}
	}

	for _, w := range a.Webhooks {
		spec, err := json.Marshal(w.Spec)
		if err != nil {
			return err
		}

		_, err = tx.Exec(ctx, writeWebhookSQL, w.UID, a.FactoryUID, w.Spec.Name,
			cmp.Or(w.FirstName, w.Spec.Name), w.Ordinal, string(spec), SecretKey(owner(a, w), w.Spec.SecretName),
			w.SecretVersion, now)
		if err != nil {
			return err
		}
		if err := registerWebhook(ctx, tx, a.FactoryUID, w); err != nil {
			return err
		}
	}

	for _, uid := range a.DeleteResources {
		if err := tx.ExecOne(ctx, deleteResourceSQL, now, uid, a.Base); err != nil {
			return orMoved(err)
		}
	}

	for _, r := range a.Resources {
		spec, err := json.Marshal(r.Spec)
		if err != nil {
			return err
		}

		uid := r.UID
		if uid == "" {
			uid = NewID(resourcePrefix[r.Kind])
		}
		_, err = tx.Exec(ctx, upsertResourceSQL, uid, a.FactoryUID, r.Kind, r.Name, string(spec), a.Base, now)
		if err != nil {
			return err
		}
	}

	for _, name := range a.DeleteOwn {
		if err := tx.ExecOne(ctx, deleteSecretSQL, SecretKey(a.FactoryUID, name)); err != nil {
			return orMoved(err)
		}
	}

	return s.expireSecretVersions(ctx, tx)
}

// owner returns the factory to which the secret of a webhook belongs; empty for one of the team.
func owner(a ChangeSet, w WebhookChange) string {
	if w.SecretOwn {
		return a.FactoryUID
	}
	return ""
}

// Refuse records an attempt that changes nothing: refused for its problems, suspended, or failed before there
// was a tree. The last applied definition keeps serving. ErrSuperseded: what was attempted is no longer the
// newest revision that the server holds, and nothing was recorded.
func (s *Store) Refuse(ctx context.Context, a Attempt) error {
	if a.Outcome != OutcomeRefused && a.Outcome != OutcomeFailed && a.Outcome != OutcomeSuspended {
		return fmt.Errorf("cannot record outcome %q as a refusal", a.Outcome)
	}

	a.Finished = time.Now()
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		var name string
		query := `SELECT name FROM factories WHERE uid = $1` + s.db.ForUpdate()
		if err := tx.QueryRow(ctx, query, a.FactoryUID).Scan(&name); err != nil {
			return err
		}
		if err := checkNewest(ctx, tx, a.FactoryUID, a.Revision, nil); err != nil {
			return err
		}

		return s.record(ctx, tx, a)
	})
	if err != nil {
		return err
	}

	s.Notify(notice.Sync, a.FactoryUID)
	return nil
}

const recordStatusSQL = `UPDATE factories
SET
	sync_since = CASE WHEN sync_state = $1 THEN sync_since ELSE $2 END,
	sync_state = $1,
	last_attempted_at = $2,
	problems = $3,
	message = $4
WHERE uid = $5`
