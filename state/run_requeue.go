package state

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"millwright/state/audit"
	"millwright/state/db"
	"millwright/state/flow"
)

const joinFollowupsSQL = `UPDATE followups
SET execution = $2, live = 0
WHERE run_id = $1 AND (execution = $3 OR execution = $2 AND live > 0)`

// again puts a locked run back into the queue for the same execution. The messages that waited for its
// end join its prompt, as those do that come while it is queued, so that their order is kept.
func (r *Run) again(ctx context.Context, tx *db.Tx) error {
	if _, err := tx.Exec(ctx, joinFollowupsSQL, r.ID, r.Execution, r.Execution+1); err != nil {
		return err
	}

	return r.requeue(ctx, tx)
}

const requestCancelSQL = `UPDATE runs
SET
	cancel_requested_at = $2,
	updated_at = $2,
	state = CASE state WHEN 'QUEUED' THEN 'CANCELLED' ELSE state END,
	waits_for = '',
	parked_until = 0,
	status_message = $3,
	finished_at = CASE state WHEN 'QUEUED' THEN $2 ELSE finished_at END,
	next_seq = next_seq + CASE state WHEN 'QUEUED' THEN 1 ELSE 0 END
WHERE id = $1`

const dropPendingSQL = `DELETE FROM followups
WHERE run_id = $1 AND (execution > $2 OR live = 1)`

// RequestCancel asks for the end of a run, on behalf of somebody with a name. A queued run is CANCELLED at once; for
// one that a worker holds the request is recorded, and the worker ends it. Messages that wait for the end of the
// execution are dropped. It returns the run as it now is. ErrConflict when the run has ended; ErrNotFound if there is
// none.
func (s *Store) RequestCancel(ctx context.Context, id, by string) (Run, error) {
	r, _, err := s.cancel(ctx, id, "cancelled by "+by, false)
	return r, err
}

// DropWaiting cancels a run that waits for others of its automation or for a time, and reports whether it does.
func (s *Store) DropWaiting(ctx context.Context, id string) (bool, error) {
	_, waits, err := s.cancel(ctx, id, "it was dropped while it waited", true)
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return waits, err
}

// cancel is RequestCancel or, unless the run waits, does nothing.
func (s *Store) cancel(ctx context.Context, id, why string, waiting bool) (r Run, waits bool, err error) {
	change := func(ctx context.Context, tx *db.Tx) (rows audit.Entries, err error) {
		if err := s.holdFlow(ctx, tx, id); err != nil {
			return nil, err
		}
		if r, err = s.lockRun(ctx, tx, id); err != nil {
			return nil, err
		}
		if r.Ended() {
			return nil, refuse(ErrConflict, "run %s has ended as %s", id, r.State)
		}
		if waits = r.WaitsFor != ""; r.CancelRequested != nil || waiting && !waits {
			return nil, nil
		}

		now := time.Now().Truncate(time.Microsecond).UTC()
		r.CancelRequested, r.StatusMessage = &now, db.Text(why)
		if _, err := tx.Exec(ctx, requestCancelSQL, id, db.Micros(now), r.StatusMessage); err != nil {
			return nil, err
		}
		if _, err := tx.Exec(ctx, dropPendingSQL, id, r.Execution); err != nil {
			return nil, err
		}

		rows = audit.One(audit.Entry{FactoryUID: r.FactoryUID, Action: audit.RunCancel, Subject: id, Detail: why})
		if r.State != RunQueued {
			return rows, nil
		}

		waited := r.WaitsFor
		r.State, r.WaitsFor, r.Finished = RunCancelled, "", &now
		r.nextSeq++
		if err := r.entered(ctx, tx, now); err != nil {
			return nil, err
		}

		return rows, s.leave(ctx, tx, &r, waited)
	}

	err = s.mending(ctx, id, func() error { return s.audit.Write(ctx, change) })
	if err != nil {
		return Run{}, false, err
	}

	s.moved(ctx, r)
	return r, waits, nil
}

// ReapRuns takes at most limit runs away from workers whose lease ran out before deadline, and returns
// them as they now are: QUEUED for the next attempt, or for the same one when it had not begun; ERROR after the
// last; CANCELLED where that was asked. A run that its row keeps from all of that ends as ERROR too or, where
// even that cannot be, is skipped.
//
// deadline is by this machine's clock. None are taken for a while after the database's clock was set.
func (s *Store) ReapRuns(ctx context.Context, deadline time.Time, limit int) ([]Run, error) {
	if !s.db.ClockSteady() {
		return nil, nil
	}
	return s.reap(
		ctx,
		lost{`claim_hash IS NOT NULL AND lease_until < $1`, db.Micros(deadline.Add(-s.db.ClockSkew()))},
		limit,
	)
}

// ReapWorker takes every run away from a worker that is known to have ended, as ReapRuns does.
func (s *Store) ReapWorker(ctx context.Context, worker string) ([]Run, error) {
	return s.reap(ctx, lost{`claim_hash IS NOT NULL AND worker = $1`, worker}, 1_000_000)
}

// lost is a condition of runs whose worker is gone, with its argument.
type lost struct {
	sql string
	arg any
}

// heldRun names a run that a worker holds.
type heldRun struct {
	id, factory string
	until       int64
}

// reap takes at most limit runs that meet the condition away from their workers. It passes over those that it
// cannot take, however many they are.
func (s *Store) reap(ctx context.Context, where lost, limit int) (reaped []Run, err error) {
	last := heldRun{until: -1 << 62}
	for len(reaped) < limit {
		page, err := s.lostRuns(ctx, where, last, limit-len(reaped))
		if err != nil || len(page) == 0 {
			return reaped, err
		}

		for _, h := range page {
			last = h
			r, err := s.reapRun(ctx, where, h.id)
			switch {
			case errors.Is(err, sql.ErrNoRows): // renewed, finished or reaped meanwhile
			case ofRow(err):
				s.Skip(loopReap, h.factory, "run "+h.id, err)
			case err != nil:
				return reaped, err
			default:
				s.moved(ctx, r)
				reaped = append(reaped, r)
			}
		}
	}

	return reaped, nil
}

// lostRuns returns at most limit runs that meet the condition and come after one of them.
func (s *Store) lostRuns(ctx context.Context, where lost, after heldRun, limit int) ([]heldRun, error) {
	scan := func(row db.Row) (h heldRun, err error) { return h, row.Scan(&h.id, &h.factory, &h.until) }
	query := `SELECT id, factory_uid, lease_until
FROM runs
WHERE ` + where.sql + ` AND (lease_until, id) > ($2, $3)
ORDER BY lease_until, id
LIMIT $4`
	return db.All(ctx, s.db.Reader, scan, query, where.arg, after.until, after.id, limit)
}

// reapRun takes one run away from its worker.
func (s *Store) reapRun(ctx context.Context, where lost, id string) (r Run, err error) {
	err = s.commitRun(ctx, id, func(ctx context.Context, tx *db.Tx) (err error) {
		if err := s.holdFlow(ctx, tx, id); err != nil {
			return err
		}

		r, err = scanRun(
			tx.QueryRow(
				ctx,
				`SELECT `+runColumns+` FROM runs WHERE `+where.sql+` AND id = $2`+s.db.ForUpdate(),
				where.arg,
				id,
			),
		)
		if err != nil {
			return err
		}

		return s.lose(ctx, tx, &r)
	})
	if !ofRow(err) || errors.Is(err, sql.ErrNoRows) {
		return r, err
	}

	ended, end := s.endUnfit(ctx, id, err, strings.ReplaceAll(where.sql, "$1", "$4"), where.arg)
	if end != nil {
		return r, errors.Join(err, end)
	}

	return ended, nil
}

// lose moves a locked run on whose worker is gone. Its status message has the reason if it returns to the
// queue.
func (s *Store) lose(ctx context.Context, tx *db.Tx, r *Run) error {
	worker := cmp.Or(r.WorkerName, r.Worker)
	switch {
	case r.CancelRequested != nil:
		return s.end(ctx, tx, r, Result{State: RunCancelled})
	case r.State == RunBlocked: // the answer begins the next execution
		return s.end(ctx, tx, r, Result{State: RunBlocked, Message: r.StatusMessage})
	case r.State == RunClaimed: // it never began: the worker may not even have heard of it
		r.StatusMessage = fmt.Sprintf("the worker %s did not begin the run; it waits for another worker", worker)
		return r.again(ctx, tx)
	case r.Attempt < MaxAttempts:
		r.Attempt++
		r.StatusMessage = fmt.Sprintf("the worker %s was lost; the run waits for a worker, for attempt %d of %d",
			worker, r.Attempt, MaxAttempts)
		return r.again(ctx, tx)
	}

	return s.end(ctx, tx, r, Result{
		State: RunError, ErrorCode: "infrastructure_timeout",
		Message: fmt.Sprintf("the worker stopped answering, in each of %d attempts", MaxAttempts),
	})
}

const dueRunsSQL = `SELECT id, automation_uid, factory_uid
FROM runs
WHERE state = 'QUEUED'
	AND waits_for IN ('debounce', 'retry')
	AND (queued_at <= $1 OR updated_at > $2)
ORDER BY queued_at, id
LIMIT $3`

const nextDueSQL = `SELECT coalesce(min(queued_at), 0)
FROM runs
WHERE state = 'QUEUED' AND waits_for IN ('debounce', 'retry')`

// dueAtOnce is how many runs one call of ReleaseDue looks at.
const dueAtOnce = 500

const loopDue = "waiting runs"

// ReleaseDue ends the wait of the runs whose window or pause is over, and returns when the next one's will be; the
// zero time when none waits so.
func (s *Store) ReleaseDue(ctx context.Context) (next time.Time, err error) {
	type due struct{ id, automation, factory string }
	now := time.Now()
	runs, err := db.All(ctx, s.db.Reader, func(row db.Row) (d due, err error) {
		return d, row.Scan(&d.id, &d.automation, &d.factory)
	}, dueRunsSQL, db.Micros(now), db.Micros(now.Add(clockSet)), dueAtOnce)
	if err != nil {
		return next, err
	}

	for _, d := range runs {
		err := s.releaseDue(ctx, d.automation, d.id)
		if ofRow(err) {
			s.Skip(loopDue, d.factory, "run "+d.id, err)
		} else if err != nil {
			return next, err
		}
	}

	var at int64
	err = s.db.QueryRow(ctx, nextDueSQL).Scan(&at)
	if at != 0 {
		next = db.Time(at)
	}
	return next, err
}

func (s *Store) releaseDue(ctx context.Context, automation, id string) error {
	var changed []Run
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		changed = nil
		if err := s.holdFlows(ctx, tx, []string{automation}); err != nil {
			return err
		}

		run, err := s.lockRun(ctx, tx, id)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if run.WaitsFor != flow.WaitsDebounce && run.WaitsFor != flow.WaitsRetry || !run.due(time.Now()) {
			return nil
		}

		m := s.admission(tx, run.FactoryUID, run.AutomationUID)
		err = m.release(ctx, &run)
		changed = m.changed
		return err
	})
	if err == nil {
		s.movedAll(ctx, changed)
	}

	return err
}

// mayRetry reports whether the run is executed again after this result, unless messages wait for it.
func (r *Run) mayRetry(result Result) bool {
	if r.Flow == nil || r.Flow.Retry == nil || r.CancelRequested != nil || result.ErrorCode == codeBudget {
		return false
	}
	again := r.Flow.Retry
	return again.Tried+1 < again.Attempts && slices.Contains(again.On, string(result.State))
}

// triesAgain reports whether end will execute the run again.
func (r *Run) triesAgain(ctx context.Context, tx *db.Tx, result Result) (bool, error) {
	if !r.mayRetry(result) {
		return false, nil
	}
	var pending int
	err := tx.QueryRow(ctx, pendingSQL, r.ID, r.Execution+1).Scan(&pending)
	return pending == 0, err
}

// retries is mayRetry, and counts the execution.
func (r *Run) retries(result Result) bool {
	if !r.mayRetry(result) {
		return false
	}

	again := r.Flow.Retry
	if again.Tried == 0 {
		again.First = r.Execution
	}
	again.Tried++
	return true
}

// retry makes a locked run wait for its next attempt, which is a new execution.
func (r *Run) retry(ctx context.Context, tx *db.Tx, result Result) error {
	again := r.Flow.Retry
	message := fmt.Sprintf("attempt %d of %d ended as %s", again.Tried, again.Attempts, result.State)
	if r.StatusMessage != "" {
		message += ": " + r.StatusMessage
	}

	r.StatusMessage = message
	r.WaitsFor, r.Queued = flow.WaitsRetry, time.Now().Add(again.Pause)
	r.Execution++
	r.Attempt = 1
	return r.requeue(ctx, tx)
}

const requeueSQL = `UPDATE runs
SET
	state = 'QUEUED',
	claims = CASE WHEN execution = $2 THEN claims ELSE 0 END,
	live = 0,
	execution = $2,
	attempt = $3,
	status_message = $4,
	error_code = $5,
	queued_at = $6,
	updated_at = $7,
	waits_for = $8,
	flow = $9,
	started_at = NULL,
	finished_at = NULL,
	cancel_requested_at = NULL,
	claim_hash = NULL,
	lease_until = NULL,
	next_seq = next_seq + 1
WHERE id = $1`

// requeue puts a locked run back into the queue with its Execution and Attempt.
func (r *Run) requeue(ctx context.Context, tx *db.Tx) error {
	if err := dropUnfinished(ctx, tx, r.ID); err != nil {
		return err
	}
	if err := r.closeQuestions(ctx, tx); err != nil {
		return err
	}

	now := time.Now()
	if r.WaitsFor != flow.WaitsRetry {
		r.Queued = now
	}

	text, err := flowText(r.Flow)
	if err != nil {
		return err
	}

	r.State = RunQueued
	err = tx.ExecOne(
		ctx,
		requeueSQL,
		r.ID,
		r.Execution,
		r.Attempt,
		r.StatusMessage,
		r.ErrorCode,
		db.Micros(r.Queued),
		db.Micros(now),
		r.WaitsFor,
		text,
	)
	if err != nil {
		return err
	}

	r.nextSeq++
	return r.entered(ctx, tx, now)
}

const giveWaySQL = `UPDATE runs
SET
	cancel_requested_at = $2,
	updated_at = $3,
	flow = $4
WHERE id = $1`

// giveWay cancels a locked run for a newer one. A worker that holds it is told to end it.
func (m *admission) giveWay(ctx context.Context, run *Run, by string) error {
	run.Flow.SupersededBy = by
	text, err := flowText(run.Flow)
	if err != nil {
		return err
	}

	now := time.Now().Truncate(time.Microsecond).UTC()
	if run.Held() {
		run.CancelRequested = &now
	}

	err = m.tx.ExecOne(ctx, giveWaySQL, run.ID, db.MicrosOrNull(run.CancelRequested), db.Micros(now), text)
	if err == nil && run.State == RunQueued {
		err = m.s.end(ctx, m.tx, run, Result{State: RunCancelled})
	}

	m.changed = append(m.changed, *run)
	return err
}
