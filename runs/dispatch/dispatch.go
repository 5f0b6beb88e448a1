// Package dispatch gives queued runs to workers, and answers what workers ask about the runs that they hold.
//
// The rows of runs are the queue. Workers ask for work over NATS, and their asks wait at a server; it is
// woken by the state's notice of a queued run, claims the oldest ones for the asks that wait, and answers
// with work orders. From then on the lease in the database says whether the worker lives, and each of its
// writes carries the claim's token. A claim that did not reach its worker is given back, and a reaper takes
// runs back whose lease ran out. NATS keeps nothing: what it loses is asked for again.
package dispatch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"millwright/runs/wire"
	"millwright/state"
	"millwright/state/notice"
	"millwright/trace"
)

// Config says how a server dispatches runs. Store is required; the rest may be zero: an embedded NATS
// server without a port, for workers in this process.
type Config struct {
	Store *state.Store
	// Listen is the address on which the embedded NATS server accepts workers; none when empty.
	Listen string
	// Cluster makes the embedded server one of a cluster: the address on which it accepts its peers,
	// then the addresses of the peers. The servers of a cluster share the state, and trust each other by
	// a secret derived from its master key.
	Cluster []string
	// URL is the address of an existing NATS to use in place of the embedded one.
	URL string
	// Credentials is a file that says who we are at URL; see [wire.ReadCredentials]. Empty: nobody.
	Credentials string
	// Certificate returns the certificate of Listen at each handshake. Off loopback it is required.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Lease is how long a worker may be silent before its run is taken away; 30 seconds when zero.
	Lease time.Duration
	// Poll is how often a server with waiting workers looks at the queue, though no notice tells of a
	// run; a second when zero.
	Poll time.Duration
	// FactoryRuns is how many runs of one factory workers hold at once, over all servers; 0 is any number.
	FactoryRuns int
	// Log receives notices; nil discards them.
	Log *slog.Logger
	// Registerer receives the metrics; nil: none.
	Registerer prometheus.Registerer
	// Tracer goes on with the traces of runs; nil: none.
	Tracer *trace.Tracer
}

// Dispatcher is the server's side of dispatch.
type Dispatcher struct {
	cfg         Config
	embedded    *server.Server
	password    string // of our own connections to the embedded server
	nc          *nats.Conn
	served      []*nats.Subscription
	undelivered string // subject below which NATS tells of orders that reached nobody
	metrics     *metrics
	asks        asks
	queue       queue
	perFactory  atomic.Int64  // runs of one factory that workers hold at once; 0: any number
	slots       chan struct{} // bounds the requests of workers that are handled at once
	orders      chan struct{} // bounds the claimed runs whose orders are made at once
	stop        context.CancelFunc
	ctx         context.Context
	mu          sync.Mutex // of the beginning of what wg waits for
	wg          sync.WaitGroup
}

// Bounds of what is done at once.
const (
	maxRequests = 64 // requests of workers, asks aside
	maxOrders   = 32 // runs that were claimed, and whose orders are not sent yet
)

// Start begins to dispatch. It returns an error when the configuration cannot work or NATS cannot be
// reached; later losses of NATS heal by themselves.
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
		orders:      make(chan struct{}, maxOrders),
	}

	d.queue.heard.Store(1) // runs may have waited before we came
	d.asks.init(func(a *ask) { d.answer(a.reply, wire.Answer{}) })
	d.SetFactoryRuns(cfg.FactoryRuns)
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

	if !d.cfg.Store.Shared() { // no other process can hold a run of ours: we, or our worker, died
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

	cancels, endCancels := d.cfg.Store.Subscribe(1000, notice.Cancel)
	d.wg.Go(func() { defer endCancels(); d.cancelLoop(cancels) })
	d.wg.Go(d.reapLoop)
	return nil
}

// claimers is how many claims may be under way: SQLite has one writer.
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

// Close ends the dispatch and, with it, the embedded NATS server. Workers keep what they have; those in
// this process are to be ended before.
func (d *Dispatcher) Close(ctx context.Context) {
	d.unsubscribe()
	d.asks.close()
	d.mu.Lock() // nothing begins after this
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

// LocalWorker is the UID of the worker in the process of a server that has the state to itself. The
// worker of a replica has this as the prefix of a random one.
const LocalWorker = "local"

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

// Cancelled ends the trace of a run that was cancelled before a worker had it. r is the run as
// [state.Store.RequestCancel] returned it.
func (d *Dispatcher) Cancelled(r state.Run) {
	if r.State.Ended() {
		d.ended(r, time.Now())
	}
}

// cancelLoop tells workers that the end of a run which they hold was asked for, without waiting for their
// next heartbeats. The worker may be at any server's NATS.
func (d *Dispatcher) cancelLoop(notices <-chan notice.Notice) {
	for {
		select {
		case <-d.ctx.Done():
			return
		case n := <-notices:
			worker, run, _ := strings.Cut(n.ID, " ")
			if err := d.nc.Publish(wire.Subject(worker, wire.VerbCancel), []byte(run)); err != nil {
				d.cfg.Log.Debug("dispatch: tell a worker to end a run", "run_id", run, "error", err)
			}
		}
	}
}
