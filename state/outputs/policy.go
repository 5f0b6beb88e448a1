package outputs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"millwright/schema"
	"millwright/state/db"
)

// Policy is what the definition said of the outputs of an execution when it started.
type Policy struct {
	Automation string         `json:"automation"` // its name
	Outputs    schema.Outputs `json:"outputs"`

	// Target is what the delivery is about, as package outbox/request has it; nil: it is not known yet.
	Target json.RawMessage `json:"-"`
}

// StatusBody is the body of a status.
type StatusBody struct {
	Context     string `json:"context"`
	State       string `json:"state"` // pending, success, failure or error
	Description string `json:"description"`
}

const appliedSQL = `SELECT spec
FROM resources
WHERE uid = $1 AND kind = 'automation' AND deleted_at IS NULL AND spec LIKE '%"outputs":{%'`

// applied returns what the applied definition says; nil when nothing may leave.
func applied(ctx context.Context, r db.Reader, automation string) (*Policy, error) {
	if automation == "" {
		return nil, nil
	}

	var spec string
	err := r.QueryRow(ctx, appliedSQL, automation).Scan(&spec)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	var a struct {
		Name    string
		Outputs *schema.Outputs
	}
	if json.Unmarshal([]byte(spec), &a) != nil || a.Outputs == nil {
		return nil, nil
	}

	return &Policy{Automation: a.Name, Outputs: *a.Outputs}, nil
}

const keepPolicySQL = `INSERT INTO output_policies (run_id, factory_uid, execution, policy)
VALUES ($1, $2, $3, $4)
ON CONFLICT (run_id) DO UPDATE
SET execution = excluded.execution, policy = excluded.policy, target = ''`

// Begin notes what the definition allows to leave an execution that is claimed, and makes its status pending.
// uid is the UID of the status, if it has none yet.
func Begin(ctx context.Context, tx *db.Tx, run Run, uid string) error {
	p, err := applied(ctx, tx.Reader, run.AutomationUID)
	if err != nil {
		return err
	}
	if p == nil {
		if run.AutomationUID == "" || run.Execution == 1 {
			return nil
		}
		_, err = tx.Exec(ctx, `DELETE FROM output_policies WHERE run_id = $1`, run.ID)
		return err
	}

	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, keepPolicySQL, run.ID, run.FactoryUID, run.Execution, string(text)); err != nil {
		return err
	}
	if p.Outputs.Status == nil {
		return nil
	}

	body, err := json.Marshal(StatusBody{
		Context:     p.Outputs.Status.ContextOf(p.Automation),
		State:       "pending",
		Description: "The agent is at work",
	})
	if err != nil {
		return err
	}

	has, err := setStatus(ctx, tx, run, body)
	if err != nil || has {
		return err
	}

	return Add(ctx, tx, run, []Output{{UID: uid, Kind: Status, State: Pending, Body: body}})
}

const pendingStatusSQL = `SELECT body
FROM outputs
WHERE run_id = $1 AND kind = 'status'`

// results are the states of a status by the state that a run ended in, and the words for people.
var results = map[string]StatusBody{
	"SUCCEEDED": {State: "success", Description: "The agent has finished"},
	"FAILED":    {State: "failure", Description: "The agent did not succeed"},
	"BLOCKED":   {State: "failure", Description: "The agent waits for an answer"},
	"ERROR":     {State: "error", Description: "The run ended with an error"},
	"CANCELLED": {State: "error", Description: "The run was cancelled"},
}

// End sets the status of a run that ended, if it has one.
func End(ctx context.Context, tx *db.Tx, run Run, state string) error {
	var text string
	err := tx.QueryRow(ctx, pendingStatusSQL, run.ID).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}

	var had StatusBody
	if err := json.Unmarshal([]byte(text), &had); err != nil {
		return err
	}

	result := results[state]
	result.Context = had.Context
	body, err := json.Marshal(result)
	if err != nil {
		return err
	}

	_, err = setStatus(ctx, tx, run, body)
	return err
}

// Policy returns what the definition allowed when an execution of the run started; nil when nothing may leave.
func (t Table) Policy(ctx context.Context, run string) (*Policy, error) {
	var text, target string
	err := t.db.QueryRow(ctx, `
		SELECT policy, target
		FROM output_policies
		WHERE run_id = $1`, run).Scan(&text, &target)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	p := &Policy{}
	if target != "" {
		p.Target = json.RawMessage(target)
	}
	return p, json.Unmarshal([]byte(text), p)
}

// SetTarget notes what the delivery of a run is about.
func (t Table) SetTarget(ctx context.Context, run string, target json.RawMessage) error {
	return t.db.Exec(ctx, `UPDATE output_policies SET target = $2 WHERE run_id = $1`, run, string(target))
}

// Applied returns what the definition of an automation allows now; nil when nothing may leave.
func (t Table) Applied(ctx context.Context, automation string) (*Policy, error) {
	return applied(ctx, t.db.Reader, automation)
}
