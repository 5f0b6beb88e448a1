// Package events stores what the server tells receivers outside: one row for each event and notification that
// asks for it. The rows are an outbox: they are written in the transactions of what they tell of, and sent later.
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

// Test is the type of events that people ask for to try a notification.
const Test = "notification.test"

// State is where an event stands.
type State string

// The states. Only Pending events are sent.
const (
	Pending State = "pending"
	Sent    State = "sent"    // the receiver answered 2xx
	Dead    State = "dead"    // given up; a person may replay it
	Dropped State = "dropped" // its notification was deleted or disabled
)

// States returns every state.
func States() []State { return []State{Pending, Sent, Dead, Dropped} }

// Bounds of what is stored.
const (
	MaxWaiting  = 1000                // events that wait for one notification: further ones are dead at once
	MaxEnded    = 20_000              // events of a factory that are kept after their end
	Kept        = 30 * 24 * time.Hour // for so long
	MaxAttempts = 10                  // attempts of an event that are kept, the last ones
	MaxAnswer   = 1 << 10             // bytes of an answer that are kept
	GiveUp      = 24 * time.Hour      // after which an event is dead
)

// ErrNotFound and ErrConflict say that an event does not exist, and that its state does not allow a change.
var (
	ErrNotFound = errors.New("no such event")
	ErrConflict = errors.New("the event is in another state")
)

// Event is a stored event of a factory for one notification, with the state of its sending.
type Event struct {
	UID, FactoryUID, NotificationUID string
	Notification                     string // its name
	Type                             string
	RunID                            string // empty for an event of no run
	State                            State
	Data                             json.RawMessage // see [Data]
	Attempts                         int             // in all
	Tries                            int             // since it was made or replayed
	NextAt                           time.Time       // when it is due
	GiveUpAt                         time.Time       // when a failure ends it
	Reason                           string          // why it waits, is dead or was dropped
	Created, Updated                 time.Time
}

// Attempt is one attempt to send an event.
type Attempt struct {
	Number int // from 1
	At     time.Time
	Took   time.Duration
	Status int    // of the answer; 0: there was none
	Error  string // why it failed; empty when it was sent
	Answer string // how the answer begins
}

// Table reads and writes the events that a database stores.
type Table struct{ db *db.DB }

// New returns the events in a database.
func New(d *db.DB) Table { return Table{d} }

const columns = `
	uid, factory_uid, notification_uid, notification, type, run_id, state, data, attempts, tries, next_at,
	give_up_at, reason, created_at, updated_at`

func scan(row db.Row) (Event, error) {
	var e Event
	var data string
	var next, giveUp, created, updated int64
	err := row.Scan(
		&e.UID, &e.FactoryUID, &e.NotificationUID, &e.Notification, &e.Type, &e.RunID, &e.State, &data,
		&e.Attempts, &e.Tries, &next, &giveUp, &e.Reason, &created, &updated,
	)
	e.Data = json.RawMessage(data)
	e.NextAt, e.GiveUpAt = db.Time(next), db.Time(giveUp)
	e.Created, e.Updated = db.Time(created), db.Time(updated)
	return e, err
}

const notificationsSQL = `SELECT r.uid, r.spec, f.name
FROM resources r
JOIN factories f ON f.uid = r.factory_uid
WHERE r.factory_uid = $1
	AND r.kind = 'notification'
	AND r.deleted_at IS NULL
	AND f.detached = 0
ORDER BY r.name`

// asked is a notification that an event is written for.
type asked struct {
	uid, factory string
	spec         schema.Notification
}

// notifications returns those of a factory, also those that do not ask for an event.
func notifications(ctx context.Context, r db.Reader, factoryUID string) ([]asked, error) {
	all, err := db.All(ctx, r, func(row db.Row) (asked, error) {
		var n asked
		var spec string
		if err := row.Scan(&n.uid, &spec, &n.factory); err != nil {
			return n, err
		}
		if json.Unmarshal([]byte(spec), &n.spec) != nil {
			n.spec = schema.Notification{} // which asks for nothing: the change goes on
		}
		return n, nil
	}, notificationsSQL, factoryUID)
	return all, err
}

const insertSQL = `INSERT INTO events (
	uid, factory_uid, notification_uid, notification, type, run_id, state, data, next_at, give_up_at, reason,
	created_at, updated_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $9, $9)`

const waitingSQL = `SELECT count(*)
FROM (
	SELECT 1
	FROM events
	WHERE notification_uid = $1 AND state = 'pending'
	LIMIT $2
) AS waiting`

// Event returns an event of a factory.
func (t Table) Event(ctx context.Context, factoryUID, uid string) (Event, error) {
	const query = `SELECT ` + columns + ` FROM events WHERE uid = $1 AND factory_uid = $2`
	e, err := scan(t.db.QueryRow(ctx, query, uid, factoryUID))
	if errors.Is(err, sql.ErrNoRows) {
		return e, ErrNotFound
	}
	return e, err
}

// Filter selects events of a list. Empty fields select all.
type Filter struct {
	State        State
	Notification string // name
}

const listSQL = `SELECT ` + columns + `
FROM events
WHERE factory_uid = $1
	AND ($2 = '' OR uid < $2)
	AND ($3 = '' OR state = $3)
	AND ($4 = '' OR notification = $4)
ORDER BY uid DESC
LIMIT $5`

// List returns events of a factory, the newest first: those before the given UID if it is not empty.
func (t Table) List(ctx context.Context, factoryUID string, f Filter, before string, limit int) ([]Event, error) {
	return db.All(ctx, t.db.Reader, scan, listSQL, factoryUID, before, string(f.State), f.Notification, limit)
}

const attemptsSQL = `SELECT number, at, took, status, error, answer
FROM event_attempts
WHERE event_uid = $1
ORDER BY number`

// Attempts returns the attempts to send an event that are kept, oldest first.
func (t Table) Attempts(ctx context.Context, uid string) ([]Attempt, error) {
	return db.All(ctx, t.db.Reader, func(row db.Row) (Attempt, error) {
		var a Attempt
		var at, took int64
		err := row.Scan(&a.Number, &at, &took, &a.Status, &a.Error, &a.Answer)
		a.At, a.Took = db.Time(at), time.Duration(took)*time.Microsecond
		return a, err
	}, attemptsSQL, uid)
}

const countsSQL = `SELECT state, count(*)
FROM events
WHERE state = 'pending' OR state = 'dead'
GROUP BY state`

// Counts returns how many events are pending and dead.
func (t Table) Counts(ctx context.Context) (map[State]int, error) {
	counts := map[State]int{Pending: 0, Dead: 0}
	err := db.Each(ctx, t.db.Reader, func(row db.Row) error {
		var state State
		var n int
		err := row.Scan(&state, &n)
		counts[state] = n
		return err
	}, countsSQL)
	return counts, err
}

// Standing tells of the events of a notification.
type Standing struct {
	FactoryUID, Notification string
	Waiting, Dead            int
}

const standingsSQL = `SELECT factory_uid, notification, state, count(*)
FROM events
WHERE state = 'pending' OR state = 'dead'
GROUP BY factory_uid, notification, state
ORDER BY factory_uid, notification`

// Standings returns the notifications that have pending or dead events, by factory and name.
func (t Table) Standings(ctx context.Context) ([]Standing, error) {
	var all []Standing
	err := db.Each(ctx, t.db.Reader, func(row db.Row) error {
		var s Standing
		var state State
		var n int
		if err := row.Scan(&s.FactoryUID, &s.Notification, &state, &n); err != nil {
			return err
		}

		last := len(all) - 1
		if last < 0 || all[last].FactoryUID != s.FactoryUID || all[last].Notification != s.Notification {
			all = append(all, s)
			last++
		}
		if state == Pending {
			all[last].Waiting = n
		} else {
			all[last].Dead = n
		}
		return nil
	}, standingsSQL)
	return all, err
}
