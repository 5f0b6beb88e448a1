package state

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"millwright/state/db"
)

// Bounds of the remembered workers.
const (
	workersKept   = 24 * time.Hour // after a process was last seen
	maxProcesses  = 100            // of one key
	maxWorkerList = 1000           // processes that Workers returns
	maxHeldList   = 10_000         // runs that it looks at
)

// WorkerTimeout is how long a worker may be silent before it counts as gone.
const WorkerTimeout = 30 * time.Second

// WorkerReport is what a process that takes runs says of itself.
type WorkerReport struct {
	Worker    string   `json:"-"` // UID that its claims are bound to
	Instance  string   `json:"-"` // which of the processes that share it
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Slots     int      `json:"slots"`
	Harnesses []string `json:"harnesses"`
	Runs      []string `json:"runs"` // IDs of those that it executes
}

// Worker is a process that takes runs, as it was last seen.
type Worker struct {
	UID string
	WorkerReport
	Seen time.Time
}

// Live reports whether the worker was seen lately.
func (w Worker) Live(now time.Time) bool { return now.Sub(w.Seen) < WorkerTimeout }

// workerUID names a process.
func workerUID(worker, instance string) string {
	sum := sha256.Sum256([]byte(worker + "\x00" + instance))
	return PrefixWorker + "_" + encodeID([16]byte(sum[:16]))
}

const seeWorkerSQL = `
	INSERT INTO workers (uid, worker, report, seen_at)
	VALUES ($1, $2, $3, $4)
	ON CONFLICT (uid) DO UPDATE
	SET report = excluded.report, seen_at = excluded.seen_at`

// expireWorkersSQL keeps the processes of a key that were seen last, and of other keys those seen since a time.
const expireWorkersSQL = `
	DELETE FROM workers
	WHERE seen_at < $1
	OR uid IN (
		SELECT uid
		FROM workers
		WHERE worker = $2
		ORDER BY seen_at DESC, uid
		LIMIT 1000 OFFSET $3
	)`

// SeeWorker notes what a process says of itself, and forgets those that were not seen for a day.
func (s *Store) SeeWorker(ctx context.Context, r WorkerReport) error {
	if len(r.Worker) > maxWorker || db.Text(r.Worker) != r.Worker {
		return refuse(ErrConflict, "the UID of a worker is text of at most %d bytes", maxWorker)
	}

	r.Name, r.Version = db.Text(r.Name), db.Text(r.Version)
	report, err := json.Marshal(r)
	if err != nil {
		return err
	}

	return s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		now := time.Now()
		uid := workerUID(r.Worker, r.Instance)
		if _, err := tx.Exec(ctx, seeWorkerSQL, uid, r.Worker, string(report), db.Micros(now)); err != nil {
			return err
		}

		_, err := tx.Exec(ctx, expireWorkersSQL, db.Micros(now.Add(-workersKept)), r.Worker, maxProcesses)
		return err
	})
}

// RemoveWorker notes that a process has ended in order.
func (s *Store) RemoveWorker(ctx context.Context, worker, instance string) error {
	return s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM workers WHERE uid = $1`, workerUID(worker, instance))
		return err
	})
}

const seenWorkersSQL = `SELECT uid, worker, report, seen_at
FROM workers
WHERE seen_at >= $1
ORDER BY seen_at DESC, uid
LIMIT $2`

// Workers returns the processes that take runs, by UID: those that were seen within a day, at most 1000 of
// them. Their Runs are those that they hold.
func (s *Store) Workers(ctx context.Context) ([]Worker, error) {
	var all []Worker
	err := s.db.View(ctx, func(tx db.View) error {
		held, err := heldRuns(ctx, tx.Reader)
		if err != nil {
			return err
		}

		since := db.Micros(time.Now().Add(-workersKept))
		all, err = db.All(ctx, tx.Reader, scanWorker, seenWorkersSQL, since, maxWorkerList)
		for i := range all {
			w := &all[i]
			w.Runs = slices.DeleteFunc(w.Runs, func(id string) bool { return held[id] != w.Worker })
		}

		return err
	})

	slices.SortFunc(all, func(a, b Worker) int { return strings.Compare(a.UID, b.UID) })
	return all, err
}

func scanWorker(row db.Row) (Worker, error) {
	var w Worker
	var report string
	var seen int64
	if err := row.Scan(&w.UID, &w.Worker, &report, &seen); err != nil {
		return w, err
	}

	worker := w.Worker
	if err := json.Unmarshal([]byte(report), &w.WorkerReport); err != nil {
		w.WorkerReport = WorkerReport{} // it says so again within seconds
	}

	w.Worker, w.Seen = worker, db.Time(seen)
	return w, nil
}

const heldRunsSQL = `SELECT id, worker
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
	}, heldRunsSQL, maxHeldList)

	return held, err
}
