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
	"crypto/rand"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/forge"
	"millwright/outbox/events"
	"millwright/state"
	"millwright/state/notice"
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

// Outbox performs outputs.
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
	looks       = 2 * time.Second  // between looks at the rows without a notice
	noticeGap   = 200 * time.Millisecond
	recordAgain = 200 * time.Millisecond // while the database is away

	firstBackoff = 2 * time.Second
	maxBackoff   = 15 * time.Minute
	lateAnswer   = time.Minute
	maxAttempts  = 30 // about six hours
)

// New returns an outbox. Run it.
func New(cfg Config) (*Outbox, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}

	if cfg.CheckEvery <= 0 {
		cfg.CheckEvery = checkEvery
	}

	o := &Outbox{cfg: cfg, key: cfg.Store.DeriveKey("outputs"), holder: "local", metrics: newMetrics(cfg.Store)}
	o.looks, o.hosts = newLooks(), newHosts()
	o.until.Store(&time.Time{})
	if cfg.Store.Shared() {
		o.holder = rand.Text()
	}

	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(o.metrics); err != nil {
			return nil, err
		}
	}

	sender, err := events.New(events.Config{
		Store:      cfg.Store,
		PublicURL:  cfg.PublicURL,
		Allow:      cfg.Outbound,
		Leads:      o.leads,
		Log:        cfg.Log,
		Registerer: cfg.Registerer,
	})
	o.events = sender
	return o, err
}

// leads reports whether this server has the lease.
func (o *Outbox) leads() bool { return time.Until(*o.until.Load()) > 0 }

// Run performs outputs until ctx ends. It returns when no attempt is under way.
func (o *Outbox) Run(ctx context.Context) {
	if o.cfg.Registerer != nil {
		defer o.cfg.Registerer.Unregister(o.metrics)
	}

	if !o.cfg.Store.Shared() { // only a former process of this server can have taken a row, and it died
		err := errors.Join(o.cfg.Store.Outputs().Recover(ctx), o.cfg.Store.Checks().Recover(ctx))
		if err != nil {
			o.cfg.Log.Warn("outbox: recover what the process before had taken", "error", err)
		}
	}

	notices, end := o.cfg.Store.Subscribe(1, notice.Run, notice.Sync, notice.Check)
	defer end()

	var wg sync.WaitGroup
	wg.Go(func() { o.look(ctx) })
	wg.Go(func() { o.events.Run(ctx) })
	for range registrars {
		wg.Go(func() { o.register(ctx) })
	}

	slots, checkSlots := make(chan struct{}, concurrent), make(chan struct{}, concurrent)
	for renew := time.Now(); ctx.Err() == nil; {
		if now := time.Now(); !now.Before(renew) {
			until := o.lead(ctx, *o.until.Load())
			o.until.Store(&until)
			renew = now.Add(leaseRenewal)
		}
		if o.leads() {
			o.drain(ctx, slots, &wg, o.takeOutput)
			o.drain(ctx, checkSlots, &wg, o.takeCheck)
		}

		select {
		case <-ctx.Done():
		case <-time.After(looks):
		case <-notices:
			pause(ctx, noticeGap)
		}
	}

	wg.Wait()
	o.release(ctx)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// lead takes or prolongs the lease, and returns how long this server has it.
func (o *Outbox) lead(ctx context.Context, until time.Time) time.Time {
	asked := time.Now()
	held, err := o.cfg.Store.Lease(ctx, leaseName, o.holder, leaseTTL)
	switch {
	case err != nil:
		o.cfg.Log.Debug("outbox: take the lease", "error", err)
		return until
	case held:
		return asked.Add(leaseTTL)
	}
	return time.Time{}
}

func (o *Outbox) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()

	if err := o.cfg.Store.Release(ctx, leaseName, o.holder); err != nil {
		o.cfg.Log.Debug("outbox: release the lease", "error", err)
	}
}

// drain begins what is due while there is room for attempts. take returns the attempt of a row, or nil when none
// is due.
func (o *Outbox) drain(
	ctx context.Context, slots chan struct{}, wg *sync.WaitGroup, take func(context.Context) (func(), error),
) {
	for {
		select {
		case slots <- struct{}{}:
		default:
			return
		}

		attempt, err := take(ctx)
		if err != nil || attempt == nil {
			<-slots
			if err != nil && ctx.Err() == nil {
				o.cfg.Log.Warn("outbox: take what is due", "error", err)
			}

			return
		}

		wg.Go(func() {
			defer func() { <-slots }()
			attempt()
		})
	}
}

func (o *Outbox) takeOutput(ctx context.Context) (func(), error) {
	row, ok, err := o.cfg.Store.Outputs().Take(ctx, rowLease)
	if err != nil || !ok {
		return nil, err
	}
	return func() { o.attempt(ctx, row) }, nil
}

// attempt performs a taken output once and records the result. An end of the server does not interrupt it.
func (o *Outbox) attempt(ctx context.Context, row outputs.Output) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTime)
	defer cancel()

	url, err := o.performed(ctx, row)
	record, end := context.WithTimeout(context.WithoutCancel(ctx), rowLease-attemptTime)
	defer end()

	outcome, failed := o.report(record, row, url, err)
	for errors.Is(failed, state.ErrUnavailable) && record.Err() == nil {
		pause(record, recordAgain)
		outcome, failed = o.report(record, row, url, err)
	}
	if failed != nil { // the row's lease ends, and the next attempt looks for the marker
		o.cfg.Log.Warn("outbox: record an output", "output_uid", row.UID, "run_id", row.RunID, "error", failed)
		return
	}

	o.metrics.count(string(row.Kind), outcome)
	log := o.cfg.Log.With("output_uid", row.UID, "run_id", row.RunID, "kind", row.Kind, "outcome", outcome)
	if err != nil {
		log.Warn("output not performed", "attempt", row.Attempts, "error", err)
	} else {
		log.Info("output performed", "url", url)
	}

	o.cfg.Store.Notify(notice.Run, row.RunID)
}

// performed is perform, whose panic on what a forge answers fails the output.
func (o *Outbox) performed(ctx context.Context, row outputs.Output) (url string, err error) {
	defer func() {
		if v := recover(); v != nil {
			o.cfg.Log.Error("outbox: panic",
				"output_uid", row.UID, "panic", v, "stack", string(debug.Stack()))
			url, err = "", errors.New("an error of the server, which its log has")
		}
	}()

	return o.perform(ctx, row)
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
