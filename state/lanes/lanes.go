// Package lanes bounds how many runs workers hold of one factory and of one automation, and finds the factory
// whose run is claimed next. The queued runs of a factory are a lane of the queue.
package lanes

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"millwright/state/db"
)

// Bounds are how many runs workers hold at once of one factory, and of one automation; 0 is any number.
type Bounds struct{ Factory, Automation int }

// Room is how many more runs workers may hold of each factory and of each automation.
type Room struct {
	postgres               bool
	factories, automations counts
}

// counts is how many more may be held of each of some things: most, where one is not in left.
type counts struct {
	most int // 0: any number
	left map[string]int
}

func (c counts) full(uid string) bool {
	left, ok := c.left[uid]
	return c.most > 0 && ok && left <= 0
}

// take notes that n more are held.
func (c counts) take(uid string, n int) {
	if _, ok := c.left[uid]; !ok {
		c.left[uid] = c.most
	}
	c.left[uid] -= n
}

const (
	lockSQL = `SELECT pg_advisory_xact_lock(hashtextextended('millwright claims ' || current_schema(), 0))`

	heldSQL = `SELECT factory_uid, automation_uid, count(*)
FROM runs
WHERE claim_hash IS NOT NULL
GROUP BY factory_uid, automation_uid`

	nextSQL = `SELECT factory_uid
FROM runs
WHERE state = 'QUEUED' AND waits_for = '' AND factory_uid > $1 AND %s
ORDER BY factory_uid
LIMIT 1`

	firstSQL = `SELECT factory_uid
FROM runs
WHERE state = 'QUEUED' AND waits_for = '' AND %s
ORDER BY factory_uid
LIMIT 1`
)

// Lock makes claims with bounds wait for the end of each other's transaction, on PostgreSQL. SQLite has one
// writer.
func Lock(ctx context.Context, d *db.DB, tx *db.Tx) error {
	if !d.Postgres() {
		return nil
	}
	_, err := tx.Exec(ctx, lockSQL)
	return err
}

// Of returns the room of each factory and automation; nil without bounds.
func Of(ctx context.Context, d *db.DB, tx *db.Tx, bounds Bounds) (*Room, error) {
	if bounds == (Bounds{}) {
		return nil, nil
	}

	room := &Room{
		postgres:    d.Postgres(),
		factories:   counts{bounds.Factory, map[string]int{}},
		automations: counts{bounds.Automation, map[string]int{}},
	}
	err := db.Each(ctx, tx.Reader, func(row db.Row) error {
		var factory, automation string
		var runs int
		err := row.Scan(&factory, &automation, &runs)
		room.factories.take(factory, runs)
		room.automations.take(automation, runs)
		return err
	}, heldSQL)
	if err != nil {
		return nil, err
	}

	return room, nil
}

// Take notes that a worker holds one more run. Of nil, which has room for all, it does nothing.
func (r *Room) Take(factory, automation string) {
	if r != nil {
		r.factories.take(factory, 1)
		r.automations.take(automation, 1)
	}
}

// Next returns the next factory behind one, in a circle, that has room and queued runs of an automation with
// room, and the automations without room as a JSON list; sql.ErrNoRows when there is none.
func (r *Room) Next(ctx context.Context, tx *db.Tx, behind string) (lane, full string, err error) {
	if full, err = r.fullAutomations(); err != nil {
		return "", "", err
	}

	seen := map[string]bool{}
	for lane = behind; ; {
		after := lane
		err = tx.QueryRow(ctx, fmt.Sprintf(nextSQL, NotAmong(r.postgres, 2)), after, full).Scan(&lane)
		if errors.Is(err, sql.ErrNoRows) {
			err = tx.QueryRow(ctx, fmt.Sprintf(firstSQL, NotAmong(r.postgres, 1)), full).Scan(&lane)
		}
		if err != nil {
			return "", "", err
		}

		if !r.factories.full(lane) {
			return lane, full, nil
		}
		if seen[lane] {
			return "", "", sql.ErrNoRows
		}
		seen[lane] = true
	}
}

// Open reports whether a factory has room, and returns the automations without room as a JSON list. Of nil, every
// factory has.
func (r *Room) Open(lane string) (full string, open bool, err error) {
	if r == nil {
		return "[]", true, nil
	}

	full, err = r.fullAutomations()
	return full, !r.factories.full(lane), err
}

// fullAutomations returns the automations without room as a JSON list.
func (r *Room) fullAutomations() (string, error) {
	all := []string{}
	for uid := range r.automations.left {
		if uid != "" && r.automations.full(uid) {
			all = append(all, uid)
		}
	}

	text, err := json.Marshal(all)
	return string(text), err
}

// NotAmong is the condition that a run's automation is not in the JSON list that is parameter n.
func NotAmong(postgres bool, n int) string {
	if postgres {
		return fmt.Sprintf(`automation_uid NOT IN (SELECT jsonb_array_elements_text($%d::jsonb))`, n)
	}
	return fmt.Sprintf(`automation_uid NOT IN (SELECT value FROM json_each($%d))`, n)
}
