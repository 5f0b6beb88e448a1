package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"millwright/forge"
	"millwright/runs/wire"
	"millwright/state"
	"millwright/state/notice"
)

const (
	maxRequests = 64 // requests of workers, asks aside
	maxChecks   = 1  // bundles that are checked
)

// Start starts the dispatch. It returns an error if the configuration is invalid or NATS is unreachable.
// After later losses of NATS it reconnects.
func Start(ctx context.Context, cfg Config) (*Dispatcher, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Lease == 0 {
		cfg.Lease = 30 * time.Second
	}
	if cfg.Poll == 0 {
		cfg.Poll = time.Second
	}

	if cfg.URL != "" && (cfg.Listen != "" || len(cfg.Cluster) > 0) {
		return nil, errors.New(
			"nats: give either the address of an existing NATS or what the embedded one listens on, not both",
		)
	}

	d := &Dispatcher{
		cfg:         cfg,
		metrics:     newMetrics(cfg.Store),
		undelivered: nats.NewInbox(),
		slots:       make(chan struct{}, maxRequests),
		checks:      make(chan struct{}, maxChecks),
		relays:      newTurns(),
		relayer:     forge.NewRelay(),
		orders:      make(chan struct{}, maxOrders),
	}

	d.queue.heard.Store(1) // runs may have waited before this server started
	d.asks.init(func(a *ask) { d.answer(a.reply, wire.Answer{}) })
	d.SetBounds(cfg.FactoryRuns, cfg.AutomationRuns)
	d.SetPrices(cfg.Prices)
	d.ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := d.start(ctx); err != nil {
		d.Close(ctx)
		return nil, err
	}

	return d, nil
}

func (d *Dispatcher) start(ctx context.Context) error {
	if d.cfg.URL == "" {
		if err := d.embed(); err != nil {
			return err
		}
	}

	var err error
	if d.nc, err = d.connect(ctx, nats.NoEcho()); err != nil {
		return err
	}

	if d.cfg.Registerer != nil {
		if err := d.cfg.Registerer.Register(d.metrics); err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
	}

	if !d.cfg.Store.Shared() { // only a former process of this server can hold a run, and it died
		if err := d.reapOwn(ctx); err != nil {
			return err
		}
	}

	if err := d.serveWorkers(); err != nil {
		return err
	}

	queued, endQueued := d.cfg.Store.Subscribe(1000, notice.Queued)
	d.wg.Go(func() { defer endQueued(); d.listenLoop(queued) })
	for range d.claimers() {
		d.wg.Go(d.claimLoop)
	}

	cues, endCues := d.cfg.Store.Subscribe(1000, notice.Cancel, notice.Wake)
	d.wg.Go(func() { defer endCues(); d.cueLoop(cues) })
	d.wg.Go(d.reapLoop)
	d.wg.Go(d.dueLoop)
	return nil
}

// claimers is the number of concurrent claims: SQLite has one writer.
func (d *Dispatcher) claimers() int {
	if d.cfg.Store.Shared() {
		return 3
	}
	return 1
}

// connect opens a connection of a server, or of a worker in its process.
func (d *Dispatcher) connect(ctx context.Context, opts ...nats.Option) (*nats.Conn, error) {
	opts = append(opts, wire.Options(d.cfg.Log)...)
	if d.embedded != nil {
		opts = append(opts, nats.InProcessServer(d.embedded), nats.UserInfo(serverUser, d.password))
		return nats.Connect("", opts...)
	}

	creds, err := wire.ReadCredentials(d.cfg.Credentials)
	if err != nil {
		return nil, err
	}

	nc, err := nats.Connect(d.cfg.URL, append(opts, creds.Options()...)...)
	if err != nil {
		return nil, fmt.Errorf("nats: connect to %s: %w", wire.RedactedURL(d.cfg.URL), err)
	}

	return nc, nil
}

// Close ends the dispatch and the embedded NATS server. Workers keep their runs. End the workers in this
// process first.
func (d *Dispatcher) Close(ctx context.Context) {
	d.unsubscribe()
	d.asks.close()
	d.mu.Lock() // no work starts after this
	d.stop()
	d.mu.Unlock()
	d.wg.Wait()
	if d.cfg.Registerer != nil {
		d.cfg.Registerer.Unregister(d.metrics)
	}
	if d.nc != nil {
		d.nc.Close()
	}
	if d.embedded != nil {
		d.embedded.Shutdown()
		d.embedded.WaitForShutdown()
	}
}

// Client returns a connection for the worker in this process. Close it when the worker has ended.
func (d *Dispatcher) Client() (*wire.Client, error) {
	uid := LocalWorker
	if d.cfg.Store.Shared() {
		uid = state.NewID(LocalWorker)
	}
	nc, err := d.connect(d.ctx, nats.CustomInboxPrefix(wire.Inbox(uid)))
	if err != nil {
		return nil, err
	}
	return wire.NewClient(nc, uid), nil
}
