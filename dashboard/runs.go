package dashboard

import (
	"net/url"
	"slices"
	"time"

	"millwright/api"
	"millwright/state"
)

const runRows = 25

// runQuery is the filter of the list of runs, as it was typed.
type runQuery struct {
	State, Source, Factory, Name, Model, Creator, From, To, Search string
	Webhook, Delivery, Automation                                  string
	ChangedFrom, ChangedTo                                         string
	Range, Since, Until                                            string // of the chart
	Errors                                                         map[string]string
}

// Set reports whether anything but the list's first fields is filtered by.
func (v runQuery) Set() bool {
	return v.Source+v.Name+v.Model+v.Creator+v.From+v.To+v.ChangedFrom+v.ChangedTo != "" ||
		v.Webhook+v.Delivery+v.Automation != ""
}

func (v *runQuery) fields() map[string]*string {
	return map[string]*string{
		"state": &v.State, "source": &v.Source, "factory": &v.Factory, "name": &v.Name, "model": &v.Model,
		"creator": &v.Creator, "from": &v.From, "to": &v.To, "q": &v.Search, "webhook": &v.Webhook,
		"delivery": &v.Delivery, "automation": &v.Automation,
		"changed_from": &v.ChangedFrom, "changed_to": &v.ChangedTo,
		"range": &v.Range, "since": &v.Since, "until": &v.Until,
	}
}

func runQueryOf(in url.Values) runQuery {
	var v runQuery
	for name, at := range v.fields() {
		*at = typed(200, in.Get(name))
	}
	return v
}

func (v runQuery) address(cursor string) string {
	values := url.Values{}
	for name, text := range v.fields() {
		if *text != "" {
			values.Set(name, *text)
		}
	}

	if cursor != "" {
		values.Set("cursor", cursor)
	}
	if len(values) == 0 {
		return "/runs"
	}

	return "/runs?" + values.Encode()
}

func (v *runQuery) filter() state.RunFilter {
	v.Errors = map[string]string{}
	f := state.RunFilter{
		Name:          v.Name,
		ModelID:       v.Model,
		Creator:       v.Creator,
		Query:         v.Search,
		WebhookUID:    v.Webhook,
		DeliveryUID:   v.Delivery,
		AutomationUID: v.Automation,
	}

	if v.State != "" {
		if f.States = []state.RunState{state.RunState(v.State)}; !slices.Contains(state.RunStates(), f.States[0]) {
			f.States, v.Errors["state"] = nil, "is none of the states"
		}
	}

	if v.Source != "" {
		f.Sources = []string{v.Source}
	}
	if v.Factory != "" {
		f.Factories = []string{v.Factory}
	}

	for _, at := range []struct {
		name, text string
		to         **time.Time
	}{
		{"from", v.From, &f.CreatedAfter},
		{"to", v.To, &f.CreatedBefore},
		{"changed_from", v.ChangedFrom, &f.UpdatedAfter},
		{"changed_to", v.ChangedTo, &f.UpdatedBefore},
	} {
		if at.text == "" {
			continue
		}

		t, err := time.Parse(inputTime, at.text)
		if err != nil || t.Year() < 1970 || t.Year() > 9999 {
			v.Errors[at.name] = "is not a time such as 2026-01-31T08:30"
			continue
		}

		if at.name == "changed_from" {
			t = t.Add(-time.Microsecond) // the time itself belongs to the range
		}
		*at.to = &t
	}

	return f
}

type runsView struct {
	Runs      []state.Run
	Pulls     map[string][]state.Artifact
	Names     map[string]string // of factories, by UID
	Query     runQuery
	States    []state.RunState
	Sources   []string
	Factories []state.Factory
	Next      string
	First     string
	Chart     *chart
	Queue     state.QueueStats
}

// Empty explains a page without runs.
func (v runsView) Empty() string {
	switch {
	case v.Next != "":
		return "No match so far. Older runs may match."
	case v.Query.Set() || v.Query.State != "" || v.Query.Factory != "" || v.Query.Search != "":
		return "No run matches."
	}
	return "No run has been started yet."
}

// runSources are the sources of runs to filter by.
func runSources() []string {
	return []string{
		"API", "CLI", "WEB_APP", "CUSTOM_WEBHOOK", "GITHUB_WEBHOOK", "GITLAB_WEBHOOK", "LINEAR", "JIRA", "SLACK",
		"SCHEDULED_AGENT", "ORCHESTRATION",
	}
}

// narrow leaves the runs of factories that the key does not reach out of a list.
func (q *request) narrow(f *state.RunFilter) {
	if !q.key.Limited() {
		return
	}
	if len(f.Factories) == 0 {
		f.Factories = q.key.Factories
	}
	if len(f.Factories) == 0 || !q.key.Reaches(f.Factories[0]) {
		f.Factories = []string{"none"} // an empty list stands for all
	}
}

func (q *request) runs() error {
	v := runsView{
		Query:   runQueryOf(q.URL.Query()),
		States:  state.RunStates()[1:],
		Sources: runSources(),
		Names:   map[string]string{},
	}

	f := v.Query.filter()
	q.narrow(&f)
	var after *state.RunPosition
	if cursor := q.URL.Query().Get("cursor"); cursor != "" {
		after = &state.RunPosition{}
		if err := api.DecodeCursor(clip(1024, cursor), after); err != nil {
			return err
		}

		v.First = v.Query.address("")
	}

	var next *state.RunPosition
	var err error
	if v.Runs, next, err = q.Store.Runs(q.Context(), f, state.RunOrder{}, after, runRows); err != nil {
		return err
	}
	if v.Pulls, err = q.pullsOf(v.Runs); err != nil {
		return err
	}
	if next != nil {
		v.Next = v.Query.address(api.EncodeCursor(next))
	}
	if v.Factories, err = q.ownFactories(); err != nil {
		return err
	}

	for _, f := range v.Factories {
		v.Names[f.UID] = f.Name
	}

	if !q.key.Limited() {
		v.Queue = q.queue()
	}
	if after == nil && !q.key.Limited() {
		c := q.runChart()
		v.Chart = &c
	}

	return q.render("runs", page{Title: "Runs", Section: "runs", Live: []string{"run"}, Data: v})
}

// runChart draws the runs over the span that the page asks for. Their lists keep it.
func (q *request) runChart() chart {
	span, _ := q.timespan()
	tallies, known := q.runTallies(span)
	c := runChart(time.Now(), span, tallies, known)

	shown := runQueryOf(q.URL.Query())
	c.list = func(of string, from, to time.Time) string {
		return runQuery{
			State:       of,
			ChangedFrom: from.UTC().Format(inputTime),
			ChangedTo:   to.UTC().Format(inputTime),
			Range:       shown.Range,
			Since:       shown.Since,
			Until:       shown.Until,
		}.address("")
	}
	q.spanOf(&c)
	return c
}
