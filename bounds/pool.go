package bounds

import (
	"sync"
)

// Pool is an amount, such as bytes or connections, that bounds what all senders hold together. It is safe
// for concurrent use.
//
// A sender's share shrinks with the square of the free amount. So greedy senders who come one after the
// other, and release nothing, leave room for the next: with a share of a half, n of them leave 2/(n+2) of
// the limit. A sender may always hold a little while anything is free. The senders of an IPv6 /48 network
// together may hold twice the share of one sender.
type Pool struct {
	about
	shares

	mu      sync.Mutex
	limit   int64
	held    int64
	refused int64
	of      map[string]int64 // held by sender and by network
}

// shares configure how much a sender may hold.
type shares struct {
	part  float64 // of the limit while all is free; 0: any part
	least int64   // while anything is free
	most  int64   // at any time; 0: no such bound
}

func newPool(a about, limit int64, s shares) *Pool {
	return &Pool{about: a, limit: limit, shares: s, of: map[string]int64{}}
}

// Take takes n for the sender. It takes nothing and returns false if that exceeds the limit or the sender's
// share. The empty sender has no share.
func (p *Pool) Take(sender string, n int64) bool {
	network := networkOf(sender)

	p.mu.Lock()
	defer p.mu.Unlock()

	free := p.limit - p.held
	if n > free || !p.mayHold(sender, n, free, 1) || !p.mayHold(network, n, free, 2) {
		p.refused++
		return false
	}

	p.held += n
	p.add(sender, n)
	p.add(network, n)
	return true
}

// Give gives back n that Take took for the sender.
func (p *Pool) Give(sender string, n int64) {
	network := networkOf(sender)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.held -= n
	p.add(sender, -n)
	p.add(network, -n)
}

// Disown keeps n held, but no longer counts it for the sender's share. Give it back for the empty sender.
func (p *Pool) Disown(sender string, n int64) {
	network := networkOf(sender)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(sender, -n)
	p.add(network, -n)
}

// SetLimit changes the limit. Amounts in use remain.
func (p *Pool) SetLimit(limit int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = limit
}

// Held returns how much is held.
func (p *Pool) Held() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// mayHold reports whether a sender or network may hold n more. times is its share relative to that of one
// sender.
func (p *Pool) mayHold(who string, n, free, times int64) bool {
	if who == "" {
		return true
	}

	total := p.of[who] + n
	if p.most > 0 && total > times*p.most {
		return false
	}
	if p.part == 0 || total <= p.least {
		return true
	}

	return float64(total) <= float64(times)*p.part*float64(free)*float64(free)/float64(p.limit)
}

func (p *Pool) add(who string, n int64) {
	if who == "" || n == 0 {
		return
	}
	if p.of[who] += n; p.of[who] == 0 {
		delete(p.of, who)
	}
}

func (p *Pool) measure() (held, limit, refused int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held, p.limit, p.refused
}

// Hold returns an empty Hold for the sender.
func (p *Pool) Hold(sender string) Hold { return Hold{pool: p, sender: sender} }

// Hold is the part of a pool that one request holds. The zero Hold is unbounded. It is for one goroutine.
type Hold struct {
	pool   *Pool
	sender string
	n      int64
}

// Grow takes n more. It takes nothing and returns false if the pool refuses.
func (h *Hold) Grow(n int64) bool {
	if h.pool == nil {
		return true
	}
	if !h.pool.Take(h.sender, n) {
		return false
	}
	h.n += n
	return true
}

// Release gives back everything. Further calls have no effect.
func (h *Hold) Release() {
	if h.n == 0 {
		return
	}
	h.pool.Give(h.sender, h.n)
	h.n = 0
}
