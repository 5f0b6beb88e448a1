package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"millwright/schema"
	"millwright/state/db"
	"millwright/state/flow"
	"millwright/state/outputs"
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

const (
	closeQuestionsSQL = `UPDATE run_questions
		SET closed_at = $2
		WHERE run_id = $1 AND closed_at IS NULL`

	noQuestionsSQL = `UPDATE runs
		SET questions = 0
		WHERE id = $1`
)

// closeQuestions closes the questions of a locked run that goes on without their answers.
func (r *Run) closeQuestions(ctx context.Context, tx *db.Tx) error {
	if r.questions == 0 {
		return nil
	}

	r.questions = 0
	if _, err := tx.Exec(ctx, closeQuestionsSQL, r.ID, db.Micros(time.Now())); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, noQuestionsSQL, r.ID)
	return err
}
