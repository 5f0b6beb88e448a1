package dispatch

import (
	"sync"
	"sync/atomic"
)

// queue has this server's knowledge of the queue of runs.
type queue struct {
	heard   atomic.Int64 // counts hints at a queued run
	ours    atomic.Bool  // a run was queued here, and other servers may not know of it
	failing atomic.Bool  // the last claim failed
	served  atomic.Value // string: the factory of the last run that was handed out

	mu      sync.Mutex
	emptyAt map[string]int64 // value of heard at the time when the queue had nothing for a scope
}

// maxScopes bounds the scopes of which the queue is known to have nothing.
const maxScopes = 1000

// hasFor reports whether the queue may have a run for asks of a scope: it had one at the last look, or a hint came
// since.
func (q *queue) hasFor(scope string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	at, known := q.emptyAt[scope]
	return !known || at != q.heard.Load()
}

// emptied notes that the queue had nothing for asks of a scope when heard had a value.
func (q *queue) emptied(scope string, heard int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.emptyAt == nil || len(q.emptyAt) >= maxScopes {
		q.emptyAt = map[string]int64{}
	}
	q.emptyAt[scope] = heard
}
