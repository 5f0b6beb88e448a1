package audit

import (
	"context"
	"time"

	"millwright/state/db"
)

// MaxRows is how many rows are kept at most.
const MaxRows = 500_000

// Filter selects rows; of a zero field all.
type Filter struct {
	Actor      string // name or UID
	Action     string // one action, or the part before its dot
	FactoryUID string
	Since      time.Time
	Until      time.Time // before it
}

// Position is the place of a row in the log.
type Position struct {
	At  int64  `json:"t"` // microseconds
	UID string `json:"u"`
}

// Position returns the place of a row.
func (e Entry) Position() Position { return Position{db.Micros(e.At), e.UID} }

const listSQL = `SELECT at, uid, factory_uid, actor_kind, actor_uid, actor, source, action, subject, detail
FROM audit_log
WHERE at >= $1
	AND at <= $2
	AND (at < $2 OR uid < $3)
	AND (CAST($4 AS TEXT) = '' OR actor = $4 OR actor_uid = $4)
	AND (CAST($5 AS TEXT) = '' OR action = $5 OR action LIKE $6)
	AND (CAST($7 AS TEXT) = '' OR factory_uid = $7)
ORDER BY at DESC, uid DESC
LIMIT $8`

// List returns rows, newest first: those after a position, if it is not the zero one.
func (l *Log) List(ctx context.Context, f Filter, after Position, limit int) ([]Entry, error) {
	last := Position{At: 1 << 62}
	if !f.Until.IsZero() {
		last.At = db.Micros(f.Until)
	}
	if after != (Position{}) && after.At <= last.At {
		last = after
	}

	var since int64
	if !f.Since.IsZero() {
		since = db.Micros(f.Since)
	}

	return db.All(ctx, l.db.Reader, scan, listSQL,
		since, last.At, last.UID, f.Actor, f.Action, f.Action+".%", f.FactoryUID, limit)
}

func scan(row db.Row) (Entry, error) {
	var e Entry
	var at int64
	err := row.Scan(
		&at, &e.UID, &e.FactoryUID, &e.Actor.Kind, &e.Actor.UID, &e.Actor.Name, &e.Actor.Source,
		&e.Action, &e.Subject, &e.Detail,
	)
	e.At = db.Time(at)
	return e, err
}

// expireSQL deletes rows in bounded numbers, so that it never holds up others for long.
const expireSQL = `DELETE FROM audit_log
WHERE (at, uid) IN (
	SELECT at, uid
	FROM audit_log
	WHERE at < $1
	ORDER BY at, uid
	LIMIT 10000
)`

const loudestSQL = `SELECT actor_kind, actor_uid, factory_uid
FROM audit_log
GROUP BY actor_kind, actor_uid, factory_uid
ORDER BY count(*) DESC
LIMIT 1`

const expireLoudestSQL = `DELETE FROM audit_log
WHERE (at, uid) IN (
	SELECT at, uid
	FROM audit_log
	WHERE actor_kind = $1 AND actor_uid = $2 AND factory_uid = $3
	ORDER BY at, uid
	LIMIT $4
)`

const (
	expireBatch  = 10_000
	expireRounds = 100
)

// Expire deletes the rows that are older than a time span. Of more than most rows it deletes the oldest of whoever
// wrote the most in a factory, so that nobody pushes out the rows of others.
func (l *Log) Expire(ctx context.Context, age time.Duration, most int) error {
	if err := l.db.Exec(ctx, expireSQL, db.Micros(time.Now().Add(-age))); err != nil {
		return err
	}

	for range expireRounds {
		var n int
		if err := l.db.QueryRow(ctx, `SELECT count(*) FROM audit_log`).Scan(&n); err != nil || n <= most {
			return err
		}

		var kind, uid, factory string
		if err := l.db.QueryRow(ctx, loudestSQL).Scan(&kind, &uid, &factory); err != nil {
			return err
		}
		if err := l.db.Exec(ctx, expireLoudestSQL, kind, uid, factory, min(n-most, expireBatch)); err != nil {
			return err
		}
	}

	return nil
}
