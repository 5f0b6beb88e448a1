package outputs

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"millwright/state/audit"
	"millwright/state/db"
	"millwright/state/events"
)

// dueSQL finds what is to be performed at $1. Pull requests of one run wait for each other, so that their
// commits arrive in order.
const dueSQL = `SELECT uid
FROM outputs AS o
WHERE state IN ('pending', 'doing')
	AND next_at <= $1
	AND (
		kind <> 'pull_request'
		OR NOT EXISTS (
			SELECT 1
			FROM outputs AS earlier
			WHERE earlier.run_id = o.run_id
				AND earlier.uid < o.uid
				AND earlier.kind = 'pull_request'
				AND earlier.state IN ('pending', 'doing')
		)
	)
ORDER BY next_at, uid
LIMIT 1`

const takeSQL = `UPDATE outputs
SET state = 'doing', attempts = attempts + 1, next_at = $2, updated_at = $3
WHERE uid = $1 AND state IN ('pending', 'doing') AND next_at <= $3
RETURNING ` + columns

// Take gives the output that is due first to the caller, who performs it before the lease ends. ok is false
// when none is due. An output that was taken before, and never reported, has more than one of Attempts.
func (t Table) Take(ctx context.Context, lease time.Duration) (o Output, ok bool, err error) {
	err = t.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		ok = false
		now := t.db.Now()
		var uid string
		err := tx.QueryRow(ctx, dueSQL, db.Micros(now)).Scan(&uid)
		if err == nil {
			o, err = scan(tx.QueryRow(ctx, takeSQL, uid, t.db.LeaseEnd(lease), db.Micros(now)))
		}
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}

		ok = err == nil
		return err
	})
	return o, ok, err
}

const performSQL = `UPDATE outputs
SET account = $3
WHERE uid = $1 AND state = 'doing' AND attempts = $2`

// Performs records the login of the account that is about to perform a taken output.
func (t Table) Performs(ctx context.Context, o Output, account string) error {
	return t.db.ExecOne(ctx, performSQL, o.UID, o.Attempts, db.Text(account))
}

const nextSQL = `SELECT min(next_at)
FROM outputs
WHERE state = 'pending'`

// Next returns when the next pending output is due; zero when there is none.
func (t Table) Next(ctx context.Context) (time.Time, error) {
	var at sql.NullInt64
	err := t.db.QueryRow(ctx, nextSQL).Scan(&at)
	if err != nil || !at.Valid {
		return time.Time{}, err
	}
	return db.Time(at.Int64), nil
}

const reportSQL = `UPDATE outputs
SET
	state = CASE WHEN revision = $3 THEN $4 ELSE 'pending' END,
	next_at = CASE WHEN revision = $3 THEN CAST($5 AS BIGINT) ELSE CAST($8 AS BIGINT) END,
	reason = $6,
	url = CASE WHEN $7 <> '' THEN $7 ELSE url END,
	updated_at = $8
WHERE uid = $1 AND state = 'doing' AND attempts = $2
RETURNING state`

// report records the result of an attempt. An output that was taken by somebody else meanwhile stays as it is,
// and one whose body changed meanwhile is pending again. It writes the events of one that failed.
func (t Table) report(ctx context.Context, o Output, state State, next time.Time, reason, url string) error {
	return t.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		var now State
		err := tx.QueryRow(ctx, reportSQL,
			o.UID, o.Attempts, o.Revision, string(state), db.Micros(next),
			db.Bounded(reason, maxReason), db.Text(url), db.Micros(t.db.Now())).Scan(&now)
		if err != nil || now != Failed {
			return db.NoRows(err)
		}

		failed := events.Output{OutputUID: o.UID, Kind: string(o.Kind), Reason: reason}
		return events.OutputFailed(ctx, tx, t.eventID, o.FactoryUID, o.AutomationUID, o.RunID, failed)
	})
}

// Done records that a taken output was performed.
func (t Table) Done(ctx context.Context, o Output, url string) error {
	return t.report(ctx, o, Done, t.db.Now(), "", url)
}

// Later puts a taken output back until a time.
func (t Table) Later(ctx context.Context, o Output, at time.Time, reason string) error {
	return t.report(ctx, o, Pending, at, reason, "")
}

// Stop ends a taken output as Failed, Refused or Staged.
func (t Table) Stop(ctx context.Context, o Output, state State, reason string) error {
	return t.report(ctx, o, state, t.db.Now(), reason, "")
}

const decideSQL = `UPDATE outputs
SET
	state = $3,
	next_at = $5,
	attempts = CASE WHEN attempts > 1 THEN 1 ELSE attempts END,
	reason = CASE WHEN $3 = 'pending' THEN '' ELSE reason END,
	decided_by = CASE WHEN $4 <> '' THEN $4 ELSE decided_by END,
	updated_at = $5
WHERE uid = $1 AND run_id = $2 AND state = $6`

// decision moves an output from one state to another on the word of a person.
type decision struct {
	from, to State
	by       string
	action   string // in the audit log
}

func (t Table) decide(ctx context.Context, run, uid string, d decision) (o Output, err error) {
	err = t.log.Write(ctx, func(ctx context.Context, tx *db.Tx) (audit.Entries, error) {
		changed, err := tx.Exec(ctx, decideSQL,
			uid, run, string(d.to), db.Bounded(d.by, 200), db.Micros(t.db.Now()), string(d.from))
		if err != nil {
			return nil, err
		}

		if o, err = read(ctx, tx.Reader, run, uid); err != nil {
			return nil, err
		}
		if changed == 0 {
			return nil, ErrConflict
		}

		return audited(d.action, o), nil
	})
	return o, err
}

// Approve lets a staged output be performed, on the word of by. ErrConflict when it is not staged.
func (t Table) Approve(ctx context.Context, run, uid, by string) (Output, error) {
	return t.decide(ctx, run, uid, decision{Staged, Pending, by, audit.OutputApprove})
}

// Reject ends a staged output. ErrConflict when it is not staged.
func (t Table) Reject(ctx context.Context, run, uid, by string) (Output, error) {
	return t.decide(ctx, run, uid, decision{Staged, Rejected, by, audit.OutputReject})
}

// Retry performs a failed output again. ErrConflict when it did not fail.
func (t Table) Retry(ctx context.Context, run, uid string) (Output, error) {
	return t.decide(ctx, run, uid, decision{Failed, Pending, "", audit.OutputRetry})
}

// Recover makes the outputs due at once that a former process of the only server had taken.
func (t Table) Recover(ctx context.Context) error {
	return t.db.Exec(ctx, `UPDATE outputs SET next_at = 0 WHERE state = 'doing'`)
}
