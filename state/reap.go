package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ReapRuns takes at most limit runs away from workers whose lease ran out before deadline, and returns
// them as they now are: QUEUED for the next attempt, or for the same one when it had not begun; ERROR after the
// last; CANCELLED where that was asked. A run that its row keeps from all of that ends as ERROR too or, where even that cannot be, is skipped.
//
// deadline is by this machine's clock. None are taken for a while after the database's clock was set.
func (s *Store) ReapRuns(ctx context.Context, deadline time.Time, limit int) ([]Run, error) {
	if !s.clock.steady() {
		return nil, nil
	}
	return s.reap(
		ctx,
		lost{`claim_hash IS NOT NULL AND lease_until < $1`, micros(deadline.Add(-s.ClockSkew()))},
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
	rows, err := s.read.QueryContext(ctx, `SELECT id, factory_uid, lease_until FROM runs
		WHERE `+where.sql+` AND (lease_until, id) > ($2, $3)
		ORDER BY lease_until, id LIMIT $4`, where.arg, after.until, after.id, limit)
	if err != nil {
		return nil, s.classify(err)
	}

	all, err := scanAll(
		rows,
		func(row scanner) (h heldRun, err error) { return h, row.Scan(&h.id, &h.factory, &h.until) },
	)
	return all, s.classify(err)
}

// reapRun takes one run away from its worker.
func (s *Store) reapRun(ctx context.Context, where lost, id string) (r Run, err error) {
	err = s.commitRun(ctx, id, func(ctx context.Context, tx write) (err error) {
		r, err = scanRun(
			tx.QueryRowContext(
				ctx,
				`SELECT `+runColumns+` FROM runs WHERE `+where.sql+` AND id = $2`+s.dialect.forUpdate(),
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

// lose moves a locked run on whose worker is gone.
func (r *Run) lose(ctx context.Context, tx write) error {
	switch {
	case r.CancelRequested != nil:
		return r.end(ctx, tx, Result{State: RunCancelled})
	case r.State == RunClaimed: // it never began: the worker may not even have heard of it
		return r.again(ctx, tx)
	case r.Attempt < MaxAttempts:
		r.Attempt++
		return r.again(ctx, tx)
	}

	return r.end(ctx, tx, Result{
		State: RunError, ErrorCode: "infrastructure_timeout",
		Message: fmt.Sprintf("the worker stopped answering, in each of %d attempts", MaxAttempts),
	})
}
