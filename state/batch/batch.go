// Package batch lets many callers share transactions: a group commit.
package batch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"millwright/state/db"
)

// Job is what a caller hands to a [Queue]. It embeds a [Ticket].
type Job interface {
	// Size returns the number of bytes that the job brings.
	Size() int
	ticket() *Ticket
}

// Ticket is the place of one job in a queue. Its zero value is ready for one call of [Queue.Submit].
type Ticket struct {
	state atomic.Int32
	done  chan struct{}
}

func (t *Ticket) ticket() *Ticket { return t }

var _ interface{ ticket() *Ticket } = (*Ticket)(nil) // the part of a Job that it brings

// Done answers the job. Its writer calls it once, after the transaction, when the outcome is in the job.
func (t *Ticket) Done() { close(t.done) }

const (
	waiting int32 = iota
	taken
	withdrawn
)

// Bounds of a queue and of one transaction.
const (
	maxWaiting = 2048
	MaxJobs    = 256 // in one transaction
	maxBytes   = 8 << 20
)

// Queue hands the jobs that wait at the same time to writers, each of which writes them in one transaction.
// There is no timer: a writer that finds one job commits one.
type Queue struct {
	jobs   chan Job
	closed chan struct{} // closed when no writer will take a job any more
}

// New returns an empty queue. [Queue.Run] serves it.
func New() *Queue {
	return &Queue{jobs: make(chan Job, maxWaiting), closed: make(chan struct{})}
}

// Submit hands j to a writer and waits until it is done. After an error, which is a [db.ErrUnavailable], the
// job may have been written all the same, and must not be read.
func (q *Queue) Submit(ctx context.Context, j Job) error {
	select {
	case <-q.closed:
		return fmt.Errorf("%w: the state is closed", db.ErrUnavailable)
	default:
	}

	t := j.ticket()
	t.done = make(chan struct{})
	select {
	case q.jobs <- j:
	default:
		return fmt.Errorf("%w: too many deliveries are waiting to be written", db.ErrUnavailable)
	}

	var why error
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		why = ctx.Err()
	case <-q.closed:
		why = errors.New("the state is closed")
	}

	if !t.state.CompareAndSwap(waiting, withdrawn) {
		select { // a writer has it; it may be done by now
		case <-t.done:
			return nil
		default:
		}
	}

	return fmt.Errorf("%w: %w", db.ErrUnavailable, why)
}

// Run serves the queue with a number of writers until ctx ends, and then what still waits. write must answer
// every job of its batch.
func (q *Queue) Run(ctx context.Context, writers int, write func(context.Context, []Job)) {
	defer close(q.closed)

	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for {
				first := q.next(ctx)
				if first == nil {
					return
				}
				if jobs := q.take(first); len(jobs) > 0 {
					write(context.WithoutCancel(ctx), jobs)
				}
			}
		})
	}

	running.Wait()
}

// next waits for a job. It returns nil when ctx has ended and nothing waits.
func (q *Queue) next(ctx context.Context) Job {
	select {
	case j := <-q.jobs:
		return j
	default:
	}

	select {
	case j := <-q.jobs:
		return j
	case <-ctx.Done():
	}

	select {
	case j := <-q.jobs: // answered before the end
		return j
	default:
		return nil
	}
}

// take returns first and what waits behind it, as far as a batch goes.
func (q *Queue) take(first Job) []Job {
	jobs := make([]Job, 0, 16)
	bytes := 0
	for j := first; ; {
		if j.ticket().state.CompareAndSwap(waiting, taken) {
			jobs = append(jobs, j)
			bytes += j.Size()
		}
		if len(jobs) == MaxJobs || bytes >= maxBytes {
			return jobs
		}

		select {
		case j = <-q.jobs:
		default:
			return jobs
		}
	}
}
