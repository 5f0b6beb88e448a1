package flow

import (
	"context"
	"errors"
	"time"

	"millwright/state/db"
)

// Undecided is an automation that a delivery starts only after an answer of its forge.
type Undecided struct {
	AutomationUID string
	DeliveryUID   string
	FactoryUID    string
	WebhookUID    string
	Attempts      int // how often somebody began to decide
	Received      time.Time
	Due           time.Time
}

const countUndecidedSQL = `SELECT count(*)
FROM (
	SELECT 1
	FROM undecided
	WHERE automation_uid = $1
	LIMIT $2
) AS found`

const insertUndecidedSQL = `INSERT INTO undecided (
	automation_uid, delivery_uid, factory_uid, webhook_uid, attempts, due_at, received_at
)
VALUES ($1, $2, $3, $4, 0, $5, $5)`

// Add stores that an automation is to be decided on, unless MaxWaiting deliveries wait for that: then it
// reports full.
func (u Undecided) Add(ctx context.Context, tx *db.Tx) (full bool, err error) {
	var n int
	err = tx.QueryRow(ctx, countUndecidedSQL, u.AutomationUID, MaxWaiting).Scan(&n)
	if err != nil || n >= MaxWaiting {
		return true, err
	}

	_, err = tx.Exec(ctx, insertUndecidedSQL, u.AutomationUID, u.DeliveryUID, u.FactoryUID, u.WebhookUID,
		db.Micros(u.Received))
	return false, err
}

const dueSQL = `SELECT automation_uid, delivery_uid, factory_uid, webhook_uid, attempts, due_at, received_at
FROM (
	SELECT *, row_number() OVER (PARTITION BY factory_uid ORDER BY delivery_uid, automation_uid) AS turn
	FROM undecided
	WHERE due_at <= $1
) AS due
ORDER BY turn, delivery_uid
LIMIT $2`

// Due returns what is to be decided now: at most limit rows, of all factories by turns. Those of one factory are in
// the order of its deliveries.
func Due(ctx context.Context, r db.Reader, now time.Time, limit int) ([]Undecided, error) {
	return db.All(ctx, r, scanUndecided, dueSQL, db.Micros(now), limit)
}

const undecidedOfSQL = `SELECT
	automation_uid, delivery_uid, factory_uid, webhook_uid, attempts, due_at, received_at
FROM undecided
WHERE automation_uid = $1
ORDER BY delivery_uid
LIMIT $2`

// UndecidedOf returns what is to be decided of an automation, in the order of the deliveries: at most limit
// rows.
func UndecidedOf(ctx context.Context, r db.Reader, automationUID string, limit int) ([]Undecided, error) {
	return db.All(ctx, r, scanUndecided, undecidedOfSQL, automationUID, limit)
}

func scanUndecided(row db.Row) (u Undecided, err error) {
	var due, received int64
	err = row.Scan(&u.AutomationUID, &u.DeliveryUID, &u.FactoryUID, &u.WebhookUID, &u.Attempts, &due, &received)
	u.Due, u.Received = db.Time(due), db.Time(received)
	return u, err
}

const holdUndecidedSQL = `UPDATE undecided
SET
	due_at = $4,
	attempts = attempts + 1
WHERE automation_uid = $1 AND delivery_uid = $2 AND due_at = $3`

// Hold keeps other replicas from the decision until a time. It reports false if another one was first.
func (u *Undecided) Hold(ctx context.Context, tx *db.Tx, until time.Time) (bool, error) {
	err := tx.ExecOne(ctx, holdUndecidedSQL,
		u.AutomationUID, u.DeliveryUID, db.Micros(u.Due), db.Micros(until))
	if errors.Is(err, db.ErrNoRow) {
		return false, nil
	}
	if err == nil {
		u.Due = db.Time(db.Micros(until))
		u.Attempts++
	}
	return err == nil, err
}

const postponeUndecidedSQL = `UPDATE undecided
SET due_at = $3
WHERE automation_uid = $1 AND delivery_uid = $2`

// Postpone has the forge asked again at a time. It reports false if the decision was made before.
func (u Undecided) Postpone(ctx context.Context, tx *db.Tx, next time.Time) (bool, error) {
	n, err := tx.Exec(ctx, postponeUndecidedSQL, u.AutomationUID, u.DeliveryUID, db.Micros(next))
	return n > 0, err
}

const removeUndecidedSQL = `DELETE FROM undecided
WHERE automation_uid = $1 AND delivery_uid = $2`

// Remove ends the decision. It reports false if it was made before.
func (u Undecided) Remove(ctx context.Context, tx *db.Tx) (bool, error) {
	n, err := tx.Exec(ctx, removeUndecidedSQL, u.AutomationUID, u.DeliveryUID)
	return n > 0, err
}
