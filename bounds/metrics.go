package bounds

import "github.com/prometheus/client_golang/prometheus"

// The only label of the metrics is the name of the bound. Senders choose no labels.
var (
	heldMetric = prometheus.NewDesc(
		"millwright_bound_held",
		"How much of a bound is held.",
		[]string{"bound"},
		nil,
	)
	limitMetric = prometheus.NewDesc(
		"millwright_bound_limit",
		"How much of a bound may be held.",
		[]string{"bound"},
		nil,
	)
	refusedMetric = prometheus.NewDesc(
		"millwright_bound_refused_total",
		"Requests that a bound refused.",
		[]string{"bound"},
		nil,
	)
)

// Describe implements prometheus.Collector.
func (b *Bounds) Describe(to chan<- *prometheus.Desc) {
	to <- heldMetric
	to <- limitMetric
	to <- refusedMetric
}

// Collect implements prometheus.Collector.
func (b *Bounds) Collect(to chan<- prometheus.Metric) {
	for _, one := range b.all() {
		name := one.describe().name
		held, limit, refused := one.measure()
		to <- prometheus.MustNewConstMetric(heldMetric, prometheus.GaugeValue, float64(held), name)
		to <- prometheus.MustNewConstMetric(limitMetric, prometheus.GaugeValue, float64(limit), name)
		to <- prometheus.MustNewConstMetric(refusedMetric, prometheus.CounterValue, float64(refused), name)
	}
}
