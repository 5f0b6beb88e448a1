package dispatch

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/state"
)

// metrics describe the queue and the results of runs.
type metrics struct {
	store    *state.Store
	queued   *prometheus.Desc
	oldest   *prometheus.Desc
	held     *prometheus.Desc
	waiting  *prometheus.Desc
	pickup   prometheus.Histogram
	duration *prometheus.HistogramVec
	tokens   *prometheus.CounterVec
	cost     *prometheus.CounterVec
}

func newMetrics(store *state.Store) *metrics {
	return &metrics{
		store:  store,
		queued: prometheus.NewDesc("millwright_runs_queued", "Runs that wait for a worker.", nil, nil),
		oldest: prometheus.NewDesc(
			"millwright_runs_oldest_queued_seconds",
			"How long the run that waits longest has waited.",
			nil,
			nil,
		),
		held: prometheus.NewDesc("millwright_runs_held", "Runs that a worker holds.", nil, nil),
		waiting: prometheus.NewDesc(
			"millwright_runs_waiting",
			"Queued runs that no worker may take yet, by what they wait for: concurrency, debounce, retry.",
			[]string{"for"},
			nil,
		),
		pickup: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "millwright_run_pickup_seconds", Help: "From queued to claimed.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 600},
		}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "millwright_run_duration_seconds",
			Help:    "From started to ended, by the state that the run ended in.",
			Buckets: []float64{.01, .1, .5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200},
		}, []string{"state"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_run_tokens_total",
			Help: "Tokens that agents report, by factory and kind: input (cached ones included), " +
				"cached_input, output.",
		}, []string{"factory", "kind"}),
		cost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_run_cost_usd_total",
			Help: "US dollars that runs cost, by factory, as agents report them or by the prices of the " +
				"settings.",
		}, []string{"factory"}),
	}
}

// used counts what a run of a factory has used in addition.
func (m *metrics) used(factory string, u state.Usage) {
	for kind, n := range map[string]int64{
		"input": u.InputTokens, "cached_input": u.CachedTokens, "output": u.OutputTokens,
	} {
		m.tokens.WithLabelValues(factory, kind).Add(float64(n))
	}
	if u.CostUSD != nil {
		m.cost.WithLabelValues(factory).Add(*u.CostUSD)
	}
}

func (m *metrics) claimed(r state.Run) { m.pickup.Observe(max(0, time.Since(r.Queued).Seconds())) }

func (m *metrics) finished(r state.Run) {
	if r.Started != nil && r.Finished != nil {
		m.duration.WithLabelValues(string(r.State)).Observe(max(0, r.Finished.Sub(*r.Started).Seconds()))
	}
}

// Describe sends the descriptions of all metrics.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.queued
	ch <- m.oldest
	ch <- m.held
	ch <- m.waiting
	m.pickup.Describe(ch)
	m.duration.Describe(ch)
	m.tokens.Describe(ch)
	m.cost.Describe(ch)
}

// Collect sends all metrics. It omits those of the queue while the state is unreadable.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()

	if q, err := m.store.Queue(ctx); err == nil {
		oldest := 0.0
		if q.Oldest != nil {
			oldest = max(0, time.Since(*q.Oldest).Seconds())
		}

		ch <- prometheus.MustNewConstMetric(m.queued, prometheus.GaugeValue, float64(q.Queued))
		ch <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, oldest)
		ch <- prometheus.MustNewConstMetric(m.held, prometheus.GaugeValue, float64(q.Held))
		for what, n := range q.Waiting {
			ch <- prometheus.MustNewConstMetric(m.waiting, prometheus.GaugeValue, float64(n), what)
		}
	}

	m.pickup.Collect(ch)
	m.duration.Collect(ch)
	m.tokens.Collect(ch)
	m.cost.Collect(ch)
}
