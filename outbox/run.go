package outbox

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"millwright/outbox/events"
	"millwright/state/notice"
)

// New returns an outbox, which performs nothing until Run is called.
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

	slots, checkSlots := make(chan struct{}, concurrent), make(chan struct{}, checksAtOnce)
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
