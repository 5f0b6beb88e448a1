package state

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"millwright/schema"
	"millwright/state/audit"
	"millwright/state/budget"
	"millwright/state/checks"
	"millwright/state/db"
	"millwright/state/notice"
	"millwright/state/registrations"
)

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
		return s.served(ctx, a.Base) // the change before may be on its way
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

// checkPin refuses a change of a factory that was rolled back, other than by another rollback.
func (f Factory) checkPin(a ChangeSet) error {
	if f.Pin == nil || a.Rollback != "" {
		return nil
	}
	return refuse(ErrConflict, "factory %q is %s", f.Name, f.PinMessage())
}

// recordCheck records what the forge of the source is owed after an attempt.
func recordCheck(ctx context.Context, tx *db.Tx, a Attempt) error {
	if a.CheckURL == "" || a.Revision.ID == "" {
		return nil
	}

	r := checks.Revision{
		FactoryUID: a.FactoryUID,
		URL:        a.CheckURL,
		Commit:     a.Revision.ID,
		Attempt:    a.ID,
		Created:    a.Counts.Created,
		Updated:    a.Counts.Updated,
		Deleted:    a.Counts.Deleted,
		Problems:   a.Problems,
	}
	switch a.Outcome {
	case OutcomeRefused:
		return checks.Refused(ctx, tx, r, a.Finished)
	case OutcomeFailed:
		return checks.Delayed(ctx, tx, r, a.Finished)
	case OutcomeSuspended:
		return checks.Suspended(ctx, tx, r, a.Finished)
	}

	return checks.Applied(ctx, tx, r, a.Finished)
}

// registerWebhook records what is to become of the webhook at its forge.
func registerWebhook(ctx context.Context, tx *db.Tx, factoryUID string, w WebhookChange) error {
	r := w.Spec.Register
	if r == nil {
		return registrations.Drop(ctx, tx, w.UID)
	}
	return registrations.Want(ctx, tx, registrations.Registration{
		WebhookUID: w.UID,
		FactoryUID: factoryUID,
		Forge:      r.Forge,
		Repository: r.Repository,
		Events:     r.Events,
	})
}

// record writes an attempt to the factory's status and history.
func (s *Store) record(ctx context.Context, tx *db.Tx, a Attempt) error {
	revision, err := json.Marshal(a.Revision)
	if err != nil {
		return err
	}
	if a.Problems == nil {
		a.Problems = []schema.Problem{}
	}

	problems, err := json.Marshal(a.Problems)
	if err != nil {
		return err
	}

	counts, err := json.Marshal(a.Counts)
	if err != nil {
		return err
	}

	a.Message = db.Text(a.Message)
	at := db.Micros(a.Finished)
	state := map[Outcome]SyncState{
		OutcomeApplied:   SyncApplied,
		OutcomeUnchanged: SyncApplied,
		OutcomeRefused:   SyncRefused,
		OutcomeFailed:    SyncFailed,
		OutcomeSuspended: SyncApplied,
	}[a.Outcome]
	if _, err := tx.Exec(ctx, recordStatusSQL,
		string(state), at, string(problems), a.Message, a.FactoryUID); err != nil {
		return err
	}

	if a.Revision.ID != "" {
		if _, err := tx.Exec(ctx, recordAttemptedSQL, string(revision), a.FactoryUID); err != nil {
			return err
		}
	}

	if a.Outcome == OutcomeApplied || a.Outcome == OutcomeUnchanged {
		if _, err := tx.Exec(ctx, recordAppliedSQL, string(revision), at, a.FactoryUID); err != nil {
			return err
		}
	}

	if len(a.Changes) == 0 {
		a.Changes = json.RawMessage("[]")
	}

	if err := tx.QueryRow(ctx, insertAttemptSQL,
		a.FactoryUID, db.Micros(a.Started), at, string(revision), string(a.Outcome), string(counts),
		string(problems), a.Message, string(a.Changes)).Scan(&a.ID); err != nil {
		return err
	}
	if err := recordCheck(ctx, tx, a); err != nil {
		return err
	}

	if _, err := tx.Exec(ctx, expireAttemptsSQL, a.FactoryUID, historyKept); err != nil {
		return err
	}
	return tellApplied(ctx, tx, a, counts)
}

// writeOwnSecrets stores the secrets that a definition brings. The webhooks that use them are changed with them.
func (s *Store) writeOwnSecrets(ctx context.Context, tx *db.Tx, a ChangeSet, now int64) error {
	for _, c := range a.Own {
		if err := untaken(ctx, tx, c); err != nil {
			return err
		}

		info := NewSecretInfo(c.Name, c.Value)
		info.FactoryUID, info.Revision, info.Digest = a.FactoryUID, a.Revision.ID, c.Digest
		info, err := s.writeSecret(ctx, tx, info, c.Value, db.Time(now))
		if err != nil {
			return err
		}
		if info.Version != c.Version {
			return fmt.Errorf("secret %q got another value: %w", c.Name, ErrMoved)
		}
	}

	return nil
}
