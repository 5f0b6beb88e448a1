// Package ingress receives deliveries: what external systems POST to a factory's webhooks.
//
// One function, receive, reads like the table of docs/contract.md, section 8. What it judges by is a snapshot
// of the routing facts, which never changes and is replaced as a whole; what it decides is stored by
// state.Accept, which refuses what was judged by an outdated snapshot.
package ingress

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/bounds"
	"millwright/state"
	"millwright/trace"
)

// MaxBody is the most that a delivery's body may have, in bytes (docs/contract.md, section 8).
const MaxBody = bounds.MaxDelivery

// Defaults of Config (docs/contract.md, section 11).
const (
	DefaultDeliveriesPerMinute = 60
	DefaultFailedAuthPerMinute = 20
	DefaultInFlightBytes       = bounds.DefaultDeliveryBytes
	DefaultBodyTimeout         = bounds.DeliveryTime
)

// Config says how to receive. Store is required; the zero value of everything else works.
type Config struct {
	Store *state.Store
	// PublicURL is the origin that senders post to, for schemes that sign it. It is never taken from a request.
	PublicURL string
	// TrustedProxies are believed when they say who the sender is.
	TrustedProxies []netip.Prefix
	// DeliveriesPerMinute is the delivery budget of a sender on a webhook in any minute. 0 means
	// DefaultDeliveriesPerMinute, a negative number none.
	DeliveriesPerMinute int
	// FailedAuthPerMinute is the same for failed authentications.
	FailedAuthPerMinute int
	// Bounds are those of the server; nil: the ingress has its own.
	Bounds *bounds.Bounds
	// InFlightBytes bounds the deliveries in memory; what would exceed it is answered 503. A sender may hold
	// half of what is free. 0 means DefaultInFlightBytes.
	InFlightBytes int64
	// BodyTimeout is how long a sender may take to send a body.
	BodyTimeout time.Duration
	// Log receives what an operator must know, and nothing of any request; nil discards it.
	Log *slog.Logger
	// Registerer receives the metrics; nil keeps them unseen.
	Registerer prometheus.Registerer
	// Tracer traces the requests to webhooks that exist; nil: none.
	Tracer *trace.Tracer
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

	loading    sync.Mutex
	recorded   int64       // the generation that others know we serve
	behind     atomic.Bool // the last attempt to load failed
	stop       context.CancelFunc
	background sync.WaitGroup
}

// New loads the routing facts, joins the replicas that serve them, and follows their changes until Close.
func New(ctx context.Context, cfg Config) (*Ingress, error) {
	if cfg.Store == nil {
		return nil, errors.New("ingress: a store is needed")
	}

	cfg.BodyTimeout = cmp.Or(cfg.BodyTimeout, DefaultBodyTimeout)
	cfg.PublicURL = strings.TrimRight(cfg.PublicURL, "/")
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Bounds == nil {
		cfg.Bounds = bounds.New(bounds.Config{})
	}

	in := &Ingress{
		cfg: cfg, store: cfg.Store, log: cfg.Log, bounds: cfg.Bounds,
		deliveries: cfg.Bounds.WebhookDeliveries, failures: cfg.Bounds.WebhookFailures,
	}
	in.SetLimits(cfg.DeliveriesPerMinute, cfg.FailedAuthPerMinute, cfg.InFlightBytes)
	in.metrics = newMetrics(in, cfg.Registerer)
	notices, unsubscribe := in.store.Subscribe(1, state.TopicRouting)
	if err := in.start(ctx); err != nil {
		unsubscribe()
		return nil, err
	}

	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	in.stop = stop
	in.background.Go(func() {
		defer unsubscribe()
		in.follow(background, notices)
	})
	in.background.Go(func() { in.renew(background) })
	return in, nil
}

// SetLimits changes the limits of Config with these names, which mean what they mean there, for the
// requests that come from now on. What was charged to a budget stays charged.
func (in *Ingress) SetLimits(deliveriesPerMinute, failedAuthPerMinute int, inFlightBytes int64) {
	in.deliveries.SetLimit(cmp.Or(deliveriesPerMinute, DefaultDeliveriesPerMinute))
	in.failures.SetLimit(cmp.Or(failedAuthPerMinute, DefaultFailedAuthPerMinute))
	in.bounds.Deliveries.SetLimit(cmp.Or(inFlightBytes, DefaultInFlightBytes))
}

// start joins with what is loaded, and then loads again: a change between the two did not wait for us.
func (in *Ingress) start(ctx context.Context) error {
	routing, err := in.store.Routing(ctx)
	if err != nil {
		return err
	}
	if in.replica, err = in.store.Join(ctx, routing.Generation); err != nil {
		return err
	}
	in.recorded = routing.Generation
	in.current.Store(newSnapshot(routing, nil, in.log))
	return in.reload(ctx)
}

// reload makes the present routing facts the ones that requests are judged by.
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
	pollEvery    = time.Second
	renewEvery   = 700 * time.Millisecond
	storeTimeout = 2 * time.Second
)

// follow reloads when the facts are said to have changed, and looks from time to time all the same.
func (in *Ingress) follow(ctx context.Context, notices <-chan state.Notice) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-notices:
		case now := <-tick.C:
			in.deliveries.Sweep(now)
			in.failures.Sweep(now)
		}

		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		if err := in.reload(limited); err != nil && ctx.Err() == nil {
			in.outage.say(in.log, "loading the webhooks", err)
		}

		cancel()
	}
}

// renew keeps the lease under which requests are judged. A replica that cannot load what others wait for
// lets its lease run out, so that they need not wait for ever.
func (in *Ingress) renew(ctx context.Context) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		if in.behind.Load() {
			continue
		}

		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		if err := in.replica.Renew(limited); err != nil && ctx.Err() == nil {
			in.outage.say(in.log, "renewing the lease of this replica", err)
		}

		cancel()
	}
}

// live reports whether requests may be judged now.
func (in *Ingress) live() bool { return !in.closed.Load() && in.replica.Live() }

// Ready reports whether the routing facts are loaded and deliveries are judged rather than answered 503.
func (in *Ingress) Ready() bool { return in.current.Load() != nil && in.live() }

// Close ends the membership among the replicas. Requests that come later are answered 503.
func (in *Ingress) Close(ctx context.Context) error {
	in.closed.Store(true)
	in.stop()
	in.background.Wait()
	return in.replica.Leave(ctx)
}

// Counts are events that were charged to a budget, to be shared between replicas.
type Counts struct {
	Failed  bool   `json:"failed,omitempty"` // of the budget of failed authentications
	Webhook string `json:"webhook"`
	Sender  string `json:"sender"`
	N       int    `json:"n"`
}

// TakeCounts returns what was charged here since the last call. The first call begins the counting.
// Call it at least every 250 milliseconds where there are several replicas (docs/contract.md, section 8).
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

// AddCounts charges what other replicas charged.
func (in *Ingress) AddCounts(counts []Counts) {
	now := time.Now()
	for _, c := range counts {
		b := in.deliveries
		if c.Failed {
			b = in.failures
			if w := in.current.Load().webhooks[c.Webhook]; w != nil {
				in.store.RejectedElsewhere(w.id, c.N)
			}
		}

		b.Add(bounds.WebhookSender{Webhook: c.Webhook, Sender: c.Sender}, c.N, now)
	}
}
