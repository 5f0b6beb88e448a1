package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"millwright/admin"
	"millwright/state"
)

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
	if v.Pulls, err = q.pullsOf(v.LatestRuns); err != nil {
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

// recentDeliveries returns the newest deliveries to webhooks of any factory.
func (q *request) recentDeliveries(ctx context.Context, hooks []state.Webhook, n int) ([]deliveryRow, error) {
	return q.deliveryRows(ctx, hooks, state.DeliveryFilter{}, "", n)
}

// overview shows the start page. It counts all factories, so a limited key gets the list of its own.
func (q *request) overview() error {
	if q.key.Limited() {
		http.Redirect(q.w, q.Request, "/factories", http.StatusSeeOther)
		return nil
	}
	return q.start()
}
