package bounds

import (
	"sync"
	"time"
)

const (
	budgetWindow = time.Minute
	// budgetSample is the number of entries from which evict chooses.
	budgetSample = 16
)

// Budget allows each K a number of events in any minute. It is exact: it stores the time of each event, on
// the monotonic clock. It is safe for concurrent use.
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

// spending has the times of the last minute's events, oldest first; at most limit of them.
type spending struct{ at []time.Duration }

func newBudget[K comparable](a about, limit, room int) *Budget[K] {
	return &Budget[K]{about: a, limit: limit, room: room, base: time.Now(), entries: map[K]*spending{}}
}

// Spent returns 0 if the budget of k has room, else the time until it has.
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
	return b.refuse(wait(e, b.limit, now.Sub(b.base)))
}

// refuse counts a refusal if wait is positive.
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

func wait(e *spending, limit int, now time.Duration) time.Duration {
	e.expire(now)
	if len(e.at) < limit {
		return 0
	}
	return e.at[len(e.at)-limit] + budgetWindow - now // those before it are of a limit that was higher
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
	return b.charge(k, b.limit, now)
}

// ChargeUpTo is Charge with a limit of k's own; below 0: no limit.
func (b *Budget[K]) ChargeUpTo(k K, limit int, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.charge(k, limit, now)
}

func (b *Budget[K]) charge(k K, limit int, now time.Time) time.Duration {
	if limit < 0 {
		return 0
	}

	at := now.Sub(b.base)
	e := b.entry(k, at)
	if wait := wait(e, limit, at); wait > 0 {
		return b.refuse(wait)
	}

	e.at = append(e.at, at)
	if b.fresh != nil {
		b.fresh[k]++
	}

	return 0
}

// Add counts n events of another replica, also beyond the limit.
func (b *Budget[K]) Add(k K, n int, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(k, n, b.limit, now)
}

// AddUpTo is Add with a limit of k's own; below 0: no limit.
func (b *Budget[K]) AddUpTo(k K, n, limit int, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(k, n, limit, now)
}

func (b *Budget[K]) add(k K, n, limit int, now time.Time) {
	if limit < 0 || n <= 0 {
		return
	}

	at := now.Sub(b.base)
	e := b.entry(k, at)
	e.expire(at)
	for range min(n, limit) {
		e.at = append(e.at, at)
	}

	if over := len(e.at) - limit; over > 0 { // the newest ones decide
		e.at = append(e.at[:0], e.at[over:]...)
	}
}

// Taken returns the charges since its last call. The first call starts the counting.
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

// evict makes room. Of a few random entries, it removes the expired ones, or else the least spent one. It
// removes a spent budget only if all drawn ones are spent. So a sender would have to spend the budgets of
// about as many addresses as there is room for, to renew one of its own.
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

	if len(b.fresh) > b.room { // nobody calls Taken any more
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
