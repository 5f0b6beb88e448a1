package cli

import (
	"errors"
	"fmt"
	"time"

	"millwright/reconcile"
)

// checkout is the repository of the working directory, as far as it is asked about.
type checkout struct {
	*reconcile.Checkout
	resolved string          // the full ID of the revision; empty: not known here
	asked    map[string]bool // which commits contain it
}

// attempt is an attempt to apply a definition.
type attempt struct {
	Outcome, Revision, Message string
	CommittedAt                *time.Time `json:"committed_at"`
}

// lookout watches factories until they stand as they should.
type lookout struct {
	*Client
	revision string // that one factory should have; empty: each factory is to settle
	history  checkout
	attempts []attempt // the latest of that factory
	why      string    // of the last look
}

// verdict is what one look at the factories came to.
type verdict struct {
	settled, good bool
	why           string // it is not settled, or not good; or what else there is to say
}

// end returns the error of a verdict.
func (v verdict) end(s Streams) error {
	switch {
	case v.good && v.why != "":
		fmt.Fprintln(s.Err, v.why)
		return nil
	case v.good:
		return nil
	case v.why != "":
		return &Exit{ExitProblem, errors.New(v.why)}
	}
	return &Exit{ExitProblem, nil}
}

func notYet(format string, args ...any) verdict { return verdict{why: fmt.Sprintf(format, args...)} }

func never(format string, args ...any) verdict {
	return verdict{settled: true, why: fmt.Sprintf(format, args...)}
}
