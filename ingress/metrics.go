package ingress

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/signature"
	"millwright/state"
)

// result is the label under which metrics count a request.
type result int

const (
	resultAccepted result = iota
	resultDuplicate
	resultHandshake
	resultAuth
	resultJSON
	resultTooLarge
	resultNotFound
	resultMethod
	resultHeaders
	resultDeliveries // the delivery budget is spent
	resultFailures   // the budget of failed authentications is spent
	resultBroken     // the body did not arrive
	resultUnavailable
	resultDisabled // 404: the webhook is disabled
	results        // number of results
)

func (r result) String() string {
	return [...]string{
		"accepted", "duplicate", "handshake", "rejected_auth", "rejected_invalid_json", "rejected_too_large",
		"not_found", "method_not_allowed", "header_fields_too_large",
		"delivery_budget_spent", "failed_auth_budget_spent", "broken_transfer",
		"unavailable", "webhook_disabled",
	}[r]
}

func resultOf(o state.DeliveryOutcome) result {
	switch o {
	case state.DeliveryInvalidJSON:
		return resultJSON
	case state.DeliveryTooLarge:
		return resultTooLarge
	}
	return resultAuth
}

// metrics have no labels whose values a request chooses.
type metrics struct {
	requests  [results]prometheus.Counter
	refusals  *prometheus.CounterVec
	seconds   prometheus.Observer
	forwarded prometheus.Counter
	flow      *prometheus.CounterVec
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

func (m *metrics) count(r result, start time.Time) {
	m.requests[r].Inc()
	if r == resultAccepted {
		m.seconds.Observe(time.Since(start).Seconds())
	}
}

// decided counts what flow made of a delivery.
func (m *metrics) decided(all []state.FlowDecision) {
	for _, d := range all {
		if d.Decision == "" {
			continue
		}
		m.flow.WithLabelValues(strings.NewReplacer(": ", "_", " ", "_", "-", "_").Replace(d.Decision)).Inc()
	}
}

// refusal counts the code of a signature.Refusal.
func (m *metrics) refusal(err error) {
	var r *signature.Refusal
	if errors.As(err, &r) {
		m.refusals.WithLabelValues(r.Code).Inc()
	}
}

// Notice is a condition that the operator should know of and can change.
type Notice struct {
	Code    string
	Message string
	Since   time.Time
}

// forwarded records that an untrusted peer sent X-Forwarded-For.
type forwarded struct {
	mu    sync.Mutex
	since time.Time
	peer  string
}

func (in *Ingress) noteForwarded(peer string) {
	in.metrics.forwarded.Inc()
	f := &in.forwarded
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.since.IsZero() {
		f.since, f.peer = time.Now(), peer
		in.log.Warn(forwardedMessage, "peer", peer)
	}
}

const forwardedMessage = "an untrusted peer sends X-Forwarded-For, so its requests count as one sender: " +
	"if it is your proxy, add it to trustedProxies"

// Notices returns the current notices for the operator.
func (in *Ingress) Notices() []Notice {
	f := &in.forwarded
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.since.IsZero() {
		return nil
	}
	return []Notice{{Code: "trusted-proxies", Message: forwardedMessage + " (peer " + f.peer + ")", Since: f.since}}
}

// outage logs that the state is unusable, at most once in a while.
type outage struct {
	mu   sync.Mutex
	last time.Time
}

func (o *outage) say(log *slog.Logger, what string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); now.Sub(o.last) >= 10*time.Second {
		o.last = now
		log.Error(what+" failed", "error", err)
	}
}
