package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"millwright/state/db"
	"millwright/state/notice"
)

// Accept stores a delivery, its identity, its payload and its runs in one durable transaction, which it
// shares with other deliveries that wait at the same time. When it returns nil, all of that is on disk.
// A delivery whose identity was accepted before is logged as a duplicate and starts nothing.
//
// ErrMoved: the factory's definition changed since the delivery was judged; nothing was stored.
// ErrUnavailable: the database cannot be written, or too much is waiting, or ctx ended first. Then the
// delivery may have been stored after all, which its identity will show when it is sent again.
func (s *Store) Accept(ctx context.Context, a Acceptance) (Accepted, error) {
	a.stored = db.Compress(a.Body)
	j := &job{accept: &a, done: make(chan outcome, 1)}
	o := s.accept.submit(ctx, j)
	return o.Accepted, o.err
}

const (
	acceptQueue    = 2048    // jobs that may wait
	acceptBatch    = 256     // jobs in one transaction
	acceptBytes    = 8 << 20 // of bodies in one transaction
	acceptDeadline = 10 * time.Second
)

// acceptor is the group commit: writers that each take what is waiting, write it in one transaction, and
// answer after the commit. There is no timer: a writer that finds one job commits one.
type acceptor struct {
	s       *Store
	queue   chan *job
	closed  chan struct{} // closed when no writer will take a job any more
	rejects rejects
}

func newAcceptor(s *Store) *acceptor {
	return &acceptor{s: s, queue: make(chan *job, acceptQueue), closed: make(chan struct{})}
}

// submit hands j to a writer and waits for its answer.
func (a *acceptor) submit(ctx context.Context, j *job) outcome {
	select {
	case <-a.closed:
		return outcome{err: fmt.Errorf("%w: the state is closed", ErrUnavailable)}
	default:
	}

	select {
	case a.queue <- j:
	default:
		return outcome{err: fmt.Errorf("%w: too many deliveries are waiting to be written", ErrUnavailable)}
	}

	var why error
	select {
	case o := <-j.done:
		return o
	case <-ctx.Done():
		why = ctx.Err()
	case <-a.closed:
		why = errors.New("the state is closed")
	}

	if !j.state.CompareAndSwap(jobWaiting, jobWithdrawn) {
		select { // a writer has it; it may be done by now
		case o := <-j.done:
			return o
		default:
		}
	}

	return outcome{err: fmt.Errorf("%w: %w", ErrUnavailable, why)}
}

// run serves the queue until ctx ends, and then what still waits.
func (a *acceptor) run(ctx context.Context) {
	defer close(a.closed)

	var writers sync.WaitGroup
	for range a.writers() {
		writers.Go(func() { a.write(ctx) })
	}

	tick := time.NewTicker(time.Second)
	defer tick.Stop()

	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			a.flushRejects(ctx)
		}
	}

	writers.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptDeadline)
	defer cancel()

	a.flushRejects(last)
}

// writers is how many transactions may be under way: SQLite has one writer.
func (a *acceptor) writers() int {
	if a.s.db.Postgres() {
		return 3
	}
	return 1
}

func (a *acceptor) write(ctx context.Context) {
	for {
		var first *job
		select {
		case first = <-a.queue:
		default:
			select {
			case first = <-a.queue:
			case <-ctx.Done():
				select {
				case first = <-a.queue: // answered before the end
				default:
					return
				}
			}
		}

		if batch := a.take(first); len(batch) > 0 {
			a.commit(context.WithoutCancel(ctx), batch)
		}
	}
}

// take returns first and what waits behind it, as far as a batch goes.
func (a *acceptor) take(first *job) []*job {
	batch := make([]*job, 0, 16)
	bytes := 0
	for j := first; ; {
		if j.state.CompareAndSwap(jobWaiting, jobTaken) {
			batch = append(batch, j)
			bytes += j.size()
		}
		if len(batch) == acceptBatch || bytes >= acceptBytes {
			return batch
		}

		select {
		case j = <-a.queue:
		default:
			return batch
		}
	}
}

// commit writes a batch and answers its jobs. What fails for another reason than the database being out
// of reach is tried again one by one, so that it fails alone.
func (a *acceptor) commit(ctx context.Context, batch []*job) {
	ctx, cancel := context.WithTimeout(ctx, acceptDeadline)
	defer cancel()

	slices.SortFunc(batch, (*job).order)
	outcomes, err := a.transact(ctx, batch)
	if err != nil && len(batch) > 1 && !errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
		for i := range batch {
			a.commit(ctx, batch[i:i+1])
		}
		return
	}

	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}

		for _, j := range batch {
			j.done <- outcome{err: err}
		}

		return
	}

	a.s.Publish(notices(batch, outcomes)...)
	for _, webhookUID := range followed(batch) {
		a.s.Notify(notice.Delivery, webhookUID)
	}

	for i, j := range batch {
		a.s.movedAll(ctx, outcomes[i].changed)
		j.done <- outcomes[i]
	}
}

func notices(batch []*job, outcomes []outcome) []notice.Notice {
	all := make([]notice.Notice, 0, 2*len(batch))
	for i, j := range batch {
		switch {
		case outcomes[i].err != nil:
			continue
		case j.entry != nil:
			all = append(all, notice.Notice{Topic: notice.Delivery, ID: j.entry.WebhookUID})
			continue
		case !outcomes[i].Duplicate:
			for _, r := range outcomes[i].Started(j.accept.Runs) {
				all = append(all, notice.Notice{Topic: notice.Queued, ID: r.ID})
			}
		}

		all = append(all, notice.Notice{Topic: notice.Delivery, ID: j.accept.WebhookUID})
	}

	return all
}

// followed returns the webhooks of a batch that somebody may follow on another replica.
func followed(batch []*job) (webhookUIDs []string) {
	for _, j := range batch {
		if j.accept != nil && j.accept.Headers != nil {
			webhookUIDs = append(webhookUIDs, j.accept.WebhookUID)
		}
	}
	return webhookUIDs
}

// RecordRejected logs a rejected request. When it returns nil, the row is on disk, unless the webhook
// had more than 1,000 rejections in this minute: from then on, those of one outcome, sender and minute
// share a row with a count, which is written within seconds.
func (s *Store) RecordRejected(ctx context.Context, r Rejection) error {
	if s.accept.rejects.share(&r) {
		return nil
	}
	r.uid = NewID(PrefixDelivery)
	j := &job{entry: &r, done: make(chan outcome, 1)}
	return s.accept.submit(ctx, j).err
}

// RejectedElsewhere counts rejections that other replicas have just recorded, so that the cap of
// RecordRejected is one for all. Beyond it each replica has its own shared rows.
func (s *Store) RejectedElsewhere(webhookID int64, n int) {
	r := &s.accept.rejects
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(webhookID, n)
}

// flushRejects writes the shared rows that changed. Rows that cannot be written now are retried later.
func (a *acceptor) flushRejects(ctx context.Context) {
	rows := a.rejects.due(time.Now())
	keys := make([]rejectKey, 0, len(rows))
	batch := make([]*job, 0, len(rows))
	flush := func() {
		_, err := a.transact(ctx, batch)
		alone := ofRow(err) // one of them keeps the others from being written
		for i, key := range keys {
			if alone {
				_, err = a.transact(ctx, batch[i:i+1])
			}
			if ofRow(err) {
				a.s.Skip(
					loopRejects,
					batch[i].entry.FactoryUID,
					"rejections of webhook "+batch[i].entry.WebhookUID,
					err,
				)
			} else if err != nil {
				a.rejects.again(key)
			}
		}

		if err != nil && !ofRow(err) {
			a.s.log.Warn("writing shared rows of rejected deliveries", "error", err)
		}

		batch, keys = batch[:0], keys[:0]
	}

	order := slices.SortedFunc(maps.Keys(rows), func(x, y rejectKey) int {
		return cmp.Or(cmp.Compare(x.webhook, y.webhook), cmp.Compare(rows[x].uid, rows[y].uid))
	})
	for _, key := range order {
		row := rows[key]
		keys, batch = append(keys, key), append(batch, &job{entry: &row})
		if len(batch) == acceptBatch {
			flush()
		}
	}

	if len(batch) > 0 {
		flush()
	}
}

// transact writes a sorted batch in one transaction and returns each job's outcome, in the same order.
func (a *acceptor) transact(ctx context.Context, batch []*job) (outcomes []outcome, err error) {
	if a.s.db.Postgres() {
		err = a.s.db.Pipeline(ctx, func(ctx context.Context, pipe db.Pipe) (err error) {
			outcomes, err = a.s.writePostgres(ctx, pipe, batch)
			return err
		})
		return outcomes, err
	}

	// Without a deadline: that would cost a goroutine for each statement, and a disk does not heed it.
	err = a.s.db.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *db.Tx) (err error) {
		outcomes, err = a.s.writeSQLite(ctx, tx, batch)
		return err
	})
	return outcomes, err
}
