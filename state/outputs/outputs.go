// Package outputs stores what the server performs for runs at a forge: one row an output. The rows are the
// outbox: they are written in the transactions that begin and end runs, and performed later.
package outputs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"millwright/state/audit"
	"millwright/state/db"
	"millwright/state/events"
)

// Kind is the kind of an output.
type Kind string

// The kinds.
const (
	PullRequest Kind = "pull_request"
	Comment     Kind = "comment"
	Label       Kind = "label"
	Review      Kind = "review"
	Status      Kind = "status"
	Reference   Kind = "reference" // a link for people: nothing is performed
)

// State is where an output stands.
type State string

// The states. Only Pending ones are performed. Done, Rejected and Refused ones never change again; a status
// that is done is pending again when the run goes on.
const (
	Pending  State = "pending"
	Staged   State = "staged" // a person has to agree
	Doing    State = "doing"  // a server performs it, until its lease ends
	Done     State = "done"
	Failed   State = "failed"   // for good, unless a person tries again
	Rejected State = "rejected" // a person did not agree
	Refused  State = "refused"  // it was not allowed
)

// ErrNotFound and ErrConflict say that an output does not exist, and that its state does not allow a change.
var (
	ErrNotFound = errors.New("no such output")
	ErrConflict = errors.New("the output is in another state")
)

// Output is a stored output of a run: what the server is to perform at a forge, and how far it is.
type Output struct {
	UID, RunID, FactoryUID, AutomationUID string
	Execution                             int
	Kind                                  Kind
	State                                 State
	Body                                  json.RawMessage // what to perform, as package outbox/request writes it
	Revision                              int64           // counts the changes of Body
	Attempts                              int
	NextAt                                time.Time // when it is due; of Doing ones, when the lease ends
	Reason                                string    // why it is staged, failed, rejected or refused
	URL                                   string    // of what was made
	DecidedBy                             string    // who agreed or did not; empty: nobody was asked
	Account                               string    // the login that performs it; empty: nobody has yet
	Created, Updated                      time.Time
}

// Run is what outputs have of their run.
type Run struct {
	ID, FactoryUID, AutomationUID string
	Execution                     int
}

// Table reads and writes the outputs that a database stores.
type Table struct {
	db      *db.DB
	log     *audit.Log
	eventID events.NewID
}

// New returns the outputs in a database. The decisions of people are rows of log. eventID makes the UIDs of events.
func New(d *db.DB, log *audit.Log, eventID events.NewID) Table { return Table{d, log, eventID} }

// audited returns the row of the audit log about a decision.
func audited(action string, o Output) audit.Entries {
	return audit.One(audit.Entry{
		FactoryUID: o.FactoryUID,
		Action:     action,
		Subject:    o.UID,
		Detail:     string(o.Kind) + " of run " + o.RunID,
	})
}

const columns = `
	uid, run_id, factory_uid, automation_uid, execution, kind, state, body, revision, attempts, next_at,
	reason, url, decided_by, account, created_at, updated_at`

func scan(row db.Row) (Output, error) {
	var o Output
	var body string
	var next, created, updated int64
	err := row.Scan(
		&o.UID, &o.RunID, &o.FactoryUID, &o.AutomationUID, &o.Execution, &o.Kind, &o.State, &body,
		&o.Revision, &o.Attempts, &next, &o.Reason, &o.URL, &o.DecidedBy, &o.Account,
		&created, &updated,
	)
	o.Body = json.RawMessage(body)
	o.NextAt, o.Created, o.Updated = db.Time(next), db.Time(created), db.Time(updated)
	return o, err
}

const insertSQL = `INSERT INTO outputs (
	uid, run_id, factory_uid, automation_uid, execution, kind, state, body, next_at, reason, url, decided_by,
	created_at, updated_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13)`

const maxReason = 1000 // characters

// Add inserts outputs of a run in the transaction that ends its execution.
func Add(ctx context.Context, tx *db.Tx, run Run, all []Output) error {
	now := db.Micros(time.Now())
	for _, o := range all {
		_, err := tx.Exec(ctx, insertSQL,
			o.UID, run.ID, run.FactoryUID, run.AutomationUID, run.Execution, string(o.Kind), string(o.State),
			db.Text(string(o.Body)), now, db.Bounded(o.Reason, maxReason), db.Text(o.URL),
			db.Bounded(o.DecidedBy, 200), now)
		if err != nil {
			return err
		}
	}

	return nil
}

// Withhold refuses the outputs of an execution that did not succeed after all.
func Withhold(all []Output, ended string) {
	for i := range all {
		if o := &all[i]; o.State == Pending || o.State == Staged {
			o.State, o.Reason = Refused, "the run ended as "+ended+": only runs that succeed have outputs"
		}
	}
}

const statusSQL = `UPDATE outputs
SET
	body = $2,
	execution = $3,
	revision = revision + 1,
	state = CASE WHEN state = 'doing' THEN 'doing' ELSE 'pending' END,
	attempts = CASE WHEN state = 'doing' THEN attempts ELSE 0 END,
	next_at = CASE WHEN state = 'doing' THEN next_at ELSE $4 END,
	reason = '',
	decided_by = '',
	updated_at = $4
WHERE run_id = $1 AND kind = 'status' AND state <> 'rejected'`

// setStatus makes body the status that the run is to have, and reports whether it has a row for it. A run has
// one such row, so that no older status is set after a newer one. Who agreed to the one before did not to
// this one.
func setStatus(ctx context.Context, tx *db.Tx, run Run, body json.RawMessage) (bool, error) {
	changed, err := tx.Exec(ctx, statusSQL, run.ID, string(body), run.Execution, db.Micros(time.Now()))
	return changed > 0, err
}

const samePullSQL = `SELECT count(*)
FROM outputs
WHERE run_id = $1 AND kind = 'pull_request' AND state NOT IN ('refused', 'rejected') AND body = $2`

// AddOnce inserts a pull request of a run. ErrConflict when the run has one with the same body that was not
// refused or rejected.
func (t Table) AddOnce(ctx context.Context, run Run, o Output) (Output, error) {
	o.RunID, o.FactoryUID = run.ID, run.FactoryUID
	err := t.log.Write(ctx, func(ctx context.Context, tx *db.Tx) (audit.Entries, error) {
		var had int
		lock := `SELECT 1 FROM runs WHERE id = $1` + t.db.ForUpdate()
		if err := tx.QueryRow(ctx, lock, run.ID).Scan(&had); err != nil {
			return nil, err
		}
		if err := tx.QueryRow(ctx, samePullSQL, run.ID, string(o.Body)).Scan(&had); err != nil {
			return nil, err
		}
		if had > 0 {
			return nil, ErrConflict
		}

		return audited(audit.OutputOpen, o), Add(ctx, tx, run, []Output{o})
	})
	if err != nil {
		return o, err
	}

	return t.Output(ctx, run.ID, o.UID)
}

// Of returns the outputs of runs, oldest first.
func (t Table) Of(ctx context.Context, runs ...string) ([]Output, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	if len(runs) == 1 {
		return db.All(ctx, t.db.Reader, scan,
			`SELECT `+columns+` FROM outputs WHERE run_id = $1 ORDER BY uid`, runs[0])
	}

	marks, args := db.Placeholders(runs)
	return db.All(ctx, t.db.Built(), scan,
		`SELECT `+columns+` FROM outputs WHERE run_id IN (`+marks+`) ORDER BY uid`, args...)
}

// Output returns an output of a run.
func (t Table) Output(ctx context.Context, run, uid string) (Output, error) {
	return read(ctx, t.db.Reader, run, uid)
}

const outputSQL = `SELECT ` + columns + `
FROM outputs
WHERE uid = $1 AND run_id = $2`

func read(ctx context.Context, r db.Reader, run, uid string) (Output, error) {
	o, err := scan(r.QueryRow(ctx, outputSQL, uid, run))
	if errors.Is(err, sql.ErrNoRows) {
		return o, ErrNotFound
	}
	return o, err
}

const besideSQL = `SELECT ` + columns + `
FROM outputs
WHERE run_id = (
	SELECT run_id
	FROM outputs
	WHERE uid = $1
)
ORDER BY uid`

// Beside returns the outputs of the run of an output, oldest first.
func (t Table) Beside(ctx context.Context, uid string) ([]Output, error) {
	return db.All(ctx, t.db.Reader, scan, besideSQL, uid)
}

const recentSQL = `SELECT ` + columns + `
FROM outputs
WHERE state IN ('pending', 'doing', 'done', 'failed')
	AND next_at >= $1
	AND account <> ''
ORDER BY next_at DESC, uid DESC
LIMIT 1000`

// Recent returns the newest 1,000 outputs that an account performs, or performed at most a time ago.
func (t Table) Recent(ctx context.Context, ago time.Duration) ([]Output, error) {
	return db.All(ctx, t.db.Reader, scan, recentSQL, db.Micros(t.db.Now().Add(-ago)))
}

const attentionSQL = `SELECT ` + columns + `
FROM outputs
WHERE state = $1
ORDER BY next_at DESC, uid DESC
LIMIT $2`

// Attention returns the outputs that wait for a person, the newest first: at most limit that failed, and as
// many that are staged.
func (t Table) Attention(ctx context.Context, limit int) (failed, staged []Output, err error) {
	if failed, err = db.All(ctx, t.db.Reader, scan, attentionSQL, string(Failed), limit); err != nil {
		return nil, nil, err
	}
	staged, err = db.All(ctx, t.db.Reader, scan, attentionSQL, string(Staged), limit)
	return failed, staged, err
}

// Counts returns how many outputs are pending, doing, staged and failed.
func (t Table) Counts(ctx context.Context) (map[State]int, error) {
	counts := map[State]int{Pending: 0, Doing: 0, Staged: 0, Failed: 0}
	err := db.Each(ctx, t.db.Reader, func(row db.Row) error {
		var state State
		var n int
		err := row.Scan(&state, &n)
		counts[state] = n
		return err
	}, `SELECT state, count(*)
		FROM outputs
		WHERE state IN ('pending', 'doing', 'staged', 'failed')
		GROUP BY state`)
	return counts, err
}
