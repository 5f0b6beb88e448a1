package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"millwright/state"
)

// usedDays is how many days a table of use shows.
const usedDays = 14

// budgetRow is a limit of a budget with what is left of it.
type budgetRow struct {
	Limit string // key and value, as the file has them
	Place string
	Used  string // today; "" for a limit of each run
	Left  string
	share float64 // that is used
}

// dayRow is what was used on a day.
type dayRow struct {
	Day    string
	Runs   int64
	Tokens int64
	Cost   string
}

// useView is the use of an automation, or of a factory, by day, and the budgets that hold for it.
type useView struct {
	Budgets []budgetRow
	Days    []dayRow
}

// use returns what the scope with a UID used, and the budgets of the scopes that hold for it.
func (q *request) use(uid string, scopes ...string) (v useView, err error) {
	all, _, err := q.Store.Budgets(q.Context())
	if err != nil {
		return v, err
	}
	for _, b := range all {
		if slices.Contains(scopes, b.Scope) || b.Scope == uid {
			v.Budgets = append(v.Budgets, budgetRows(b)...)
		}
	}

	days, err := q.Store.UseByDay(q.Context(), uid, usedDays)
	if err != nil {
		return v, err
	}
	for _, d := range days {
		v.Days = append(v.Days, dayRow{d.Day.Format(time.DateOnly), d.Runs, d.Tokens, dollars(d.USD, d.Unpriced)})
	}

	return v, nil
}

// maxBudgets is how many limits of budgets the overview has: those of which least is left.
const maxBudgets = 20

// allUse returns what all runs used, and the budgets of the settings and of all factories.
func (q *request) allUse() (useView, error) {
	v, err := q.use("")
	if err != nil {
		return v, err
	}

	all, _, err := q.Store.Budgets(q.Context())
	if err != nil {
		return v, err
	}
	factories, err := q.Store.Factories(q.Context())
	if err != nil {
		return v, err
	}

	names := map[string]string{}
	for _, f := range factories {
		names[f.UID] = f.Name
	}
	for _, b := range all {
		if b.Factory == "" {
			continue // use has it
		}
		b.Place = names[b.Factory] + ": " + b.Place
		v.Budgets = append(v.Budgets, budgetRows(b)...)
	}

	slices.SortStableFunc(v.Budgets, func(a, b budgetRow) int { return cmp.Compare(b.share, a.share) })
	v.Budgets = v.Budgets[:min(len(v.Budgets), maxBudgets)]
	return v, nil
}

// usageView is what a run used.
type usageView struct {
	Tokens string
	Cost   string // empty: unknown
	Models []modelRow
}

// modelRow is what a run used of one language model.
type modelRow struct{ Model, Use string }

// usageOf returns what a run used; nil when nothing was reported.
func usageOf(u *state.Usage) *usageView {
	if u == nil {
		return nil
	}

	v := &usageView{
		Tokens: fmt.Sprintf("%d in (%d cached), %d out", u.InputTokens, u.CachedTokens, u.OutputTokens),
	}
	if u.CostUSD != nil {
		v.Cost = fmt.Sprintf("$%.4f", u.Cost())
		if n := u.Unpriced(); n > 0 {
			v.Cost += fmt.Sprintf(", and an unknown part for %d tokens", n)
		}
	}

	for _, m := range u.Models {
		row := modelRow{m.Model, count(int(m.InputTokens+m.OutputTokens), "token", "tokens")}
		if m.CostUSD != nil {
			row.Use += fmt.Sprintf(", $%.4f", *m.CostUSD)
		}
		v.Models = append(v.Models, row)
	}

	return v
}

// dollars writes a cost, of which the part of some tokens is unknown.
func dollars(usd float64, unpriced int64) string {
	text := fmt.Sprintf("$%.2f", usd)
	switch {
	case unpriced > 0 && usd == 0:
		return "unknown"
	case unpriced > 0:
		return text + " and an unknown part"
	}
	return text
}

// budgetRows returns the limits of a budget.
func budgetRows(b state.Budget) (rows []budgetRow) {
	add := func(limit, used, left string, share float64) {
		rows = append(rows, budgetRow{limit, b.Place, used, left, share})
	}

	if b.RunsPerDay > 0 {
		add(fmt.Sprintf("runsPerDay: %d", b.RunsPerDay), fmt.Sprint(b.Used.Runs),
			fmt.Sprint(max(0, b.RunsPerDay-b.Used.Runs)), float64(b.Used.Runs)/float64(b.RunsPerDay))
	}

	if b.TokensPerDay > 0 {
		add(fmt.Sprintf("tokensPerDay: %d", b.TokensPerDay), fmt.Sprint(b.Used.Tokens),
			fmt.Sprint(max(0, b.TokensPerDay-b.Used.Tokens)), float64(b.Used.Tokens)/float64(b.TokensPerDay))
	}

	if b.USDPerDay > 0 {
		add(fmt.Sprintf("usdPerDay: %v", b.USDPerDay), dollars(b.Used.USD, b.Used.Unpriced),
			fmt.Sprintf("$%.2f", max(0, b.USDPerDay-b.Used.USD)), b.Used.USD/b.USDPerDay)
	}

	if b.TokensPerRun > 0 {
		add(fmt.Sprintf("tokensPerRun: %d", b.TokensPerRun), "", "", 0)
	}

	if b.USDPerRun > 0 {
		add(fmt.Sprintf("usdPerRun: %v", b.USDPerRun), "", "", 0)
	}

	return rows
}

// budgetFindings lists what budgets hold back, stopped today, and cannot count.
func (q *request) budgetFindings() (all []finding, err error) {
	budgets, today, err := q.Store.Budgets(q.Context())
	if err != nil {
		return nil, err
	}

	dollars := false
	for _, b := range budgets {
		dollars = dollars || b.USDPerDay > 0 || b.USDPerRun > 0
		if b.Waiting > 0 {
			all = append(all, finding{
				Tone:   "odd",
				Text:   count(b.Waiting, "run waits", "runs wait") + " for a budget",
				Detail: b.Place + " is spent for today",
				Path:   "/runs?state=QUEUED",
				Action: "Show",
			})
		}
	}

	if today.Stopped > 0 {
		all = append(all, finding{
			Tone:   "bad",
			Text:   count(int(today.Stopped), "run was", "runs were") + " stopped by a budget today",
			Detail: "each run's page names the budget, and where it is written",
			Path:   "/runs?state=FAILED",
			Action: "Show",
		})
	}
	if today.Unpriced > 0 && dollars {
		all = append(all, finding{
			Tone:   "odd",
			Text:   fmt.Sprintf("The cost of %s of today is unknown", count(int(today.Unpriced), "token", "tokens")),
			Detail: "budgets in US dollars do not count them: add their models to prices in the settings",
			Path:   "/runs",
			Action: "Runs",
		})
	}

	return all, nil
}
