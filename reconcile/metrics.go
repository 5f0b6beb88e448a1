package reconcile

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/schema"
	"millwright/state"
)

// Metrics are the metrics of all loops of a process. A nil *Metrics counts nothing.
type Metrics struct {
	duration    *prometheus.HistogramVec
	lastSuccess *prometheus.GaugeVec
	problems    *prometheus.GaugeVec
	prunes      *prometheus.CounterVec
	bytes       *prometheus.CounterVec
	stale       *prometheus.GaugeVec
	suspended   *prometheus.GaugeVec
}

// NewMetrics returns metrics registered with reg. Call it once for each registerer.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "millwright_reconcile_duration_seconds",
			Help:    "Time of an attempt to make the state equal to the source, by result.",
			Buckets: []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"factory", "result"}),
		lastSuccess: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "millwright_reconcile_last_success_timestamp_seconds",
			Help: "When the source was last seen and its revision was applied, or had been.",
		}, []string{"factory"}),
		problems: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "millwright_reconcile_problems",
			Help: "Problems of the revision that was attempted last, by rule.",
		}, []string{"factory", "rule", "severity"}),
		prunes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_reconcile_prune_refusals_total",
			Help: "Revisions refused because they would delete too many webhooks.",
		}, []string{"factory"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_source_poll_bytes_total",
			Help: "Bytes received from the source over the network.",
		}, []string{"factory"}),
		stale: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "millwright_webhooks_secret_stale",
			Help: "Webhooks whose secret has a newer value that waits for the next apply.",
		}, []string{"factory"}),
		suspended: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "millwright_factory_suspended",
			Help: "1 while the factory does not follow its source: suspended in the settings, or rolled back.",
		}, []string{"factory"}),
	}

	for _, c := range m.all() {
		if err := reg.Register(c.(prometheus.Collector)); err != nil {
			return nil, err
		}
	}

	return m, nil
}

// deleter is implemented by all vectors here.
type deleter interface {
	DeletePartialMatch(prometheus.Labels) int
}

func (m *Metrics) all() []deleter {
	return []deleter{m.duration, m.lastSuccess, m.problems, m.prunes, m.bytes, m.stale, m.suspended}
}

// Forget drops the metrics of a detached factory.
func (m *Metrics) Forget(factory string) {
	if m == nil {
		return
	}
	for _, v := range m.all() {
		v.DeletePartialMatch(prometheus.Labels{"factory": factory})
	}
}

// yield drops the metrics that describe the state of a factory which another replica reconciles.
func (m *Metrics) yield(factory string) {
	if m == nil {
		return
	}
	for _, v := range []deleter{m.problems, m.stale, m.suspended} {
		v.DeletePartialMatch(prometheus.Labels{"factory": factory})
	}
}

func (m *Metrics) polled(factory string, bytes int64) {
	if m != nil {
		m.bytes.WithLabelValues(factory).Add(float64(bytes))
	}
}

func (m *Metrics) observe(factory string, r Result, took time.Duration) {
	if m == nil {
		return
	}

	m.duration.WithLabelValues(factory, string(r.Outcome)).Observe(took.Seconds())
	if r.Err != nil {
		return
	}
	if r.Outcome != state.OutcomeRefused && r.Outcome != state.OutcomeSuspended {
		m.lastSuccess.WithLabelValues(factory).SetToCurrentTime()
	}

	m.problems.DeletePartialMatch(prometheus.Labels{"factory": factory})
	for _, p := range r.Problems {
		m.problems.WithLabelValues(factory, p.Code, string(p.Severity)).Inc()
		if r.Recorded && p.Code == schema.RulePruneGuard.Code() && p.Severity == schema.SeverityError {
			m.prunes.WithLabelValues(factory).Inc()
		}
	}
}

func (m *Metrics) suspend(factory string, suspended bool) {
	if m == nil {
		return
	}

	value := 0.0
	if suspended {
		value = 1
	}
	m.suspended.WithLabelValues(factory).Set(value)
}

// waiting counts the webhooks whose secret has a newer value than the applied one.
func (m *Metrics) waiting(factory string, webhooks []state.Webhook) {
	n := 0
	for _, w := range webhooks {
		if w.SecretStale {
			n++
		}
	}
	m.stale.WithLabelValues(factory).Set(float64(n))
}
