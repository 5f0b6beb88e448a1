package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"millwright/schema"
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

// lockHeld reads a run that is in progress under the claim.
func (s *Store) lockHeld(ctx context.Context, tx *db.Tx, c Claim) (Run, error) {
	r, err := scanRun(
		tx.QueryRow(
			ctx,
			`SELECT `+runColumns+` FROM runs WHERE`+held+`AND state <> 'CLAIMED'`+s.db.ForUpdate(),
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

// Result is how an execution ended.
type Result struct {
	State     RunState // one that is Ended
	Message   string   // what to tell; empty when it succeeded
	ErrorCode string   // of docs/contract.md, section 3; empty unless the platform failed
	From      int      // as of AppendEntries
	Messages  []Message
	Outputs   []outputs.Output // that the execution leaves
	Links     []Artifact       // of type EXTERNAL_REFERENCE
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

const pendingSQL = `SELECT count(*)
FROM followups
WHERE run_id = $1 AND execution = $2`

const endRunSQL = `UPDATE runs
SET
	state = $2,
	waits_for = '',
	status_message = $3,
	error_code = $4,
	finished_at = $5,
	updated_at = $5,
	parked_until = 0,
	live = 0,
	claim_hash = NULL,
	lease_until = NULL,
	next_seq = next_seq + 1
WHERE id = $1`

// end ends the current execution of a locked run, whose flow is held, and begins the next one where messages wait
// for it or the run is to be tried again. An ended run lets others of its automation start.
func (s *Store) end(ctx context.Context, tx *db.Tx, r *Run, result Result) error {
	if err := r.leaveSession(ctx, tx); err != nil {
		return err
	}

	var pending int
	if r.CancelRequested == nil && result.State != RunCancelled && result.ErrorCode != codeBudget {
		if err := tx.QueryRow(ctx, pendingSQL, r.ID, r.Execution+1).Scan(&pending); err != nil {
			return err
		}
	}

	if result.State == RunCancelled && r.Flow != nil && r.Flow.SupersededBy != "" {
		result.Message = "superseded by run " + r.Flow.SupersededBy
	}

	said := r.CancelRequested != nil && result.State == RunCancelled && result.Message == "" ||
		r.questions > 0 && result.State == RunBlocked
	if !said { // a request to cancel, and a question, have a message of their own
		r.StatusMessage = db.Text(result.Message)
	}

	r.ErrorCode = result.ErrorCode
	if pending > 0 {
		if r.Flow != nil && r.Flow.Retry != nil {
			r.Flow.Retry.Tried, r.Flow.Retry.First = 0, 0
		}

		r.Execution++
		r.Attempt = 1
		return r.requeue(ctx, tx)
	}
	if err := dropUnfinished(ctx, tx, r.ID); err != nil {
		return err
	}

	if r.retries(result) {
		return r.retry(ctx, tx, result)
	}

	if result.State != RunBlocked {
		if err := r.closeQuestions(ctx, tx); err != nil {
			return err
		}
	}

	now := time.Now()
	waited := r.WaitsFor
	r.State, r.WaitsFor = result.State, ""
	err := tx.ExecOne(ctx, endRunSQL, r.ID, string(r.State), r.StatusMessage, r.ErrorCode, db.Micros(now))
	if err != nil {
		return err
	}

	r.nextSeq++
	if err := r.entered(ctx, tx, now); err != nil {
		return err
	}

	return s.leave(ctx, tx, r, waited)
}

// mendRunSQL bounds the columns of a run that indexes have.
var mendRunSQL = fmt.Sprintf(`UPDATE runs
	SET title = substr(title, 1, %d), config_name = substr(config_name, 1, %d), model_id = substr(model_id, 1, %d),
	environment_id = substr(environment_id, 1, %d), skill_spec = substr(skill_spec, 1, %d)
	WHERE id = $1`, schema.MaxTitle, schema.MaxLabel, schema.MaxModel, schema.MaxEnvironment, schema.MaxSkillSpec)

// commitRun is commit for a change of one run, as mending makes it.
func (s *Store) commitRun(ctx context.Context, id string, f func(context.Context, *db.Tx) error) error {
	return s.mending(ctx, id, func() error { return s.db.Write(ctx, f) })
}

// mending makes a change of a run and, when the run's row is why it fails, bounds what the row holds and tries
// once more.
func (s *Store) mending(ctx context.Context, id string, change func() error) error {
	err := change()
	if !ofRow(err) || errors.Is(err, sql.ErrNoRows) {
		return err
	}

	mend := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		_, err := tx.Exec(ctx, mendRunSQL, id)
		return err
	})
	if mend != nil {
		return errors.Join(err, mend)
	}

	return change()
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
