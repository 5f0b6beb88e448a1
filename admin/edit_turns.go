package admin

import (
	"context"
	"sync"
)

// turns serializes the edits of each factory in this process, which saves them a retry. Edits of other
// processes are detected by their revisions.
type turns struct {
	mu  sync.Mutex
	all map[string]chan struct{} // by factory UID; each with capacity 1
}

func (t *turns) take(ctx context.Context, factoryUID string) (release func(), err error) {
	t.mu.Lock()
	if t.all == nil {
		t.all = map[string]chan struct{}{}
	}

	turn := t.all[factoryUID]
	if turn == nil {
		turn = make(chan struct{}, 1)
		t.all[factoryUID] = turn
	}

	t.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
