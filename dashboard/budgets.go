package dashboard

import (
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
	add := func(limit, used, left string) { rows = append(rows, budgetRow{limit, b.Place, used, left}) }

	if b.RunsPerDay > 0 {
		add(fmt.Sprintf("runsPerDay: %d", b.RunsPerDay), fmt.Sprint(b.Used.Runs),
			fmt.Sprint(max(0, b.RunsPerDay-b.Used.Runs)))
	}

	if b.TokensPerDay > 0 {
		add(fmt.Sprintf("tokensPerDay: %d", b.TokensPerDay), fmt.Sprint(b.Used.Tokens),
			fmt.Sprint(max(0, b.TokensPerDay-b.Used.Tokens)))
	}

	if b.USDPerDay > 0 {
		add(fmt.Sprintf("usdPerDay: %v", b.USDPerDay), dollars(b.Used.USD, b.Used.Unpriced),
			fmt.Sprintf("$%.2f", max(0, b.USDPerDay-b.Used.USD)))
	}

	if b.TokensPerRun > 0 {
		add(fmt.Sprintf("tokensPerRun: %d", b.TokensPerRun), "", "")
	}

	if b.USDPerRun > 0 {
		add(fmt.Sprintf("usdPerRun: %v", b.USDPerRun), "", "")
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
