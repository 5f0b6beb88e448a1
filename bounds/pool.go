package bounds

import (
	"net/netip"
	"strings"
	"sync"
)

// Pool is an amount, such as bytes or connections, of which all senders together hold no more than a
// limit. It is safe for concurrent use.
//
// What a sender may hold shrinks with the square of what is free, so that greedy senders who come one after
// the other, and give nothing back, leave room for the next: with a share of a half, n of them leave
// 2/(n+2) of the limit. A sender may always hold a little while anything is free. The senders of one IPv6
// /48 network together may hold twice what one sender may.
type Pool struct {
	about
	shares

	mu      sync.Mutex
	limit   int64
	held    int64
	refused int64
	of      map[string]int64 // held by sender and by network
}

// shares are what a sender may hold.
type shares struct {
	part  float64 // of the limit while all is free; 0: any part
	least int64   // while anything is free
	most  int64   // at any time; 0: no such bound
}

func newPool(a about, limit int64, s shares) *Pool {
	return &Pool{about: a, limit: limit, shares: s, of: map[string]int64{}}
}

// Take takes n for the sender, or nothing when that exceeds the limit or the sender's share. The empty
// sender has no share of its own.
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

// Disown leaves what the sender holds held, but no longer counts it against the sender's share. It is given
// back for the empty sender.
func (p *Pool) Disown(sender string, n int64) {
	network := networkOf(sender)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(sender, -n)
	p.add(network, -n)
}

// SetLimit changes the limit. What is held stays held.
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

// mayHold reports whether a sender or network may hold n more, when its share is so many times a sender's.
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

// Hold returns what the sender holds of the pool: nothing yet.
func (p *Pool) Hold(sender string) Hold { return Hold{pool: p, sender: sender} }

// Hold is what one request holds of a pool. The zero Hold is bounded by nothing. It is for one goroutine.
type Hold struct {
	pool   *Pool
	sender string
	n      int64
}

// Grow takes n more, or nothing when the pool refuses.
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

// Release gives back all. It may be called again.
func (h *Hold) Release() {
	if h.n == 0 {
		return
	}
	h.pool.Give(h.sender, h.n)
	h.n = 0
}

// networkOf returns the /48 network of a sender that is an IPv6 /64 network, and otherwise "".
func networkOf(sender string) string {
	if !strings.HasSuffix(sender, "/64") {
		return ""
	}

	prefix, err := netip.ParsePrefix(sender)
	if err != nil {
		return ""
	}

	wider, err := prefix.Addr().Prefix(48)
	if err != nil {
		return ""
	}

	return wider.String()
}
