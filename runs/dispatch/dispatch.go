// Package dispatch gives queued runs to workers, and answers their requests about the runs that they hold.
//
// The rows of runs are the queue. Workers ask for work over NATS, and their asks wait at a server. A notice
// of the state about a queued run wakes the server. It claims the oldest runs for the waiting asks, and
// answers with work orders.
//
// From then on, the lease in the database tells whether the worker is alive, and each of the worker's
// writes carries the claim's token. A claim that does not reach its worker is released. A reaper requeues
// runs whose lease expired. NATS stores nothing; workers repeat lost requests.
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

	"millwright/forge"
	"millwright/runs/wire"
	"millwright/state"
	"millwright/state/notice"
	"millwright/trace"
)

// Config configures the dispatch of a server. Store is required. The other zero values mean an embedded
// NATS server without a port, for workers in this process.
type Config struct {
	Store *state.Store
	// Listen is the address on which the embedded NATS server accepts workers; none when empty.
	Listen string
	// Cluster adds the embedded server to a cluster: the address on which it accepts its peers, then the
	// addresses of the peers. The servers of a cluster share the state, and trust each other through a
	// secret derived from its master key.
	Cluster []string
	// URL is the address of an existing NATS to use in place of the embedded one.
	URL string
	// Credentials is the file with the credentials for URL; see [wire.ReadCredentials]. Empty: none.
	Credentials string
	// Certificate returns the certificate of Listen at each handshake. Off loopback it is required.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Lease is how long a worker may be silent before its run is taken away; 30 seconds when zero.
	Lease time.Duration
	// Poll is the interval at which a server with waiting workers reads the queue without a notice; a
	// second when zero.
	Poll time.Duration
	// FactoryRuns is how many runs of one factory workers hold at once, over all servers; 0 is any number.
	FactoryRuns int
	// AutomationRuns is the same for one automation.
	AutomationRuns int
	// Forges are the hosts of the repositories that runs start in; nil: runs start in empty directories.
	Forges *forge.Set
	// PublicURL is this server's address for workers elsewhere; see [Dispatcher.Relay]. Empty: they get none.
	PublicURL string
	// Environments are what runs can name by their environment; nil: there are none.
	Environments state.Environments
	// Log receives notices; nil discards them.
	Log *slog.Logger
	// Registerer receives the metrics; nil: none.
	Registerer prometheus.Registerer
	// Tracer continues the traces of runs; nil: none.
	Tracer *trace.Tracer
	// Prices are the prices of language models whose agents report no cost, by the name of the model.
	Prices map[string]Price
}

// Dispatcher is the server's side of dispatch.
type Dispatcher struct {
	cfg         Config
	embedded    *server.Server
	password    string // of the server's own connections to the embedded NATS
	nc          *nats.Conn
	served      []*nats.Subscription
	undelivered string // prefix of the subjects on which NATS reports orders that reached nobody
	metrics     *metrics
	asks        asks
	queue       queue
	bounds      atomic.Value // state.ClaimBounds
	prices      atomic.Pointer[map[string]Price]
	slots       chan struct{} // bounds the concurrent requests of workers
	checks      chan struct{} // bounds the bundles in memory
	relays      *turns        // bounds the repositories that workers read
	relayer     *forge.Relay
	orders      chan struct{} // bounds the claimed runs whose orders are in the making
	stop        context.CancelFunc
	ctx         context.Context
	mu          sync.Mutex // of the beginning of what wg waits for
	wg          sync.WaitGroup
}

// Bounds of concurrent work.
const (
	maxRequests = 64 // requests of workers, asks aside
	maxOrders   = 32 // claimed runs whose orders are not sent yet
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

// LocalWorker is the UID of the worker in the process of the only server of a state. In a replica it is the
// prefix of a random UID.
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

// Cancelled ends the trace of a run that was cancelled before a worker claimed it. r is the result of
// [state.Store.RequestCancel].
func (d *Dispatcher) Cancelled(r state.Run) {
	if r.Ended() {
		d.ended(r, time.Now())
	}
}

// cueLoop notifies workers of requests to cancel their runs, and of messages and answers for them, before they ask
// again. The worker may be connected to any server's NATS.
func (d *Dispatcher) cueLoop(notices <-chan notice.Notice) {
	for {
		select {
		case <-d.ctx.Done():
			return
		case n := <-notices:
			worker, run, _ := strings.Cut(n.ID, " ")
			verb := wire.VerbCancel
			if n.Topic == notice.Wake {
				verb = wire.VerbWake
			}
			if err := d.nc.Publish(wire.Subject(worker, verb), []byte(run)); err != nil {
				d.cfg.Log.Debug("dispatch: notify a worker of a run", "run_id", run, "verb", verb, "error", err)
			}
		}
	}
}
