package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
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
// that was lost, changes nothing. cancel says that the run is to be stopped already. ErrLost when the claim no
// longer holds.
func (s *Store) StartRun(ctx context.Context, c Claim, lease time.Duration) (cancel bool, err error) {
	err = s.commit(ctx, func(ctx context.Context, tx write) error {
		now := time.Now()
		r, err := scanRun(tx.QueryRowContext(ctx, startSQL, c.RunID, c.Worker, c.hash(), micros(now), s.leaseEnd(lease)))
		if errors.Is(err, sql.ErrNoRows) {
			r, err = s.lockHeld(ctx, tx, c)
			cancel = r.CancelRequested != nil
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

	s.notify(ctx, Notice{Topic: TopicRun, ID: c.RunID})
	return cancel, nil
}

// RenewLease prolongs the claim to lease from now. cancel says that the run is to be stopped. ErrLost
// when the claim no longer holds.
func (s *Store) RenewLease(ctx context.Context, c Claim, lease time.Duration) (cancel bool, err error) {
	err = s.commit(ctx, func(ctx context.Context, tx write) error {
		err := tx.QueryRowContext(ctx, `UPDATE runs SET lease_until = $4 WHERE`+held+`RETURNING cancel_requested_at IS NOT NULL`,
			c.RunID, c.Worker, c.hash(), s.leaseEnd(lease)).
			Scan(&cancel)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrLost
		}
		return err
	})
	return cancel, err
}

// AppendEntries adds messages to the run's conversation. from is how many messages of this claim came
// before, so that a repeat after a lost answer adds nothing twice. ErrLost when the claim no longer holds.
func (s *Store) AppendEntries(ctx context.Context, c Claim, from int, messages []Message) error {
	err := s.commit(ctx, func(ctx context.Context, tx write) error {
		r, err := s.lockHeld(ctx, tx, c)
		if err != nil {
			return err
		}

		return r.append(ctx, tx, c, from, messages)
	})
	if err == nil {
		s.notify(ctx, Notice{Topic: TopicRun, ID: c.RunID})
	}

	return err
}

// lockHeld reads a run that is in progress under the claim.
func (s *Store) lockHeld(ctx context.Context, tx write, c Claim) (Run, error) {
	r, err := scanRun(
		tx.QueryRowContext(
			ctx,
			`SELECT `+runColumns+` FROM runs WHERE`+held+`AND state = 'INPROGRESS'`+s.dialect.forUpdate(),
			c.RunID,
			c.Worker,
			c.hash(),
		),
	)
	if errors.Is(err, sql.ErrNoRows) {
		return Run{}, ErrLost
	}

	return r, err
}

func (r *Run) append(ctx context.Context, tx write, c Claim, from int, messages []Message) error {
	var have int
	if err := tx.QueryRowContext(ctx, `SELECT appended FROM runs WHERE id = $1`, r.ID).Scan(&have); err != nil {
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
	_, err := tx.ExecContext(
		ctx,
		`UPDATE runs SET next_seq = next_seq + $2, appended = appended + $2 WHERE id = $1`,
		r.ID,
		n,
	)

	return err
}

// SetSkills records what the agent says it has: a JSON list. ErrLost when the claim no longer holds.
func (s *Store) SetSkills(ctx context.Context, c Claim, skills json.RawMessage) error {
	err := s.commit(ctx, func(ctx context.Context, tx write) error {
		err := one(
			tx.ExecContext(
				ctx,
				`UPDATE runs SET skills = $4 WHERE`+held,
				c.RunID,
				c.Worker,
				c.hash(),
				string(skills),
			),
		)
		if errors.Is(err, errNoRow) {
			return ErrLost
		}

		return err
	})
	return err
}

// Result is how an execution ended.
type Result struct {
	State     RunState // one that is Ended
	Message   string   // what to tell; empty when it succeeded
	ErrorCode string   // of docs/contract.md, section 3; empty unless the platform failed
	From      int      // as of AppendEntries
	Messages  []Message
}

// FinishRun ends the execution that the claim holds, and adds its last messages. With follow-up messages
// waiting, the run returns to QUEUED with them as its next prompt, unless its cancellation was asked for;
// else it takes the result's state. ErrLost when the claim no longer holds: then nothing was changed.
func (s *Store) FinishRun(ctx context.Context, c Claim, result Result) (RunState, error) {
	if !result.State.Ended() {
		return "", fmt.Errorf("run %s cannot end as %q", c.RunID, result.State)
	}

	var r Run
	err := s.commitRun(ctx, c.RunID, func(ctx context.Context, tx write) (err error) {
		if r, err = s.lockHeld(ctx, tx, c); err != nil {
			return err
		}
		if err := r.append(ctx, tx, c, result.From, result.Messages); err != nil {
			return err
		}

		return r.end(ctx, tx, result)
	})
	if err != nil {
		return "", err
	}

	s.moved(ctx, r)
	return r.State, nil
}

// end ends the current execution of a locked run and begins the next one where messages wait for it.
func (r *Run) end(ctx context.Context, tx write, result Result) error {
	var pending int
	if r.CancelRequested == nil && result.State != RunCancelled {
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM followups WHERE run_id = $1 AND execution = $2`, r.ID, r.Execution+1).Scan(&pending); err != nil {
			return err
		}
	}

	r.StatusMessage, r.ErrorCode = storable(result.Message), result.ErrorCode
	if pending > 0 {
		r.Execution++
		r.Attempt = 1
		return r.requeue(ctx, tx)
	}

	now := time.Now()
	r.State = result.State
	err := one(
		tx.ExecContext(
			ctx,
			`UPDATE runs SET state = $2, status_message = $3, error_code = $4, finished_at = $5, updated_at = $5,
		claim_hash = NULL, lease_until = NULL, next_seq = next_seq + 1 WHERE id = $1`,
			r.ID,
			string(r.State),
			r.StatusMessage,
			r.ErrorCode,
			micros(now),
		),
	)
	if err != nil {
		return err
	}

	r.nextSeq++
	return r.entered(ctx, tx, now)
}

// again puts a locked run back into the queue for the same execution. The messages that waited for its
// end join its prompt, as those do that come while it is queued, so that their order is kept.
func (r *Run) again(ctx context.Context, tx write) error {
	if r.Execution == 1 {
		rows, err := tx.QueryContext(
			ctx,
			`SELECT message FROM followups WHERE run_id = $1 AND execution = 2 ORDER BY uid`,
			r.ID,
		)
		if err != nil {
			return err
		}

		messages, err := scanAll(rows, func(row scanner) (m string, err error) { return m, row.Scan(&m) })
		if err != nil {
			return err
		}

		for _, m := range messages {
			if err := r.join(ctx, tx, m); err != nil {
				return err
			}
		}
	}

	if _, err := tx.ExecContext(ctx, `UPDATE followups SET execution = $2 WHERE run_id = $1 AND execution = $3`, r.ID, r.Execution, r.Execution+1); err != nil {
		return err
	}

	return r.requeue(ctx, tx)
}

// join adds a message to the prompt of a run in its first execution.
func (r *Run) join(ctx context.Context, tx write, message string) error {
	_, err := tx.ExecContext(
		ctx,
		`UPDATE runs SET prompt = CASE prompt WHEN '' THEN $2 ELSE prompt || $3 || $2 END WHERE id = $1`,
		r.ID,
		message,
		"\n\n",
	)
	return err
}

// requeue puts a locked run back into the queue with its Execution and Attempt.
func (r *Run) requeue(ctx context.Context, tx write) error {
	now := time.Now()
	r.State = RunQueued
	err := one(
		tx.ExecContext(
			ctx,
			`UPDATE runs SET state = 'QUEUED', execution = $2, attempt = $3, status_message = $4, error_code = $5, queued_at = $6, updated_at = $6,
		started_at = NULL, finished_at = NULL, cancel_requested_at = NULL, claim_hash = NULL, lease_until = NULL, next_seq = next_seq + 1 WHERE id = $1`,
			r.ID,
			r.Execution,
			r.Attempt,
			r.StatusMessage,
			r.ErrorCode,
			micros(now),
		),
	)
	if err != nil {
		return err
	}

	r.nextSeq++
	return r.entered(ctx, tx, now)
}

// moved tells of a run that ended or returned to the queue.
func (s *Store) moved(ctx context.Context, r Run) {
	s.notify(ctx, Notice{Topic: TopicRun, ID: r.ID})
	if r.State == RunQueued {
		s.Publish(Notice{Topic: TopicQueued, ID: r.ID})
	}
}

// ReleaseRun hands a run back that the worker cannot go on with, through no fault of the run: to QUEUED,
// without counting an attempt, or to CANCELLED when that was asked for. ErrLost when the claim no longer
// holds.
func (s *Store) ReleaseRun(ctx context.Context, c Claim) error {
	var r Run
	err := s.commitRun(ctx, c.RunID, func(ctx context.Context, tx write) (err error) {
		r, err = scanRun(
			tx.QueryRowContext(
				ctx,
				`SELECT `+runColumns+` FROM runs WHERE`+held+s.dialect.forUpdate(),
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

// RequestCancel asks for the end of a run. A queued run is CANCELLED at once; for one that a worker holds
// the request is recorded, and the worker ends it. It returns the run as it now is. ErrConflict when the
// run has ended; ErrNotFound when there is none.
func (s *Store) RequestCancel(ctx context.Context, id string) (Run, error) {
	var r Run
	err := s.commitRun(ctx, id, func(ctx context.Context, tx write) (err error) {
		if r, err = s.lockRun(ctx, tx, id); err != nil {
			return err
		}
		if r.State.Ended() {
			return fmt.Errorf("run %s has ended as %s: %w", id, r.State, ErrConflict)
		}
		if r.CancelRequested != nil {
			return nil
		}

		now := time.Now().Truncate(time.Microsecond).UTC()
		r.CancelRequested = &now
		if _, err := tx.ExecContext(ctx, `UPDATE runs SET cancel_requested_at = $2, updated_at = $2, state = CASE state WHEN 'QUEUED' THEN 'CANCELLED' ELSE state END,
			finished_at = CASE state WHEN 'QUEUED' THEN $2 ELSE finished_at END, next_seq = next_seq + CASE state WHEN 'QUEUED' THEN 1 ELSE 0 END WHERE id = $1`, id, micros(now)); err != nil {
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

	s.notify(ctx, Notice{Topic: TopicRun, ID: id})
	if r.State.Held() {
		s.notify(ctx, Notice{Topic: TopicCancel, ID: r.Worker + " " + id})
	}

	return r, nil
}
