package state

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"millwright/state/audit"
	"millwright/state/db"
	"millwright/state/notice"
	"millwright/state/outputs"
)

// MaxAttempts is how often an execution is begun at most before the run ends as ERROR.
const MaxAttempts = 3

const startSQL = `UPDATE runs
SET state = 'INPROGRESS',
	started_at = $4,
	next_seq = next_seq + 1,
	updated_at = $4,
	lease_until = $5
WHERE` + held + `AND state = 'CLAIMED'
RETURNING ` + runColumns

// StartRun says that the worker begins: CLAIMED to INPROGRESS. It prolongs the lease. A repeat, after an answer
// that was lost, prolongs the lease and changes nothing else. cancel reports whether the run must stop. ErrLost
// when the claim no longer holds.
func (s *Store) StartRun(ctx context.Context, c Claim, lease time.Duration) (cancel bool, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		now := time.Now()
		r, err := scanRun(
			tx.QueryRow(ctx, startSQL, c.RunID, c.Worker, c.hash(), db.Micros(now), s.db.LeaseEnd(lease)),
		)
		if errors.Is(err, sql.ErrNoRows) {
			cancel, err = s.renew(ctx, tx, c, lease)
			return err
		}
		if err != nil {
			return err
		}

		cancel = r.CancelRequested != nil
		return r.entered(ctx, tx, now)
	})
	if err != nil {
		return false, err
	}

	s.Notify(notice.Run, c.RunID)
	return cancel, nil
}

const renewLeaseSQL = `UPDATE runs
SET lease_until = $4
WHERE` + held + `
RETURNING cancel_requested_at IS NOT NULL`

// RenewLease prolongs the claim to lease from now. cancel reports whether the run must stop. ErrLost
// when the claim no longer holds.
func (s *Store) RenewLease(ctx context.Context, c Claim, lease time.Duration) (cancel bool, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) (err error) {
		cancel, err = s.renew(ctx, tx, c, lease)
		return err
	})
	return cancel, err
}

func (s *Store) renew(ctx context.Context, tx *db.Tx, c Claim, lease time.Duration) (cancel bool, err error) {
	row := tx.QueryRow(ctx, renewLeaseSQL, c.RunID, c.Worker, c.hash(), s.db.LeaseEnd(lease))
	if err = row.Scan(&cancel); errors.Is(err, sql.ErrNoRows) {
		err = ErrLost
	}
	return cancel, err
}

// AppendEntries adds messages to the run's conversation. from is how many messages of this claim came
// before, so that a repeat after a lost answer adds nothing twice. ErrLost when the claim no longer holds.
func (s *Store) AppendEntries(ctx context.Context, c Claim, from int, messages []Message) error {
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		r, err := s.lockHeld(ctx, tx, c)
		if err != nil {
			return err
		}

		return r.append(ctx, tx, c, from, messages)
	})
	if err == nil {
		s.Notify(notice.Run, c.RunID)
	}

	return err
}

// HeldRun returns the run that a claim holds, also before its start. ErrLost when the claim no longer holds.
func (s *Store) HeldRun(ctx context.Context, c Claim) (Run, error) {
	r, err := scanRun(s.db.QueryRow(ctx, `SELECT `+runColumns+` FROM runs WHERE`+held, c.RunID, c.Worker, c.hash()))
	if errors.Is(err, sql.ErrNoRows) {
		return Run{}, ErrLost
	}
	return r, err
}

const countAppendedSQL = `UPDATE runs
SET next_seq = next_seq + $2, appended = appended + $2
WHERE id = $1`

func (r *Run) append(ctx context.Context, tx *db.Tx, c Claim, from int, messages []Message) error {
	var have int
	if err := tx.QueryRow(ctx, `SELECT appended FROM runs WHERE id = $1`, r.ID).Scan(&have); err != nil {
		return err
	}

	if from > have {
		return fmt.Errorf(
			"run %s has %d messages of this claim, and these are to follow %d: %w",
			r.ID,
			have,
			from,
			ErrConflict,
		)
	}

	if skip := have - from; skip < len(messages) {
		messages = messages[skip:]
	} else {
		return nil
	}

	for i, m := range messages {
		content, err := json.Marshal(m.Content)
		if err != nil {
			return err
		}
		if err := r.enter(ctx, tx, r.nextSeq+int64(i), string(m.Role), content, m.At); err != nil {
			return err
		}
	}

	n := int64(len(messages))
	r.nextSeq += n
	_, err := tx.Exec(ctx, countAppendedSQL, r.ID, n)

	return err
}

// SetSkills records what the agent says it has: a JSON list. ErrLost when the claim no longer holds.
func (s *Store) SetSkills(ctx context.Context, c Claim, skills json.RawMessage) error {
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		err := tx.ExecOne(
			ctx,
			`UPDATE runs SET skills = $4 WHERE`+held,
			c.RunID,
			c.Worker,
			c.hash(),
			string(skills),
		)
		if errors.Is(err, db.ErrNoRow) {
			return ErrLost
		}

		return err
	})
	return err
}

// FinishRun ends the execution that the claim holds, and adds its last messages. With follow-up messages
// waiting, the run returns to QUEUED with them as its next prompt, unless its cancellation was asked for;
// else it takes the result's state. A run that exceeded its budget ends as FAILED, whatever the result.
// ErrLost when the claim no longer holds: then nothing was changed.
func (s *Store) FinishRun(ctx context.Context, c Claim, result Result) (RunState, error) {
	if !result.State.Ended() {
		return "", fmt.Errorf("run %s cannot end as %q", c.RunID, result.State)
	}

	var r Run
	err := s.commitRun(ctx, c.RunID, func(ctx context.Context, tx *db.Tx) (err error) {
		if err := s.holdFlow(ctx, tx, c.RunID); err != nil {
			return err
		}
		if r, err = s.lockHeld(ctx, tx, c); err != nil {
			return err
		}
		if err := r.append(ctx, tx, c, result.From, result.Messages); err != nil {
			return err
		}
		if err := r.publishArtifacts(ctx, tx); err != nil {
			return err
		}
		if result, err = s.bounded(ctx, tx, r, result); err != nil {
			return err
		}
		again, err := r.triesAgain(ctx, tx, result)
		if err != nil {
			return err
		}
		if again { // outputs wait for the last attempt
			result.Outputs, result.Links = nil, nil
		}
		if result.State != RunSucceeded {
			outputs.Withhold(result.Outputs, string(result.State))
		}
		if err := outputs.Add(ctx, tx, r.outputs(), result.Outputs); err != nil {
			return err
		}
		for _, link := range result.Links {
			if err := putLink(ctx, tx, r, link); err != nil {
				return err
			}
		}

		return s.end(ctx, tx, &r, result)
	})
	if err != nil {
		return "", err
	}

	s.moved(ctx, r)
	return r.State, nil
}

const endUnfitSQL = `UPDATE runs
SET
	state = 'ERROR',
	waits_for = '',
	error_code = 'internal_error',
	status_message = $2,
	finished_at = $3,
	updated_at = $3,
	parked_until = 0,
	live = 0,
	claim_hash = NULL,
	lease_until = NULL,
	next_seq = next_seq + 1
WHERE id = $1 AND `

// endUnfit ends a run that its row keeps from going on: no part of it but its number of entries is read. The
// condition is what must still hold of it, for parameters from $4 on.
func (s *Store) endUnfit(ctx context.Context, id string, cause error, condition string, args ...any) (Run, error) {
	message := db.Bounded("the run cannot go on as it is stored: "+cause.Error(), 1000)
	r := Run{ID: id, State: RunError, ErrorCode: "internal_error", StatusMessage: message, Execution: 1, Attempt: 1}
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		if err := s.holdFlow(ctx, tx, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, mendRunSQL, id); err != nil {
			return err
		}

		now := time.Now()
		query := endUnfitSQL + condition + `
RETURNING factory_uid, worker, execution, attempt, next_seq, automation_uid`
		err := tx.QueryRow(ctx, query, append([]any{id, message, db.Micros(now)}, args...)...).
			Scan(&r.FactoryUID, &r.Worker, &r.Execution, &r.Attempt, &r.nextSeq, &r.AutomationUID)
		if err != nil {
			return err
		}

		if err := dropUnfinished(ctx, tx, id); err != nil {
			return err
		}

		r.Updated, r.Finished = now, &now
		if err := r.entered(ctx, tx, now); err != nil {
			return err
		}

		return s.leaveAll(ctx, tx, &r)
	})

	if err == nil {
		s.log.Error(
			"a run ended because it cannot go on as it is stored",
			"run_id",
			id,
			"factory_uid",
			r.FactoryUID,
			"error",
			cause,
		)
		s.moved(ctx, r)
	}

	return r, err
}

// RequestCancel asks for the end of a run, on behalf of somebody with a name. A queued run is CANCELLED at once; for
// one that a worker holds the request is recorded, and the worker ends it. Messages that wait for the end of the
// execution are dropped. It returns the run as it now is. ErrConflict when the run has ended; ErrNotFound if there is
// none.
func (s *Store) RequestCancel(ctx context.Context, id, by string) (Run, error) {
	r, _, err := s.cancel(ctx, id, "cancelled by "+by, false)
	return r, err
}

// DropWaiting cancels a run that waits for others of its automation or for a time, and reports whether it cancelled
// it. It reports false for a run that does not exist or does not wait.
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
