package ingress

import (
	"sync"
	"time"
)

const (
	budgetWindow = time.Minute
	// budgetEntries bounds the senders that are told apart at one time.
	budgetEntries = 32 << 10
	// budgetSample is how many entries are looked at to make room for a new one.
	budgetSample = 16
)

// budgetKey is whose budget it is: a sender's on a webhook. Only webhooks that exist have budgets.
type budgetKey struct{ webhook, sender string }

// budget allows limit events in any minute, exactly: it remembers when each was. Times are distances on
// the monotonic clock, so that setting the clock changes nothing.
type budget struct {
	base time.Time

	mu      sync.Mutex
	limit   int // below 0: no limit
	entries map[budgetKey]*spending
	fresh   map[budgetKey]int // charged since the last take; nil until the first
}

// spending is when the events of the last minute were, oldest first; at most limit of them.
type spending struct{ at []time.Duration }

func newBudget(limit int) *budget {
	return &budget{limit: limit, base: time.Now(), entries: map[budgetKey]*spending{}}
}

// spent returns 0 while the budget of k has room, else how long it will have none if nothing is charged.
func (b *budget) spent(k budgetKey, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit < 0 {
		return 0
	}
	e := b.entries[k]
	if e == nil {
		return 0
	}
	return b.wait(e, now.Sub(b.base))
}

func (b *budget) wait(e *spending, now time.Duration) time.Duration {
	e.expire(now)
	if len(e.at) < b.limit {
		return 0
	}
	return e.at[len(e.at)-b.limit] + budgetWindow - now // those before it are of a limit that was higher
}

// setLimit changes the limit; what was charged stays charged.
func (b *budget) setLimit(limit int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = limit
}

// charge counts an event and returns 0, or counts nothing and returns what spent would.
func (b *budget) charge(k budgetKey, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit < 0 {
		return 0
	}
	at := now.Sub(b.base)
	e := b.entry(k, at)
	if wait := b.wait(e, at); wait > 0 {
		return wait
	}
	e.at = append(e.at, at)
	if b.fresh != nil {
		b.fresh[k]++
	}
	return 0
}

// add counts n events of another replica, whatever room there is.
func (b *budget) add(k budgetKey, n int, now time.Time) {
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

// take moves what was charged since the last take to counts.
func (b *budget) take(counts []Counts, failed bool) []Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, n := range b.fresh {
		counts = append(counts, Counts{Failed: failed, Webhook: k.webhook, Sender: k.sender, N: n})
	}
	b.fresh = map[budgetKey]int{}
	return counts
}

// entry returns the entry of k, made if needed.
func (b *budget) entry(k budgetKey, now time.Duration) *spending {
	e := b.entries[k]
	if e == nil {
		if len(b.entries) >= budgetEntries {
			b.evict(now)
		}
		e = &spending{}
		b.entries[k] = e
	}
	return e
}

// evict makes room: of a random few entries, those that ran out go, or the one with the least spent. A
// spent budget goes only when all that are drawn are spent too, so a sender would have to spend the
// budgets of about as many addresses as there is room for to get one of its own back.
func (b *budget) evict(now time.Duration) {
	var least budgetKey
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
	if len(b.entries) >= budgetEntries {
		delete(b.entries, least)
	}
}

// sweep forgets the entries that ran out.
func (b *budget) sweep(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := now.Sub(b.base)
	for k, e := range b.entries {
		if e.expire(at); len(e.at) == 0 {
			delete(b.entries, k)
		}
	}
	if len(b.fresh) > budgetEntries { // nobody takes them any more
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
