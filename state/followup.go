package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// FollowupOutcome says what became of a follow-up message.
type FollowupOutcome string

// The outcomes (docs/contract.md, section 4).
const (
	FollowupQueued  FollowupOutcome = "queued_prompt"     // the text joined the prompt of the queued run
	FollowupPending FollowupOutcome = "queue_pending"     // it waits for the end of the execution
	FollowupHandoff FollowupOutcome = "handoff_execution" // the run had ended, and is queued again
)

// maxPending is how many messages may wait for one execution, and maxPendingText how many characters of them.
const (
	maxPending     = 100
	maxPendingText = 8 << 20
)

// ErrFull says that as many messages wait for a run as may.
var ErrFull = errors.New("full")

// Followup sends a message to a run and returns its UID and what became of it. A repeat of a request within
// 24 hours, by idem, returns what the first one did, and sends nothing. ErrNotFound when there is no such
// run; ErrConflict when the repeat's request differs; ErrFull when too many messages wait already.
func (s *Store) Followup(
	ctx context.Context,
	id, message string,
	idem Idempotency,
) (uid string, outcome FollowupOutcome, err error) {
	var r Run
	first := ""
	err = s.commit(ctx, func(ctx context.Context, tx write) (err error) {
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
		if err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(length(message)), 0) FROM followups WHERE run_id = $1 AND execution = $2`, id, execution).Scan(&waiting, &size); err != nil {
			return err
		}
		if full := waiting >= maxPending || waiting > 0 && size+len(message) > maxPendingText; full &&
			!r.State.Ended() { // what waited when the run was cancelled goes with the message that reopens it
			return fmt.Errorf("run %s has %d messages waiting already: %w", id, waiting, ErrFull)
		}

		now := time.Now()
		if _, err := tx.ExecContext(ctx, `INSERT INTO followups (uid, run_id, factory_uid, message, execution, created_at) VALUES ($1, $2, $3, $4, $5, $6)`,
			uid, id, r.FactoryUID, message, execution, micros(now)); err != nil {
			return err
		}

		switch {
		case r.State.Ended():
			r.Execution, r.Attempt, r.StatusMessage, r.ErrorCode = execution, 1, "", ""
			return r.requeue(ctx, tx)
		case r.State == RunQueued && r.Execution == 1:
			if err := r.join(ctx, tx, message); err != nil {
				return err
			}
		}

		_, err = tx.ExecContext(ctx, `UPDATE runs SET updated_at = $2 WHERE id = $1`, id, micros(now))
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
