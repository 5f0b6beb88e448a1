package server

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/dashboard"
	"millwright/state"
)

// condition reports problems of the state to the operator: rows that loops skip, and a wrong clock.
type condition struct {
	store   *state.Store
	skipped *prometheus.Desc
	skew    *prometheus.Desc
}

func newCondition(store *state.Store) *condition {
	return &condition{
		store: store,
		skipped: prometheus.NewDesc(
			"millwright_rows_skipped",
			"Rows of the state that a loop passes over because they cannot be read or changed, by what "+
				"the loop does.",
			[]string{"loop"},
			nil,
		),
		skew: prometheus.NewDesc(
			"millwright_clock_skew_seconds",
			"By how much this machine's clock is ahead of the database's, by which leases are judged.",
			nil,
			nil,
		),
	}
}

// Describe sends the descriptions of the metrics.
func (c *condition) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.skipped
	ch <- c.skew
}

// Collect sends the metrics; that of the clock only for a database with a clock of its own.
func (c *condition) Collect(ch chan<- prometheus.Metric) {
	counts := map[string]int{}
	for _, s := range c.store.Skipped() {
		counts[s.Loop]++
	}
	for loop, n := range counts {
		ch <- prometheus.MustNewConstMetric(c.skipped, prometheus.GaugeValue, float64(n), loop)
	}
	if c.store.Shared() {
		ch <- prometheus.MustNewConstMetric(c.skew, prometheus.GaugeValue, c.store.ClockSkew().Seconds())
	}
}

const (
	maxNoticed  = 5 // skipped rows that the dashboard names
	noticedSkew = 2 * time.Second
)

// Notices are the same for the dashboard.
func (c *condition) Notices() (all []dashboard.Notice) {
	skipped := c.store.Skipped()
	for i, s := range skipped {
		if i == maxNoticed {
			all = append(
				all,
				dashboard.Notice{
					Message: fmt.Sprintf(
						"%d more rows of the state are skipped; the log names them.",
						len(skipped)-i,
					),
					Since: s.Since,
				},
			)
			break
		}

		all = append(
			all,
			dashboard.Notice{Message: fmt.Sprintf("%s skips %s: %s", s.Loop, s.Row, s.Err), Since: s.Since},
		)
	}

	if skew := c.store.ClockSkew(); skew.Abs() > noticedSkew {
		all = append(all, dashboard.Notice{
			Message: fmt.Sprintf(
				"This machine's clock is %s ahead of the database's. Let NTP set both.",
				skew.Round(time.Millisecond),
			), Since: time.Now(),
		})
	}

	return all
}
