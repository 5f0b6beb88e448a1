package state

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"millwright/state/db"
)

var (
	// ErrNotFound says that the named thing does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the change contradicts the state.
	ErrConflict = errors.New("conflict")
	// ErrFull says that as many messages wait for a run as may.
	ErrFull = errors.New("full")
	// ErrLost says that a worker no longer holds the run it writes to.
	ErrLost = errors.New("the claim on this run is lost")
	// ErrMoved says that the factory's definition changed since it was read.
	ErrMoved = errors.New("the definition changed meanwhile")
	// ErrUnreadable: a stored row cannot be read; the wrapping error names it.
	ErrUnreadable = errors.New("it cannot be read as it is stored")
	// ErrUnavailable says that the database cannot be reached or written just now; a retry may help.
	ErrUnavailable = db.ErrUnavailable
)

// Refusal is an ErrNotFound, ErrConflict or ErrFull with what it is about.
type Refusal struct {
	Kind   error
	Detail string // names the thing, or the contradiction, without the kind
}

// Error returns the detail and the kind.
func (r *Refusal) Error() string { return r.Detail + ": " + r.Kind.Error() }

// Unwrap returns the kind.
func (r *Refusal) Unwrap() error { return r.Kind }

// Detail returns what the refusal in err is about; the text of any other error.
func Detail(err error) string {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Detail
	}
	return err.Error()
}

func refuse(kind error, format string, args ...any) error {
	return &Refusal{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// orNotFound returns an ErrNotFound for a look-up, or a change, that found no row.
func orNotFound(err error, format string, args ...any) error {
	if errors.Is(err, sql.ErrNoRows) || errors.Is(err, db.ErrNoRow) {
		return refuse(ErrNotFound, format, args...)
	}
	return err
}

// orMoved returns ErrMoved for a change that found no row.
func orMoved(err error) error {
	if errors.Is(err, db.ErrNoRow) {
		return ErrMoved
	}
	return err
}

// ofRow reports whether an error is a row's own: it repeats at every attempt, regardless of the database.
func ofRow(err error) bool {
	for _, other := range []error{
		ErrUnavailable, ErrLost, ErrConflict, ErrNotFound, ErrMoved, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, other) {
			return false
		}
	}
	return err != nil
}

// The loops over the rows of all factories, by the names that Skipped has for them.
const (
	loopReap    = "lease recovery"
	loopRetain  = "retention"
	loopRejects = "rejected deliveries"
)

// Skipped is a row that a loop over the rows of many factories passes over, since it cannot be read or
// changed. The loop continues after it.
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
