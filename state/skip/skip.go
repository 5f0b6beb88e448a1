// Package skip remembers the rows that loops over many factories pass over, since they cannot be read or
// changed.
package skip

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Row is a row that a loop over the rows of many factories passes over. The loop continues after it.
type Row struct {
	Loop       string // its name, as in the metric millwright_rows_skipped
	FactoryUID string // empty when it is of no factory
	Row        string // its kind and identifier
	Err        string
	Since      time.Time

	last time.Time
}

const (
	maxRows = 1000            // are remembered; more are logged once, as many
	kept    = 5 * time.Minute // after a row was last passed over
)

// Rows are the rows that loops of this process pass over. The zero value has none.
type Rows struct {
	mu   sync.Mutex
	all  map[key]*Row
	full bool
}

type key struct{ loop, row string }

// Add notes that a loop passes over a row. It is logged the first time, and returned by All until the loop
// has not passed over it for some minutes.
func (r *Rows) Add(log *slog.Logger, loop, factoryUID, row string, err error) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()

	r.expire(now)
	k := key{loop, row}
	if had := r.all[k]; had != nil {
		had.last, had.Err = now, err.Error()
		return
	}

	if len(r.all) >= maxRows {
		if !r.full {
			log.Error("more rows are skipped than are remembered", "skipped", maxRows)
		}

		r.full = true
		return
	}

	if r.all == nil {
		r.all = map[key]*Row{}
	}

	r.all[k] = &Row{Loop: loop, FactoryUID: factoryUID, Row: row, Err: err.Error(), Since: now, last: now}
	log.Error("a row is skipped; the others go on",
		"loop", loop, "factory_uid", factoryUID, "row", row, "error", err)
}

func (r *Rows) expire(now time.Time) {
	for k, v := range r.all {
		if now.Sub(v.last) > kept {
			delete(r.all, k)
			r.full = false
		}
	}
}

// All returns the rows, by loop and row.
func (r *Rows) All() []Row {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.expire(time.Now())
	all := make([]Row, 0, len(r.all))
	for _, v := range r.all {
		all = append(all, *v)
	}

	slices.SortFunc(all, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Loop, b.Loop), cmp.Compare(a.Row, b.Row))
	})
	return all
}
