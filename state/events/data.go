package events

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"millwright/schema"
	"millwright/state/db"
)

// Named names a factory, or a resource of one.
type Named struct {
	UID  string `json:"uid"`
	Name string `json:"name"`
}

// Data is what an event tells. Only the members of its type are set.
type Data struct {
	Factory      Named   `json:"factory"`
	Run          *Run    `json:"run,omitempty"`
	Output       *Output `json:"output,omitempty"`
	Apply        *Apply  `json:"apply,omitempty"`
	Budget       *Budget `json:"budget,omitempty"`
	Notification string  `json:"notification,omitempty"` // of a test
}

// Run is the run that an event is about. It has no prompt and nothing of the conversation.
type Run struct {
	RunID          string          `json:"run_id"`
	State          string          `json:"state"`
	Title          string          `json:"title,omitempty"` // only one that was given
	Automation     *Named          `json:"automation,omitempty"`
	AgentUID       string          `json:"agent_uid,omitempty"`
	Source         string          `json:"source,omitempty"`
	ConversationID string          `json:"conversation_id,omitempty"`
	ParentRunID    string          `json:"parent_run_id,omitempty"`
	WebhookUID     string          `json:"webhook_uid,omitempty"`
	DeliveryUID    string          `json:"delivery_uid,omitempty"`
	Execution      int             `json:"execution"`
	ErrorCode      string          `json:"error_code,omitempty"`
	CreatedAt      *time.Time      `json:"created_at,omitempty"`
	FinishedAt     *time.Time      `json:"finished_at,omitempty"`
	Usage          json.RawMessage `json:"usage,omitempty"`
	Artifacts      []Artifact      `json:"artifacts,omitempty"`
}

// Artifact is a file or link that a run left.
type Artifact struct {
	UID        string `json:"artifact_uid"`
	Type       string `json:"artifact_type"`
	Repository string `json:"repository,omitempty"`
	Path       string `json:"path,omitempty"` // of a file; of a link, its URL
	Size       int64  `json:"size,omitempty"`
}

// Output is an output that failed.
type Output struct {
	OutputUID string `json:"output_uid"`
	Kind      string `json:"kind"`
	Reason    string `json:"reason"`
}

// Apply is an attempt to apply a definition.
type Apply struct {
	Outcome  string          `json:"outcome"`
	Revision string          `json:"revision"`
	Author   string          `json:"author,omitempty"`
	Subject  string          `json:"subject,omitempty"`
	Counts   json.RawMessage `json:"counts,omitempty"`
	Message  string          `json:"message,omitempty"`
	Errors   int             `json:"errors"`
	Problems []Problem       `json:"problems,omitempty"` // the first errors
}

// Problem is an error of a definition.
type Problem struct {
	Code    string `json:"code"`
	Path    string `json:"path"`
	Line    int    `json:"line"`
	Message string `json:"message"`
}

// Budget is a budget that is used up.
type Budget struct {
	Limit string `json:"limit"`           // key and value, as the file has them; empty for a budget of one run
	Place string `json:"place,omitempty"` // where it is written
	Day   string `json:"day,omitempty"`   // in UTC
	Text  string `json:"text"`            // for people
}

const (
	maxArtifacts = 50
	maxProblems  = 20
	maxText      = 500       // characters of a text
	maxData      = 128 << 10 // bytes of an event
)

// text returns the data as it is stored.
func (d Data) text() (string, error) {
	text, err := json.Marshal(d)
	if err == nil && len(text) > maxData && d.Run != nil {
		run := *d.Run
		run.Artifacts, run.Usage = nil, nil
		d.Run = &run
		text, err = json.Marshal(d)
	}
	return db.Text(string(text)), err
}

// NewID returns a fresh UID of an event.
type NewID func() string

// emit writes an event for each notification of a factory that asks for it. fill adds what the data has beside
// the factory; it is called once, and only if somebody asks.
func emit(
	ctx context.Context,
	tx *db.Tx,
	id NewID,
	factoryUID, kind, automation, state string,
	at time.Time,
	fill func(*Data) error,
) error {
	all, err := notifications(ctx, tx.Reader, factoryUID)
	if err != nil || len(all) == 0 {
		return err
	}

	d := Data{Factory: Named{factoryUID, all[0].factory}}
	name, ofRun := "", !strings.HasPrefix(kind, "factory.")
	if ofRun && automation != "" {
		const query = `SELECT name FROM resources WHERE uid = $1`
		if err := db.NoRows(tx.QueryRow(ctx, query, automation).Scan(&name)); err != nil {
			return err
		}
	}

	filled := false
	for _, n := range all {
		if !n.spec.Wants(kind, name, state, ofRun) {
			continue
		}

		if !filled {
			filled = true
			if err := fill(&d); err != nil {
				return err
			}
			if d.Run != nil && automation != "" {
				d.Run.Automation = &Named{automation, name}
			}
		}
		if err := insert(ctx, tx, id(), factoryUID, kind, n, d, at); err != nil {
			return err
		}
	}

	return nil
}

// runEvents are the events of the states that runs end in.
var runEvents = map[string]string{
	"SUCCEEDED": schema.EventRunSucceeded,
	"FAILED":    schema.EventRunFailed,
	"ERROR":     schema.EventRunError,
	"BLOCKED":   schema.EventRunBlocked,
	"CANCELLED": schema.EventRunCancelled,
}

const artifactsSQL = `SELECT uid, type, repository, path, size
FROM run_artifacts
WHERE run_id = $1 AND state = 'current'
ORDER BY execution, attempt, number
LIMIT $2`

// RunEnded writes the events of a run that ended in its state. automation is the UID of its automation, over
// describes the budget that ended it, if one did.
func RunEnded(
	ctx context.Context, tx *db.Tx, id NewID, factoryUID, automation string, r Run, over string, at time.Time,
) error {
	fill := func(d *Data) (err error) {
		r.Title = db.Bounded(r.Title, schema.MaxTitle)
		r.Artifacts, err = db.All(ctx, tx.Reader, func(row db.Row) (a Artifact, err error) {
			err = row.Scan(&a.UID, &a.Type, &a.Repository, &a.Path, &a.Size)
			a.Path = db.Bounded(a.Path, maxText)
			return a, err
		}, artifactsSQL, r.RunID, maxArtifacts)
		d.Run = &r
		return err
	}
	if err := emit(ctx, tx, id, factoryUID, runEvents[r.State], automation, r.State, at, fill); err != nil {
		return err
	}
	if over == "" {
		return nil
	}

	return emit(ctx, tx, id, factoryUID, schema.EventBudgetExceeded, automation, r.State, at, func(d *Data) error {
		d.Budget = &Budget{Text: db.Bounded(over, maxText)}
		return fill(d)
	})
}

const outputRunSQL = `SELECT state, source, conversation_id, agent_uid, execution
FROM runs
WHERE id = $1`

// OutputFailed writes the events of an output of a run that failed.
func OutputFailed(
	ctx context.Context, tx *db.Tx, id NewID, factoryUID, automation, run string, o Output,
) error {
	return emit(ctx, tx, id, factoryUID, schema.EventOutputFailed, automation, "", time.Now(), func(d *Data) error {
		o.Reason = db.Bounded(o.Reason, maxText)
		d.Output, d.Run = &o, &Run{RunID: run}
		return db.NoRows(tx.QueryRow(ctx, outputRunSQL, run).Scan(
			&d.Run.State, &d.Run.Source, &d.Run.ConversationID, &d.Run.AgentUID, &d.Run.Execution))
	})
}

// Applied writes the events of an attempt that applied a definition, or that was refused.
func Applied(
	ctx context.Context, tx *db.Tx, id NewID, factoryUID string, a Apply, problems []schema.Problem, at time.Time,
) error {
	kind := schema.EventFactoryApplied
	if a.Outcome == "refused" {
		kind = schema.EventFactoryRefused
	}

	return emit(ctx, tx, id, factoryUID, kind, "", "", at, func(d *Data) error {
		a.Author, a.Subject = db.Bounded(a.Author, maxText), db.Bounded(a.Subject, maxText)
		a.Message = db.Bounded(a.Message, maxText)
		for _, p := range problems {
			if p.Severity != schema.SeverityError {
				continue
			}
			if a.Errors++; a.Errors <= maxProblems {
				a.Problems = append(a.Problems, Problem{p.Code, p.Path, p.Line, db.Bounded(p.Message, maxText)})
			}
		}
		d.Apply = &a
		return nil
	})
}

const (
	tellSQL = `UPDATE usage_days
		SET told = 1
		WHERE scope = $1 AND day = $2 AND told = 0`

	attachedSQL = `SELECT uid
		FROM factories
		WHERE detached = 0
		ORDER BY uid`
)

// BudgetSpent writes the events of a budget by the day that is used up, once for a scope and a day. With an empty
// scope, the budget is that of all factories. day is its number.
func BudgetSpent(
	ctx context.Context, tx *db.Tx, id NewID, scope, factoryUID string, day int64, b Budget, at time.Time,
) error {
	told, err := tx.Exec(ctx, tellSQL, scope, day)
	if err != nil || told == 0 {
		return err
	}

	factories := []string{factoryUID}
	if scope == "" {
		if factories, err = db.Strings(ctx, tx.Reader, attachedSQL); err != nil {
			return err
		}
	}

	b.Day = at.UTC().Format(time.DateOnly)
	for _, uid := range factories {
		err := emit(ctx, tx, id, uid, schema.EventBudgetExceeded, "", "", at, func(d *Data) error {
			d.Budget = &b
			return nil
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// insert writes an event for one notification.
func insert(ctx context.Context, tx *db.Tx, uid, factoryUID, kind string, n asked, d Data, at time.Time) error {
	data, err := d.text()
	if err != nil {
		return err
	}

	var waiting int
	if err := tx.QueryRow(ctx, waitingSQL, n.uid, MaxWaiting).Scan(&waiting); err != nil {
		return err
	}
	state, reason := Pending, ""
	if waiting >= MaxWaiting {
		state, reason = Dead, "as many events waited for this notification as may"
	}

	run := ""
	if d.Run != nil {
		run = d.Run.RunID
	}
	_, err = tx.Exec(ctx, insertSQL, uid, factoryUID, n.uid, n.spec.Name, kind, run, string(state), data,
		db.Micros(at), db.Micros(at.Add(GiveUp)), reason)
	return err
}

// Ask writes the test event of a notification. ErrNotFound when the factory has none of this name.
func (t Table) Ask(ctx context.Context, uid, factoryUID, name string) (Event, error) {
	err := t.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		all, err := notifications(ctx, tx.Reader, factoryUID)
		if err != nil {
			return err
		}

		for _, n := range all {
			if n.spec.Name != name {
				continue
			}
			if !n.spec.Enabled {
				return ErrConflict
			}
			d := Data{Factory: Named{factoryUID, n.factory}, Notification: name}
			return insert(ctx, tx, uid, factoryUID, Test, n, d, time.Now())
		}
		return ErrNotFound
	})
	if err != nil {
		return Event{}, err
	}

	return t.Event(ctx, factoryUID, uid)
}
