package ingress

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/bounds"
	"millwright/state/notice"
)

// New loads the routing facts and registers this replica. It follows changes of the facts until Close.
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
	in.asking = make(chan struct{}, 1)
	in.SetMaxDeliveries(0)
	in.SetLimits(cfg.DeliveriesPerMinute, cfg.FailedAuthPerMinute, cfg.InFlightBytes)
	in.metrics = newMetrics(in, cfg.Registerer)
	notices, unsubscribe := in.store.Subscribe(1, notice.Routing)
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
	in.background.Go(func() { in.countRefusals(background) })
	in.background.Go(func() { in.decideAll(background) })
	return in, nil
}

func newMetrics(in *Ingress, reg prometheus.Registerer) *metrics {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_ingress_requests_total", Help: "Requests to the ingress by result.",
	}, []string{"result"})

	refusals := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_ingress_signatures_refused_total", Help: "Signatures that were refused, by cause.",
	}, []string{"code"})

	latency := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "millwright_ingress_accept_seconds",
		Help:    "Time from the headers of a delivery to its answer, accepted ones only.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
	})

	forwarded := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "millwright_ingress_forwarded_untrusted_total",
		Help: "Requests with X-Forwarded-For from a peer outside of trustedProxies.",
	})

	inFlight := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "millwright_ingress_in_flight_bytes", Help: "Bytes of bodies in memory.",
	}, func() float64 { return float64(in.bounds.Deliveries.Held()) })

	flow := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_flow_decisions_total",
		Help: "Deliveries by what the flow of an automation made of them: skipped_concurrency, " +
			"skipped_queue_full, skipped_forge, skipped_trigger, waits_forge, debounced, follow_up.",
	}, []string{"decision"})

	m := &metrics{refusals: refusals, seconds: latency, forwarded: forwarded, flow: flow}
	for r := range results {
		m.requests[r] = requests.WithLabelValues(r.String())
	}

	if reg != nil {
		reg.MustRegister(requests, refusals, latency, forwarded, inFlight, flow)
	}

	return m
}

// start registers this replica with the loaded generation, and loads again: a change in between did not
// wait for this replica.
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

const (
	pollEvery  = time.Second
	renewEvery = 700 * time.Millisecond
)

// follow reloads the snapshot after notices of changes, and also at intervals.
func (in *Ingress) follow(ctx context.Context, notices <-chan notice.Notice) {
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

// renew renews the lease of this replica. A replica that cannot load a new generation lets its lease
// expire, so that others do not wait for it for ever.
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

// Close unregisters this replica. It answers later requests with 503.
func (in *Ingress) Close(ctx context.Context) error {
	in.closed.Store(true)
	in.stop()
	in.background.Wait()
	return in.replica.Leave(ctx)
}
