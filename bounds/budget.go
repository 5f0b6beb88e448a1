package bounds

import (
	"sync"
	"time"
)

const (
	budgetWindow = time.Minute
	// budgetSample is how many entries are looked at to make room for a new one.
	budgetSample = 16
)

// Budget allows each K a number of events in any minute, exactly: it remembers when each was. Times are
// distances on the monotonic clock, so that setting the clock changes nothing. It is safe for concurrent
// use.
type Budget[K comparable] struct {
	about
	base time.Time
	room int // for entries

	mu      sync.Mutex
	limit   int // below 0: no limit
	refused int64
	entries map[K]*spending
	fresh   map[K]int // charged since the last Taken; nil until the first
}

// spending is when the events of the last minute were, oldest first; at most limit of them.
type spending struct{ at []time.Duration }

func newBudget[K comparable](a about, limit, room int) *Budget[K] {
	return &Budget[K]{about: a, limit: limit, room: room, base: time.Now(), entries: map[K]*spending{}}
}

// Spent returns 0 while the budget of k has room, else how long it will have none if nothing is charged.
func (b *Budget[K]) Spent(k K, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit < 0 {
		return 0
	}
	e := b.entries[k]
	if e == nil {
		return 0
	}
	return b.refuse(b.wait(e, now.Sub(b.base)))
}

// refuse counts a refusal when there is something to wait for.
func (b *Budget[K]) refuse(wait time.Duration) time.Duration {
	if wait > 0 {
		b.refused++
	}
	return wait
}

func (b *Budget[K]) measure() (held, limit, refused int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(len(b.entries)), int64(b.room), b.refused
}

func (b *Budget[K]) wait(e *spending, now time.Duration) time.Duration {
	e.expire(now)
	if len(e.at) < b.limit {
		return 0
	}
	return e.at[len(e.at)-b.limit] + budgetWindow - now // those before it are of a limit that was higher
}

// SetLimit changes the limit; what was charged stays charged.
func (b *Budget[K]) SetLimit(limit int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = limit
}

// Charge counts an event and returns 0, or counts nothing and returns what Spent would.
func (b *Budget[K]) Charge(k K, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.limit < 0 {
		return 0
	}

	at := now.Sub(b.base)
	e := b.entry(k, at)
	if wait := b.wait(e, at); wait > 0 {
		return b.refuse(wait)
	}

	e.at = append(e.at, at)
	if b.fresh != nil {
		b.fresh[k]++
	}

	return 0
}

// Add counts n events of another replica, whatever room there is.
func (b *Budget[K]) Add(k K, n int, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.limit < 0 || n <= 0 {
		return
	}

	at := now.Sub(b.base)
	e := b.entry(k, at)
	e.expire(at)
	for range min(n, b.limit) {
		e.at = append(e.at, at)
	}

	if over := len(e.at) - b.limit; over > 0 { // the newest ones decide
		e.at = append(e.at[:0], e.at[over:]...)
	}
}

// Taken returns what was charged since it was last called. The first call begins the counting.
func (b *Budget[K]) Taken() map[K]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	fresh := b.fresh
	b.fresh = map[K]int{}
	return fresh
}

// entry returns the entry of k, made if needed.
func (b *Budget[K]) entry(k K, now time.Duration) *spending {
	e := b.entries[k]
	if e == nil {
		if len(b.entries) >= b.room {
			b.evict(now)
		}
		e = &spending{}
		b.entries[k] = e
	}
	return e
}

// evict makes room: of a random few entries, those that ran out go, or the one with the least spent. A
// Spent budget goes only when all that are drawn are spent too, so a sender would have to spend the
// budgets of about as many addresses as there is room for to get one of its own back.
func (b *Budget[K]) evict(now time.Duration) {
	var least K
	fewest, drawn := -1, 0
	for k, e := range b.entries { // begins at a random place
		e.expire(now)
		if len(e.at) == 0 {
			delete(b.entries, k)
		} else if fewest < 0 || len(e.at) < fewest {
			least, fewest = k, len(e.at)
		}

		if drawn++; drawn == budgetSample {
			break
		}
	}

	if len(b.entries) >= b.room {
		delete(b.entries, least)
	}
}

// Sweep forgets the entries that ran out.
func (b *Budget[K]) Sweep(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()

	at := now.Sub(b.base)
	for k, e := range b.entries {
		if e.expire(at); len(e.at) == 0 {
			delete(b.entries, k)
		}
	}

	if len(b.fresh) > b.room { // nobody takes them any more
		b.fresh = nil
	}
}

// expire drops the events that are a minute old.
func (e *spending) expire(now time.Duration) {
	n := 0
	for n < len(e.at) && e.at[n]+budgetWindow <= now {
		n++
	}
	if n > 0 {
		e.at = append(e.at[:0], e.at[n:]...)
	}
}
