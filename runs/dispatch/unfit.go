package dispatch

import (
	"fmt"
	"time"

	"millwright/runs/wire"
)

// laterError is the reason why no work order can be made now, or why its worker cannot fetch a repository. It
// passes by itself.
type laterError struct {
	error
	after time.Duration // that the forge asked to wait; 0: nothing
}

// unfitError is the reason why a run can never be executed as stored.
type unfitError struct{ error }

func unfit(format string, args ...any) error { return unfitError{fmt.Errorf(format, args...)} }

// notApplied records that a field of the run's configuration has no effect.
func notApplied(o *wire.Order, field, reason string) {
	if o.NotApplied == nil {
		o.NotApplied = map[string]string{}
	}
	o.NotApplied[field] = reason
}
