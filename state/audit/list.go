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

const oldestKeptSQL = `SELECT at
FROM audit_log
ORDER BY at DESC, uid DESC
LIMIT 1 OFFSET $1`

// Expire deletes the rows that are older than a time span, and the oldest of more than MaxRows.
func (l *Log) Expire(ctx context.Context, age time.Duration) error {
	return l.expire(ctx, time.Now().Add(-age), MaxRows)
}

func (l *Log) expire(ctx context.Context, before time.Time, most int) error {
	oldest := db.Micros(before)
	over, err := db.All(ctx, l.db.Reader, func(row db.Row) (at int64, err error) {
		return at, row.Scan(&at)
	}, oldestKeptSQL, most)
	if err != nil {
		return err
	}
	if len(over) > 0 {
		oldest = max(oldest, over[0]+1)
	}

	return l.db.Exec(ctx, expireSQL, oldest)
}
