package state

import (
	"context"
	"time"

	"millwright/schema"
	"millwright/state/budget"
	"millwright/state/db"
	"millwright/state/notice"
)

// serverBudget returns the budget of the settings.
func (s *Store) serverBudget() schema.Budget {
	if b := s.budget.Load(); b != nil {
		return *b
	}
	return schema.Budget{}
}

// SetBudget sets the budget of the settings, and has the runs that wait for one looked at again.
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

// OverBudget describes the budget for one run that a run has exceeded; empty when it has exceeded none.
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
	return err
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

// ReviewParked puts the runs back into the queue that need not wait for their budget any more by now. It ends those
// as FAILED that have waited for budget.MaxWait and whose budget is spent still, and returns them.
func (s *Store) ReviewParked(ctx context.Context, now time.Time) (ended []Run, err error) {
	overdue, err := db.Strings(ctx, s.db.Reader, overdueSQL, db.Micros(now), db.Micros(now.Add(-budget.MaxWait)))
	if err != nil {
		return nil, err
	}

	for _, id := range overdue {
		r, err := s.giveUpWaiting(ctx, id, now)
		if ofRow(err) {
			s.Skip(loopReap, r.FactoryUID, "run "+id, err)
			continue
		}
		if err != nil {
			return ended, err
		}
		if r.Ended() {
			s.moved(ctx, r)
			ended = append(ended, r)
		}
	}

	var freed int64
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) (err error) {
		freed, err = tx.Exec(ctx, unparkDueSQL, db.Micros(now))
		return err
	})
	if err == nil && freed > 0 {
		s.Publish(notice.Notice{Topic: notice.Queued})
	}

	return ended, err
}

// giveUpWaiting ends a parked run if its budget is spent still.
func (s *Store) giveUpWaiting(ctx context.Context, id string, now time.Time) (r Run, err error) {
	err = s.commitRun(ctx, id, func(ctx context.Context, tx *db.Tx) (err error) {
		if err := s.holdFlow(ctx, tx, id); err != nil {
			return err
		}
		if r, err = s.lockRun(ctx, tx, id); err != nil || r.ParkedUntil == nil {
			return err
		}

		day, err := budget.On(ctx, tx.Reader, s.serverBudget(), now)
		if err != nil {
			return err
		}
		spent := day.Spent(r.scopes(), r.claims > 0)
		if spent == nil {
			return nil
		}

		if err := s.countStopped(ctx, tx, r, now); err != nil {
			return err
		}
		return s.end(ctx, tx, &r, Result{State: RunFailed, ErrorCode: codeBudget, Message: spent.Waited()})
	})
	return r, err
}

// countStopped counts a run that a budget ends.
func (s *Store) countStopped(ctx context.Context, tx *db.Tx, r Run, now time.Time) error {
	var l budget.Ledger
	l.Add(r.scopes(), budget.Use{Stopped: 1})
	return l.Save(ctx, tx, now)
}

// codeBudget is the error code of runs that a budget ended.
const codeBudget = "budget_exceeded"

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
		Unpriced: sum.unpriced() - was.unpriced(),
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
