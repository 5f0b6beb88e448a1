package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"millwright/admin"
	"millwright/state"
)

// finding is a problem on the start page.
type finding struct {
	Tone   string
	Text   string
	Detail string
	Path   string // where to look, and act
	Action string // what the link says
}

type startView struct {
	Tone, Headline, Summary string
	Findings                []finding
	Notices                 []Notice
	Factories               []factoryCard
	Deliveries              chart
	Runs                    chart
	Requests, Started       int64 // deliveries and runs in the last 24 hours
	Recent                  []deliveryRow
	LatestRuns              []state.Run
	Queue                   state.QueueStats
	Use                     useView // of all runs, with the budgets of all factories
}

// factoryCard is a factory with what it has.
type factoryCard struct {
	state.Factory
	Webhooks, Automations int
}

const recentRows = 8

// start shows the overview.
func (q *request) start() error {
	ctx, now := q.Context(), time.Now()
	q.expectFigures()
	all, err := q.Store.Factories(ctx)
	if err != nil {
		return err
	}

	v := startView{Notices: q.Notices()}
	var hooks []state.Webhook
	for _, f := range all {
		if f.Detached {
			continue
		}

		cur, err := q.Store.Current(ctx, f.UID)
		if errors.Is(err, state.ErrUnreadable) { // the others are shown
			f.SyncState, f.Message, err = state.SyncFailed, err.Error(), nil
		}
		if err != nil {
			return err
		}

		v.Factories = append(v.Factories, factoryCard{f, len(cur.Webhooks), len(cur.Tree.Automations)})
		hooks = append(hooks, cur.Webhooks...)
		v.Findings = append(v.Findings, factoryFindings(f, cur.Webhooks)...)
		more, err := q.automationFindings(f)
		if err != nil {
			return err
		}

		v.Findings = append(v.Findings, more...)
	}

	if v.Recent, err = q.recentDeliveries(ctx, hooks, recentRows); err != nil {
		return err
	}
	if v.LatestRuns, _, err = q.Store.Runs(ctx, state.RunFilter{}, state.RunOrder{}, nil, recentRows); err != nil {
		return err
	}

	// The charts show the chosen span; findings and sums are of the last day.
	v.Deliveries, v.Runs = q.deliveryChart(""), q.runChart()
	day := lastDay()
	tallies, known := q.deliveryTallies("", day)
	v.Requests = deliveryChart(now, day, tallies, known).Total()
	runs, known := q.runTallies(day)
	v.Started = runChart(now, day, runs, known).Total()
	v.Findings = append(v.Findings, runFindings(runs, now)...)
	v.Findings = append(v.Findings, v.deliveryFindings(tallies, hooks)...)
	refused, err := q.refusalFindings(&v, hooks)
	if err != nil {
		return err
	}

	v.Findings = append(v.Findings, refused...)
	asked, err := q.questionFindings()
	if err != nil {
		return err
	}

	v.Findings = append(v.Findings, asked...)
	spent, err := q.budgetFindings()
	if err != nil {
		return err
	}

	v.Findings = append(v.Findings, spent...)
	if v.Use, err = q.allUse(); err != nil {
		return err
	}

	v.Queue = q.queue()
	missing, err := q.workerFindings(v.Queue)
	if err != nil {
		return err
	}

	v.Findings = append(v.Findings, missing...)
	waiting, err := q.outputFindings()
	if err != nil {
		return err
	}

	v.Findings = append(v.Findings, waiting...)
	dead, err := q.eventFindings()
	if err != nil {
		return err
	}

	v.Findings = append(v.Findings, dead...)
	v.judge(len(hooks))
	return q.render(
		"start",
		page{Title: "Overview", Section: "overview", Live: []string{"delivery", "run", "sync", "secret"}, Data: v},
	)
}

// judge sorts the findings, and writes the headline and the summary.
func (v *startView) judge(hooks int) {
	slices.SortStableFunc(v.Findings, func(a, b finding) int {
		return cmp.Compare(map[string]int{"bad": 0, "odd": 1}[a.Tone], map[string]int{"bad": 0, "odd": 1}[b.Tone])
	})
	bad := 0
	for _, f := range v.Findings {
		if f.Tone == "bad" {
			bad++
		}
	}

	v.Tone, v.Headline = "good", "All is well"
	switch {
	case bad > 0:
		v.Tone, v.Headline = "bad", count(bad, "thing needs", "things need")+" attention"
		if rest := len(v.Findings) - bad; rest > 0 {
			v.Headline += fmt.Sprintf(", %d more to look at", rest)
		}
	case len(v.Findings) > 0:
		v.Tone, v.Headline = "odd", count(len(v.Findings), "thing", "things")+" to look at"
	case len(v.Factories) == 0:
		v.Tone, v.Headline = "quiet", "No factory is configured"
	}

	v.Summary = fmt.Sprintf(
		"%s and %s. In the last 24 hours: %s, %s.",
		count(len(v.Factories), "factory", "factories"),
		count(hooks, "webhook", "webhooks"),
		count(int(v.Requests), "request", "requests"),
		count(int(v.Started), "run", "runs"),
	)
	if v.Queue.Queued > 0 {
		v.Summary += fmt.Sprintf(" %s for a worker.", count(v.Queue.Queued, "run waits", "runs wait"))
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func factoryFindings(f state.Factory, hooks []state.Webhook) (all []finding) {
	path := "/factories/" + f.UID
	if s := standingOf(f); s.Level == "bad" || s.Level == "odd" {
		all = append(
			all,
			finding{
				s.Level,
				fmt.Sprintf("Factory %s: %s", f.Name, s.Word),
				cmp.Or(f.Message, s.Detail),
				path,
				"See why",
			},
		)
	}

	for _, w := range hooks {
		switch {
		case w.SecretStale:
			all = append(
				all,
				finding{
					"odd",
					fmt.Sprintf("Webhook %s / %s uses an old secret", f.Name, w.Spec.Name),
					w.Spec.SecretName + " has a newer value; the next apply picks it up",
					path,
					"Sync now",
				},
			)
		case w.SecretPending:
			all = append(
				all,
				finding{
					"odd",
					fmt.Sprintf("Webhook %s / %s waits for its secret", f.Name, w.Spec.Name),
					"every request is refused with 401 until " + w.Spec.SecretName + " has a value",
					path + "/webhooks/" + w.UID,
					"Open",
				},
			)
		}
	}

	return all
}

// automationFindings returns the enabled automations that nothing can start.
func (q *request) automationFindings(f state.Factory) (all []finding, err error) {
	var list admin.ListAutomationsResponse
	if err := q.call("GET", "/factory/"+f.UID+"/automations?limit=500", nil, &list); err != nil {
		return nil, err
	}

	for _, a := range list.Automations {
		if a.Enabled && !a.Fires && len(a.WhyNot) > 0 {
			all = append(
				all,
				finding{
					"odd",
					fmt.Sprintf("Automation %s / %s does not fire", f.Name, a.Name),
					a.WhyNot[0],
					"/factories/" + f.UID + "/automations/" + a.Name,
					"See why",
				},
			)
		}
	}

	return all, nil
}

// runFindings returns the kinds of runs that did not succeed in the last day.
func runFindings(tallies []state.RunTally, now time.Time) (all []finding) {
	sums := map[state.RunState]int64{}
	for _, t := range tallies {
		if t.From.After(now.Add(-24 * time.Hour)) {
			sums[t.State] += t.Count
		}
	}

	for _, s := range []struct {
		state  state.RunState
		tone   string
		detail string
	}{
		{state.RunError, "bad", "the platform failed: a retry may help"},
		{state.RunFailed, "odd", "the agent's work failed"},
		{state.RunBlocked, "odd", "the agent waits for input: answer it, or send a follow-up"},
	} {
		if n := sums[s.state]; n > 0 {
			all = append(
				all,
				finding{
					s.tone,
					fmt.Sprintf("%s %s in the last 24 hours", count(int(n), "run", "runs"), string(s.state)),
					s.detail,
					"/runs?state=" + string(s.state),
					"Show",
				},
			)
		}
	}

	return all
}

// deliveryFindings returns the webhooks that refused at least as much as they accepted in the last day.
func (v *startView) deliveryFindings(tallies []state.DeliveryTally, hooks []state.Webhook) (all []finding) {
	names := map[string]string{}
	for _, f := range v.Factories {
		names[f.UID] = f.Name
	}

	type sums struct{ taken, refused int64 }
	by := map[string]*sums{}
	for _, t := range tallies {
		s := by[t.WebhookUID]
		if s == nil {
			s = &sums{}
			by[t.WebhookUID] = s
		}

		switch t.Outcome {
		case state.DeliveryAccepted, state.DeliveryDuplicate, state.DeliveryHandshake:
			s.taken += t.Count
		default:
			s.refused += t.Count
		}
	}

	for _, w := range hooks {
		if s := by[w.UID]; s != nil && s.refused > 0 && s.refused >= s.taken {
			refused := count(int(s.refused), "request", "requests")
			name := names[w.FactoryUID] + " / " + w.Spec.Name
			all = append(all, finding{
				Tone:   "odd",
				Text:   fmt.Sprintf("Webhook %s refused %s in the last 24 hours", name, refused),
				Detail: fmt.Sprintf("it accepted %d; the log has the reason for each", s.taken),
				Path:   "/factories/" + w.FactoryUID + "/deliveries?webhook=" + w.UID,
				Action: "Show",
			})
		}
	}

	return all
}

// deliveryRow is a row of a delivery log with what belongs to it.
type deliveryRow struct {
	state.Delivery
	Webhook state.Webhook
	Runs    []state.DeliveryRun
}

// recentDeliveries returns the newest deliveries to webhooks of any factory.
func (q *request) recentDeliveries(ctx context.Context, hooks []state.Webhook, n int) ([]deliveryRow, error) {
	return q.deliveryRows(ctx, hooks, state.DeliveryFilter{}, "", n)
}

// deliveryRows merges the logs of webhooks, newest first, before the cursor, and adds the runs.
func (q *request) deliveryRows(
	ctx context.Context,
	hooks []state.Webhook,
	f state.DeliveryFilter,
	before string,
	n int,
) ([]deliveryRow, error) {
	var rows []deliveryRow
	for _, w := range hooks {
		list, err := q.Store.Deliveries(ctx, w.FactoryUID, w.UID, f, before, n)
		if err != nil {
			return nil, err
		}

		for _, d := range list {
			rows = append(rows, deliveryRow{Delivery: d, Webhook: w})
		}
	}

	slices.SortFunc(rows, func(a, b deliveryRow) int { return cmp.Compare(b.UID, a.UID) })
	rows = rows[:min(len(rows), n)]
	var uids []string
	for _, r := range rows {
		uids = append(uids, r.UID)
	}

	runs, err := q.Store.RunsOfDeliveries(ctx, uids...)
	for i := range rows {
		rows[i].Runs = runs[rows[i].UID]
	}

	return rows, err
}
