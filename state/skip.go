package state

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// The loops over the rows of all factories, by the names that Skipped has for them.
const (
	loopReap    = "lease recovery"
	loopRetain  = "retention"
	loopRejects = "rejected deliveries"
)

// Skipped is a row that a loop over the rows of many factories passes over, since it cannot be read or
// changed. The loop goes on behind it.
type Skipped struct {
	Loop       string // what the loop does, as in the metric millwright_rows_skipped
	FactoryUID string // empty when it is of no factory
	Row        string // its kind and identifier
	Err        string
	Since      time.Time

	last time.Time
}

const (
	maxSkipped  = 1000            // are remembered; more are logged once, as many
	skippedKept = 5 * time.Minute // after a row was last passed over
)

// skips remembers which rows are passed over.
type skips struct {
	mu   sync.Mutex
	all  map[skipKey]*Skipped
	full bool
}

type skipKey struct{ loop, row string }

// Skip notes that a loop passes over a row. It is logged the first time, and told by Skipped until the loop
// has not passed over it for some minutes. The end of a context, and a database that is out of reach, are
// not the row's.
func (s *Store) Skip(loop, factoryUID, row string, err error) {
	if !ofRow(err) {
		return
	}

	now := time.Now()
	k := &s.skips
	k.mu.Lock()
	defer k.mu.Unlock()

	k.expire(now)
	key := skipKey{loop, row}
	if had := k.all[key]; had != nil {
		had.last, had.Err = now, err.Error()
		return
	}

	if len(k.all) >= maxSkipped {
		if !k.full {
			s.log.Error("more rows are skipped than are remembered", "skipped", maxSkipped)
		}

		k.full = true
		return
	}

	if k.all == nil {
		k.all = map[skipKey]*Skipped{}
	}

	k.all[key] = &Skipped{Loop: loop, FactoryUID: factoryUID, Row: row, Err: err.Error(), Since: now, last: now}
	s.log.Error(
		"a row is skipped; the others go on",
		"loop",
		loop,
		"factory_uid",
		factoryUID,
		"row",
		row,
		"error",
		err,
	)
}

func (k *skips) expire(now time.Time) {
	for key, v := range k.all {
		if now.Sub(v.last) > skippedKept {
			delete(k.all, key)
			k.full = false
		}
	}
}

// Skipped returns the rows that loops of this process pass over now, by loop and row.
func (s *Store) Skipped() []Skipped {
	s.skips.mu.Lock()
	defer s.skips.mu.Unlock()

	s.skips.expire(time.Now())
	all := make([]Skipped, 0, len(s.skips.all))
	for _, v := range s.skips.all {
		all = append(all, *v)
	}

	slices.SortFunc(
		all,
		func(a, b Skipped) int { return cmp.Or(cmp.Compare(a.Loop, b.Loop), cmp.Compare(a.Row, b.Row)) },
	)
	return all
}
