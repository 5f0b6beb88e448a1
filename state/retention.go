package state

import (
	"context"
	"time"
)

// trimBatch is how many runs are forgotten in one transaction.
const trimBatch = 200

// TrimRuns forgets idempotency keys that are older than they are kept and, unless age is 0, the runs that
// ended longer than age ago, with all that belongs to them: conversation, attachments, and the payload of
// the delivery when the delivery's row is gone too. It returns how many runs it forgot.
func (s *Store) TrimRuns(ctx context.Context, age time.Duration) (int, error) {
	err := s.commit(ctx, func(ctx context.Context, tx write) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM idempotency WHERE created_at <= $1`, micros(time.Now().Add(-idempotencyKept)))
		return err
	})
	if err != nil || age == 0 {
		return 0, err
	}
	before, total := micros(time.Now().Add(-age)), 0
	for _, st := range RunStates() {
		for st.Ended() && ctx.Err() == nil {
			n, err := s.trimRuns(ctx, st, before)
			if err != nil {
				return total, err
			}
			if total += n; n < trimBatch {
				break
			}
		}
	}
	return total, ctx.Err()
}

// trimRuns forgets one batch of the runs that ended in state st.
func (s *Store) trimRuns(ctx context.Context, st RunState, before int64) (int, error) {
	type ended struct{ id, delivery, webhook string }
	var runs []ended
	err := s.commit(ctx, func(ctx context.Context, tx write) error {
		rows, err := tx.QueryContext(ctx, `SELECT id, delivery_uid, webhook_uid FROM runs WHERE state = $1 AND updated_at < $2 AND `+isSettled+` ORDER BY updated_at, id LIMIT $3`+s.dialect.forUpdate(), string(st), before, trimBatch)
		if err != nil {
			return err
		}
		if runs, err = scanAll(rows, func(row scanner) (e ended, err error) { return e, row.Scan(&e.id, &e.delivery, &e.webhook) }); err != nil {
			return err
		}
		for _, r := range runs {
			if _, err := tx.ExecContext(ctx, `DELETE FROM runs WHERE id = $1`, r.id); err != nil {
				return err
			}
			if r.delivery == "" {
				continue
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM payloads WHERE delivery_uid = $1
				AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.delivery_uid = $1 AND runs.delivery_uid <> '')
				AND NOT EXISTS (SELECT 1 FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE w.uid = $2 AND d.uid = $1)`, r.delivery, r.webhook); err != nil {
				return err
			}
		}
		return nil
	})
	return len(runs), err
}
