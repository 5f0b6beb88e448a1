package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// groupMax is how many changes share one commit at most.
const groupMax = 256

// group lets concurrent changes of a SQLite state share one transaction, and so one sync of the disk.
// There is no timer and no goroutine: whoever comes first makes its change together with all that came
// meanwhile, then hands over to the next who waits. The zero value is ready.
type group struct {
	mu       sync.Mutex
	busy     bool
	waiting  []*grouped
	prepared prepared
}

// grouped is one change that waits for its commit.
type grouped struct {
	ctx  context.Context
	f    func(context.Context, write) error
	done chan error    // the change's own outcome
	lead chan struct{} // closed when this one is to make the next batch
}

// commit runs f in a write transaction and returns when it is committed, or when f failed and nothing of
// it was kept. f may be run again, so it must have no other effects, and must use the context that it is
// given: the transaction may be shared, and outlives the caller.
func (s *Store) commit(ctx context.Context, f func(context.Context, write) error) error {
	f = s.recovering(f)
	if s.dialect == postgres {
		return s.tx(ctx, func(tx *sql.Tx) error { return f(ctx, write{tx, s}) })
	}
	if err := ctx.Err(); err != nil {
		return err
	}

	g := &s.group
	item := &grouped{ctx: context.WithoutCancel(ctx), f: f, done: make(chan error, 1), lead: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, item)
	if g.busy {
		g.mu.Unlock()
		select {
		case err := <-item.done:
			return s.classify(err)
		case <-item.lead:
		}
	} else {
		g.busy = true
		g.mu.Unlock()
	}

	s.lead(g)
	return s.classify(<-item.done)
}

// lead commits the next batch, then hands over, however that ends.
func (s *Store) lead(g *group) {
	defer g.handOver()
	s.commitGroup(g.take())
}

// recovering makes a panic of f an error: it must not end the process, nor the waiting of others. What
// was panicked with may be foreign text, so that only its type is told.
func (s *Store) recovering(f func(context.Context, write) error) func(context.Context, write) error {
	return func(ctx context.Context, tx write) (err error) {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error(
					"a change of the state panicked",
					"panic",
					fmt.Sprintf("%T", p),
					"stack",
					string(debug.Stack()),
				)
				err = fmt.Errorf("%w: %T", errPanicked, p)
			}
		}()
		return f(ctx, tx)
	}
}

// errPanicked stands for a bug in a change.
var errPanicked = errors.New("the change panicked: this is a bug")

// take removes the next batch from the waiting changes.
func (g *group) take() []*grouped {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.waiting), groupMax)
	batch := g.waiting[:n:n]
	g.waiting = append([]*grouped(nil), g.waiting[n:]...)
	return batch
}

// handOver makes the first waiting change the leader of the next batch.
func (g *group) handOver() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.busy = false
		return
	}
	close(g.waiting[0].lead)
}

// errNotCommitted stands for a neighbour's failure that took the whole transaction with it.
var errNotCommitted = errors.New("the shared transaction was rolled back")

func (s *Store) commitGroup(batch []*grouped) {
	outcomes := make([]error, len(batch))
	err := errPanicked
	defer func() {
		for i, item := range batch {
			if outcomes[i] == nil && err != nil {
				outcomes[i] = errors.Join(ErrUnavailable, errNotCommitted, err)
			}
			item.done <- outcomes[i]
		}
	}()

	err = s.runGroup(batch, outcomes)
}

// runGroup makes every change of the batch behind a savepoint of its own and commits those that went well.
func (s *Store) runGroup(batch []*grouped, outcomes []error) error {
	ctx := context.Background()
	s.group.prepared.prepare(ctx, s.write)
	inner, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer inner.Rollback()

	tx := write{inner, s}
	if len(batch) == 1 {
		if outcomes[0] = batch[0].f(batch[0].ctx, tx); outcomes[0] != nil {
			return nil
		}
		return tx.Commit()
	}

	for i, item := range batch {
		if _, err := tx.ExecContext(ctx, "SAVEPOINT change"); err != nil {
			return err
		}

		if outcomes[i] = item.f(item.ctx, tx); outcomes[i] != nil {
			if _, err := tx.ExecContext(ctx, "ROLLBACK TO change"); err != nil {
				return err
			}
		}

		if _, err := tx.ExecContext(ctx, "RELEASE change"); err != nil {
			return err
		}
	}

	return tx.Commit()
}
