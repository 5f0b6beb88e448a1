// Package budget counts what runs use in a day, and finds the budgets that are spent.
//
// A budget has a scope: all runs of the server, or those of a factory, an agent or an automation. The budgets of
// all scopes of a run hold at once.
package budget

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"millwright/schema"
	"millwright/state/db"
)

// Server is the scope of all runs. Other scopes are the UIDs of factories, agents and automations.
const Server = ""

// serverPlace names the place of the budget of the settings.
const serverPlace = "limits.budget in the settings"

// Scopes are those of a run.
type Scopes struct{ Factory, Agent, Automation string }

// all returns the scopes, from the widest to the narrowest.
func (s Scopes) all() []string {
	all := []string{Server}
	for _, scope := range []string{s.Factory, s.Agent, s.Automation} {
		if scope != "" {
			all = append(all, scope)
		}
	}
	return all
}

// Budget is a budget in force.
type Budget struct {
	schema.Budget
	Scope   string
	Factory string // UID of the factory whose definition has it; empty for the settings
	Place   string // where it is written
}

// byDay reports whether the budget bounds a day.
func (b Budget) byDay() bool { return b.TokensPerDay > 0 || b.USDPerDay > 0 || b.RunsPerDay > 0 }

// Spent is a limit that is used up.
type Spent struct {
	Scope string
	Limit string // key and value, as the file has them
	Place string
	Runs  bool // it is the number of runs: one that is counted already may go on
}

// Today describes a limit of a day that is used up.
func (s *Spent) Today() string {
	return fmt.Sprintf("today's budget is spent: %s, %s", s.Limit, s.Place)
}

// Waited describes a limit that stayed used up for as long as a run may wait.
func (s *Spent) Waited() string {
	return fmt.Sprintf("the run waited %.0f hours for its budget: %s, %s", MaxWait.Hours(), s.Limit, s.Place)
}

// MaxWait is how long a run waits for its budget at most.
const MaxWait = 24 * time.Hour

// DayOf returns the number of a day, counted from the Unix epoch in UTC.
func DayOf(at time.Time) int64 { return at.Unix() / int64((24 * time.Hour).Seconds()) }

// NextDay returns the beginning of the day after at, in UTC.
func NextDay(at time.Time) time.Time { return at.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }

// overDay returns the limit of a day that the use has reached. A run that is counted already needs no room for runs.
func (b Budget) overDay(u Use, counted bool) *Spent {
	limit := ""
	switch {
	case b.TokensPerDay > 0 && u.Tokens >= b.TokensPerDay:
		limit = fmt.Sprintf("tokensPerDay: %d", b.TokensPerDay)
	case b.USDPerDay > 0 && u.USD >= b.USDPerDay:
		limit = fmt.Sprintf("usdPerDay: %v", b.USDPerDay)
	case b.RunsPerDay > 0 && u.Runs >= b.RunsPerDay && !counted:
		return &Spent{b.Scope, fmt.Sprintf("runsPerDay: %d", b.RunsPerDay), b.Place, true}
	default:
		return nil
	}

	return &Spent{b.Scope, limit, b.Place, false}
}

// OverRun describes the limit of a run that tokens and dollars exceed; empty when they exceed none.
func (b Budget) OverRun(tokens int64, usd float64) string {
	switch {
	case b.TokensPerRun > 0 && tokens > b.TokensPerRun:
		return fmt.Sprintf("the run used %d tokens, more than its budget: tokensPerRun: %d, %s",
			tokens, b.TokensPerRun, b.Place)
	case b.USDPerRun > 0 && usd > b.USDPerRun:
		return fmt.Sprintf("the run cost $%.4f, more than its budget: usdPerRun: %v, %s", usd, b.USDPerRun, b.Place)
	}
	return ""
}

const listSQL = `SELECT scope, factory_uid, budget, place
FROM budgets
ORDER BY scope`

// List returns the budgets of all definitions and that of the server, which is first.
func List(ctx context.Context, r db.Reader, server schema.Budget) ([]Budget, error) {
	all, err := db.All(ctx, r, func(row db.Row) (b Budget, err error) {
		var text string
		if err := row.Scan(&b.Scope, &b.Factory, &text, &b.Place); err != nil {
			return b, err
		}
		return b, json.Unmarshal([]byte(text), &b.Budget)
	}, listSQL)
	if err == nil && server != (schema.Budget{}) {
		all = append([]Budget{{server, Server, "", serverPlace}}, all...)
	}
	return all, err
}

// OfRun returns the budgets that hold for a run.
func OfRun(ctx context.Context, r db.Reader, server schema.Budget, of Scopes) ([]Budget, error) {
	all, err := List(ctx, r, server)
	if err != nil {
		return nil, err
	}

	var found []Budget
	for _, scope := range of.all() {
		for _, b := range all {
			if b.Scope == scope {
				found = append(found, b)
			}
		}
	}
	return found, nil
}

const (
	resourcesSQL = `SELECT uid, kind, spec
		FROM resources
		WHERE factory_uid = $1
			AND kind IN ('automation', 'agent')
			AND deleted_at IS NULL
			AND spec LIKE '%"budget":%'`

	fileSQL = `SELECT spec
		FROM factories
		WHERE uid = $1`

	forgetSQL = `DELETE FROM budgets
		WHERE factory_uid = $1`

	writeSQL = `INSERT INTO budgets (scope, factory_uid, budget, place)
		VALUES ($1, $2, $3, $4)`
)

// Read takes the budgets of a factory from its applied definition.
func Read(ctx context.Context, tx *db.Tx, factory string) error {
	var found []Budget
	err := db.Each(ctx, tx.Reader, func(row db.Row) error {
		b := Budget{Factory: factory}
		var kind, text string
		if err := row.Scan(&b.Scope, &kind, &text); err != nil {
			return err
		}

		var spec struct {
			Path   string
			Budget *schema.Budget
		}
		if err := json.Unmarshal([]byte(text), &spec); err != nil || spec.Budget == nil {
			return nil // the text stands elsewhere in it
		}

		b.Budget, b.Place = *spec.Budget, "budget in "+spec.Path
		found = append(found, b)
		return nil
	}, resourcesSQL, factory)
	if err != nil {
		return err
	}

	var text string
	if err := tx.QueryRow(ctx, fileSQL, factory).Scan(&text); err != nil {
		return err
	}
	var file *schema.FactoryFile
	if json.Unmarshal([]byte(text), &file) == nil && file != nil && file.AgentDefaults.Budget != nil {
		found = append(found,
			Budget{*file.AgentDefaults.Budget, factory, factory, "agentDefaults.budget in factory.yaml"})
	}

	if _, err := tx.Exec(ctx, forgetSQL, factory); err != nil {
		return err
	}
	for _, b := range found {
		limits, err := json.Marshal(b.Budget)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, writeSQL, b.Scope, factory, string(limits), db.Text(b.Place)); err != nil {
			return err
		}
	}

	return nil
}

// Use is what runs used in a day.
type Use struct {
	Runs     int64   // executions that began
	Tokens   int64   // input and output together
	USD      float64 // as far as it is known
	Unpriced int64   // tokens whose cost nobody knows
	Stopped  int64   // runs that a budget ended
}
