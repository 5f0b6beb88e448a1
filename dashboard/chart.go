package dashboard

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"millwright/state"
)

// series is one kind of thing that a chart counts over time.
type series struct {
	Name   string
	Class  string // of its colour
	Counts []int64
	Total  int64
}

// chart is a count over time, in stacked bars.
type chart struct {
	ID     string
	Title  string
	From   time.Time
	Span   timespan
	Ranges []rangeLink
	Series []series // the lowest first; those without a count are left out
	Known  bool     // whether it has been counted
}

// timespan is how far back a chart looks, in steps.
type timespan struct {
	Name  string // in addresses
	Title string
	Step  time.Duration
	Steps int
}

// timespans returns the spans to choose from. The first is the default.
func timespans() []timespan {
	return []timespan{
		{"24h", "24 hours", time.Hour, 24},
		{"7d", "7 days", 6 * time.Hour, 28},
		{"30d", "30 days", 24 * time.Hour, 30},
	}
}

// start returns the beginning of the span whose last step contains now.
func (t timespan) start(now time.Time) time.Time {
	return now.Truncate(t.Step).Add(-time.Duration(t.Steps-1) * t.Step)
}

// rangeLink leads to a page with the charts of another span.
type rangeLink struct {
	Label, Path string
	Current     bool
}

// timespan returns the span that the page's address asks for.
func (q *request) timespan() timespan {
	all := timespans()
	for _, t := range all {
		if t.Name == q.URL.Query().Get("range") {
			return t
		}
	}
	return all[0]
}

// ranges leads to this page with each span.
func (q *request) ranges() (links []rangeLink) {
	chosen := q.timespan()
	for i, t := range timespans() {
		values := q.URL.Query()
		values.Del("done")
		values.Del("range")
		if i > 0 {
			values.Set("range", t.Name)
		}

		links = append(links, rangeLink{
			Label:   t.Name,
			Path:    q.URL.Path + "?" + values.Encode(),
			Current: t.Name == chosen.Name,
		})
	}
	return links
}

// The size of a chart's drawing, in its own units.
const (
	chartWidth, chartHeight = 600, 180
	chartLeft, chartTop     = 44, 12
	chartBottom             = 24
)

func newChart(
	id, title string,
	now time.Time,
	span timespan,
	known bool,
	names []series,
	index func(add func(name int, at time.Time, n int64)),
) chart {
	c := chart{ID: id, Title: title + span.Title, From: span.start(now), Span: span, Known: known}
	for i := range names {
		names[i].Counts = make([]int64, span.Steps)
	}

	index(func(name int, at time.Time, n int64) {
		if i := int(at.Sub(c.From) / span.Step); name >= 0 && i >= 0 && i < span.Steps {
			names[name].Counts[i] += n
			names[name].Total += n
		}
	})

	for _, s := range names {
		if s.Total > 0 {
			c.Series = append(c.Series, s)
		}
	}

	return c
}

// deliveryChart counts deliveries by outcome.
func deliveryChart(now time.Time, span timespan, tallies []state.DeliveryTally, known bool) chart {
	outcomes := state.DeliveryOutcomes()
	var names []series
	place := map[state.DeliveryOutcome]int{}
	for i, o := range outcomes {
		place[o] = i
		names = append(names, series{Name: o.Label(), Class: strings.ReplaceAll(string(o), "_", "-")})
	}

	return newChart(
		"chart-deliveries",
		"Deliveries in the last ",
		now,
		span,
		known,
		names,
		func(add func(int, time.Time, int64)) {
			for _, t := range tallies {
				add(place[t.Outcome], t.From, t.Count)
			}
		},
	)
}

// runChart counts runs by state.
func runChart(now time.Time, span timespan, tallies []state.RunTally, known bool) chart {
	order := []state.RunState{
		state.RunSucceeded,
		state.RunFailed,
		state.RunError,
		state.RunBlocked,
		state.RunCancelled,
		state.RunInProgress,
		state.RunClaimed,
		state.RunQueued,
	}

	var names []series
	place := map[state.RunState]int{}
	for i, s := range order {
		place[s] = i
		names = append(names, series{Name: runWord(s), Class: strings.ToLower(string(s))})
	}

	return newChart(
		"chart-runs",
		"Runs in the last ",
		now,
		span,
		known,
		names,
		func(add func(int, time.Time, int64)) {
			for _, t := range tallies {
				if i, ok := place[t.State]; ok {
					add(i, t.From, t.Count)
				}
			}
		},
	)
}

// runWord is a run's state for people to read.
func runWord(s state.RunState) string {
	switch s {
	case state.RunInProgress:
		return "In progress"
	case "":
		return ""
	}
	return string(s[:1]) + strings.ToLower(string(s[1:]))
}

// Total counts everything in the chart.
func (c chart) Total() (n int64) {
	for _, s := range c.Series {
		n += s.Total
	}
	return n
}

// Summary describes the chart in words, for screen readers.
func (c chart) Summary() string {
	if c.Total() == 0 {
		return "none"
	}
	var parts []string
	for _, s := range c.Series {
		parts = append(parts, fmt.Sprintf("%d %s", s.Total, strings.ToLower(s.Name)))
	}
	return strings.Join(parts, ", ")
}

// Drawing draws the chart. It contains only numbers, times, and names of this package.
func (c chart) Drawing() template.HTML {
	most := int64(1)
	for i := range c.Span.Steps {
		sum := int64(0)
		for _, s := range c.Series {
			sum += s.Counts[i]
		}

		most = max(most, sum)
	}

	top := nice(most)
	height := float64(chartHeight - chartTop - chartBottom)
	step := float64(chartWidth-chartLeft) / float64(c.Span.Steps)
	y := func(n int64) float64 { return float64(chartTop) + height - height*float64(n)/float64(top) }
	var b strings.Builder
	fmt.Fprintf(
		&b,
		`<svg class="chart" viewBox="0 0 %d %d" role="img" aria-labelledby="%[3]s-title %[3]s-desc">`+
			`<title id="%[3]s-title">%s</title><desc id="%[3]s-desc">%s</desc>`,
		chartWidth,
		chartHeight,
		c.ID,
		c.Title,
		c.Summary(),
	)

	for _, n := range []int64{0, top / 2, top} {
		if n == top/2 && top < 2 {
			continue
		}
		fmt.Fprintf(
			&b,
			`<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`+
				`<text class="tick" x="%d" y="%.1f" text-anchor="end">%s</text>`,
			chartLeft,
			chartWidth,
			y(n),
			y(n),
			chartLeft-6,
			y(n)+4,
			compact(n),
		)
	}

	for i := range c.Span.Steps {
		at := c.From.Add(time.Duration(i) * c.Span.Step).UTC()
		if label := c.tick(i, at); label != "" {
			fmt.Fprintf(
				&b,
				`<text class="tick" x="%.1f" y="%d" text-anchor="middle">%s</text>`,
				float64(chartLeft)+step*float64(i),
				chartHeight-6,
				label,
			)
		}

		var bars, words strings.Builder
		sum := int64(0)
		for _, s := range c.Series {
			n := s.Counts[i]
			if n == 0 {
				continue
			}

			from, to := y(sum), y(sum+n)
			fmt.Fprintf(
				&bars,
				`<rect class="bar %s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="1.5"/>`,
				s.Class,
				float64(chartLeft)+step*float64(i)+2,
				to,
				step-4,
				max(from-to, 1),
			)

			fmt.Fprintf(&words, "\n%s: %d", s.Name, n)
			sum += n
		}

		if sum > 0 {
			fmt.Fprintf(
				&b,
				`<g><title>%s – %s UTC%s</title>%s</g>`,
				at.Format(c.stamp()),
				at.Add(c.Span.Step).Format(c.stamp()),
				words.String(),
				bars.String(),
			)
		}
	}

	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

// tick labels a step of the time axis, with "" for most of them.
func (c chart) tick(i int, at time.Time) string {
	switch day := 24 * time.Hour; {
	case c.Span.Step == day && (c.Span.Steps-1-i)%5 == 0:
		return at.Format("2 Jan")
	case c.Span.Step == day:
		return ""
	case c.Span.Step > time.Hour && at.Hour() == 0:
		return at.Format("Mon 2")
	case c.Span.Step == time.Hour && at.Hour()%6 == 0:
		return at.Format("15:04")
	}
	return ""
}

// stamp is the format of times in the chart's tooltips.
func (c chart) stamp() string {
	if c.Span.Step == time.Hour {
		return "15:04"
	}
	return "2 Jan 15:04"
}

// nice returns the least of 2, 4, 10, 20, 40, 100, … that is not below n.
func nice(n int64) int64 {
	for base := int64(1); ; base *= 10 {
		for _, m := range []int64{2, 4, 10} {
			if base*m >= n || base > 1e15 {
				return base * m
			}
		}
	}
}

// compact writes a count in few characters.
func compact(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%gM", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%gk", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}
