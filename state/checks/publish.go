package checks

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"millwright/state/db"
)

// dueSQL finds the check that is due first, of a factory that is not in the JSON list $2.
const dueSQL = `SELECT factory_uid, subject
FROM checks
WHERE state IN ('waiting', 'doing')
	AND next_at <= $1
	AND factory_uid NOT IN (SELECT %s)
ORDER BY next_at
LIMIT 1`

func (t Table) dueSQL() string {
	if t.db.Postgres() {
		return fmt.Sprintf(dueSQL, `jsonb_array_elements_text($2::jsonb)`)
	}
	return fmt.Sprintf(dueSQL, `value FROM json_each($2)`)
}

const takeSQL = `UPDATE checks
SET state = 'doing', attempts = attempts + 1, next_at = $3, updated_at = $4
WHERE factory_uid = $1
	AND subject = $2
	AND state IN ('waiting', 'doing')
	AND next_at <= $4
RETURNING ` + columns

// Take gives the check that is due first to the caller, who publishes it before the lease ends. It leaves out the
// factories that are busy. ok is false when none is due. A check that was taken before, and never reported, has more
// than one of Attempts.
func (t Table) Take(ctx context.Context, lease time.Duration, busy ...string) (c Check, ok bool, err error) {
	but, err := json.Marshal(append([]string{}, busy...))
	if err != nil {
		return c, false, err
	}

	err = t.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		ok = false
		now := t.db.Now()
		var factory, subject string
		err := tx.QueryRow(ctx, t.dueSQL(), db.Micros(now), string(but)).Scan(&factory, &subject)
		if err == nil {
			c, err = scan(tx.QueryRow(ctx, takeSQL, factory, subject, t.db.LeaseEnd(lease), db.Micros(now)))
		}
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}

		ok = err == nil
		return err
	})
	return c, ok, err
}

const performSQL = `UPDATE checks
SET account = $4
WHERE factory_uid = $1 AND subject = $2 AND state = 'doing' AND attempts = $3`

// Performs records the login of the account that is about to publish a taken check.
func (t Table) Performs(ctx context.Context, c Check, account string) error {
	return t.db.ExecOne(ctx, performSQL, c.FactoryUID, c.Subject(), c.Attempts, db.Text(account))
}

const reportSQL = `UPDATE checks
SET
	state = CASE WHEN revision = $4 THEN $5 ELSE 'waiting' END,
	next_at = CASE WHEN revision = $4 THEN CAST($6 AS BIGINT) ELSE CAST($7 AS BIGINT) END,
	attempts = CASE WHEN revision = $4 THEN CAST($8 AS BIGINT) ELSE 0 END,
	reason = $9,
	comment_id = $10,
	comments = $11,
	updated_at = $7
WHERE factory_uid = $1 AND subject = $2 AND state = 'doing' AND attempts = $3`

// Report records the result of publishing a taken check: its State, the time of the next attempt, and what is
// known of its comment. A check that says something else meanwhile waits again. One that is not due yet by its
// forge's limits does not count as an attempt.
func (t Table) Report(ctx context.Context, c Check, state State, next time.Time, reason string, counts bool) error {
	attempts := c.Attempts
	if !counts {
		attempts--
	}

	return t.db.Exec(ctx, reportSQL,
		c.FactoryUID, c.Subject(), c.Attempts, c.Revision, string(state), db.Micros(next), db.Micros(t.db.Now()),
		attempts, db.Bounded(reason, maxReason), c.CommentID, c.Comments)
}

// Recover makes the checks due at once that a former process of the only server had taken.
func (t Table) Recover(ctx context.Context) error {
	return t.db.Exec(ctx, `UPDATE checks SET next_at = 0 WHERE state = 'doing'`)
}

// Counts returns how many checks are waiting, doing and failed.
func (t Table) Counts(ctx context.Context) (map[State]int, error) {
	counts := map[State]int{Waiting: 0, Doing: 0, Failed: 0}
	err := db.Each(ctx, t.db.Reader, func(row db.Row) error {
		var state State
		var n int
		err := row.Scan(&state, &n)
		counts[state] = n
		return err
	}, `SELECT state, count(*)
		FROM checks
		WHERE state IN ('waiting', 'doing', 'failed')
		GROUP BY state`)
	return counts, err
}
