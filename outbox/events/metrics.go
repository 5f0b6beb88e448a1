package events

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/state"
	"millwright/state/events"
)

// metrics describe the events for receivers outside.
type metrics struct {
	store    *state.Store
	stored   *prometheus.Desc
	attempts *prometheus.CounterVec
}

func newMetrics(store *state.Store) *metrics {
	return &metrics{
		store: store,
		stored: prometheus.NewDesc("millwright_events",
			"Events for receivers outside, by state: pending, dead.", []string{"state"}, nil),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_event_attempts_total",
			Help: "Attempts to send events, by outcome: sent, failed (to be tried again), dead; dropped without one.",
		}, []string{"outcome"}),
	}
}

func (m *metrics) count(outcome string) { m.attempts.WithLabelValues(outcome).Inc() }

// Describe sends the descriptions of all metrics.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.stored
	m.attempts.Describe(ch)
}

// Collect sends all metrics. It omits the numbers of events while the state is unreadable.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()

	if counts, err := m.store.Events().Counts(ctx); err == nil {
		for _, s := range []events.State{events.Pending, events.Dead} {
			ch <- prometheus.MustNewConstMetric(m.stored, prometheus.GaugeValue, float64(counts[s]), string(s))
		}
	}

	m.attempts.Collect(ch)
}
