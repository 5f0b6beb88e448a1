package dispatch

import (
	"container/list"
	"strings"
	"sync"
	"time"
)

// maxAsks bounds the asks that wait on one server.
const maxAsks = 10_000

// ask is a worker's request for a run, which waits for a queued run.
type ask struct {
	worker, instance string
	only             []string // the factories that its run may be of; nil: any
	scope            string   // names them; empty for any
	name             string   // display name
	reply            string   // subject of the answer
	until            time.Time
	expire           *time.Timer
	place            *list.Element // nil while it does not wait
}

// scopeOf names the factories that asks are for: "" all of them, which are nil.
func scopeOf(factories []string) string {
	if factories == nil {
		return ""
	}
	return "of " + strings.Join(factories, " ")
}

// asks are those that wait on this server, in the order in which they came.
type asks struct {
	nothing func(*ask) // answers that no run is queued
	came    chan struct{}

	mu      sync.Mutex
	waiting list.List
	scopes  map[string]int // how many of waiting each has
	closed  bool
}

func (q *asks) init(nothing func(*ask)) {
	q.nothing = nothing
	q.came = make(chan struct{}, 1)
	q.scopes = map[string]int{}
}

// add lets an ask wait. It reports false if too many wait.
func (q *asks) add(a *ask) bool {
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.waiting.Len() >= maxAsks {
		return false
	}

	left := time.Until(a.until)
	if q.closed || left <= 0 {
		q.nothing(a)
		return true
	}

	a.place = q.waiting.PushBack(a)
	q.scopes[a.scope]++
	a.expire = time.AfterFunc(left, func() { q.expire(a) })
	q.wake()
	return true
}

// expire ends the wait of an ask whose time is over.
func (q *asks) expire(a *ask) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a.place != nil {
		q.remove(a)
		q.nothing(a)
	}
}

func (q *asks) wake() {
	select {
	case q.came <- struct{}{}:
	default:
	}
}

func (q *asks) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.Len()
}

// any reports whether an ask of a wanted scope waits.
func (q *asks) any(wanted func(scope string) bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for scope := range q.scopes {
		if wanted(scope) {
			return true
		}
	}
	return false
}

// take removes and returns the first asks of a wanted scope, at most n, all of the scope of the first.
func (q *asks) take(n int, wanted func(scope string) bool) []*ask {
	q.mu.Lock()
	defer q.mu.Unlock()

	var taken []*ask
	for e := q.waiting.Front(); e != nil && len(taken) < n; {
		a := e.Value.(*ask)
		e = e.Next()
		if len(taken) == 0 && wanted(a.scope) || len(taken) > 0 && a.scope == taken[0].scope {
			q.remove(a)
			taken = append(taken, a)
		}
	}

	return taken
}

// remove takes a waiting ask out.
func (q *asks) remove(a *ask) {
	q.waiting.Remove(a.place)
	a.place = nil
	a.expire.Stop()

	q.scopes[a.scope]--
	if q.scopes[a.scope] == 0 {
		delete(q.scopes, a.scope)
	}
}

// giveBack puts asks back, before all others.
func (q *asks) giveBack(taken []*ask) {
	q.mu.Lock()
	defer q.mu.Unlock()

	for i := range taken {
		a := taken[len(taken)-1-i]
		left := time.Until(a.until)
		if q.closed || left <= 0 {
			q.nothing(a)
			continue
		}

		a.place = q.waiting.PushFront(a)
		q.scopes[a.scope]++
		a.expire.Reset(left)
	}
}

// leave ends the wait of withdrawn asks.
func (q *asks) leave(off func(*ask) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for e := q.waiting.Front(); e != nil; {
		a := e.Value.(*ask)
		e = e.Next()
		if off(a) {
			q.remove(a)
			q.nothing(a)
		}
	}
}

// close ends the wait of all present and future asks.
func (q *asks) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.leave(func(*ask) bool { return true })
}
