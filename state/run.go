package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"millwright/state/db"
	"millwright/state/flow"
	"millwright/state/notice"
	"millwright/state/outputs"
)

// RunState is where a run stands (docs/contract.md, section 4, States).
type RunState string

// The states. A run is made QUEUED; [Store.ClaimRun] makes it CLAIMED, [Store.StartRun] INPROGRESS, and
// [Store.FinishRun] ends it. [Store.RequestCancel], [Store.Followup], [Store.ReleaseRun] and
// [Store.ReapRuns] are the other ways; no row is changed but by these.
const (
	RunQueued     RunState = "QUEUED"
	RunClaimed    RunState = "CLAIMED"
	RunInProgress RunState = "INPROGRESS"
	RunSucceeded  RunState = "SUCCEEDED"
	RunFailed     RunState = "FAILED"  // the agent's work failed: the user must act
	RunError      RunState = "ERROR"   // the platform failed: a retry may help
	RunBlocked    RunState = "BLOCKED" // the agent waits for input
	RunCancelled  RunState = "CANCELLED"
	RunPending    RunState = "PENDING" // accepted in filters, never produced
)

// RunStates returns every state that a filter accepts.
func RunStates() []RunState {
	return []RunState{
		RunPending,
		RunQueued,
		RunClaimed,
		RunInProgress,
		RunSucceeded,
		RunFailed,
		RunError,
		RunBlocked,
		RunCancelled,
	}
}

// Ended reports whether an execution in this state is over. Only a follow-up moves the run on.
func (s RunState) Ended() bool {
	switch s {
	case RunSucceeded, RunFailed, RunError, RunBlocked, RunCancelled:
		return true
	}
	return false
}

// Held reports whether a worker holds the run.
func (r Run) Held() bool { return r.LeaseUntil != nil }

// Ended reports whether the run's execution is over. Only a follow-up, or an answer, moves the run on.
func (r Run) Ended() bool { return r.State.Ended() && !r.Held() }

// Run is a stored run: its request, its state, and its claim while a worker holds it.
type Run struct {
	ID, FactoryUID     string
	Title              string
	Prompt, Envelope   string
	State              RunState
	Source             string
	Creator            Creator
	ConversationID     string
	ParentRunID        string
	RootRunID          string
	AutomationUID      string
	WebhookUID         string
	DeliveryUID        string
	AgentUID           string
	TriggerURL         string
	Config             json.RawMessage // AmbientAgentConfig, sealed values masked
	Secrets            []string        // names of the team secrets that the harness gets
	Metadata           map[string]string
	Skills             json.RawMessage // what the agent said it has: a list of {name, skill_path | bundled_skill_id}
	Execution, Attempt int             // both count from 1; a follow-up to a run that ended begins a new execution
	Worker, WorkerName string          // who executes or executed it
	StatusMessage      string
	ErrorCode          string // of docs/contract.md, section 3; empty unless the run failed
	CancelRequested    *time.Time
	Created, Updated   time.Time
	Queued             time.Time
	Started, Finished  *time.Time // of the current execution
	LeaseUntil         *time.Time // when a worker that stays silent loses the run; nil unless one holds it

	Traceparent string // the trace that it belongs to, as of W3C Trace Context; may be empty

	Usage    *Usage // nil: none was told of
	WaitsFor string // why no worker may claim the queued run, until Queued or until others end; else empty
	Flow     *Flow  // nil: it waits for no others
	// CheckoutHead: it starts in the commit of its delivery also if that is a fork's.
	CheckoutHead bool
	ParkedUntil  *time.Time // when a run that waits for its budget is looked at again; nil for any other
	nextSeq      int64
	claims       int   // of the current execution
	live         bool  // the worker hands messages to the agent at once
	questions    int   // that wait for an answer
	changed      []Run // other runs that changed with it
	unreadable   error // why something of the row could not be read; that part is empty
}

// Waits describes the budget that a queued run waits for, and until when; empty for a run that waits for none.
func (r Run) Waits() string {
	if r.ParkedUntil == nil {
		return ""
	}
	return r.StatusMessage + ". The run waits until " + r.ParkedUntil.Format("2006-01-02 15:04") + " UTC"
}

// Questions returns how many questions of the agent wait for an answer.
func (r Run) Questions() int { return r.questions }

// Live reports whether the agent gets messages to the run as soon as it has done what it was asked before.
func (r Run) Live() bool { return r.live }

// LastEntry returns the number of the newest of the run's entries; 0 while it has none.
func (r Run) LastEntry() int64 { return r.nextSeq - 1 }

const runColumns = `
	id, factory_uid, title, prompt, envelope, state, source, creator_type, creator_uid, creator_name,
	conversation_id, parent_run_id, root_run_id, automation_uid, webhook_uid, delivery_uid, agent_uid,
	trigger_url, config, secrets, metadata, skills, execution, attempt, next_seq, worker, worker_name,
	status_message, error_code, cancel_requested_at, created_at, updated_at, queued_at, started_at, finished_at,
	traceparent, lease_until, usage, waits_for, flow, claims, parked_until, live, questions,
	checkout_head`

func scanRun(row db.Row) (Run, error) {
	var r Run
	var config, secrets, metadata, skills, usage, flowText string
	var created, updated, queued, parked, live, head int64
	var cancel, started, finished, lease sql.NullInt64
	err := row.Scan(
		&r.ID,
		&r.FactoryUID,
		&r.Title,
		&r.Prompt,
		&r.Envelope,
		&r.State,
		&r.Source,
		&r.Creator.Type,
		&r.Creator.UID,
		&r.Creator.DisplayName,
		&r.ConversationID,
		&r.ParentRunID,
		&r.RootRunID,
		&r.AutomationUID,
		&r.WebhookUID,
		&r.DeliveryUID,
		&r.AgentUID,
		&r.TriggerURL,
		&config,
		&secrets,
		&metadata,
		&skills,
		&r.Execution,
		&r.Attempt,
		&r.nextSeq,
		&r.Worker,
		&r.WorkerName,
		&r.StatusMessage,
		&r.ErrorCode,
		&cancel,
		&created,
		&updated,
		&queued,
		&started,
		&finished,
		&r.Traceparent,
		&lease,
		&usage,
		&r.WaitsFor,
		&flowText,
		&r.claims,
		&parked,
		&live,
		&r.questions,
		&head,
	)
	if err != nil {
		return Run{}, err
	}

	r.Config, r.Skills = json.RawMessage(config), json.RawMessage(skills)
	r.Created, r.Updated, r.Queued = db.Time(created), db.Time(updated), db.Time(queued)
	r.CancelRequested, r.Started, r.Finished = db.TimeOrNil(cancel), db.TimeOrNil(started), db.TimeOrNil(finished)
	r.LeaseUntil = db.TimeOrNil(lease)
	r.live, r.CheckoutHead = live == 1, head == 1
	r.ParkedUntil = db.TimeOrNil(sql.NullInt64{Int64: parked, Valid: parked > 0})
	r.readJSON(metadata, secrets, flowText)
	if usage != "" {
		r.Usage = &Usage{}
		if json.Unmarshal([]byte(usage), r.Usage) != nil {
			r.Usage = nil // a figure that cannot be read keeps no run from going on
		}
	}

	return r, nil
}

// readJSON takes what is stored as JSON. What cannot be read must not hide the runs beside this one: it is
// noted, and keeps this one from being executed.
func (r *Run) readJSON(metadata, secrets, flowText string) {
	var broken []error
	if flowText != "" {
		r.Flow = &Flow{}
		if err := json.Unmarshal([]byte(flowText), r.Flow); err != nil {
			broken = append(broken, fmt.Errorf("flow: %w", err))
			r.Flow = &Flow{}
		}
	}

	if r.Metadata = map[string]string{}; metadata != "{}" {
		if err := json.Unmarshal([]byte(metadata), &r.Metadata); err != nil {
			broken = append(broken, fmt.Errorf("metadata: %w", err))
		}
	}

	if r.Secrets = []string{}; secrets != "[]" {
		if err := json.Unmarshal([]byte(secrets), &r.Secrets); err != nil {
			broken = append(broken, fmt.Errorf("secrets: %w", err))
		}
	}

	if !json.Valid(r.Config) {
		broken = append(broken, errors.New("config: not JSON"))
		r.Config = json.RawMessage("{}")
	}
	if !json.Valid(r.Skills) {
		broken = append(broken, errors.New("skills: not JSON"))
		r.Skills = json.RawMessage("[]")
	}

	r.unreadable = errors.Join(broken...)
}

// Run returns one run. ErrNotFound if there is none of this ID.
func (s *Store) Run(ctx context.Context, id string) (Run, error) {
	r, err := scanRun(s.db.QueryRow(ctx, `SELECT `+runColumns+` FROM runs WHERE id = $1`, id))
	return r, noRun(id, err)
}

// outputs returns what outputs have of the run.
func (r *Run) outputs() outputs.Run {
	return outputs.Run{ID: r.ID, FactoryUID: r.FactoryUID, AutomationUID: r.AutomationUID, Execution: r.Execution}
}

func noRun(id string, err error) error {
	return orNotFound(err, "run %q", id)
}

// lockRun reads a run that the transaction is about to change.
func (s *Store) lockRun(ctx context.Context, tx *db.Tx, id string) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, `SELECT `+runColumns+` FROM runs WHERE id = $1`+s.db.ForUpdate(), id))
	return r, noRun(id, err)
}

// Attachment is a file that a run's agent gets.
type Attachment struct {
	Name     string
	MimeType string
	Body     []byte // not filled in lists
	Size     int64
}

// PayloadName is the attachment of a run that a delivery started: the delivery's body, byte for byte
// (docs/contract.md, section 9).
const PayloadName = "event-payload.json"

const attachmentsSQL = `SELECT file_name, mime_type, length(body)
FROM attachments
WHERE run_id = $1
UNION ALL
SELECT '` + PayloadName + `', 'application/json', size
FROM payloads
WHERE delivery_uid = $2
UNION ALL
SELECT 'event-payload-' || p.delivery_uid || '.json', 'application/json', p.size
FROM followups f
JOIN payloads p ON p.delivery_uid = f.delivery_uid
WHERE f.run_id = $1 AND f.delivery_uid <> '' AND f.execution >= $3
ORDER BY 1`

// Attachments lists the files of a run, without their bodies, by name; the payload of the delivery that
// started it is one of them for as long as it is kept.
func (s *Store) Attachments(ctx context.Context, r Run) ([]Attachment, error) {
	scan := func(row db.Row) (a Attachment, err error) { return a, row.Scan(&a.Name, &a.MimeType, &a.Size) }
	return db.All(ctx, s.db.Reader, scan, attachmentsSQL, r.ID, r.DeliveryUID, r.Series())
}

// AttachmentsOf is Attachments for several runs, by run ID.
func (s *Store) AttachmentsOf(ctx context.Context, runs []Run) (map[string][]Attachment, error) {
	all := map[string][]Attachment{}
	if len(runs) == 0 {
		return all, nil
	}

	var args []any
	var ids []string
	for n := 1; len(args) < len(runs); n *= 2 { // few texts, that can be kept prepared
		for len(args) < n {
			args = append(args, runs[min(len(args), len(runs)-1)].ID)
			ids = append(ids, fmt.Sprintf("$%d", len(args)))
		}
	}

	in := strings.Join(ids, ", ")
	query := `SELECT run_id, file_name, mime_type, length(body)
FROM attachments
WHERE run_id IN (` + in + `)
UNION ALL
SELECT r.id, '` + PayloadName + `', 'application/json', p.size
FROM runs r
JOIN payloads p ON p.delivery_uid = r.delivery_uid
WHERE r.id IN (` + in + `)
UNION ALL
SELECT r.id, 'event-payload-' || p.delivery_uid || '.json', 'application/json', p.size
FROM runs r
JOIN followups f ON f.run_id = r.id AND f.execution = r.execution AND f.delivery_uid <> ''
JOIN payloads p ON p.delivery_uid = f.delivery_uid
WHERE r.id IN (` + in + `)
ORDER BY 1, 2`
	err := db.Each(ctx, s.db.Built(), func(row db.Row) error {
		var id string
		var a Attachment
		err := row.Scan(&id, &a.Name, &a.MimeType, &a.Size)
		all[id] = append(all[id], a)
		return err
	}, query, args...)

	return all, err
}

// PayloadFile returns the name of the attachment that is the payload of a later delivery of a run's conversation.
func PayloadFile(deliveryUID string) string { return "event-payload-" + deliveryUID + ".json" }

// laterDelivery returns the delivery whose payload has the name of a file.
func laterDelivery(name string) (uid string, ok bool) {
	uid, ok = strings.CutPrefix(name, "event-payload-")
	uid, json := strings.CutSuffix(uid, ".json")
	return uid, ok && json && ValidID(PrefixDelivery, uid)
}

// Series returns the execution that the present one repeats; itself when it repeats none.
func (r Run) Series() int {
	if r.Flow != nil && r.Flow.Retry != nil && r.Flow.Retry.Tried > 0 {
		return r.Flow.Retry.First
	}
	return r.Execution
}

// StartsAt is when a run is ready that waits for a time; nil for any other.
func (r Run) StartsAt() *time.Time {
	if r.ParkedUntil != nil {
		return r.ParkedUntil
	}
	if r.WaitsFor == "" || r.WaitsFor == flow.WaitsConcurrency {
		return nil
	}
	return &r.Queued
}

// SupersededBy is the run that this one gave way to; empty for most.
func (r Run) SupersededBy() string {
	if r.Flow == nil {
		return ""
	}
	return r.Flow.SupersededBy
}

// Creator is the creator or executor of a run.
type Creator struct {
	Type        string `json:"type"` // user or service_account
	UID         string `json:"uid"`
	DisplayName string `json:"display_name"`
}

// moved tells of a run that ended or returned to the queue, or is to end, and of those that changed with it.
func (s *Store) moved(ctx context.Context, r Run) {
	s.Notify(notice.Run, r.ID)
	switch {
	case r.State == RunQueued:
		s.Publish(notice.Notice{Topic: notice.Queued, ID: r.ID})
	case r.Held() && r.CancelRequested != nil:
		s.Notify(notice.Cancel, r.Worker+" "+r.ID)
	}

	s.movedAll(ctx, r.changed)
}

func (s *Store) movedAll(ctx context.Context, runs []Run) {
	for _, r := range runs {
		s.moved(ctx, r)
	}
}

// Claim is a worker's hold on one attempt of a run. Every change that the worker makes carries it, and is
// refused with ErrLost when the run is no longer held by it.
type Claim struct {
	RunID  string
	Worker string // UID of the worker that the claim is bound to
	Token  string // 128 random bits; only a hash is stored
}

func (c Claim) hash() []byte { return HashToken(c.Token) }

// held is the condition that a claim still holds its run, for parameters $1 to $3 of a statement.
const held = ` id = $1 AND worker = $2 AND claim_hash = $3 `

// clockSet is by how much a clock went back at least when a run waits that changed later than now.
const clockSet = time.Minute

// Claims returns how often workers claimed the current execution of the run.
func (r Run) Claims() int { return r.claims }

// due reports whether the run's wait for a time is over. So it is when the clock was set back: the wait would last
// until it is again as late as it was.
func (r Run) due(now time.Time) bool {
	return !r.Queued.After(now) || r.Updated.After(now.Add(clockSet))
}

// codeBudget is the error code of runs that a budget ended.
const codeBudget = "budget_exceeded"

// lockHeld reads a run that is in progress under the claim.
func (s *Store) lockHeld(ctx context.Context, tx *db.Tx, c Claim) (Run, error) {
	r, err := scanRun(
		tx.QueryRow(
			ctx,
			`SELECT `+runColumns+` FROM runs WHERE`+held+`AND state <> 'CLAIMED'`+s.db.ForUpdate(),
			c.RunID,
			c.Worker,
			c.hash(),
		),
	)
	if errors.Is(err, sql.ErrNoRows) {
		return Run{}, ErrLost
	}

	return r, err
}
