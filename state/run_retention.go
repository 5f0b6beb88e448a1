package state

import (
	"context"
	"errors"
	"time"

	"millwright/state/db"
)

// expireBatch is how many runs are expired in one transaction.
const expireBatch = 200

// ExpireRuns expires idempotency keys that are older than they are kept and, unless age is 0, the runs that
// ended longer than age ago, with all that belongs to them: conversation, attachments, and the payload of
// the delivery when the delivery's row is gone too. It returns how many runs it expired.
func (s *Store) ExpireRuns(ctx context.Context, age time.Duration) (int, error) {
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		_, err := tx.Exec(
			ctx,
			`DELETE FROM idempotency WHERE created_at <= $1`,
			db.Micros(time.Now().Add(-idempotencyKept)),
		)
		return err
	})
	if err != nil || age == 0 {
		return 0, err
	}

	before, total := db.Micros(time.Now().Add(-age)), 0
	for _, st := range RunStates() {
		var last endedRun
		for st.Ended() && ctx.Err() == nil {
			was := last
			var n int
			last, n, err = s.expireEnded(ctx, st, before, last)
			if total += n; err != nil {
				return total, err
			}
			if last == was {
				break
			}
		}
	}

	return total, ctx.Err()
}

// endedRun names a run that has ended.
type endedRun struct {
	id, factory, delivery, webhook string
	updated                        int64
}

// expireEnded expires one batch of the runs that ended in state st and come after one of them. When a run keeps
// the batch from that, each is expired alone, and those that cannot be are skipped.
func (s *Store) expireEnded(
	ctx context.Context,
	st RunState,
	before int64,
	after endedRun,
) (last endedRun, n int, err error) {
	runs, err := s.endedRuns(ctx, st, before, after)
	if err != nil || len(runs) == 0 {
		return after, 0, err
	}

	last = runs[len(runs)-1]
	n, err = s.deleteRuns(ctx, runs, before)
	if !ofRow(err) {
		return last, n, err
	}

	for _, r := range runs {
		one, err := s.deleteRuns(ctx, []endedRun{r}, before)
		n += one
		if ofRow(err) {
			s.Skip(loopRetain, r.factory, "run "+r.id, err)
		} else if err != nil {
			return last, n, err
		}
	}

	return last, n, nil
}

const endedRunsSQL = `SELECT id, factory_uid, delivery_uid, webhook_uid, updated_at
FROM runs
WHERE state = $1
	AND updated_at < $2
	AND (updated_at, id) > ($3, $4)
	AND finished_at IS NOT NULL
ORDER BY updated_at, id
LIMIT $5`

// endedRuns returns a batch of runs that ended in state st and come after one of them.
func (s *Store) endedRuns(ctx context.Context, st RunState, before int64, after endedRun) ([]endedRun, error) {
	all, err := db.All(ctx, s.db.Reader, func(row db.Row) (e endedRun, err error) {
		return e, row.Scan(&e.id, &e.factory, &e.delivery, &e.webhook, &e.updated)
	}, endedRunsSQL, string(st), before, after.updated, after.id, expireBatch)
	return all, err
}

const deleteRunSQL = `DELETE
FROM runs
WHERE id = $1 AND finished_at IS NOT NULL AND updated_at < $2`

// deletePayloadSQL deletes the payload of a delivery that no run and no row of a log refers to.
const deletePayloadSQL = `DELETE FROM payloads
WHERE delivery_uid = $1
	AND NOT EXISTS (
		SELECT 1
		FROM runs
		WHERE runs.delivery_uid = $1 AND runs.delivery_uid <> ''
	)
	AND NOT EXISTS (
		SELECT 1
		FROM deliveries d
		JOIN webhooks w ON w.id = d.webhook_id
		WHERE w.uid = $2 AND d.uid = $1
	)`

// deleteRuns expires those of the runs, in one transaction, that have not begun again meanwhile.
func (s *Store) deleteRuns(ctx context.Context, runs []endedRun, before int64) (n int, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		n = 0
		for _, r := range runs {
			err := tx.ExecOne(ctx, deleteRunSQL, r.id, before)
			if errors.Is(err, db.ErrNoRow) {
				continue
			}
			if err != nil {
				return err
			}

			n++
			if r.delivery == "" {
				continue
			}

			if _, err := tx.Exec(ctx, deletePayloadSQL, r.delivery, r.webhook); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		n = 0
	}

	return n, err
}
