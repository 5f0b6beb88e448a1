package state

import (
	"context"
	"fmt"
)

// Bounds of the queued runs that move.
const (
	maxWaiting  = 500 // are not settled however long they wait
	settleBatch = 100 // are settled in one transaction, so that deliveries never wait long
)

// Settle settles some of the runs that wait in the queue behind many others, so that a list need not look at
// each of them. It returns how many they were: 0 when no more wait than may.
func (s *Store) Settle(ctx context.Context) (int, error) {
	const waiting = `state = 'QUEUED' AND ` + isMoving
	rows, err := reader{s}.QueryContext(ctx, fmt.Sprintf(`SELECT id FROM runs WHERE `+waiting+` ORDER BY updated_at DESC, id DESC LIMIT %d OFFSET %d`, settleBatch, maxWaiting))
	if err != nil {
		return 0, s.classify(err)
	}
	ids, err := scanAll(rows, func(row scanner) (id string, err error) { return id, row.Scan(&id) })
	if err != nil || len(ids) == 0 {
		return 0, s.classify(err)
	}
	n, err := s.settleRuns(ctx, ids, waiting)
	if !ofRow(err) {
		return n, err
	}
	for _, id := range ids { // one of them keeps the others from it
		one := 0
		err := s.mending(ctx, id, func() (err error) {
			one, err = s.settleRuns(ctx, []string{id}, waiting)
			return err
		})
		n += one
		if ofRow(err) {
			s.Skip(loopSettle, "", "run "+id, err)
		} else if err != nil {
			return n, err
		}
	}
	return n, nil
}

// settleRuns settles those of the runs that still wait, in one transaction, and returns how many they were.
func (s *Store) settleRuns(ctx context.Context, ids []string, waiting string) (int, error) {
	var settled []string
	err := s.commit(ctx, func(ctx context.Context, tx write) error { // by tx.Tx, since the texts are not constant
		marks, args := placeholders(ids)
		rows, err := tx.Tx.QueryContext(ctx, `UPDATE runs SET in_backlog = 1 WHERE id IN (`+marks+`) AND `+waiting+` RETURNING id`, args...)
		if err != nil {
			return err
		}
		settled, err = scanAll(rows, func(row scanner) (id string, err error) { return id, row.Scan(&id) })
		if err != nil || len(settled) == 0 {
			return err
		}
		marks, args = placeholders(settled)
		_, err = tx.Tx.ExecContext(ctx, `UPDATE run_metadata SET settled_at = (SELECT updated_at FROM runs WHERE id = run_id) WHERE run_id IN (`+marks+`)`, args...)
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(settled), nil
}
