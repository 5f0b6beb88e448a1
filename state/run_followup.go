package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"millwright/schema"
	"millwright/schema/agentconfig"
	"millwright/state/db"
	"millwright/state/notice"
)

// FollowupOutcome is the effect of a follow-up message.
type FollowupOutcome string

// The outcomes (docs/contract.md, section 4).
const (
	FollowupQueued  FollowupOutcome = "queued_prompt"     // the agent gets it with the prompt of the queued run
	FollowupPending FollowupOutcome = "queue_pending"     // it waits for the end of the execution
	FollowupHandoff FollowupOutcome = "handoff_execution" // the run had ended, and is queued again
	FollowupLive    FollowupOutcome = "live_session"      // the worker hands it to the agent's living session
)

// maxPending is how many messages may wait for one execution, and maxPendingText how many characters of them.
const (
	maxPending     = 100
	maxPendingText = 8 << 20
	maxLiveText    = 128 << 10 // of a message to a living session: a longer one waits for the next execution
)

const waitingSQL = `SELECT count(*), coalesce(sum(length(message)), 0)
FROM followups
WHERE run_id = $1 AND execution = $2`

const insertFollowupSQL = `INSERT INTO followups (
	uid, run_id, factory_uid, message, execution, created_at, delivery_uid, live
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

// Followup sends a message to a run and returns its UID and its effect. A repeat of a request within
// 24 hours, by idem, returns what the first one did, and sends nothing. ErrNotFound when there is no such
// run; ErrConflict when the repeat's request differs; ErrFull when too many messages wait already, or the
// run is being cancelled.
func (s *Store) Followup(
	ctx context.Context,
	id, text string,
	idem Idempotency,
) (uid string, outcome FollowupOutcome, err error) {
	var r Run
	first := ""
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) (err error) {
		uid = NewID(PrefixFollowup)
		if err := s.holdFlow(ctx, tx, id); err != nil {
			return err
		}
		if r, err = s.lockRun(ctx, tx, id); err != nil {
			return err
		}

		if r.CancelRequested != nil && !r.Ended() {
			return refuse(ErrFull, "run %s is being cancelled: send the message when it has ended", id)
		}

		var execution int
		execution, outcome = r.next()
		if outcome == FollowupPending && r.live && len(text) <= maxLiveText {
			execution, outcome = r.Execution, FollowupLive
		}
		if idem.Key != "" {
			if first, err = s.first(ctx, tx, idem, r.FactoryUID, uid+" "+string(outcome)); err != nil || first != "" {
				return err
			}
		}

		return s.follow(ctx, tx, &r, message{
			uid: uid, text: text, execution: execution, live: outcome == FollowupLive,
		})
	})
	if err != nil {
		return "", "", err
	}
	if uid, did, ok := strings.Cut(first, " "); ok {
		return uid, FollowupOutcome(did), nil
	}

	s.moved(ctx, r)
	if outcome == FollowupLive {
		s.Notify(notice.Wake, r.Worker+" "+id)
	}
	return uid, outcome, nil
}

// next returns the execution that gets the next message to a run, and what becomes of the message.
func (r *Run) next() (execution int, outcome FollowupOutcome) {
	switch {
	case r.State == RunQueued:
		return r.Execution, FollowupQueued
	case r.Ended():
		return r.Execution + 1, FollowupHandoff
	}
	return r.Execution + 1, FollowupPending
}

// message is a text for an execution of a run. Unless it is empty, delivery is what it comes from.
type message struct {
	uid, text, delivery string
	execution           int
	live                bool // it is for the agent's living session
}

// follow sends a message to a locked run. ErrFull when too many wait already.
func (s *Store) follow(ctx context.Context, tx *db.Tx, r *Run, m message) error {
	var waiting, size int
	if err := tx.QueryRow(ctx, waitingSQL, r.ID, m.execution).Scan(&waiting, &size); err != nil {
		return err
	}
	if full := waiting >= maxPending || waiting > 0 && size+len(m.text) > maxPendingText; full &&
		!r.Ended() { // what waited when the run was cancelled goes with the message that reopens it
		return refuse(ErrFull, "run %s has %d messages waiting already", r.ID, waiting)
	}

	if r.Ended() {
		if err := s.reenter(ctx, tx, r); err != nil {
			return err
		}
	}

	now := time.Now()
	_, err := tx.Exec(ctx, insertFollowupSQL, m.uid, r.ID, r.FactoryUID, m.text, m.execution, db.Micros(now),
		m.delivery,
		db.Flag(m.live))
	if err != nil {
		return err
	}

	if r.Ended() {
		r.Execution, r.Attempt, r.StatusMessage, r.ErrorCode = m.execution, 1, "", ""
		return r.requeue(ctx, tx)
	}

	_, err = tx.Exec(ctx, `UPDATE runs SET updated_at = $2 WHERE id = $1`, r.ID, db.Micros(now))
	return err
}

// reenter makes a locked run that had ended wait for the others of its key.
func (s *Store) reenter(ctx context.Context, tx *db.Tx, r *Run) error {
	if r.Flow == nil {
		return nil
	}

	r.Flow.SupersededBy = ""
	if r.Flow.Retry != nil {
		r.Flow.Retry.Tried, r.Flow.Retry.First = 0, 0
	}
	c := r.Flow.Concurrency
	if c == nil {
		return nil
	}

	m := s.admission(tx, r.FactoryUID, r.AutomationUID)
	waits, skipped, err := m.enter(ctx, *c, r.ID, schema.BusyQueue)
	if err == nil && skipped != "" {
		return refuse(ErrFull, "too many runs of automation %q wait already", r.AutomationUID)
	}

	r.WaitsFor = waits
	r.changed = append(r.changed, m.changed...)
	return err
}

// Prompts returns, for each execution so far, the message that began it: the run's prompt, and then
// follow-ups.
func (s *Store) Prompts(ctx context.Context, r Run) ([]Message, error) {
	left := maxSaid
	prompts, err := s.prompts(ctx, r, &left)
	if err != nil {
		return nil, err
	}

	return prompts, s.begin(ctx, r, prompts)
}

const promptsSQL = `SELECT execution, created_at, length(message), CASE WHEN size <= $3 THEN message END
FROM (
	SELECT execution, uid, created_at, message,
		sum(length(message)) OVER (ORDER BY execution DESC, uid DESC) AS size
	FROM followups
	WHERE run_id = $1 AND execution > 1 AND execution <= $2 AND live = 0
) AS newest
ORDER BY execution, uid`

// prompts returns, for each execution so far, the message that began it; that of the first is empty. It takes
// the size of the follow-ups that it reads, the newest, from the room.
func (s *Store) prompts(ctx context.Context, r Run, room *int) ([]Message, error) {
	prompts := make([]Message, r.Execution)
	for i := range prompts {
		prompts[i] = Message{Role: RoleUser, Content: []Block{}, At: r.Created}
	}

	if r.Execution == 1 {
		return prompts, nil
	}

	_, err := db.All(ctx, s.db.Reader, func(row db.Row) (struct{}, error) {
		var execution, size int
		var at int64
		var message *string
		if err := row.Scan(&execution, &at, &size, &message); err != nil {
			return struct{}{}, err
		}

		p := &prompts[execution-1]
		p.At = db.Time(at)
		switch {
		case message != nil:
			p.Content = append(p.Content, Text(*message))
			*room -= size
		case len(p.Content) == 0:
			p.Content = append(p.Content, leftOut())
		}

		return struct{}{}, nil
	}, promptsSQL,
		r.ID,
		r.Execution,
		*room)

	return prompts, err
}

// Servers returns the mcp_servers of a run's configuration with the values that are sealed at rest, as
// JSON; nil when it has none.
func (s *Store) Servers(ctx context.Context, r Run) (json.RawMessage, error) {
	var sealed []byte
	err := s.db.QueryRow(ctx, `SELECT sealed FROM runs WHERE id = $1`, r.ID).Scan(&sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, noRun(r.ID, err)
	}
	if err != nil {
		return nil, err
	}
	if sealed != nil {
		return s.seal.Open("run "+r.ID, sealed)
	}

	config, err := agentconfig.Decode(r.Config)
	if err != nil || config.MCPServers == nil {
		return nil, err
	}

	return json.Marshal(config.MCPServers)
}

// SubmittedPrompt returns the whole text that the agent gets for the run's current execution: the prompt with
// the messages that came before the agent began, or the messages that began a later execution, and the
// envelope.
func (s *Store) SubmittedPrompt(ctx context.Context, r Run) (string, error) {
	return s.given(ctx, r, r.Execution)
}
