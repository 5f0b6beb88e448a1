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
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"millwright/forge"
	"millwright/state"
	"millwright/trace"
)

// Price is the price of a language model, in US dollars for a million tokens.
type Price struct {
	Input       float64
	CachedInput float64
	Output      float64
}

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
	maxOrders = 32 // claimed runs whose orders are not sent yet
)

// LocalWorker is the UID of the worker in the process of the only server of a state. In a replica it is the
// prefix of a random UID.
const LocalWorker = "local"
