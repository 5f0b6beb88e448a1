// Package registrations stores which webhooks the server makes at forges: one row a webhook and repository. The
// rows are written in the transactions that apply definitions, and carried out later.
package registrations

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"millwright/state/db"
)

// State is where a registration stands.
type State string

// The states.
const (
	Pending    State = "pending"    // the forge does not have it yet as it is to be
	Registered State = "registered" // the forge had it at the last look
	Drifted    State = "drifted"    // somebody changed it at the forge; the next apply repairs it
	Failed     State = "failed"     // the forge or the settings do not allow it
	Removing   State = "removing"   // the definition no longer has it
)

// Registration is a webhook at a forge.
type Registration struct {
	WebhookUID, FactoryUID string
	Forge, Repository      string // as the definition names them
	Events                 []string
	State                  State
	Reason                 string // of Drifted and Failed; of Pending, why the last attempt did not succeed
	HookID                 int64  // at the forge; 0: it has never been there
	Attempts               int    // since the last success
	NextAt                 time.Time
	Checked                time.Time // zero: never
	CaughtUp               time.Time // deliveries since then may have failed; zero: none
	Updated                time.Time

	revision int64 // counts what applies wrote
}

// Table reads and writes the registrations that a database stores.
type Table struct{ db *db.DB }

// New returns the registrations in a database.
func New(d *db.DB) Table { return Table{d} }

const columns = `
	webhook_uid, factory_uid, forge, repository, events, state, reason, hook_id, attempts, next_at, checked_at,
	caught_up_at, updated_at, revision`

func scan(row db.Row) (r Registration, err error) {
	var events string
	var next, checked, caught, updated int64
	err = row.Scan(
		&r.WebhookUID, &r.FactoryUID, &r.Forge, &r.Repository, &events, &r.State, &r.Reason, &r.HookID,
		&r.Attempts, &next, &checked, &caught, &updated, &r.revision,
	)
	if err != nil {
		return r, err
	}

	r.NextAt, r.Updated = db.Time(next), db.Time(updated)
	if checked > 0 {
		r.Checked = db.Time(checked)
	}
	if caught > 0 {
		r.CaughtUp = db.Time(caught)
	}

	return r, json.Unmarshal([]byte(events), &r.Events)
}

const dropOthersSQL = `UPDATE registrations
SET state = 'removing', reason = '', attempts = 0, next_at = $4, updated_at = $4, revision = revision + 1
WHERE webhook_uid = $1
	AND NOT (forge = $2 AND repository = $3)
	AND state <> 'removing'`

const forgetOthersSQL = `DELETE FROM registrations
WHERE webhook_uid = $1
	AND NOT (forge = $2 AND repository = $3)
	AND state = 'failed'
	AND hook_id = 0`

// dropOthers has the registrations of a webhook removed, but for one. Those that never were at a forge are forgotten.
func dropOthers(ctx context.Context, tx *db.Tx, webhookUID, forge, repository string) error {
	if _, err := tx.Exec(ctx, forgetOthersSQL, webhookUID, forge, repository); err != nil {
		return err
	}

	_, err := tx.Exec(ctx, dropOthersSQL, webhookUID, forge, repository, db.Micros(time.Now()))
	return err
}

const wantSQL = `INSERT INTO registrations (
	webhook_uid, factory_uid, forge, repository, events, state, next_at, updated_at
)
VALUES ($1, $2, $3, $4, $5, 'pending', $6, $6)
ON CONFLICT (webhook_uid, forge, repository) DO UPDATE SET
	events = excluded.events,
	state = 'pending',
	reason = '',
	attempts = 0,
	next_at = excluded.next_at,
	updated_at = excluded.updated_at,
	revision = registrations.revision + 1`

// Want makes one registration the only one that a webhook is to have, in the transaction of an apply.
func Want(ctx context.Context, tx *db.Tx, r Registration) error {
	events, err := json.Marshal(r.Events)
	if err != nil {
		return err
	}

	if err := dropOthers(ctx, tx, r.WebhookUID, r.Forge, r.Repository); err != nil {
		return err
	}

	now := db.Micros(time.Now())
	_, err = tx.Exec(ctx, wantSQL, r.WebhookUID, r.FactoryUID, r.Forge, r.Repository, string(events), now)
	return err
}

// Drop has all registrations of a webhook removed, in the transaction of an apply.
func Drop(ctx context.Context, tx *db.Tx, webhookUID string) error {
	return dropOthers(ctx, tx, webhookUID, "", "")
}

const repairSQL = `UPDATE registrations
SET
	state = CASE WHEN state = 'registered' THEN state ELSE 'pending' END,
	attempts = 0,
	next_at = $2,
	revision = revision + 1
WHERE factory_uid = $1 AND state IN ('drifted', 'failed', 'registered')`

// Repair has registrations of a factory that drifted or failed made again, in the transaction of an apply. The
// others are due for a look.
func Repair(ctx context.Context, tx *db.Tx, factoryUID string) error {
	_, err := tx.Exec(ctx, repairSQL, factoryUID, db.Micros(time.Now()))
	return err
}

const dueSQL = `SELECT webhook_uid, forge, repository
FROM registrations
WHERE next_at <= $1
ORDER BY next_at
LIMIT 1`

const takeSQL = `UPDATE registrations
SET attempts = attempts + 1, next_at = $4
WHERE webhook_uid = $1 AND forge = $2 AND repository = $3 AND next_at <= $5
RETURNING ` + columns

// Take gives the registration that is due first to the caller, who carries it out or looks at it before the lease
// ends. ok is false when none is due.
func (t Table) Take(ctx context.Context, lease time.Duration) (r Registration, ok bool, err error) {
	err = t.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		ok = false
		now := t.db.Now()
		var webhook, forge, repository string
		err := tx.QueryRow(ctx, dueSQL, db.Micros(now)).Scan(&webhook, &forge, &repository)
		if err == nil {
			end := t.db.LeaseEnd(lease)
			r, err = scan(tx.QueryRow(ctx, takeSQL, webhook, forge, repository, end, db.Micros(now)))
		}
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}

		ok = err == nil
		return err
	})
	return r, ok, err
}

const anyDueSQL = `SELECT count(*)
FROM registrations
WHERE next_at <= $1`

// Due reports whether a registration is due.
func (t Table) Due(ctx context.Context) (bool, error) {
	var n int
	err := t.db.QueryRow(ctx, anyDueSQL, db.Micros(t.db.Now())).Scan(&n)
	return n > 0, err
}

const reportSQL = `UPDATE registrations
SET
	state = $6,
	reason = $7,
	hook_id = $8,
	attempts = CASE WHEN $6 = 'registered' THEN 0 ELSE attempts END,
	next_at = $9,
	checked_at = $10,
	caught_up_at = $11,
	updated_at = CASE WHEN state = $6 AND reason = $7 THEN updated_at ELSE CAST($10 AS BIGINT) END
WHERE webhook_uid = $1
	AND forge = $2
	AND repository = $3
	AND revision = $4
	AND attempts = $5`

const maxReason = 1000 // characters

// Report records a taken registration: its State, Reason, HookID, CaughtUp, and NextAt as when to look again. One
// that was taken by somebody else, or changed by an apply, stays as it is.
func (t Table) Report(ctx context.Context, r Registration) error {
	caught := int64(0)
	if !r.CaughtUp.IsZero() {
		caught = db.Micros(r.CaughtUp)
	}
	return t.db.Exec(ctx, reportSQL,
		r.WebhookUID, r.Forge, r.Repository, r.revision, r.Attempts,
		string(r.State), db.Bounded(r.Reason, maxReason), r.HookID, db.Micros(r.NextAt), db.Micros(t.db.Now()), caught)
}

const removedSQL = `DELETE FROM registrations
WHERE webhook_uid = $1
	AND forge = $2
	AND repository = $3
	AND revision = $4
	AND state = 'removing'`

// Removed forgets a registration that the forge no longer has.
func (t Table) Removed(ctx context.Context, r Registration) error {
	return t.db.Exec(ctx, removedSQL, r.WebhookUID, r.Forge, r.Repository, r.revision)
}

const ofSQL = `SELECT ` + columns + `
FROM registrations
WHERE factory_uid = $1
ORDER BY webhook_uid, state, forge, repository`

// Of returns the registrations of a factory.
func (t Table) Of(ctx context.Context, factoryUID string) ([]Registration, error) {
	return db.All(ctx, t.db.Reader, scan, ofSQL, factoryUID)
}

const askSQL = `INSERT INTO redeliveries (webhook_uid, delivery, factory_uid, asked_at)
VALUES ($1, $2, $3, $4)
ON CONFLICT (webhook_uid, delivery) DO UPDATE SET asked_at = excluded.asked_at
WHERE redeliveries.sent = 0`

const forgetAskedSQL = `DELETE FROM redeliveries
WHERE webhook_uid = $1 AND asked_at < $2`

// askedFor is how long a delivery that was asked for may take to arrive.
const askedFor = 24 * time.Hour

// Ask records that the forge is about to be asked for a delivery again. ask is false if the forge answered that
// before.
func (t Table) Ask(ctx context.Context, r Registration, delivery string) (ask bool, err error) {
	err = t.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		now := t.db.Now()
		_, err := tx.Exec(ctx, forgetAskedSQL, r.WebhookUID, db.Micros(now.Add(-askedFor)))
		if err != nil {
			return err
		}

		n, err := tx.Exec(ctx, askSQL, r.WebhookUID, db.Text(delivery), r.FactoryUID, db.Micros(now))
		ask = n > 0
		return err
	})
	return ask, err
}

const answeredSQL = `UPDATE redeliveries
SET sent = 1
WHERE webhook_uid = $1 AND delivery = $2`

// Answered records that the forge agreed to send a delivery again, or refused to: it is not asked once more.
func (t Table) Answered(ctx context.Context, r Registration, delivery string) error {
	return t.db.Exec(ctx, answeredSQL, r.WebhookUID, db.Text(delivery))
}

const askedSQL = `SELECT count(*)
FROM redeliveries
WHERE webhook_uid = $1 AND delivery = $2`

// Asked reports whether the server asked the forge for a delivery again.
func (t Table) Asked(ctx context.Context, webhookUID, delivery string) (bool, error) {
	var n int
	err := t.db.QueryRow(ctx, askedSQL, webhookUID, db.Text(delivery)).Scan(&n)
	return n > 0, err
}
