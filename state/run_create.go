package state

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"millwright/schema"
	"millwright/state/db"
)

// NewRun is a run to be created. It starts QUEUED.
type NewRun struct {
	ID             string // NewRunID; its time orders the run
	FactoryUID     string
	Title          string
	Prompt         string
	Envelope       string // follows the prompt, after a blank line, in what the agent is given; may be empty
	Source         string // RunSourceType
	Creator        Creator
	ConversationID string
	ParentRunID    string
	RootRunID      string // ID when the run has no parent
	AutomationUID  string
	WebhookUID     string
	DeliveryUID    string
	AgentUID       string
	TriggerURL     string            // what started the run, for people; may be empty
	Config         json.RawMessage   // AmbientAgentConfig, secret values masked
	Sealed         []byte            // mcp_servers of Config in plain, to be sealed; nil when Config masks nothing
	Secrets        []string          // names of the team secrets that the harness gets as environment variables
	ConfigName     string            // Config's name, for filters; so are the next three
	ModelID        string            //
	EnvironmentID  string            //
	SkillSpec      string            //
	Metadata       map[string]string // of the caller; automation, webhook and delivery are columns of their own
	At             time.Time         // of creation
	Traceparent    string            // the trace that the run belongs to, as of W3C Trace Context; may be empty
	Flow           *Flow             // nil: it waits for no others
	CheckoutHead   bool              // it starts in the commit of its delivery also if that is a fork's

	waitsFor string    // of Flow
	queuedAt time.Time // At when zero
}

const insertRunSQL = `INSERT INTO runs (
	id, factory_uid, title, prompt, envelope, source, creator_type, creator_uid, creator_name,
	conversation_id, parent_run_id, root_run_id, automation_uid, webhook_uid, delivery_uid, agent_uid, config,
	sealed, config_name, model_id, environment_id, skill_spec, metadata, created_at, secrets, trigger_url,
	traceparent, waits_for, flow, queued_at, checkout_head, state, updated_at
)
VALUES (
	$1, $2, $3, $4, $5, $6, $7, $8, $9,
	$10, $11, $12, $13, $14, $15, $16, $17,
	$18, $19, $20, $21, $22, $23, $24, $25, $26,
	$27, $28, $29, $30, $31, 'QUEUED', $24
)`

const insertRunMetadataSQL = `INSERT INTO run_metadata (run_id, factory_uid, key, value)
VALUES ($1, $2, $3, $4)`

// insertRunWith writes a run by the statements that it hands to exec. It is part of the transaction that
// makes the reason for the run durable.
func (s *Store) insertRunWith(r NewRun, exec func(query string, args ...any) error) error {
	metadata := "{}"
	if len(r.Metadata) > 0 {
		text, err := json.Marshal(r.Metadata)
		if err != nil {
			return err
		}

		metadata = string(text)
	}

	var sealed []byte
	if r.Sealed != nil {
		sealed = s.seal.Seal("run "+r.ID, r.Sealed)
	}

	secrets := []byte("[]")
	if len(r.Secrets) > 0 {
		var err error
		if secrets, err = json.Marshal(r.Secrets); err != nil {
			return err
		}
	}

	config := r.Config
	if len(config) == 0 {
		config = json.RawMessage("{}")
	}

	flow, err := flowText(r.Flow)
	if err != nil {
		return err
	}

	queued := r.queuedAt
	if queued.IsZero() {
		queued = r.At
	}

	r.bound()
	err = exec(
		insertRunSQL,
		r.ID,
		r.FactoryUID,
		r.Title,
		r.Prompt,
		r.Envelope,
		r.Source,
		r.Creator.Type,
		r.Creator.UID,
		r.Creator.DisplayName,
		r.ConversationID,
		r.ParentRunID,
		r.RootRunID,
		r.AutomationUID,
		r.WebhookUID,
		r.DeliveryUID,
		r.AgentUID,
		string(config),
		sealed,
		r.ConfigName,
		r.ModelID,
		r.EnvironmentID,
		r.SkillSpec,
		metadata,
		db.Micros(r.At),
		string(secrets),
		r.TriggerURL,
		r.Traceparent,
		r.waitsFor,
		flow,
		db.Micros(queued),
		int64(db.Flag(r.CheckoutHead)),
	)
	if err != nil {
		return err
	}

	for k, v := range r.Metadata {
		k, v = db.Bounded(k, maxMetadataText), db.Bounded(v, maxMetadataText)
		if err := exec(insertRunMetadataSQL, r.ID, r.FactoryUID, k, v); err != nil {
			return err
		}
	}

	return nil
}

// flowText returns a flow as it is stored.
func flowText(f *Flow) (string, error) {
	if f == nil {
		return "", nil
	}
	text, err := json.Marshal(f)
	return string(text), err
}

// maxMetadataText is how many characters of a key or value of metadata filters look at.
const maxMetadataText = 256

// bound cuts the texts of a run so that they fit every database and index,
// from any definition or request. The configuration keeps the whole texts.
func (r *NewRun) bound() {
	r.Title, r.Prompt, r.Envelope = db.Bounded(r.Title, schema.MaxTitle), db.Text(r.Prompt), db.Text(r.Envelope)
	r.ConfigName, r.ModelID = db.Bounded(r.ConfigName, schema.MaxLabel), db.Bounded(r.ModelID, schema.MaxModel)
	r.EnvironmentID, r.SkillSpec = db.Bounded(r.EnvironmentID, schema.MaxEnvironment), db.Bounded(
		r.SkillSpec,
		schema.MaxSkillSpec,
	)
	r.Creator.DisplayName, r.TriggerURL = db.Text(r.Creator.DisplayName), db.Text(r.TriggerURL)
}

// run returns the new run.
func (r NewRun) run() Run {
	r.bound()
	at := db.Time(db.Micros(r.At))
	config := r.Config
	if len(config) == 0 {
		config = json.RawMessage("{}")
	}

	return Run{
		ID: r.ID, FactoryUID: r.FactoryUID, Title: r.Title, Prompt: r.Prompt, Envelope: r.Envelope,
		State: RunQueued, Source: r.Source, Creator: r.Creator,
		ConversationID: r.ConversationID, ParentRunID: r.ParentRunID, RootRunID: r.RootRunID,
		AutomationUID: r.AutomationUID, WebhookUID: r.WebhookUID,
		DeliveryUID: r.DeliveryUID, AgentUID: r.AgentUID, TriggerURL: r.TriggerURL,
		Config: config, Secrets: r.Secrets, Metadata: r.Metadata,
		Skills: json.RawMessage(
			"[]",
		), Execution: 1, Attempt: 1, Created: at, Updated: at, Queued: at, nextSeq: 1, Traceparent: r.Traceparent,
		CheckoutHead: r.CheckoutHead,
	}
}

// Idempotency makes the repeat of a create, or of a follow-up, a look-up (docs/contract.md, section 4). The zero
// value does not.
type Idempotency struct {
	KeyUID  string   // whose request it is
	Key     string   // the Idempotency-Key header
	Request [32]byte // a hash of the request: its body, and what it is sent to
}

const idempotencyKept = 24 * time.Hour

const insertAttachmentSQL = `INSERT INTO attachments (run_id, factory_uid, file_name, mime_type, body)
VALUES ($1, $2, $3, $4, $5)`

// CreateRun makes a run with its attachments and returns it. Identifiers, times and the root that r
// leaves empty are filled in. A repeat of a request within 24 hours, by r's idempotency, returns the
// first run and makes none; ErrConflict when the repeat's body differs. ErrNotFound when the parent run
// or the conversation does not exist.
func (s *Store) CreateRun(ctx context.Context, r NewRun, files []Attachment, idem Idempotency) (Run, error) {
	if r.ID == "" {
		r.ID = NewRunID()
	}
	if r.At.IsZero() {
		r.At = time.Now()
	}

	var run Run // made; empty when the first request made it
	first := ""
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		r := r
		if idem.Key != "" {
			var err error
			if first, err = s.first(ctx, tx, idem, r.FactoryUID, r.ID); err != nil || first != "" {
				return err
			}
		}

		if r.ParentRunID != "" {
			err := tx.QueryRow(ctx, `SELECT root_run_id FROM runs WHERE id = $1`, r.ParentRunID).
				Scan(&r.RootRunID)
			if errors.Is(err, sql.ErrNoRows) {
				return refuse(ErrNotFound, "parent run %q", r.ParentRunID)
			} else if err != nil {
				return err
			}
		}

		if r.RootRunID == "" {
			r.RootRunID = r.ID
		}

		if r.ConversationID == "" {
			r.ConversationID = uuid.Must(uuid.NewV7()).String()
		} else if err := conversationExists(ctx, tx, r.ConversationID); err != nil {
			return err
		}

		if err := s.insertRunWith(r, func(query string, args ...any) error {
			_, err := tx.Exec(ctx, query, args...)
			return err
		}); err != nil {
			return err
		}

		for _, f := range files {
			if _, err := tx.Exec(ctx, insertAttachmentSQL,
				r.ID, r.FactoryUID, f.Name, f.MimeType, f.Body); err != nil {
				return err
			}
		}

		run = r.run()
		return nil
	})
	if err != nil {
		return Run{}, err
	}
	if first != "" {
		return s.Run(ctx, first)
	}

	s.moved(ctx, run)
	return run, nil
}

const expireKeySQL = `DELETE
FROM idempotency
WHERE key_uid = $1 AND hash = $2 AND created_at <= $3`

const insertKeyOnceSQL = `INSERT INTO idempotency (key_uid, factory_uid, hash, request_hash, run_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (key_uid, hash) DO NOTHING`

const firstRequestSQL = `SELECT run_id, request_hash
FROM idempotency
WHERE key_uid = $1 AND hash = $2`

// first returns what the first request with this key made, or "" and takes the key for what is made now: a
// run's ID, or a follow-up's UID and outcome.
func (s *Store) first(ctx context.Context, tx *db.Tx, idem Idempotency, factoryUID, made string) (string, error) {
	hash := sha256.Sum256([]byte(idem.Key))
	now := time.Now()
	if _, err := tx.Exec(ctx, expireKeySQL, idem.KeyUID, hash[:], db.Micros(now.Add(-idempotencyKept))); err != nil {
		return "", err
	}

	err := tx.ExecOne(
		ctx,
		insertKeyOnceSQL,
		idem.KeyUID,
		factoryUID,
		hash[:],
		idem.Request[:],
		made,
		db.Micros(now),
	)
	if !errors.Is(err, db.ErrNoRow) {
		return "", err
	}

	var first string
	var request []byte
	if err := tx.QueryRow(ctx, firstRequestSQL, idem.KeyUID, hash[:]).Scan(&first, &request); err != nil {
		return "", err
	}

	if subtle.ConstantTimeCompare(request, idem.Request[:]) == 0 {
		return "", fmt.Errorf(
			"this idempotency key was used for a different request within the last 24 hours: %w",
			ErrConflict,
		)
	}

	return first, nil
}

func conversationExists(ctx context.Context, tx *db.Tx, id string) error {
	var x int
	err := tx.QueryRow(ctx, `SELECT 1 FROM runs WHERE conversation_id = $1 LIMIT 1`, id).Scan(&x)
	return orNotFound(err, "conversation %q", id)
}

// ScheduleKey names one schedule of an automation.
type ScheduleKey struct {
	AutomationUID string
	Schedule      string // its cron text and name, as one text
}

const schedulesSQL = `SELECT automation_uid, schedule, last_at
FROM schedules
WHERE factory_uid = $1`

// Schedules returns when each of a factory's schedules last fired or, before that, was first seen.
func (s *Store) Schedules(ctx context.Context, factoryUID string) (map[ScheduleKey]time.Time, error) {
	all := map[ScheduleKey]time.Time{}
	err := db.Each(ctx, s.db.Reader, func(row db.Row) error {
		var k ScheduleKey
		var last int64
		err := row.Scan(&k.AutomationUID, &k.Schedule, &last)
		all[k] = db.Time(last)
		return err
	}, schedulesSQL, factoryUID)

	return all, err
}

const addScheduleSQL = `INSERT INTO schedules (automation_uid, schedule, factory_uid, last_at)
VALUES ($1, $2, $3, $4)
ON CONFLICT (automation_uid, schedule) DO UPDATE SET last_at = schedules.last_at
RETURNING last_at`

// AddSchedule notes that a schedule exists since now, and returns when it last fired or was first seen:
// another replica may have been first.
func (s *Store) AddSchedule(ctx context.Context, factoryUID string, k ScheduleKey, now time.Time) (time.Time, error) {
	var last int64
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		return tx.QueryRow(ctx, addScheduleSQL, k.AutomationUID, k.Schedule, factoryUID, db.Micros(now)).
			Scan(&last)
	})
	if db.IsForeignKey(err) {
		return time.Time{}, refuse(ErrNotFound, "automation %q", k.AutomationUID)
	}
	return db.Time(last), err
}

// Tick is a moment at which a schedule fires.
type Tick struct {
	FactoryUID string
	Generation int64 // of the factory, that the schedule was read from
	Key        ScheduleKey
	Last       time.Time // when it fired before this
	At         time.Time
}

const fireSQL = `UPDATE schedules
SET last_at = $4
WHERE automation_uid = $1 AND schedule = $2 AND last_at = $3`

const attachmentSQL = `SELECT mime_type, body
FROM attachments
WHERE run_id = $1 AND file_name = $2`

const payloadSQL = `SELECT body, size
FROM payloads
WHERE delivery_uid = $1`

const followupPayloadSQL = `SELECT p.body, p.size
FROM followups f
JOIN payloads p ON p.delivery_uid = f.delivery_uid
WHERE f.run_id = $1 AND f.delivery_uid = $2
LIMIT 1`

// Attachment returns one file of a run with its body. ErrNotFound when the run has none of this name.
func (s *Store) Attachment(ctx context.Context, r Run, name string) (Attachment, error) {
	a := Attachment{Name: name}
	var err error
	if name == PayloadName && r.DeliveryUID != "" {
		a.MimeType = "application/json"
		a.Body, err = s.payload(ctx, r.DeliveryUID)
	} else if delivery, ok := laterDelivery(name); ok {
		a.MimeType = "application/json"
		a.Body, err = s.followupPayload(ctx, r.ID, delivery)
	} else {
		err = s.db.QueryRow(ctx, attachmentSQL, r.ID, name).Scan(&a.MimeType, &a.Body)
	}

	if errors.Is(err, sql.ErrNoRows) {
		return a, refuse(ErrNotFound, "attachment %q of run %s", name, r.ID)
	}

	a.Size = int64(len(a.Body))
	return a, err
}

// payload returns the body of a delivery, byte for byte.
func (s *Store) payload(ctx context.Context, deliveryUID string) ([]byte, error) {
	var stored []byte
	var size int64
	if err := s.db.QueryRow(ctx, payloadSQL, deliveryUID).Scan(&stored, &size); err != nil {
		return nil, err
	}
	return db.Decompress(nil, stored, size)
}

// followupPayload is payload for a delivery that was a follow-up of the run.
func (s *Store) followupPayload(ctx context.Context, runID, deliveryUID string) ([]byte, error) {
	var stored []byte
	var size int64
	err := s.db.QueryRow(ctx, followupPayloadSQL, runID, deliveryUID).Scan(&stored, &size)
	if err != nil {
		return nil, err
	}
	return db.Decompress(nil, stored, size)
}

// padded repeats the last ID until there are as many as a power of two: few texts, that can be kept prepared.
func padded(ids []string) []string {
	for n := len(ids); n&(n-1) != 0; n++ {
		ids = append(ids, ids[len(ids)-1])
	}
	return ids
}
