package state

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"millwright/state/db"
	"millwright/state/notice"
)

// FollowupOutcome is the effect of a follow-up message.
type FollowupOutcome string

// The outcomes (docs/contract.md, section 4).
const (
	FollowupQueued  FollowupOutcome = "queued_prompt"     // the agent gets it with the prompt of the queued run
	FollowupPending FollowupOutcome = "queue_pending"     // it waits for the end of the execution
	FollowupHandoff FollowupOutcome = "handoff_execution" // the run had ended, and is queued again
)

// maxPending is how many messages may wait for one execution, and maxPendingText how many characters of them.
const (
	maxPending     = 100
	maxPendingText = 8 << 20
)

const waitingSQL = `SELECT count(*), coalesce(sum(length(message)), 0)
FROM followups
WHERE run_id = $1 AND execution = $2`

const insertFollowupSQL = `INSERT INTO followups (uid, run_id, factory_uid, message, execution, created_at)
VALUES ($1, $2, $3, $4, $5, $6)`

// Followup sends a message to a run and returns its UID and its effect. A repeat of a request within
// 24 hours, by idem, returns what the first one did, and sends nothing. ErrNotFound when there is no such
// run; ErrConflict when the repeat's request differs; ErrFull when too many messages wait already.
func (s *Store) Followup(
	ctx context.Context,
	id, message string,
	idem Idempotency,
) (uid string, outcome FollowupOutcome, err error) {
	var r Run
	first := ""
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) (err error) {
		uid = NewID(PrefixFollowup)
		if r, err = s.lockRun(ctx, tx, id); err != nil {
			return err
		}

		execution := r.Execution + 1
		switch outcome = FollowupPending; {
		case r.State == RunQueued:
			execution, outcome = r.Execution, FollowupQueued
		case r.State.Ended():
			outcome = FollowupHandoff
		}

		if idem.Key != "" {
			if first, err = s.first(ctx, tx, idem, r.FactoryUID, uid+" "+string(outcome)); err != nil || first != "" {
				return err
			}
		}

		var waiting, size int
		if err := tx.QueryRow(ctx, waitingSQL, id, execution).Scan(&waiting, &size); err != nil {
			return err
		}
		if full := waiting >= maxPending || waiting > 0 && size+len(message) > maxPendingText; full &&
			!r.State.Ended() { // what waited when the run was cancelled goes with the message that reopens it
			return refuse(ErrFull, "run %s has %d messages waiting already", id, waiting)
		}

		now := time.Now()
		if _, err := tx.Exec(ctx, insertFollowupSQL,
			uid, id, r.FactoryUID, message, execution, db.Micros(now)); err != nil {
			return err
		}

		if r.State.Ended() {
			r.Execution, r.Attempt, r.StatusMessage, r.ErrorCode = execution, 1, "", ""
			return r.requeue(ctx, tx)
		}

		_, err = tx.Exec(ctx, `UPDATE runs SET updated_at = $2 WHERE id = $1`, id, db.Micros(now))
		return err
	})
	if err != nil {
		return "", "", err
	}
	if uid, did, ok := strings.Cut(first, " "); ok {
		return uid, FollowupOutcome(did), nil
	}

	s.moved(ctx, r)
	return uid, outcome, nil
}

const joinFollowupsSQL = `UPDATE followups
SET execution = $2
WHERE run_id = $1 AND execution = $3`

// again puts a locked run back into the queue for the same execution. The messages that waited for its
// end join its prompt, as those do that come while it is queued, so that their order is kept.
func (r *Run) again(ctx context.Context, tx *db.Tx) error {
	if _, err := tx.Exec(ctx, joinFollowupsSQL, r.ID, r.Execution, r.Execution+1); err != nil {
		return err
	}

	return r.requeue(ctx, tx)
}

// ReleaseRun hands a run back that the worker cannot go on with, through no fault of the run: to QUEUED,
// without counting an attempt, or to CANCELLED when that was asked for. ErrLost when the claim no longer
// holds.
func (s *Store) ReleaseRun(ctx context.Context, c Claim) error {
	var r Run
	err := s.commitRun(ctx, c.RunID, func(ctx context.Context, tx *db.Tx) (err error) {
		r, err = scanRun(
			tx.QueryRow(
				ctx,
				`SELECT `+runColumns+` FROM runs WHERE`+held+s.db.ForUpdate(),
				c.RunID,
				c.Worker,
				c.hash(),
			),
		)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrLost
		}
		if err != nil {
			return err
		}
		if r.CancelRequested != nil {
			return r.end(ctx, tx, Result{State: RunCancelled})
		}

		return r.again(ctx, tx)
	})
	if err == nil {
		s.moved(ctx, r)
	}

	return err
}

const requestCancelSQL = `UPDATE runs
SET
	cancel_requested_at = $2,
	updated_at = $2,
	state = CASE state WHEN 'QUEUED' THEN 'CANCELLED' ELSE state END,
	finished_at = CASE state WHEN 'QUEUED' THEN $2 ELSE finished_at END,
	next_seq = next_seq + CASE state WHEN 'QUEUED' THEN 1 ELSE 0 END
WHERE id = $1`

// RequestCancel asks for the end of a run. A queued run is CANCELLED at once; for one that a worker holds
// the request is recorded, and the worker ends it. It returns the run as it now is. ErrConflict when the
// run has ended; ErrNotFound if there is none.
func (s *Store) RequestCancel(ctx context.Context, id string) (Run, error) {
	var r Run
	err := s.commitRun(ctx, id, func(ctx context.Context, tx *db.Tx) (err error) {
		if r, err = s.lockRun(ctx, tx, id); err != nil {
			return err
		}
		if r.State.Ended() {
			return refuse(ErrConflict, "run %s has ended as %s", id, r.State)
		}
		if r.CancelRequested != nil {
			return nil
		}

		now := time.Now().Truncate(time.Microsecond).UTC()
		r.CancelRequested = &now
		if _, err := tx.Exec(ctx, requestCancelSQL, id, db.Micros(now)); err != nil {
			return err
		}
		if r.State != RunQueued {
			return nil
		}

		r.State, r.Finished = RunCancelled, &now
		r.nextSeq++
		return r.entered(ctx, tx, now)
	})
	if err != nil {
		return Run{}, err
	}

	s.Notify(notice.Run, id)
	if r.State.Held() {
		s.Notify(notice.Cancel, r.Worker+" "+id)
	}

	return r, nil
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

		return r.lose(ctx, tx)
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

// lose moves a locked run on whose worker is gone. A run that returns to the queue says why.
func (r *Run) lose(ctx context.Context, tx *db.Tx) error {
	worker := cmp.Or(r.WorkerName, r.Worker)
	switch {
	case r.CancelRequested != nil:
		return r.end(ctx, tx, Result{State: RunCancelled})
	case r.State == RunClaimed: // it never began: the worker may not even have heard of it
		r.StatusMessage = fmt.Sprintf("the worker %s did not begin the run; it waits for another worker", worker)
		return r.again(ctx, tx)
	case r.Attempt < MaxAttempts:
		r.Attempt++
		r.StatusMessage = fmt.Sprintf("the worker %s was lost; the run waits for a worker, for attempt %d of %d",
			worker, r.Attempt, MaxAttempts)
		return r.again(ctx, tx)
	}

	return r.end(ctx, tx, Result{
		State: RunError, ErrorCode: "infrastructure_timeout",
		Message: fmt.Sprintf("the worker stopped answering, in each of %d attempts", MaxAttempts),
	})
}
