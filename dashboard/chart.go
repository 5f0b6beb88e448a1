package dashboard

import (
	"fmt"
	"html"
	"html/template"
	"strings"
	"time"

	"millwright/state"
)

// series is one kind of thing that a chart counts over time.
type series struct {
	Name   string
	Class  string // of its colour
	Of     string // the state or outcome, as lists are filtered by it
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
	Moves  []rangeLink // to other times, and zoom
	Own    ownRange
	Series []series // the lowest first; those without a count are left out
	Known  bool     // whether it has been counted

	list func(of string, from, to time.Time) string // the address of a list
	zoom func(from, to time.Time) string            // the address of the page with a part of the chart
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
	c := chart{ID: id, Title: title + " " + span.Title, From: span.start(now), Span: span, Known: known}
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
		names = append(names, series{
			Name:  o.Label(),
			Class: strings.ReplaceAll(string(o), "_", "-"),
			Of:    string(o),
		})
	}

	return newChart(
		"chart-deliveries",
		"Deliveries",
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
		names = append(names, series{Name: runWord(s), Class: strings.ToLower(string(s)), Of: string(s)})
	}

	return newChart(
		"chart-runs",
		"Runs",
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

// To is where the chart ends.
func (c chart) To() time.Time { return c.at(c.Span.Steps) }

// at returns where a step begins.
func (c chart) at(i int) time.Time { return c.From.Add(time.Duration(i) * c.Span.Step).UTC() }

// All is the address of the list of a series.
func (c chart) All(s series) string { return c.list(s.Of, c.From, c.To()) }

// chartRow is the count of a series in a step, as a row of a table.
type chartRow struct {
	Time  string
	Zoom  string // the address of the page with this step alone; empty where it is too short
	What  string
	Count int64
	Path  string // of the list
}

// Rows are the counts that are not zero, the latest first.
func (c chart) Rows() (rows []chartRow) {
	for i := c.Span.Steps - 1; i >= 0; i-- {
		for _, s := range c.Series {
			if s.Counts[i] == 0 {
				continue
			}

			row := chartRow{Time: c.name(i), What: s.Name, Count: s.Counts[i], Path: c.list(s.Of, c.at(i), c.at(i+1))}
			if c.Span.Step >= minSpan {
				row.Zoom = c.zoom(c.at(i), c.at(i+1))
			}
			rows = append(rows, row)
		}
	}

	return rows
}

// name is a step for people.
func (c chart) name(i int) string {
	from, to := "2 Jan 15:04", "2 Jan 15:04"
	if c.at(i).YearDay() == c.at(i+1).YearDay() {
		to = "15:04"
	}
	return c.at(i).Format(from) + " – " + c.at(i+1).Format(to) + " UTC"
}

// Drawing draws the chart, for eyes and pointers; its table has the same for everybody. It contains only
// numbers, times, names of this package, and escaped addresses.
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
	gap := min(2, step/5)
	y := func(n int64) float64 { return float64(chartTop) + height - height*float64(n)/float64(top) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %d %d" aria-hidden="true">`, chartWidth, chartHeight)

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
		if label := c.tick(i, c.at(i)); label != "" {
			x, anchor := float64(chartLeft)+step*float64(i), "middle"
			if x > chartWidth-24 { // it would be cut
				x, anchor = chartWidth, "end"
			}
			fmt.Fprintf(
				&b,
				`<text class="tick" x="%.1f" y="%d" text-anchor="%s">%s</text>`,
				x,
				chartHeight-6,
				anchor,
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
				`<a href="%s" tabindex="-1"><rect class="bar %s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" `+
					`rx="1.5"/></a>`,
				html.EscapeString(c.list(s.Of, c.at(i), c.at(i+1))),
				s.Class,
				float64(chartLeft)+step*float64(i)+gap,
				to,
				step-2*gap,
				max(from-to, 1),
			)

			fmt.Fprintf(&words, "\n%s: %d", s.Name, n)
			sum += n
		}

		if sum > 0 {
			fmt.Fprintf(
				&b,
				`<g><title>%s%s</title>%s</g>`,
				c.name(i),
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
	const day = 24 * time.Hour
	whole := c.Span.whole()
	switch {
	case c.Span.Step >= day:
		if (c.Span.Steps-1-i)%((c.Span.Steps+5)/6) == 0 {
			return at.Format("2 Jan")
		}

	case whole <= 36*time.Hour:
		every := 6 * time.Hour
		for _, e := range []time.Duration{time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour} {
			if whole/e <= 6 {
				every = e
				break
			}
		}
		if at.Truncate(every).Equal(at) {
			return at.Format("15:04")
		}

	case at.Truncate(day).Equal(at):
		if at.Unix()/86400%int64((whole+6*day)/(7*day)) == 0 {
			return at.Format("Mon 2")
		}
	}

	return ""
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

// spanOf gives a chart what leads from it to other times.
func (q *request) spanOf(c *chart) {
	_, wrong := q.timespan()
	for _, t := range timespans() {
		c.Ranges = append(c.Ranges, rangeLink{
			Label:   t.Name,
			Path:    q.withSpan(t.Name, time.Time{}, time.Time{}),
			Current: t.Name == c.Span.Name,
		})
	}

	from, to, whole := c.From, c.To(), c.Span.whole()
	move := func(label string, from, to time.Time) {
		if from.Year() >= 1970 && to.Sub(from) >= minSpan && to.Sub(from) <= maxSpan {
			c.Moves = append(c.Moves, rangeLink{Label: label, Path: q.withSpan("", from, to)})
		}
	}

	move("Earlier", from.Add(-whole), from)
	if now := time.Now(); to.Before(now) {
		move("Later", to, to.Add(whole))
	}
	move("Zoom in", floor(from.Add(whole/4), time.Minute), floor(to.Add(-whole/4), time.Minute))
	move("Zoom out", floor(from.Add(-whole/2), time.Minute), floor(to.Add(whole/2), time.Minute))

	c.zoom = func(from, to time.Time) string { return q.withSpan("", from, to) }
	c.Own = ownRange{q.URL.Path, from.Format(inputTime), to.Format(inputTime), wrong, q.kept()}
	if in := q.URL.Query(); wrong != "" {
		c.Own.Since, c.Own.Until = clip(64, in.Get("since")), clip(64, in.Get("until"))
	}
}
