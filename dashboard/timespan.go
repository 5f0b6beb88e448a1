package dashboard

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// timespan is what a chart shows, in steps.
type timespan struct {
	Name  string // in addresses; empty for a range of the reader's own
	Title string
	Step  time.Duration
	Steps int
	From  time.Time // zero: its last step contains now
}

// timespans returns the spans to choose from.
func timespans() []timespan {
	return []timespan{
		{Name: "1h", Title: "in the last hour", Step: 5 * time.Minute, Steps: 12},
		lastDay(),
		{Name: "7d", Title: "in the last 7 days", Step: 6 * time.Hour, Steps: 28},
		{Name: "30d", Title: "in the last 30 days", Step: 24 * time.Hour, Steps: 30},
	}
}

// lastDay is the span of a page whose address does not name one.
func lastDay() timespan {
	return timespan{Name: "24h", Title: "in the last 24 hours", Step: time.Hour, Steps: 24}
}

// Bounds of a range of the reader's own.
const (
	minSpan = 5 * time.Minute
	maxSpan = 366 * 24 * time.Hour
	maxBars = 60 // of a chart
)

// ownSpan returns a span from one time to another, in the least steps that are not too many.
func ownSpan(from, to time.Time) timespan {
	const day = 24 * time.Hour
	steps := []time.Duration{
		time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day,
		7 * day,
	}

	t := timespan{Title: "from " + from.Format(spanFormat) + " to " + to.Format(spanFormat) + " UTC"}
	for _, t.Step = range steps {
		t.From = floor(from, t.Step)
		if t.Steps = int((to.Sub(t.From) + t.Step - 1) / t.Step); t.Steps <= maxBars {
			break
		}
	}

	return t
}

const spanFormat = "2 Jan 2006, 15:04"

// floor returns the last multiple of a step since the Unix epoch that is not after t: where counts begin.
func floor(t time.Time, step time.Duration) time.Time {
	micros := t.UnixMicro()
	return time.UnixMicro(micros - micros%step.Microseconds()).UTC()
}

// start returns the beginning of the span.
func (t timespan) start(now time.Time) time.Time {
	if !t.From.IsZero() {
		return t.From
	}
	return floor(now, t.Step).Add(-time.Duration(t.Steps-1) * t.Step)
}

// until returns the end of the span.
func (t timespan) until(now time.Time) time.Time { return t.start(now).Add(t.whole()) }

func (t timespan) whole() time.Duration { return time.Duration(t.Steps) * t.Step }

// key names the span among counts.
func (t timespan) key() string {
	if t.From.IsZero() {
		return t.Name
	}
	return t.From.Format(time.RFC3339) + t.whole().String()
}

// rangeLink leads to a page with the charts of another span.
type rangeLink struct {
	Label, Path string
	Current     bool
}

// ownRange is the form for a range of the reader's own.
type ownRange struct {
	Path         string
	Since, Until string
	Wrong        string
	Kept         []keptValue // what else the page's address has
}

// keptValue is a parameter of an address.
type keptValue struct{ Name, Value string }

// spanParameters are the parameters of an address that choose a span.
var spanParameters = []string{"range", "since", "until"}

const inputTime = "2006-01-02T15:04" // of an input of type datetime-local; taken as UTC

// timespan returns the span that the page's address asks for, or why its own range is none.
func (q *request) timespan() (t timespan, wrong string) {
	in := q.URL.Query()
	if since, until := in.Get("since"), in.Get("until"); since != "" || until != "" {
		from, err := time.Parse(inputTime, since)
		to, err2 := time.Parse(inputTime, until)
		switch {
		case err != nil || err2 != nil || from.Year() < 1970 || to.Year() > 9999:
			return lastDay(), "Write both times, such as 2026-01-31T08:30."
		case to.Sub(from) < minSpan || to.Sub(from) > maxSpan:
			return lastDay(), "The range must have at least 5 minutes and at most 366 days."
		}

		return ownSpan(from, to), ""
	}

	all := timespans()
	if i := slices.IndexFunc(all, func(t timespan) bool { return t.Name == in.Get("range") }); i >= 0 {
		return all[i], ""
	}
	return lastDay(), ""
}

// withSpan returns the address of this page with another span: a named one, or one of the reader's own.
func (q *request) withSpan(name string, from, to time.Time) string {
	values := url.Values{}
	for _, kept := range q.kept() {
		values.Set(kept.Name, kept.Value)
	}
	if name != "" {
		values.Set("range", name)
	} else {
		values.Set("since", from.UTC().Format(inputTime))
		values.Set("until", to.UTC().Format(inputTime))
	}
	return q.URL.Path + "?" + values.Encode()
}

// kept returns the parameters of the page's address but those of its span and of its place in a list.
func (q *request) kept() (all []keptValue) {
	for name, values := range q.URL.Query() {
		passing := slices.Contains([]string{"done", "cursor", "before"}, name)
		if !passing && !slices.Contains(spanParameters, name) && len(name) < 32 && len(all) < 32 {
			all = append(all, keptValue{name, clip(200, values[0])})
		}
	}

	slices.SortFunc(all, func(a, b keptValue) int { return strings.Compare(a.Name, b.Name) })
	return all
}
