// Package outbox performs the outputs of runs at the forges of their repositories: pull requests, comments,
// labels, reviews and statuses. It publishes the checks of revisions and pull requests there, too, and sends the
// events of package outbox/events, all under one lease.
//
// The rows of the state are the outbox. One server at a time performs them. Each row is performed exactly once,
// also when a server dies in the middle: before the server repeats an attempt, it looks for the row's marker
// among the objects of its own account.
package outbox

import (
	"context"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/forge"
	"millwright/outbox/events"
	"millwright/state"
	"millwright/state/outputs"
)

// Config configures an Outbox. Store and Forges are required.
type Config struct {
	Store  *state.Store
	Forges *forge.Set
	// Environments returns those of the settings: outputs have none of their secrets. nil: there are none.
	Environments state.Environments
	// Checks reports whether the settings let the server tell the forge of a factory's source about revisions;
	// nil: for no factory.
	Checks func(factoryUID string) bool
	// PublicURL is the origin of the dashboard, for links.
	PublicURL string
	// Outbound returns the addresses that are not public and that events of a factory may be sent to; nil: none.
	Outbound func(factory string) []netip.Prefix
	// CheckEvery is the time between looks at a webhook that the forge has; zero means 10 minutes.
	CheckEvery time.Duration
	// Log receives what was performed, and failures; nil discards them.
	Log *slog.Logger
	// Registerer receives the metrics; nil: none.
	Registerer prometheus.Registerer
}

// Outbox performs the outputs of runs at forges, each once, and publishes checks there.
type Outbox struct {
	cfg     Config
	key     []byte // of markers
	holder  string // of the lease
	metrics *metrics
	looks   *pullLooks
	hosts   *hosts
	events  *events.Sender
	until   atomic.Pointer[time.Time] // when the lease ends
}

const (
	leaseName    = "outbox"
	leaseTTL     = 15 * time.Second
	leaseRenewal = 5 * time.Second

	attemptTime = 40 * time.Second // of one attempt
	rowLease    = 60 * time.Second // of a taken row: longer than an attempt
	concurrent  = 4                // attempts at once
	// checksAtOnce and checksOfForge bound the checks that are published at once, in all and at one forge.
	checksAtOnce = 16
	looks        = 2 * time.Second // between looks at the rows without a notice
	noticeGap    = 200 * time.Millisecond
	recordAgain  = 200 * time.Millisecond // while the database is away

	firstBackoff = 2 * time.Second
	lateAnswer   = time.Minute
	maxAttempts  = 30 // about six hours
)

// leads reports whether this server has the lease.
func (o *Outbox) leads() bool { return time.Until(*o.until.Load()) > 0 }

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// decision is an error that ends an output in a state other than failed.
type decision struct {
	state  outputs.State
	reason string
}

func (d decision) Error() string { return d.reason }

// errEarly reports that what an output needs is not known yet.
var errEarly = errors.New("the run has not begun")

// report records the result of an attempt, and returns it as the metrics name it.
func (o *Outbox) report(ctx context.Context, row outputs.Output, url string, err error) (string, error) {
	table := o.cfg.Store.Outputs()
	var d decision
	switch {
	case err == nil:
		return "done", table.Done(ctx, row, url)
	case errors.As(err, &d):
		return string(d.state), table.Stop(ctx, row, d.state, d.reason)
	case errors.Is(err, errEarly):
		return "later", table.Later(ctx, row, time.Now().Add(time.Second), "")
	case passes(err) && row.Attempts < maxAttempts:
		return "later", table.Later(ctx, row, time.Now().Add(wait(row.Attempts, err)), err.Error())
	}

	return "failed", table.Stop(ctx, row, outputs.Failed, err.Error())
}

// passes reports whether a repeat may help.
func passes(err error) bool {
	return errors.Is(err, forge.ErrLater) || errors.Is(err, state.ErrUnavailable) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// wait returns how long to wait for the next attempt: as long as the forge asked, or twice as long each time.
// It is spread by a fifth either way. A forge that did not answer in time may still make the object: the next
// look for it waits for that.
func wait(attempts int, err error) time.Duration {
	d := min(firstBackoff<<min(max(attempts-1, 0), 20), maxBackoff)
	d += mathrand.N(2*d/5+1) - d/5
	if errors.Is(err, context.DeadlineExceeded) {
		d = max(d, lateAnswer)
	}

	return max(d, min(forge.RetryAfter(err), time.Hour))
}
