package state

import (
	"context"
	"encoding/json"
	"time"

	"millwright/schema"
	"millwright/state/budget"
	"millwright/state/db"
	"millwright/state/events"
	"millwright/state/notice"
)

// serverBudget returns the budget of the settings.
func (s *Store) serverBudget() schema.Budget {
	if b := s.budget.Load(); b != nil {
		return *b
	}
	return schema.Budget{}
}

// SetBudget replaces the budget of the settings. Workers may claim runs that waited for a budget again, and the
// claims decide on them anew.
func (s *Store) SetBudget(ctx context.Context, b schema.Budget) error {
	s.budget.Store(&b)
	if err := s.db.Exec(ctx, unparkSQL); err != nil {
		return err
	}

	s.Publish(notice.Notice{Topic: notice.Queued})
	return nil
}

// scopes returns what the budgets of a run count.
func (r Run) scopes() budget.Scopes {
	return budget.Scopes{Factory: r.FactoryUID, Agent: r.AgentUID, Automation: r.AutomationUID}
}

// OverBudget describes a budget of a single run that r has exceeded. It returns an empty text if r has exceeded
// none.
func (s *Store) OverBudget(ctx context.Context, r Run) (string, error) {
	return s.overBudget(ctx, s.db.Reader, r)
}

func (s *Store) overBudget(ctx context.Context, reader db.Reader, r Run) (string, error) {
	if r.Usage == nil {
		return "", nil
	}

	all, err := budget.OfRun(ctx, reader, s.serverBudget(), r.scopes())
	if err != nil {
		return "", err
	}

	for _, b := range all {
		if over := b.OverRun(r.Usage.InputTokens+r.Usage.OutputTokens, r.Usage.Cost()); over != "" {
			return over, nil
		}
	}

	return "", nil
}

// parkSQL parks the queued runs of the scope $1, in the factory $5, until $2 or until they have waited for $3: with
// $6 only those that have not begun.
const parkSQL = `UPDATE runs
SET
	waits_for = 'budget',
	parked_by = $1,
	parked_until = CASE WHEN queued_at + $3 < $2 THEN queued_at + $3 ELSE $2 END,
	status_message = $4
WHERE state = 'QUEUED'
	AND waits_for = ''
	AND ($1 = '' OR factory_uid = $5)
	AND ($1 = '' OR factory_uid = $1 OR agent_uid = $1 OR automation_uid = $1)
	AND ($6 = 0 OR claims = 0)`

// park has the queued runs of a spent budget wait for the next day.
func park(ctx context.Context, tx *db.Tx, factory string, spent *budget.Spent, now time.Time) error {
	_, err := tx.Exec(ctx, parkSQL, spent.Scope, db.Micros(budget.NextDay(now)), budget.MaxWait.Microseconds(),
		db.Text(spent.Today()), factory, db.Flag(spent.Runs))
	if err != nil {
		return err
	}

	told := events.Budget{Limit: spent.Limit, Place: spent.Place, Text: spent.Today()}
	return events.BudgetSpent(ctx, tx, newEventID, spent.Scope, factory, budget.DayOf(now), told, now)
}

const (
	unparkSQL = `UPDATE runs
		SET waits_for = '', parked_until = 0, parked_by = '', status_message = ''
		WHERE state = 'QUEUED' AND waits_for = 'budget'`

	unparkFactorySQL = unparkSQL + ` AND factory_uid = $1`
	unparkDueSQL     = unparkSQL + ` AND parked_until <= $1`

	overdueSQL = `SELECT id
		FROM runs
		WHERE state = 'QUEUED' AND waits_for = 'budget' AND parked_until <= $1 AND queued_at <= $2
		ORDER BY parked_until
		LIMIT 1000`
)

// countStopped counts a run that a budget ends.
func (s *Store) countStopped(ctx context.Context, tx *db.Tx, r Run, now time.Time) error {
	var l budget.Ledger
	l.Add(r.scopes(), budget.Use{Stopped: 1})
	return l.Save(ctx, tx, now)
}

// bounded returns the result of a locked run or, where the run exceeded its budget, that instead.
func (s *Store) bounded(ctx context.Context, tx *db.Tx, r Run, result Result) (Result, error) {
	over, err := s.overBudget(ctx, tx.Reader, r)
	if err != nil {
		return result, err
	}
	if over != "" && result.State != RunCancelled {
		result.State, result.ErrorCode, result.Message = RunFailed, codeBudget, over
	}
	if result.ErrorCode != codeBudget {
		return result, nil
	}

	return result, s.countStopped(ctx, tx, r, time.Now())
}

// countUse counts what a run used on top of what it had used before.
func (s *Store) countUse(ctx context.Context, tx *db.Tx, r Run, sum, was Usage) error {
	var l budget.Ledger
	l.Add(r.scopes(), budget.Use{
		Tokens:   sum.tokens() - was.tokens(),
		USD:      sum.Cost() - was.Cost(),
		Unpriced: sum.Unpriced() - was.Unpriced(),
	})
	return l.Save(ctx, tx, time.Now())
}

// waitsBudget is what a parked run waits for.
const waitsBudget = "budget"

// Budget is a budget in force, with what was used of it today.
type Budget struct {
	budget.Budget
	Used    budget.Use
	Waiting int // runs that wait for it
}

const waitingForBudgetSQL = `SELECT parked_by, count(*)
FROM runs
WHERE state = 'QUEUED' AND waits_for = 'budget'
GROUP BY parked_by`

// Budgets returns the budgets in force, that of the settings first, and what all runs used today.
func (s *Store) Budgets(ctx context.Context) (all []Budget, today budget.Use, err error) {
	list, err := budget.List(ctx, s.db.Reader, s.serverBudget())
	if err != nil {
		return nil, today, err
	}
	used, err := budget.Used(ctx, s.db.Reader, time.Now())
	if err != nil {
		return nil, today, err
	}

	waiting := map[string]int{}
	err = db.Each(ctx, s.db.Reader, func(row db.Row) error {
		var scope string
		var runs int
		err := row.Scan(&scope, &runs)
		waiting[scope] = runs
		return err
	}, waitingForBudgetSQL)

	for _, b := range list {
		all = append(all, Budget{b, used[b.Scope], waiting[b.Scope]})
	}
	return all, used[budget.Server], err
}

// UseByDay returns what was used on the last days by a factory, an agent or an automation, or by all runs for an
// empty UID, the latest day first.
func (s *Store) UseByDay(ctx context.Context, uid string, days int) ([]budget.DayUse, error) {
	return budget.Days(ctx, s.db.Reader, uid, time.Now(), days)
}

// UseByAutomation returns what the automations of a factory used on the last days, by their UIDs.
func (s *Store) UseByAutomation(
	ctx context.Context,
	factoryUID string,
	days int,
) (map[string]budget.Use, error) {
	return budget.Automations(ctx, s.db.Reader, factoryUID, time.Now(), days)
}

// SetUsage records what the present attempt has used so far, in place of what was recorded of it before, and
// returns the change, and the run with its Usage. ErrLost when the claim no longer holds.
func (s *Store) SetUsage(ctx context.Context, c Claim, models []ModelUsage) (added Usage, r Run, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		if r, err = s.lockHeld(ctx, tx, c); err != nil {
			return err
		}

		was, err := usageOf(ctx, tx, r.ID)
		if err != nil {
			return err
		}

		_, err = tx.Exec(ctx, `
			DELETE FROM run_usage
			WHERE run_id = $1 AND execution = $2 AND attempt = $3`, r.ID, r.Execution, r.Attempt)
		if err != nil {
			return err
		}

		for _, m := range models {
			_, err := tx.Exec(ctx, `
				INSERT INTO run_usage (run_id, execution, attempt, model_id, factory_uid, automation_uid,
					input_tokens, output_tokens, cached_tokens, cost_usd, at)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
				ON CONFLICT (run_id, execution, attempt, model_id) DO UPDATE
				SET input_tokens = run_usage.input_tokens + excluded.input_tokens,
					output_tokens = run_usage.output_tokens + excluded.output_tokens,
					cached_tokens = run_usage.cached_tokens + excluded.cached_tokens,
					cost_usd = coalesce(run_usage.cost_usd, 0) + coalesce(excluded.cost_usd, 0)`,
				r.ID, r.Execution, r.Attempt, db.Text(m.Model), r.FactoryUID, r.AutomationUID,
				m.InputTokens, m.OutputTokens, m.CachedTokens, m.CostUSD, db.Micros(time.Now()))
			if err != nil {
				return err
			}
		}

		sum, err := usageOf(ctx, tx, r.ID)
		if err != nil {
			return err
		}

		text, err := json.Marshal(sum)
		if err != nil {
			return err
		}

		added, r.Usage = sum.since(was), &sum
		if _, err := tx.Exec(ctx, `UPDATE runs SET usage = $2 WHERE id = $1`, r.ID, string(text)); err != nil {
			return err
		}

		return s.countUse(ctx, tx, r, sum, was)
	})
	return added, r, err
}

// usageOf sums what a run has used.
func usageOf(ctx context.Context, tx *db.Tx, runID string) (Usage, error) {
	var u Usage
	var err error
	u.Models, err = db.All(ctx, tx.Reader, scanUsage, `
		SELECT model_id, CAST(sum(input_tokens) AS BIGINT), CAST(sum(output_tokens) AS BIGINT),
			CAST(sum(cached_tokens) AS BIGINT), sum(cost_usd)
		FROM run_usage
		WHERE run_id = $1
		GROUP BY model_id
		ORDER BY model_id`, runID)
	for _, m := range u.Models {
		u.InputTokens += m.InputTokens
		u.OutputTokens += m.OutputTokens
		u.CachedTokens += m.CachedTokens
		if m.CostUSD != nil {
			u.CostUSD = new(u.Cost() + *m.CostUSD)
		}
	}

	return u, err
}

func scanUsage(row db.Row) (m ModelUsage, err error) {
	return m, row.Scan(&m.Model, &m.InputTokens, &m.OutputTokens, &m.CachedTokens, &m.CostUSD)
}

// Cost returns what it cost in US dollars, 0 where nobody knows.
func (u Usage) Cost() float64 {
	if u.CostUSD == nil {
		return 0
	}
	return *u.CostUSD
}

func (u Usage) tokens() int64 { return u.InputTokens + u.OutputTokens }

// Unpriced is how many tokens have no known cost.
func (u Usage) Unpriced() (tokens int64) {
	for _, m := range u.Models {
		if m.Model == "" && m.CostUSD != nil {
			return 0 // the agent reports the cost of all models together
		}
		if m.CostUSD == nil {
			tokens += m.InputTokens + m.OutputTokens
		}
	}
	return tokens
}

// since returns what came on top of was.
func (u Usage) since(was Usage) Usage {
	return Usage{
		InputTokens:  max(0, u.InputTokens-was.InputTokens),
		OutputTokens: max(0, u.OutputTokens-was.OutputTokens),
		CachedTokens: max(0, u.CachedTokens-was.CachedTokens),
		CostUSD:      new(max(0, u.Cost()-was.Cost())),
	}
}
