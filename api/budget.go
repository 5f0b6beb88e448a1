package api

import (
	"hash/maphash"
	"sync"
	"time"
)

// Budget counts what each sender does in a minute, in a table of fixed size, so that no flood of senders
// fills the memory; senders that share a place share a budget. It is safe for concurrent use.
type Budget struct {
	perMinute int
	seed      maphash.Seed
	mu        sync.Mutex
	table     [4096]struct {
		minute int64
		count  int
	}
}

// NewBudget returns a budget of so many a minute for each sender.
func NewBudget(perMinute int) *Budget {
	return &Budget{perMinute: perMinute, seed: maphash.MakeSeed()}
}

// Charge takes one from the sender's budget.
func (b *Budget) Charge(sender string, now time.Time) {
	i, minute := b.place(sender), now.Unix()/60
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.table[i].minute != minute {
		b.table[i].minute, b.table[i].count = minute, 0
	}
	b.table[i].count++
}

// Spent returns 0 while the sender has budget left, else the seconds until it has again.
func (b *Budget) Spent(sender string, now time.Time) int {
	i := b.place(sender)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.table[i].minute != now.Unix()/60 || b.table[i].count < b.perMinute {
		return 0
	}
	return int(60 - now.Unix()%60)
}

func (b *Budget) place(sender string) int {
	return int(maphash.String(b.seed, sender) % uint64(len(b.table)))
}
