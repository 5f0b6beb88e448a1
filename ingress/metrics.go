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
