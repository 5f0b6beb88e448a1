package db

import (
	"context"
	"errors"
)

// groupMax is how many changes share one commit at most.
const groupMax = 256

// share makes a change together with those that wait.
func (d *DB) share(ctx context.Context, f func(context.Context, *Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	item := &grouped{
		ctx:  context.WithoutCancel(ctx),
		f:    f,
		done: make(chan error, 1),
		lead: make(chan struct{}),
	}
	if first := d.group.add(item); !first {
		select {
		case err := <-item.done:
			return err
		case <-item.lead:
		}
	}

	d.leadGroup()
	return <-item.done
}

// add lets a change wait. It reports whether that is to make the next batch at once.
func (g *group) add(item *grouped) (first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.waiting = append(g.waiting, item)
	first = !g.busy
	g.busy = true
	return first
}

// leadGroup commits the next batch, then hands over, however that ends.
func (d *DB) leadGroup() {
	defer d.group.handOver()
	d.commitGroup(d.group.take())
}

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

func (d *DB) commitGroup(batch []*grouped) {
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

	err = d.runGroup(batch, outcomes)
}

// runGroup makes every change of the batch behind a savepoint of its own and commits those that went well.
func (d *DB) runGroup(batch []*grouped, outcomes []error) error {
	ctx := context.Background()
	d.group.prepared.prepare(ctx, d.write)
	inner, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer inner.Rollback()

	tx := &Tx{d.within(inner, &d.group.prepared), d}
	if len(batch) == 1 {
		if outcomes[0] = batch[0].f(batch[0].ctx, tx); outcomes[0] != nil {
			return nil
		}
		return inner.Commit()
	}

	for i, item := range batch {
		if _, err := tx.Exec(ctx, "SAVEPOINT change"); err != nil {
			return err
		}

		if outcomes[i] = item.f(item.ctx, tx); outcomes[i] != nil {
			if _, err := tx.Exec(ctx, "ROLLBACK TO change"); err != nil {
				return err
			}
		}

		if _, err := tx.Exec(ctx, "RELEASE change"); err != nil {
			return err
		}
	}

	return inner.Commit()
}
