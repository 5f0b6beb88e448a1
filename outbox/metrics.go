package outbox

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/state"
	"millwright/state/checks"
	"millwright/state/outputs"
)

// metrics describe the outputs of runs, and the checks.
type metrics struct {
	store    *state.Store
	waiting  *prometheus.Desc
	attempts *prometheus.CounterVec

	owed      *prometheus.Desc
	published *prometheus.CounterVec
}

func newMetrics(store *state.Store) *metrics {
	return &metrics{
		store: store,
		waiting: prometheus.NewDesc("millwright_outputs",
			"Outputs of runs that are not over, by state: pending, doing, staged, failed.", []string{"state"}, nil),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_output_attempts_total",
			Help: "Attempts to perform outputs of runs, by kind and outcome: done, later, staged, refused, failed.",
		}, []string{"kind", "outcome"}),
		owed: prometheus.NewDesc("millwright_checks",
			"Checks of revisions and pull requests that the forge does not show, by state: waiting, doing, failed.",
			[]string{"state"}, nil),
		published: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_check_attempts_total",
			Help: "Attempts to publish checks at forges, by kind (revision, pull_request) and outcome: done, " +
				"waiting, dropped, failed.",
		}, []string{"kind", "outcome"}),
	}
}

func (m *metrics) count(kind, outcome string) { m.attempts.WithLabelValues(kind, outcome).Inc() }

// Describe sends the descriptions of all metrics.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.waiting
	m.attempts.Describe(ch)
	ch <- m.owed
	m.published.Describe(ch)
}

// Collect sends all metrics. It omits the numbers of outputs while the state is unreadable.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()

	if counts, err := m.store.Outputs().Counts(ctx); err == nil {
		for _, s := range []outputs.State{outputs.Pending, outputs.Doing, outputs.Staged, outputs.Failed} {
			ch <- prometheus.MustNewConstMetric(m.waiting, prometheus.GaugeValue, float64(counts[s]), string(s))
		}
	}

	if counts, err := m.store.Checks().Counts(ctx); err == nil {
		for _, s := range []checks.State{checks.Waiting, checks.Doing, checks.Failed} {
			ch <- prometheus.MustNewConstMetric(m.owed, prometheus.GaugeValue, float64(counts[s]), string(s))
		}
	}

	m.attempts.Collect(ch)
	m.published.Collect(ch)
}
