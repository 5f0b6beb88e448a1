package state

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"millwright/state/db"
	"millwright/state/events"
	"millwright/state/outputs"
)

// MessageRole is the speaker of a message.
type MessageRole string

// The roles of messages.
const (
	RoleUser      MessageRole = "user"
	RoleAssistant MessageRole = "assistant"
)

// Block is a part of a message (docs/contract.md, section 4, Conversation). Which fields count depends on Type.
type Block struct {
	Type     string          `json:"type"` // text, action, action_result or event
	Text     string          `json:"text,omitempty"`
	ID       string          `json:"id,omitempty"`
	ActionID string          `json:"action_id,omitempty"`
	Category string          `json:"category,omitempty"`
	Name     string          `json:"name,omitempty"`
	State    string          `json:"state,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	Output   json.RawMessage `json:"output,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
}

// Message is one turn of a conversation.
type Message struct {
	Role    MessageRole `json:"role"`
	Content []Block     `json:"content"`
	At      time.Time   `json:"timestamp"`
}

// Text returns a block of plain text.
func Text(text string) Block { return Block{Type: "text", Text: text} }

// Step is one execution of a run in a conversation. Its messages are those of the last attempt; what an
// attempt said that was given up, because its worker was lost or handed the run back, is a step inside.
type Step struct {
	ID       string    `json:"id"`
	Messages []Message `json:"messages"`
	Steps    []Step    `json:"steps"`
}

// giveUp moves what was said since the prompt into a step inside: another attempt begins.
func (s *Step) giveUp() {
	if said := s.Messages[1:]; len(said) > 0 {
		s.Steps = append(
			s.Steps,
			Step{ID: fmt.Sprintf("%s.%d", s.ID, len(s.Steps)+1), Messages: slices.Clone(said), Steps: []Step{}},
		)
		s.Messages = s.Messages[:1]
	}
}

// Entry is something that happened in a run: a message, or a change of state.
type Entry struct {
	Seq       int64 // counts up from 1 within the run, with no gap but those of a retry
	Execution int
	Message   *Message    // nil for a change of state
	Change    *ChangeInfo // nil for a message
	At        time.Time
}

// ChangeInfo tells of a change of a run's state.
type ChangeInfo struct {
	State     RunState `json:"state"`
	Execution int      `json:"execution"`
	Attempt   int      `json:"attempt"`
	Worker    string   `json:"worker,omitempty"`
	Message   string   `json:"message,omitempty"`
	ErrorCode string   `json:"error_code,omitempty"`
}

const kindState = "state"

// entered records that the run is now in its State. The row's next_seq has been counted up for it.
func (r *Run) entered(ctx context.Context, tx *db.Tx, at time.Time) error {
	if err := r.tellEnded(ctx, tx, at); err != nil {
		return err
	}
	if r.State.Ended() && r.AutomationUID != "" {
		if err := outputs.End(ctx, tx, r.outputs(), string(r.State)); err != nil {
			return err
		}
	}

	info := ChangeInfo{
		State:     r.State,
		Execution: r.Execution,
		Attempt:   r.Attempt,
		Message:   r.StatusMessage,
		ErrorCode: r.ErrorCode,
	}
	if r.State == RunClaimed || r.State == RunInProgress {
		info.Worker = r.WorkerName
	}

	content, err := json.Marshal(info)
	if err != nil {
		return err
	}

	return r.enter(ctx, tx, r.nextSeq-1, kindState, content, at)
}

const lastChangeSQL = `SELECT content
FROM run_entries
WHERE run_id = $1 AND kind = 'state'
ORDER BY seq DESC
LIMIT 1`

// tellEnded writes the events of a run that ended, or that waits for an answer now and did not before.
func (r *Run) tellEnded(ctx context.Context, tx *db.Tx, at time.Time) error {
	if !r.State.Ended() || r.FactoryUID == "" {
		return nil
	}

	if r.State == RunBlocked {
		var text string
		var last ChangeInfo
		err := tx.QueryRow(ctx, lastChangeSQL, r.ID).Scan(&text)
		if err := db.NoRows(err); err != nil {
			return err
		}
		if json.Unmarshal([]byte(text), &last) == nil && last.State == RunBlocked && last.Execution == r.Execution {
			return nil
		}
	}

	told := events.Run{
		RunID:          r.ID,
		State:          string(r.State),
		Title:          r.givenTitle(),
		AgentUID:       r.AgentUID,
		Source:         r.Source,
		ConversationID: r.ConversationID,
		ParentRunID:    r.ParentRunID,
		WebhookUID:     r.WebhookUID,
		DeliveryUID:    r.DeliveryUID,
		Execution:      r.Execution,
		ErrorCode:      r.ErrorCode,
		FinishedAt:     new(at.UTC()),
	}
	if !r.Created.IsZero() {
		told.CreatedAt = &r.Created
	}
	if r.Usage != nil {
		told.Usage, _ = json.Marshal(r.Usage) // of numbers and names
	}

	over := ""
	if r.ErrorCode == codeBudget {
		over = r.StatusMessage
	}
	return events.RunEnded(ctx, tx, newEventID, r.FactoryUID, r.AutomationUID, told, over, at)
}

// givenTitle returns the title unless the prompt has it: then it may be derived from the prompt.
func (r *Run) givenTitle() string {
	if start := strings.TrimSuffix(r.Title, "…"); strings.Contains(r.Prompt, start) {
		return ""
	}
	return r.Title
}

const insertEntrySQL = `INSERT INTO run_entries (run_id, seq, factory_uid, execution, kind, content, at)
VALUES ($1, $2, $3, $4, $5, $6, $7)`

func (r *Run) enter(ctx context.Context, tx *db.Tx, seq int64, kind string, content []byte, at time.Time) error {
	_, err := tx.Exec(
		ctx,
		insertEntrySQL,
		r.ID,
		seq,
		r.FactoryUID,
		r.Execution,
		kind,
		string(content),
		db.Micros(at),
	)
	return err
}

// Entries returns the messages and changes of state of a run whose number is greater than after, oldest first, at
// most limit of them. The run's creation is not an entry. It returns none for a run that does not exist.
func (s *Store) Entries(ctx context.Context, runID string, after int64, limit int) ([]Entry, error) {
	return s.entries(ctx, `run_id = $1 AND seq > $2`, runID, after, limit)
}

// entries reads at most $3 entries that meet a condition.
func (s *Store) entries(ctx context.Context, condition string, args ...any) ([]Entry, error) {
	all, err := db.All(ctx, s.db.Reader, func(row db.Row) (e Entry, err error) {
		var kind, content string
		var at int64
		if err := row.Scan(&e.Seq, &e.Execution, &kind, &content, &at); err != nil {
			return e, err
		}

		e.At = db.Time(at)
		if kind == kindState {
			return e, json.Unmarshal([]byte(content), &e.Change)
		}

		e.Message = &Message{Role: MessageRole(kind), At: e.At}
		return e, json.Unmarshal([]byte(content), &e.Message.Content)
	}, `SELECT seq, execution, kind, content, at FROM run_entries WHERE `+condition+` ORDER BY seq LIMIT $3`,
		args...)

	return all, err
}

// begin reads what a run's agent was given first, into the first message.
func (s *Store) begin(ctx context.Context, r Run, messages []Message) error {
	err := s.db.QueryRow(ctx, `SELECT prompt, envelope FROM runs WHERE id = $1`, r.ID).
		Scan(&r.Prompt, &r.Envelope)
	if err != nil {
		return noRun(r.ID, err)
	}

	text, err := s.given(ctx, r, 1)
	if text != "" {
		messages[0].Content = []Block{Text(text)}
	}

	return err
}

// given returns the text that the agent is given for an execution: for the first the prompt and the messages that
// came before the agent began, for a later one the messages that began it; and the envelope, unless a delivery
// began it, whose message has one. What repeats an execution is given the same, and what came since.
func (s *Store) given(ctx context.Context, r Run, execution int) (string, error) {
	first := execution
	if execution == r.Execution {
		first = r.Series()
	}

	texts := []string{}
	if first == 1 {
		texts = append(texts, r.Prompt)
	}

	delivered := false
	err := db.Each(ctx, s.db.Reader, func(row db.Row) error {
		var text string
		var delivery bool
		err := row.Scan(&text, &delivery)
		if delivery && !delivered && first == 1 {
			texts = append(texts, r.Envelope)
		}

		delivered = delivered || delivery
		texts = append(texts, text)
		return err
	}, `
		SELECT message, delivery_uid <> ''
		FROM followups
		WHERE run_id = $1 AND execution >= $2 AND execution <= $3 AND live = 0
		ORDER BY execution, uid`, r.ID, first, execution)
	if err != nil {
		return "", err
	}

	if !delivered {
		texts = append(texts, r.Envelope)
	}

	texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
	return strings.Join(texts, "\n\n"), nil
}

// maxSaid is how many bytes of what agents said are read of a conversation at once, the newest: as much as one
// execution may say. As many characters are read of the follow-ups: more than one execution may be given. An
// event named left_out stands for what came before.
const maxSaid = 16 << 20

// room is how much more of a conversation is read.
type room struct{ said, given int }

// leftOut stands for entries that are not read.
func leftOut() Block {
	return Block{
		Type: "event",
		Name: "left_out",
		Data: json.RawMessage(`{"reason":"the conversation is too long to be shown whole"}`),
	}
}

// Steps returns what was said in a run: a step for each execution, which begins with what the agent was
// given. before, unless it is 0, leaves out what came with and after the entry of that number.
func (s *Store) Steps(ctx context.Context, r Run, before int64) ([]Step, error) {
	steps, err := s.steps(ctx, r, before, &room{maxSaid, maxSaid})
	if err != nil {
		return nil, err
	}

	return steps, s.begin(ctx, r, steps[0].Messages)
}

// steps is Steps, with so much room, of which it takes what it needs.
func (s *Store) steps(ctx context.Context, r Run, before int64, left *room) ([]Step, error) {
	prompts, err := s.prompts(ctx, r, &left.given)
	if err != nil {
		return nil, err
	}

	steps := make([]Step, len(prompts))
	for i, p := range prompts {
		steps[i] = Step{ID: fmt.Sprintf("%s.%d", r.ID, i+1), Messages: []Message{p}, Steps: []Step{}}
	}

	if before == 0 {
		before = math.MaxInt64
	}

	first, err := s.fitting(ctx, r.ID, before, &left.said)
	if err != nil {
		return nil, err
	}

	add := func(e Entry) {
		if e.Execution > len(steps) { // of a follow-up that came meanwhile
			return
		}
		switch step := &steps[e.Execution-1]; {
		case e.Message != nil:
			step.Messages = append(step.Messages, *e.Message)
		case e.Change.State == RunQueued:
			step.giveUp()
		}
	}

	if first > 1 {
		changes, err := s.entries(
			ctx,
			`run_id = $1 AND seq > $2 AND seq < $4 AND kind = '`+kindState+`'`,
			r.ID,
			0,
			math.MaxInt32,
			first,
		)
		if err != nil {
			return nil, err
		}

		mark := Entry{Execution: 1, At: r.Created}
		for _, e := range changes {
			add(e)
			mark.Execution, mark.At = e.Execution, e.At
		}

		mark.Message = &Message{Role: RoleAssistant, Content: []Block{leftOut()}, At: mark.At}
		add(mark)
	}

	const page = 100
	for after := first - 1; ; {
		entries, err := s.Entries(ctx, r.ID, after, page)
		if err != nil {
			return nil, err
		}

		for _, e := range entries {
			if after = e.Seq; after >= before {
				return steps, nil
			}
			add(e)
		}

		if len(entries) < page {
			return steps, nil
		}
	}
}

const entrySizesSQL = `SELECT seq, length(content)
FROM run_entries
WHERE run_id = $1 AND seq < $2
ORDER BY seq DESC`

// fitting returns the number of the oldest entry to read before the given one, so that the newest
// are and fit into the room: 1 when all do. It takes their size from the room.
func (s *Store) fitting(ctx context.Context, runID string, before int64, room *int) (int64, error) {
	rows, err := s.db.Query(ctx, entrySizesSQL, runID, before)
	if err != nil {
		return 0, err
	}
	defer rows.Close()

	for rows.Next() {
		var seq int64
		var size int
		if err := rows.Scan(&seq, &size); err != nil {
			return 0, err
		}
		if size > *room {
			*room = 0
			return seq + 1, nil
		}

		*room -= size
	}

	return 1, rows.Err()
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
