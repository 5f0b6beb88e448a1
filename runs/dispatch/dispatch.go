// Package dispatch brings queued runs to workers over NATS: announcing, claiming, heartbeats, cancelling.
//
// The database is the only truth. After a run is queued, a server announces it on a JetStream work queue;
// a worker asks for work on a subject of its own; a server takes the next announcement, claims the run in
// the database and answers with the work order. From then on the lease in the database says whether the
// worker lives, and each of its writes carries the claim's token. JetStream may lose everything at any
// time: a sweeper announces again what has waited for long, or hands it out from the database while there is
// no work queue, and a reaper takes runs back whose lease ran out. A worker uses the subjects worker.<uid>.>
// and its own inbox, nothing else.
package dispatch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"millwright/state"
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
	// URL is the address of an existing NATS with JetStream to use in place of the embedded one.
	URL string
	// Credentials is a file that says who we are at URL; see [ReadCredentials]. Empty: nobody.
	Credentials string
	// Certificate returns the certificate of Listen at each handshake. Off loopback it is required.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// StoreDir is where an embedded server of a cluster keeps what it knows of its peers; a new temporary
	// directory when empty. Runs are not kept there.
	StoreDir string
	// Lease is how long a worker may be silent before its run is taken away; 30 seconds when zero.
	Lease time.Duration
	// Sweep is how long a run waits in the queue before it is announced again; 3 seconds when zero.
	Sweep time.Duration
	// Log receives notices; nil discards them.
	Log *slog.Logger
	// Registerer receives the metrics; nil: none.
	Registerer prometheus.Registerer
	// Tracer goes on with the traces of runs; nil: none.
	Tracer *trace.Tracer
}

// Dispatcher is the server's side of dispatch.
type Dispatcher struct {
	cfg       Config
	embedded  *server.Server
	tempDir   string
	password  string // of our own connections to the embedded server
	nc        *nats.Conn
	js        jetstream.JetStream
	mu        sync.Mutex
	consumer  jetstream.Consumer // nil until the work queue is made
	ready     chan struct{}      // closed when it is
	announced atomic.Int64       // how many announcements the work queue holds, or noQueue
	direct    chan string        // hands the IDs of queued runs to claims while there is no work queue
	metrics   *metrics
	waits     waits
	slots     chan struct{} // bounds the requests of workers that are handled at once
	stop      context.CancelFunc
	ctx       context.Context
	wg        sync.WaitGroup
}

// maxRequests is how many requests of workers are handled at once, claims that wait aside.
const maxRequests = 64

// Start begins to dispatch. It returns an error when the configuration cannot work or NATS cannot be
// reached; later losses of NATS heal by themselves.
func Start(ctx context.Context, cfg Config) (*Dispatcher, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Lease == 0 {
		cfg.Lease = 30 * time.Second
	}
	if cfg.Sweep == 0 {
		cfg.Sweep = 3 * time.Second
	}
	if cfg.URL != "" && (cfg.Listen != "" || len(cfg.Cluster) > 0) {
		return nil, errors.New("nats: give either the address of an existing NATS or what the embedded one listens on, not both")
	}
	d := &Dispatcher{cfg: cfg, metrics: newMetrics(cfg.Store), slots: make(chan struct{}, maxRequests), ready: make(chan struct{}), direct: make(chan string)}
	d.announced.Store(noQueue)
	d.ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	d.waits.init()
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
	if d.js, err = jetstream.New(d.nc); err != nil {
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
	notices, end := d.cfg.Store.Subscribe(10_000, state.TopicQueued)
	d.wg.Go(func() { defer end(); d.announceLoop(notices) })
	d.wg.Go(d.queueLoop)
	d.wg.Go(d.sweepLoop)
	d.wg.Go(d.reapLoop)
	return nil
}

// connect opens a connection of a server, or of a worker in its process.
func (d *Dispatcher) connect(ctx context.Context, opts ...nats.Option) (*nats.Conn, error) {
	opts = append(opts, commonOptions(d.cfg.Log)...)
	if d.embedded != nil {
		opts = append(opts, nats.InProcessServer(d.embedded), nats.UserInfo(serverUser, d.password))
		return nats.Connect("", opts...)
	}
	creds, err := ReadCredentials(d.cfg.Credentials)
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(d.cfg.URL, append(opts, creds.options()...)...)
	if err != nil {
		return nil, fmt.Errorf("nats: connect to %s: %w", redactedURL(d.cfg.URL), err)
	}
	return nc, nil
}

// commonOptions make a connection that never gives up.
func commonOptions(log *slog.Logger) []nats.Option {
	return []nats.Option{
		nats.Name("millwright"),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectBufSize(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("nats", "error", err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("nats: disconnected", "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("nats: connected again") }),
	}
}

// Close ends the dispatch and, with it, the embedded NATS server. Workers keep what they have; those in
// this process are to be ended before.
func (d *Dispatcher) Close(ctx context.Context) {
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
	if d.tempDir != "" {
		os.RemoveAll(d.tempDir)
	}
}

// LocalWorker is the UID of the worker in the process of a server that has the state to itself. The
// worker of a replica has this as the prefix of a random one.
const LocalWorker = "local"

// Client returns a connection for the worker in this process. Close it when the worker has ended.
func (d *Dispatcher) Client() (*Client, error) {
	uid := LocalWorker
	if d.cfg.Store.Shared() {
		uid = state.NewID(LocalWorker)
	}
	nc, err := d.connect(d.ctx, nats.CustomInboxPrefix(inbox(uid)))
	if err != nil {
		return nil, err
	}
	return newClient(nc, uid), nil
}

// Cancel tells the worker that holds r that its end was asked for, without waiting for its next heartbeat.
// r is the run as state.RequestCancel returned it.
func (d *Dispatcher) Cancel(r state.Run) {
	if r.State.Ended() {
		d.ended(r, time.Now())
	}
	if r.State.Held() {
		d.nc.Publish(subject(r.Worker, verbCancel), []byte(r.ID))
	}
}
