package budget

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"millwright/schema"
	"millwright/state/db"
)

func (u Use) plus(o Use) Use {
	return Use{u.Runs + o.Runs, u.Tokens + o.Tokens, u.USD + o.USD, u.Unpriced + o.Unpriced, u.Stopped + o.Stopped}
}

// Day has the budgets by day and what was used of them.
type Day struct {
	budgets []Budget
	used    map[string]Use
}

const usedSQL = `SELECT scope, runs, tokens, cost_usd, unpriced, stopped
FROM usage_days
WHERE day = $1
	AND (scope = '' OR scope IN (SELECT scope FROM budgets))`

// On returns the budgets that bound the day of at, with what was used of them; nil when there is none.
func On(ctx context.Context, r db.Reader, server schema.Budget, at time.Time) (*Day, error) {
	all, err := List(ctx, r, server)
	if err != nil {
		return nil, err
	}

	d := &Day{used: map[string]Use{}}
	d.budgets = slices.DeleteFunc(all, func(b Budget) bool { return !b.byDay() })
	if len(d.budgets) == 0 {
		return nil, nil
	}

	d.used, err = Used(ctx, r, at)
	return d, err
}

// Used returns what was used on the day of at, by the scopes that have a budget, and by all runs.
func Used(ctx context.Context, r db.Reader, at time.Time) (map[string]Use, error) {
	used := map[string]Use{}
	err := db.Each(ctx, r, func(row db.Row) error {
		var scope string
		var u Use
		err := row.Scan(&scope, &u.Runs, &u.Tokens, &u.USD, &u.Unpriced, &u.Stopped)
		used[scope] = u
		return err
	}, usedSQL, DayOf(at))
	return used, err
}

// Spent returns the widest limit that keeps a run of the scopes from being started; nil when none does. counted says
// that it is one of the day's runs already.
func (d *Day) Spent(of Scopes, counted bool) *Spent {
	if d == nil {
		return nil
	}
	for _, scope := range of.all() {
		for _, b := range d.budgets {
			if b.Scope != scope {
				continue
			}
			if spent := b.overDay(d.used[scope], counted); spent != nil {
				return spent
			}
		}
	}
	return nil
}

// Start counts a run that begins.
func (d *Day) Start(of Scopes) {
	if d == nil {
		return
	}
	for _, scope := range of.all() {
		d.used[scope] = d.used[scope].plus(Use{Runs: 1})
	}
}

// Ledger collects what is used, by scope. The zero value is ready.
type Ledger struct {
	used    map[string]Use
	factory map[string]string
}

// Add adds the use of a run.
func (l *Ledger) Add(of Scopes, u Use) {
	if l.used == nil {
		l.used, l.factory = map[string]Use{}, map[string]string{}
	}
	for _, scope := range of.all() {
		l.used[scope] = l.used[scope].plus(u)
		if scope != Server {
			l.factory[scope] = of.Factory
		}
	}
}

const (
	beginDaySQL = `INSERT INTO usage_days (scope, day, factory_uid)
		VALUES ($1, $2, $3)
		ON CONFLICT (scope, day) DO NOTHING`

	// addSQL takes back what was counted too much, but never more than there is.
	addSQL = `UPDATE usage_days
		SET
			runs = runs + $3,
			stopped = stopped + $4,
			tokens = CASE WHEN tokens + $5 < 0 THEN 0 ELSE tokens + $5 END,
			cost_usd = CASE WHEN cost_usd + $6 < 0 THEN 0 ELSE cost_usd + $6 END,
			unpriced = CASE WHEN unpriced + $7 < 0 THEN 0 ELSE unpriced + $7 END
		WHERE scope = $1
			AND day = $2`
)

// Save adds what was collected to the day of at. It is the last statement of its transaction that locks rows, and
// locks those of scopes in their order.
func (l *Ledger) Save(ctx context.Context, tx *db.Tx, at time.Time) error {
	day := DayOf(at)
	for _, scope := range slices.Sorted(maps.Keys(l.used)) {
		u := l.used[scope]
		add := func() error {
			return tx.ExecOne(ctx, addSQL, scope, day, u.Runs, u.Stopped, u.Tokens, u.USD, u.Unpriced)
		}

		err := add()
		if errors.Is(err, db.ErrNoRow) {
			if _, err = tx.Exec(ctx, beginDaySQL, scope, day, l.factory[scope]); err == nil {
				err = add()
			}
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// DayUse is what was used on one day.
type DayUse struct {
	Day time.Time // its beginning, in UTC
	Use
}

const daysSQL = `SELECT day, runs, tokens, cost_usd, unpriced, stopped
FROM usage_days
WHERE scope = $1
	AND day > $2
ORDER BY day DESC`

// Days returns what a scope used on the last days until the day of at, the latest first. Days without runs are left
// out.
func Days(ctx context.Context, r db.Reader, scope string, at time.Time, days int) ([]DayUse, error) {
	return db.All(ctx, r, func(row db.Row) (d DayUse, err error) {
		var day int64
		err = row.Scan(&day, &d.Runs, &d.Tokens, &d.USD, &d.Unpriced, &d.Stopped)
		d.Day = time.Unix(day*int64((24*time.Hour).Seconds()), 0).UTC()
		return d, err
	}, daysSQL, scope, DayOf(at)-int64(days))
}

const automationsSQL = `SELECT scope, sum(runs), sum(tokens), sum(cost_usd), sum(unpriced), sum(stopped)
FROM usage_days
WHERE scope IN (
		SELECT uid
		FROM resources
		WHERE factory_uid = $1 AND kind = 'automation' AND deleted_at IS NULL
	)
	AND day > $2
GROUP BY scope`

// Automations returns what the automations of a factory used on the last days until the day of at, by their
// UIDs.
func Automations(
	ctx context.Context,
	r db.Reader,
	factory string,
	at time.Time,
	days int,
) (map[string]Use, error) {
	used := map[string]Use{}
	err := db.Each(ctx, r, func(row db.Row) error {
		var scope string
		var u Use
		err := row.Scan(&scope, &u.Runs, &u.Tokens, &u.USD, &u.Unpriced, &u.Stopped)
		used[scope] = u
		return err
	}, automationsSQL, factory, DayOf(at)-int64(days))
	return used, err
}

// kept is how long the use of a day is known.
const kept = 400 * 24 * time.Hour

const expireSQL = `DELETE FROM usage_days
WHERE day < $1`

// Expire deletes the use of days that are too long ago.
func Expire(ctx context.Context, d *db.DB, at time.Time) error {
	return d.Exec(ctx, expireSQL, DayOf(at.Add(-kept)))
}
