package events

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"millwright/schema"
	"millwright/state/db"
)

// Receiver is a notification that events wait for.
type Receiver struct {
	NotificationUID string
	FactoryUID      string
	Factory         string // name
	Spec            schema.Notification
	Gone            string    // why nothing is sent to it any more; empty: it is
	NextAt          time.Time // when the first of the events is due
}

// receiversSQL steps from one notification to the next over the index of what waits.
const receiversSQL = `WITH RECURSIVE waiting (uid) AS (
	SELECT min(notification_uid)
	FROM events
	WHERE state = 'pending'
	UNION ALL
	SELECT (
		SELECT min(e.notification_uid)
		FROM events e
		WHERE e.state = 'pending' AND e.notification_uid > waiting.uid
	)
	FROM waiting
	WHERE waiting.uid IS NOT NULL
)
SELECT
	w.uid,
	(SELECT coalesce(min(e.next_at), 0) FROM events e WHERE e.state = 'pending' AND e.notification_uid = w.uid),
	coalesce(r.spec, ''),
	coalesce(f.uid, ''),
	coalesce(f.name, '')
FROM waiting w
LEFT JOIN resources r ON r.uid = w.uid AND r.deleted_at IS NULL
LEFT JOIN factories f ON f.uid = r.factory_uid AND f.detached = 0
WHERE w.uid IS NOT NULL`

// Receivers returns the notifications that events wait for.
func (t Table) Receivers(ctx context.Context) ([]Receiver, error) {
	return db.All(ctx, t.db.Reader, func(row db.Row) (Receiver, error) {
		var r Receiver
		var next int64
		var spec string
		err := row.Scan(&r.NotificationUID, &next, &spec, &r.FactoryUID, &r.Factory)
		r.NextAt = db.Time(next)
		r.read(spec)
		return r, err
	}, receiversSQL)
}

// read takes a stored specification, empty for a notification that was deleted.
func (r *Receiver) read(spec string) {
	switch {
	case spec == "":
		r.Gone = "the notification was deleted"
	case r.FactoryUID == "":
		r.Gone = "the factory was removed from the settings"
	case json.Unmarshal([]byte(spec), &r.Spec) != nil:
		r.Gone = "the notification cannot be read as it is stored"
	case !r.Spec.Enabled:
		r.Gone = "the notification was disabled"
	}
}

const receiverSQL = `SELECT coalesce(r.spec, ''), coalesce(f.uid, ''), coalesce(f.name, '')
FROM events e
LEFT JOIN resources r ON r.uid = e.notification_uid AND r.deleted_at IS NULL
LEFT JOIN factories f ON f.uid = r.factory_uid AND f.detached = 0
WHERE e.uid = $1 AND e.state = 'pending'`

// Receiver returns the notification of an event as it is now. ok is false when the event is not pending any more.
func (t Table) Receiver(ctx context.Context, e Event) (r Receiver, ok bool, err error) {
	var spec string
	r.NotificationUID = e.NotificationUID
	err = t.db.QueryRow(ctx, receiverSQL, e.UID).Scan(&spec, &r.FactoryUID, &r.Factory)
	if errors.Is(err, sql.ErrNoRows) {
		return r, false, nil
	}

	r.read(spec)
	return r, true, err
}

const dueSQL = `SELECT ` + columns + `
FROM events
WHERE notification_uid = $1 AND state = 'pending' AND next_at <= $2
ORDER BY next_at, uid
LIMIT $3`

// Due returns at most limit events of a notification that are due, the first ones first.
func (t Table) Due(ctx context.Context, notification string, limit int) ([]Event, error) {
	return db.All(ctx, t.db.Reader, scan, dueSQL, notification, db.Micros(t.db.Now()), limit)
}

const dropSQL = `UPDATE events
SET state = 'dropped', reason = $2, updated_at = $3
WHERE notification_uid = $1 AND state = 'pending'`

// Drop ends the pending events of a notification, and returns how many.
func (t Table) Drop(ctx context.Context, notification, reason string) (dropped int64, err error) {
	err = t.db.Write(ctx, func(ctx context.Context, tx *db.Tx) (err error) {
		dropped, err = tx.Exec(ctx, dropSQL, notification, reason, db.Micros(t.db.Now()))
		return err
	})
	return dropped, err
}

const attemptedSQL = `UPDATE events
SET
	state = $2,
	attempts = attempts + 1,
	tries = tries + 1,
	next_at = $3,
	reason = $4,
	updated_at = $5
WHERE uid = $1 AND state = 'pending'
RETURNING attempts`

const (
	insertAttemptSQL = `INSERT INTO event_attempts (event_uid, number, factory_uid, at, took, status, error, answer)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

	expireAttemptsSQL = `DELETE FROM event_attempts
		WHERE event_uid = $1 AND number <= $2`
)

// Attempted records an attempt to send an event, and the state that the event is in now: until next, if it is
// pending. An event that is not pending any more stays as it is.
func (t Table) Attempted(ctx context.Context, e Event, a Attempt, state State, next time.Time) error {
	a.Error, a.Answer = db.Bounded(a.Error, maxText), db.Text(a.Answer)
	return t.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		var number int
		err := tx.QueryRow(ctx, attemptedSQL, e.UID, string(state), db.Micros(next), a.Error, db.Micros(t.db.Now())).
			Scan(&number)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}

		_, err = tx.Exec(ctx, insertAttemptSQL, e.UID, number, e.FactoryUID, db.Micros(a.At), a.Took.Microseconds(),
			a.Status, a.Error, a.Answer)
		if err != nil || number <= MaxAttempts {
			return err
		}
		_, err = tx.Exec(ctx, expireAttemptsSQL, e.UID, number-MaxAttempts)
		return err
	})
}

const (
	replaySQL = `UPDATE events
		SET state = 'pending', tries = 0, reason = '', next_at = $3, give_up_at = $4, updated_at = $3
		WHERE uid = $1 AND factory_uid = $2 AND (state = 'dead' OR state = 'sent')`

	replayDeadSQL = `UPDATE events
		SET state = 'pending', tries = 0, reason = '', next_at = $3, give_up_at = $4, updated_at = $3
		WHERE uid IN (
			SELECT uid
			FROM events
			WHERE factory_uid = $1 AND state = 'dead' AND ($2 = '' OR notification = $2)
			ORDER BY uid
			LIMIT $5
		)`
)

// replayChunk is how many events one transaction replays.
const replayChunk = 500

// Replay sends an event again that is dead or was sent. ErrConflict when it is neither.
func (t Table) Replay(ctx context.Context, factoryUID, uid string) (Event, error) {
	now := t.db.Now()
	err := t.db.ExecOne(ctx, replaySQL, uid, factoryUID, db.Micros(now), db.Micros(now.Add(GiveUp)))
	if err != nil && !errors.Is(err, db.ErrNoRow) {
		return Event{}, err
	}

	e, missing := t.Event(ctx, factoryUID, uid)
	if missing == nil && err != nil {
		return e, ErrConflict
	}
	return e, missing
}

// ReplayDead sends the dead events of a factory again, or those of one notification, and returns how many.
func (t Table) ReplayDead(ctx context.Context, factoryUID, notification string) (replayed int, err error) {
	for {
		var n int64
		err := t.db.Write(ctx, func(ctx context.Context, tx *db.Tx) (err error) {
			now := t.db.Now()
			n, err = tx.Exec(ctx, replayDeadSQL, factoryUID, notification, db.Micros(now),
				db.Micros(now.Add(GiveUp)), replayChunk)
			return err
		})
		replayed += int(n)
		if err != nil || n < replayChunk {
			return replayed, err
		}
	}
}

const (
	expireOldSQL = `DELETE FROM events
		WHERE uid IN (
			SELECT uid
			FROM events
			WHERE uid < $1 AND created_at < $2 AND state <> 'pending'
			ORDER BY uid
			LIMIT $3
		)`

	factoriesSQL = `SELECT DISTINCT factory_uid
		FROM resources
		WHERE kind = 'notification'`

	nthSQL = `SELECT uid
		FROM events
		WHERE factory_uid = $1
		ORDER BY uid DESC
		LIMIT 1 OFFSET $2`

	expireManySQL = `DELETE FROM events
		WHERE uid IN (
			SELECT uid
			FROM events
			WHERE factory_uid = $1 AND uid <= $2 AND state <> 'pending'
			ORDER BY uid
			LIMIT $3
		)`
)

// expireChunk is how many events one transaction deletes.
const expireChunk = 500

// Expire deletes the events that ended too long ago, and the oldest of a factory beyond its share. least returns
// the least UID of an event that is made at a time.
func (t Table) Expire(ctx context.Context, least func(time.Time) string) error {
	before := t.db.Now().Add(-Kept)
	remove := func(query string, args ...any) error {
		for {
			var n int64
			err := t.db.Write(ctx, func(ctx context.Context, tx *db.Tx) (err error) {
				n, err = tx.Exec(ctx, query, append(args, expireChunk)...)
				return err
			})
			if err != nil || n < expireChunk {
				return err
			}
		}
	}
	if err := remove(expireOldSQL, least(before), db.Micros(before)); err != nil {
		return err
	}

	factories, err := db.Strings(ctx, t.db.Reader, factoriesSQL)
	if err != nil {
		return err
	}
	for _, factory := range factories {
		var uid string
		err := t.db.QueryRow(ctx, nthSQL, factory, MaxEnded).Scan(&uid)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return err
		}
		if err := remove(expireManySQL, factory, uid); err != nil {
			return err
		}
	}

	return nil
}
