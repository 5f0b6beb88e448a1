package state

import (
	"context"
	"fmt"
	"slices"
	"time"

	"millwright/state/db"
	"millwright/state/flow"
)

// mayRetry reports whether the run is executed again after this result, unless messages wait for it.
func (r *Run) mayRetry(result Result) bool {
	if r.Flow == nil || r.Flow.Retry == nil || r.CancelRequested != nil {
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
