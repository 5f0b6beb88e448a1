// Package workers remembers the processes that take runs, as each last described itself.
package workers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"millwright/state/db"
)

// Bounds of the remembered workers.
const (
	reportsKept  = 24 * time.Hour // after a process was last seen
	maxProcesses = 100            // of one key
	maxListed    = 1000           // processes that All returns
	maxHeld      = 10_000         // runs that it looks at
	maxUID       = 200            // bytes of the UID of a worker
)

// Timeout is how long a worker may be silent before it counts as gone.
const Timeout = 30 * time.Second

// Report is how a process that takes runs describes itself.
type Report struct {
	UID       string   `json:"-"` // of the process
	Worker    string   `json:"-"` // UID that its claims are bound to
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Slots     int      `json:"slots"`
	Harnesses []string `json:"harnesses"`
	Runs      []string `json:"runs"` // IDs of those that it executes
}

// Worker is a process that takes runs, as it was last seen.
type Worker struct {
	Report
	Seen time.Time
}

// Live reports whether the worker was seen lately.
func (w Worker) Live(now time.Time) bool { return now.Sub(w.Seen) < Timeout }

// Table is the remembered workers.
type Table struct{ db *db.DB }

// New returns the workers in a database.
func New(d *db.DB) Table { return Table{d} }

const seeSQL = `
	INSERT INTO workers (uid, worker, report, seen_at)
	VALUES ($1, $2, $3, $4)
	ON CONFLICT (uid) DO UPDATE
	SET report = excluded.report, seen_at = excluded.seen_at`

// expireSQL keeps the processes of a key that were seen last, and of other keys those seen since a time.
const expireSQL = `
	DELETE FROM workers
	WHERE seen_at < $1
	OR uid IN (
		SELECT uid
		FROM workers
		WHERE worker = $2
		ORDER BY seen_at DESC, uid
		LIMIT 1000 OFFSET $3
	)`

// See stores the report of a process, and deletes those of processes that were not seen for a day.
func (t Table) See(ctx context.Context, r Report) error {
	if len(r.Worker) > maxUID || db.Text(r.Worker) != r.Worker {
		return fmt.Errorf("the UID of a worker is text of at most %d bytes", maxUID)
	}

	r.Name, r.Version = db.Text(r.Name), db.Text(r.Version)
	report, err := json.Marshal(r)
	if err != nil {
		return err
	}

	return t.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		now := time.Now()
		if _, err := tx.Exec(ctx, seeSQL, r.UID, r.Worker, string(report), db.Micros(now)); err != nil {
			return err
		}

		_, err := tx.Exec(ctx, expireSQL, db.Micros(now.Add(-reportsKept)), r.Worker, maxProcesses)
		return err
	})
}

// Remove deletes the report of a process that has ended in order.
func (t Table) Remove(ctx context.Context, uid string) error {
	return t.db.Exec(ctx, `DELETE FROM workers WHERE uid = $1`, uid)
}

const seenSQL = `SELECT uid, worker, report, seen_at
FROM workers
WHERE seen_at >= $1
ORDER BY seen_at DESC, uid
LIMIT $2`

// All returns the processes that take runs, by UID: those that were seen within a day, at most 1000 of
// them. Their Runs are those that they hold.
func (t Table) All(ctx context.Context) ([]Worker, error) {
	var all []Worker
	err := t.db.View(ctx, func(tx db.View) error {
		held, err := heldRuns(ctx, tx.Reader)
		if err != nil {
			return err
		}

		since := db.Micros(time.Now().Add(-reportsKept))
		all, err = db.All(ctx, tx.Reader, scan, seenSQL, since, maxListed)
		for i := range all {
			w := &all[i]
			w.Runs = slices.DeleteFunc(w.Runs, func(id string) bool { return held[id] != w.Worker })
		}

		return err
	})

	slices.SortFunc(all, func(a, b Worker) int { return strings.Compare(a.UID, b.UID) })
	return all, err
}

func scan(row db.Row) (Worker, error) {
	var w Worker
	var report string
	var seen int64
	if err := row.Scan(&w.UID, &w.Worker, &report, &seen); err != nil {
		return w, err
	}

	uid, worker := w.UID, w.Worker
	if err := json.Unmarshal([]byte(report), &w.Report); err != nil {
		w.Report = Report{} // the next report comes within seconds
	}

	w.UID, w.Worker, w.Seen = uid, worker, db.Time(seen)
	return w, nil
}

const heldSQL = `SELECT id, worker
FROM runs
WHERE claim_hash IS NOT NULL
LIMIT $1`

// heldRuns returns the UID of the worker of every run that one holds, by the run's ID.
func heldRuns(ctx context.Context, r db.Reader) (map[string]string, error) {
	held := map[string]string{}
	err := db.Each(ctx, r, func(row db.Row) error {
		var id, worker string
		err := row.Scan(&id, &worker)
		held[id] = worker
		return err
	}, heldSQL, maxHeld)

	return held, err
}
