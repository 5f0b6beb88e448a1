// Package ingress receives deliveries: requests that external systems POST to a factory's webhooks.
//
// The function receive follows the steps of docs/contract.md, section 8. It judges a request by a snapshot
// of the routing facts, which is immutable and replaced as a whole. state.Accept stores the result, unless
// the snapshot is outdated.
package ingress

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/bounds"
	"millwright/schema/provider"
	"millwright/state"
	"millwright/trace"
)

// MaxBody is the maximum size of a delivery's body, in bytes (docs/contract.md, section 8).
const MaxBody = bounds.MaxDelivery

// Defaults of Config (docs/contract.md, section 11).
const (
	DefaultDeliveriesPerMinute    = 60
	DefaultMaxDeliveriesPerMinute = 600
	DefaultFailedAuthPerMinute    = 20
	DefaultInFlightBytes          = bounds.DefaultDeliveryBytes
	DefaultBodyTimeout            = bounds.DeliveryTime
)

// Question is what the forge of a delivery is asked, since its answer decides whether triggers match.
type Question struct {
	FactoryUID string
	Scheme     string // the signature scheme of the webhook
	Target     provider.Target
	provider.Ask
}

// Config configures an Ingress. Store is required; all other zero values have defaults.
type Config struct {
	Store *state.Store
	// PublicURL is the origin that senders post to, for schemes that sign it. The ingress never takes it
	// from a request.
	PublicURL string
	// TrustedProxies are the networks whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
	// DeliveriesPerMinute is the delivery budget of a sender and webhook in any minute. 0 means
	// DefaultDeliveriesPerMinute, a negative number no limit.
	DeliveriesPerMinute int
	// FailedAuthPerMinute is the same for failed authentications.
	FailedAuthPerMinute int
	// Bounds are the bounds of the server; nil: the ingress has its own.
	Bounds *bounds.Bounds
	// InFlightBytes bounds the bytes of deliveries in memory. Beyond it the answer is 503. A sender may
	// hold half of the free bytes. 0 means DefaultInFlightBytes.
	InFlightBytes int64
	// BodyTimeout is how long a sender may take to send a body.
	BodyTimeout time.Duration
	// Log receives messages for the operator, without content of requests; nil discards them.
	Log *slog.Logger
	// Registerer receives the metrics; nil: they are not exported.
	Registerer prometheus.Registerer
	// Own reports that a delivery with this origin tells of what this server did, and why it is sure; "" if
	// not. Such a delivery starts nothing. An error refuses the delivery until later. nil: none is.
	Own func(ctx context.Context, o provider.Origin) (why string, err error)
	// Ask asks the forge that a delivery came from, for triggers that its payload alone does not decide. why
	// says that the forge will never answer; an error is one that may pass. nil: there are no forges.
	Ask func(ctx context.Context, q Question) (a provider.Answer, why string, err error)
	// Tracer traces the requests to webhooks that exist; nil: none.
	Tracer *trace.Tracer
}

// forwarded records that an untrusted peer sent X-Forwarded-For.
type forwarded struct {
	mu    sync.Mutex
	since time.Time
	peer  string
}

// refusals count the requests that the delivery log does not show: those over a budget, and those to a
// disabled webhook.
type refusals struct {
	mu      sync.Mutex
	waiting map[refusalKey]*state.RefusedRequests
	minute  map[string]map[state.RefusalKind]int64 // not logged yet, by webhook UID
}

type refusalKey struct {
	webhook int64
	hour    int64
	kind    state.RefusalKind
}

// Ingress is a receiver of deliveries. It is an http.Handler.
type Ingress struct {
	cfg        Config
	store      *state.Store
	log        *slog.Logger
	replica    *state.Replica
	current    atomic.Pointer[snapshot]
	closed     atomic.Bool
	bounds     *bounds.Bounds
	deliveries *bounds.Budget[bounds.WebhookSender]
	failures   *bounds.Budget[bounds.WebhookSender]
	metrics    *metrics
	forwarded  forwarded
	outage     outage
	refusals   refusals
	// The limits of budgets, in a minute; below 0: none.
	deliveriesLimit, failuresLimit, maxDeliveries atomic.Int64

	loading    sync.Mutex
	recorded   int64         // the generation that other replicas see
	behind     atomic.Bool   // the last attempt to load failed
	asking     chan struct{} // capacity 1: there is something to decide
	stop       context.CancelFunc
	background sync.WaitGroup
}

// SetLimits changes the limits of Config of the same names for later requests. Charges to budgets remain.
func (in *Ingress) SetLimits(deliveriesPerMinute, failedAuthPerMinute int, inFlightBytes int64) {
	in.deliveriesLimit.Store(int64(cmp.Or(deliveriesPerMinute, DefaultDeliveriesPerMinute)))
	in.failuresLimit.Store(int64(cmp.Or(failedAuthPerMinute, DefaultFailedAuthPerMinute)))
	in.deliveries.SetLimit(int(in.deliveriesLimit.Load()))
	in.failures.SetLimit(int(in.failuresLimit.Load()))
	in.bounds.Deliveries.SetLimit(cmp.Or(inFlightBytes, DefaultInFlightBytes))
}

// SetMaxDeliveries changes how many deliveries a minute the file of a webhook may allow a sender at most; 0
// means DefaultMaxDeliveriesPerMinute.
func (in *Ingress) SetMaxDeliveries(perMinute int) {
	in.maxDeliveries.Store(int64(cmp.Or(perMinute, DefaultMaxDeliveriesPerMinute)))
}

// MaxDeliveries returns how many deliveries a minute the file of a webhook may allow a sender at most.
func (in *Ingress) MaxDeliveries() int { return int(in.maxDeliveries.Load()) }

// deliveriesOf is the delivery budget of each sender on a webhook.
func (in *Ingress) deliveriesOf(w *webhook) int {
	limit := int(in.deliveriesLimit.Load())
	if limit < 0 || w == nil || w.perMinute == 0 {
		return limit
	}
	return min(w.perMinute, in.MaxDeliveries())
}

// reload replaces the snapshot with the current routing facts.
func (in *Ingress) reload(ctx context.Context) error {
	in.loading.Lock()
	defer in.loading.Unlock()
	err := in.load(ctx)
	in.behind.Store(err != nil)
	return err
}

func (in *Ingress) load(ctx context.Context) error {
	old := in.current.Load()
	generation, err := in.store.RoutingGeneration(ctx)
	if err != nil {
		return err
	}

	if generation > old.generation {
		routing, err := in.store.Routing(ctx)
		if err != nil {
			return err
		}

		old = newSnapshot(routing, old, in.log)
		in.current.Store(old)
	}

	if in.recorded == old.generation {
		return nil
	}
	if err := in.replica.Loaded(ctx, old.generation); err != nil {
		return err
	}

	in.recorded = old.generation
	return nil
}

const (
	storeTimeout = 2 * time.Second
)

// live reports whether requests may be judged now.
func (in *Ingress) live() bool { return !in.closed.Load() && in.replica.Live() }

// Ready reports whether the routing facts are loaded and deliveries are judged rather than answered 503.
func (in *Ingress) Ready() bool { return in.current.Load() != nil && in.live() }

// Counts are charges to a budget, for other replicas.
type Counts struct {
	Failed  bool   `json:"failed,omitempty"` // of the budget of failed authentications
	Webhook string `json:"webhook"`
	Sender  string `json:"sender"`
	N       int    `json:"n"`
}

// TakeCounts returns the charges since the last call. The first call starts the counting. With several
// replicas, call it at least every 250 milliseconds (docs/contract.md, section 8).
func (in *Ingress) TakeCounts() []Counts {
	var counts []Counts
	for k, n := range in.deliveries.Taken() {
		counts = append(counts, Counts{Webhook: k.Webhook, Sender: k.Sender, N: n})
	}
	for k, n := range in.failures.Taken() {
		counts = append(counts, Counts{Failed: true, Webhook: k.Webhook, Sender: k.Sender, N: n})
	}
	return counts
}

// AddCounts adds charges of other replicas.
func (in *Ingress) AddCounts(counts []Counts) {
	now := time.Now()
	for _, c := range counts {
		w := in.current.Load().webhooks[c.Webhook]
		b, limit := in.deliveries, in.deliveriesOf(w)
		if c.Failed {
			b, limit = in.failures, int(in.failuresLimit.Load())
			if w != nil {
				in.store.RejectedElsewhere(w.id, c.N)
			}
		}

		b.AddUpTo(bounds.WebhookSender{Webhook: c.Webhook, Sender: c.Sender}, c.N, limit, now)
	}
}

// askSoon has decisions made without waiting for the next round.
func (in *Ingress) askSoon() {
	select {
	case in.asking <- struct{}{}:
	default:
	}
}
