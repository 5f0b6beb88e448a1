package state

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"millwright/state/audit"
	"millwright/state/batch"
	"millwright/state/db"
	"millwright/state/flow"
	"millwright/state/notice"
)

// Accept stores a delivery, its identity, its payload and its runs in one durable transaction, which it
// shares with other deliveries that wait at the same time. When it returns nil, all of that is on disk.
// A delivery whose identity was accepted before is logged as a duplicate and starts nothing.
//
// ErrMoved: the factory's definition changed since the delivery was judged; nothing was stored.
// ErrUnavailable: the database cannot be written, or too much is waiting, or ctx ended first. Then the
// delivery may have been stored after all, which its identity will show when it is sent again.
func (s *Store) Accept(ctx context.Context, a Acceptance) (Accepted, error) {
	a.stored = db.Compress(a.Body)
	if a.ReplayOf != "" {
		a.audited = audit.Entry{
			FactoryUID: a.FactoryUID,
			Action:     audit.DeliveryReplay,
			Subject:    a.ReplayOf,
			Detail:     "as " + a.UID,
		}.Complete(ctx)
	}

	o := s.submit(ctx, &job{accept: &a})
	if o.err == nil && a.ReplayOf != "" {
		s.audit.Tell(a.audited)
	}

	return o.Accepted, o.err
}

// submit hands j to the group commit, and waits for its answer.
func (s *Store) submit(ctx context.Context, j *job) outcome {
	if err := s.accept.Submit(ctx, j); err != nil {
		return outcome{err: err}
	}
	return j.outcome
}

// acceptDeadline bounds how long the transaction of a batch may take.
const acceptDeadline = 10 * time.Second

func notices(jobs []*job, outcomes []outcome) []notice.Notice {
	all := make([]notice.Notice, 0, 2*len(jobs))
	for i, j := range jobs {
		switch {
		case outcomes[i].err != nil:
			continue
		case j.entry != nil:
			all = append(all, notice.Notice{Topic: notice.Delivery, ID: j.entry.WebhookUID})
			continue
		case !outcomes[i].Duplicate:
			for _, r := range outcomes[i].Started(j.accept.Runs) {
				all = append(all, notice.Notice{Topic: notice.Queued, ID: r.ID})
			}
		}

		all = append(all, notice.Notice{Topic: notice.Delivery, ID: j.accept.WebhookUID})
	}

	return all
}

// followed returns the webhooks of a batch that somebody may follow on another replica.
func followed(jobs []*job) (webhookUIDs []string) {
	for _, j := range jobs {
		if j.accept != nil && j.accept.Headers != nil {
			webhookUIDs = append(webhookUIDs, j.accept.WebhookUID)
		}
	}
	return webhookUIDs
}

// The values of IdentitySource, in order of preference.
const (
	IdentityHeader        IdentitySource = "header"         // the header of the webhook's deliveryIdHeader
	IdentityProvider      IdentitySource = "provider"       // the provider's own delivery header
	IdentityServiceHeader IdentitySource = "service_header" // X-Service-Delivery-Id
	IdentityBodyHash      IdentitySource = "body_hash"      // SHA-256 of the body
)

// IdentityOf returns the identity that value gives in the tier source. The value is foreign text.
func IdentityOf(source IdentitySource, value string) Identity {
	h := sha256.New()
	h.Write([]byte(source))
	h.Write([]byte{0})
	h.Write([]byte(value))
	id := Identity{Source: source, Preview: Preview(value)}
	copy(id.Hash[:], h.Sum(nil))
	return id
}

// previewLength is how much of a foreign string is kept for people to read, in characters.
const previewLength = 128

// Preview returns foreign text as printable ASCII, escaped as in a Go string, at most 128 characters
// of it; what was cut shows as "...".
func Preview(text string) string {
	if len(text) <= previewLength && printable(text) {
		return text
	}

	var b strings.Builder
	for rest := text; rest != ""; {
		_, size := utf8.DecodeRuneInString(rest)
		quoted := strconv.QuoteToASCII(rest[:size])
		piece := quoted[1 : len(quoted)-1]
		if b.Len()+len(piece) > previewLength-3 {
			b.WriteString("...")
			break
		}

		b.WriteString(piece)
		rest = rest[size:]
	}

	return b.String()
}

// printable reports whether text needs no escaping.
func printable(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// stale is the UID below which a delivery's identity does not count any more; "" when it does for ever.
func (a *Acceptance) stale() string {
	if a.Window == 0 {
		return ""
	}
	return DeliveryUIDAt(a.Received.Add(-a.Window))
}

// Acceptance is a delivery that was judged good, with the runs that it starts.
type Acceptance struct {
	UID        string // the delivery's, from NewID(PrefixDelivery)
	FactoryUID string
	Generation int64 // of the factory, as it was judged by
	WebhookID  int64
	WebhookUID string
	Identity   Identity // of the zero Identity nothing is stored
	// Window is how long Identity counts after the delivery that had it first; 0: for ever.
	Window time.Duration
	// Digest stands for the signed bytes where the identity is not among them; else nil. A delivery with
	// the digest of an earlier one is accepted all the same, with a note in its row.
	Digest   []byte
	Sender   string
	Body     []byte // must not change until Accept returns, nor afterwards
	Headers  []byte // to be kept with it, as Request returns them; nil for none
	Shown    []byte // a few harmless ones for its row, as lines "Name: value" that end in CR LF
	Status   int    // of the answer to the sender
	Reason   string
	Event    string // preview
	ReplayOf string
	Received time.Time
	Runs     []NewRun // QUEUED by this delivery
	// Undecided has the UIDs of the automations that an answer of the forge decides on: see Decide.
	Undecided []string

	stored  []byte      // Body, in the form in which it is stored
	audited audit.Entry // of a replay
}

// Accepted is the result of an Acceptance.
type Accepted struct {
	// DeliveryUID is the delivery's UID or, of a duplicate, that of the delivery accepted first.
	DeliveryUID string
	Duplicate   bool
	// Flow has the automations that the delivery started no run of its own for, or one that waits for a time.
	Flow []FlowDecision
}

// Started returns those of the runs that the delivery started, which are Acceptance.Runs.
func (a Accepted) Started(runs []NewRun) []NewRun {
	if len(a.Flow) == 0 {
		return runs
	}
	return slices.DeleteFunc(slices.Clone(runs), func(r NewRun) bool {
		return slices.ContainsFunc(a.Flow, func(d FlowDecision) bool {
			return d.AutomationUID == r.AutomationUID && d.Merged(r.ID)
		})
	})
}

// job is a delivery on its way to the database: accepted, or to be logged only.
type job struct {
	batch.Ticket

	accept  *Acceptance
	entry   *Rejection // set instead of accept
	outcome outcome
}

// answer hands the outcome of a job to the caller that waits for it.
func (j *job) answer(o outcome) {
	j.outcome = o
	j.Done()
}

type outcome struct {
	Accepted
	changed []Run // earlier runs
	err     error
}

func (j *job) webhook() int64 {
	if j.accept != nil {
		return j.accept.WebhookID
	}
	return j.entry.WebhookID
}

// Size returns the bytes of the body.
func (j *job) Size() int {
	if j.accept != nil {
		return len(j.accept.stored)
	}
	return 0
}

// order sorts a batch, so that transactions of several writers never wait for one another in a circle.
func (j *job) order(o *job) int {
	if c := cmp.Compare(j.webhook(), o.webhook()); c != 0 {
		return c
	}
	if j.accept == nil || o.accept == nil {
		return cmp.Compare(btoi(j.accept != nil), btoi(o.accept != nil))
	}
	if c := bytes.Compare(j.accept.Identity.Hash[:], o.accept.Identity.Hash[:]); c != 0 {
		return c
	}
	return cmp.Compare(j.accept.UID, o.accept.UID) // the earlier one is the first
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Undecided is an automation that a delivery starts only after an answer of its forge.
type Undecided = flow.Undecided

// Decisions on deliveries whose forge is asked.
const (
	SkippedForge   = flow.SkippedForge   // the forge gave no answer
	SkippedTrigger = flow.SkippedTrigger // no trigger matches, by its answer
)

// Undecided returns the automations that are to be decided on now: at most limit, of all factories by turns. Those of
// one factory are in the order of their deliveries.
func (s *Store) Undecided(ctx context.Context, limit int) ([]Undecided, error) {
	return flow.Due(ctx, s.db.Reader, time.Now(), limit)
}

// UndecidedOf returns the deliveries that an automation may start on, once their forge has answered: the oldest
// first, at most limit.
func (s *Store) UndecidedOf(ctx context.Context, automationUID string, limit int) ([]Undecided, error) {
	return flow.UndecidedOf(ctx, s.db.Reader, automationUID, limit)
}

// HoldUndecided keeps other replicas from a decision until a time. It reports false if another one was first.
func (s *Store) HoldUndecided(ctx context.Context, u *Undecided, until time.Time) (held bool, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		row := *u
		if held, err = row.Hold(ctx, tx, until); held {
			*u = row
		}
		return err
	})
	return held && err == nil, err
}

// Postpone has a decision made at a later time, and notes why. It does nothing if the decision was made before.
func (s *Store) Postpone(ctx context.Context, u Undecided, next time.Time, why string) error {
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		waits, err := u.Postpone(ctx, tx, next)
		if err != nil || !waits {
			return err
		}
		return noteDecision(ctx, tx, s.db.ForUpdate(), u, 0, FlowDecision{
			AutomationUID: u.AutomationUID, Decision: flow.WaitsForge, Detail: why,
		})
	})
	if err == nil {
		s.Notify(notice.Delivery, u.WebhookUID)
	}
	return err
}

// Decide ends a decision, once: with a run, or with what was decided in its place. A run is of the factory's
// definition of generation, or ErrMoved. decided is false if the decision was made before. made is the
// result: for a run the decision of its flow, whose Decision is empty if the run starts.
func (s *Store) Decide(
	ctx context.Context,
	u Undecided,
	generation int64,
	run *NewRun,
	instead FlowDecision,
) (decided bool, made FlowDecision, err error) {
	var changed []Run
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		decided, made, changed = false, instead, nil
		made.AutomationUID = u.AutomationUID
		if run != nil {
			if err := holdGeneration(ctx, tx, s.db.ForUpdate(), u.FactoryUID, generation); err != nil {
				return err
			}
		}

		var err error
		if decided, err = u.Remove(ctx, tx); err != nil || !decided {
			return err
		}
		if run != nil {
			made, changed, err = s.startDecided(ctx, tx, *run)
		} else if made.Decision != flow.SkippedTrigger {
			err = s.recordSkip(ctx, tx, u, made)
		}
		if err != nil {
			return err
		}

		started := 0
		if run != nil && !made.Merged(run.ID) {
			started = 1
		}
		return noteDecision(ctx, tx, s.db.ForUpdate(), u, started, made)
	})
	if err != nil || !decided {
		return false, made, err
	}

	s.Notify(notice.Delivery, u.WebhookUID)
	if run != nil && !made.Merged(run.ID) {
		s.moved(ctx, run.run())
	}
	s.movedAll(ctx, changed)
	return true, made, nil
}

// holdGeneration keeps a factory at a generation until tx ends; ErrMoved if it has another.
func holdGeneration(ctx context.Context, tx *db.Tx, forUpdate, factoryUID string, generation int64) error {
	var is int64
	err := tx.QueryRow(ctx, `SELECT generation FROM factories WHERE uid = $1`+forUpdate, factoryUID).Scan(&is)
	if errors.Is(err, sql.ErrNoRows) || err == nil && is != generation {
		return ErrMoved
	}
	return err
}

// startDecided stores the run of a decision, or does what its flow says.
func (s *Store) startDecided(ctx context.Context, tx *db.Tx, run NewRun) (FlowDecision, []Run, error) {
	if !run.keyed() {
		return FlowDecision{AutomationUID: run.AutomationUID}, nil,
			s.insertRunWith(run, func(query string, args ...any) error {
				_, err := tx.Exec(ctx, query, args...)
				return err
			})
	}

	if err := s.holdFlows(ctx, tx, []string{run.AutomationUID}); err != nil {
		return FlowDecision{}, nil, err
	}
	m := s.admission(tx, run.FactoryUID, run.AutomationUID)
	m.late = run.DeliveryUID
	d, err := m.admit(ctx, run)
	return d, m.changed, err
}

// recordSkip notes for the automation that a delivery started nothing.
func (s *Store) recordSkip(ctx context.Context, tx *db.Tx, u Undecided, d FlowDecision) error {
	if err := s.holdFlows(ctx, tx, []string{u.AutomationUID}); err != nil {
		return err
	}
	return d.Record(ctx, tx, u.FactoryUID, u.WebhookUID, u.DeliveryUID, time.Now())
}

const (
	deliveryFlowSQL = `SELECT d.flow
FROM deliveries d
JOIN webhooks w ON w.id = d.webhook_id
WHERE w.uid = $1 AND d.uid = $2`

	setDeliveryFlowSQL = `UPDATE deliveries
SET flow = $3, started = started + $4
WHERE uid = $2 AND webhook_id = (
	SELECT id
	FROM webhooks
	WHERE uid = $1
)`
)

// noteDecision writes a decision into the row of its delivery, in place of the one before; one that is empty
// removes that. It adds the started runs to those of the row. A row that has expired stays so.
func noteDecision(
	ctx context.Context, tx *db.Tx, forUpdate string, u Undecided, started int, d FlowDecision,
) error {
	var text string
	query := deliveryFlowSQL
	if forUpdate != "" {
		query += forUpdate + " OF d"
	}
	err := tx.QueryRow(ctx, query, u.WebhookUID, u.DeliveryUID).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}

	var all []FlowDecision
	if text != "" {
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			return err
		}
	}
	all = slices.DeleteFunc(all, func(d FlowDecision) bool { return d.AutomationUID == u.AutomationUID })
	if d.Decision != "" {
		d.AutomationUID = u.AutomationUID
		all = append(all, d)
	}

	if text, err = decisionsText(all); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, setDeliveryFlowSQL, u.WebhookUID, u.DeliveryUID, text, started)
	return err
}

// decisionsText returns decisions as they are stored.
func decisionsText(all []FlowDecision) (string, error) {
	if len(all) == 0 {
		return "", nil
	}
	text, err := json.Marshal(all)
	return string(text), err
}
