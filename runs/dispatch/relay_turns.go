package dispatch

import (
	"context"
	"errors"
	"sync"
)

// Bounds of the repositories that are read for workers.
const (
	maxTransfers         = 16  // at once
	maxTransfersOfWorker = 4   // at once
	maxWaitingOfWorker   = 100 // at once or in wait
)

// errManyTransfers reports that too many transfers of a worker wait.
var errManyTransfers = errors.New("too many transfers of the worker wait")

// turns let a bounded number of transfers go on, and of these a share for each worker. The others wait.
type turns struct {
	all chan struct{}
	mu  sync.Mutex
	of  map[string]*share // of the workers with transfers
}

type share struct {
	turns chan struct{}
	users int
}

func newTurns() *turns {
	return &turns{all: make(chan struct{}, maxTransfers), of: map[string]*share{}}
}

// enter waits for a turn of a worker. Call leave after the transfer.
func (t *turns) enter(ctx context.Context, worker string) (leave func(), err error) {
	own, err := t.join(worker)
	if err != nil {
		return nil, err
	}

	select {
	case own.turns <- struct{}{}:
	case <-ctx.Done():
		t.part(worker, own)
		return nil, ctx.Err()
	}

	leaveOwn := func() {
		<-own.turns
		t.part(worker, own)
	}
	select {
	case t.all <- struct{}{}:
	case <-ctx.Done():
		leaveOwn()
		return nil, ctx.Err()
	}

	return func() {
		<-t.all
		leaveOwn()
	}, nil
}

// join returns the share of a worker.
func (t *turns) join(worker string) (*share, error) {
	t.mu.Lock()
	defer t.mu.Unlock()

	own := t.of[worker]
	if own == nil {
		own = &share{turns: make(chan struct{}, maxTransfersOfWorker)}
		t.of[worker] = own
	}
	if own.users >= maxWaitingOfWorker {
		return nil, errManyTransfers
	}

	own.users++
	return own, nil
}

// part ends a use of a worker's share.
func (t *turns) part(worker string, own *share) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(t.of, worker)
	}
}
