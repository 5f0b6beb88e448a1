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
	"millwright/state/notice"
)

// Question is what an agent asks before it goes on.
type Question struct {
	UID       string          `json:"-"`
	Execution int             `json:"-"`
	Title     string          `json:"title"`
	Input     json.RawMessage `json:"input,omitempty"` // what it is about to do
	Choices   []Choice        `json:"choices"`

	Asked    time.Time  `json:"-"`
	Closed   *time.Time `json:"-"` // nil while it waits
	Choice   string     `json:"-"` // that was made; empty if the run went on without an answer
	Message  string     `json:"-"`
	Answerer string     `json:"-"`
	Late     bool       `json:"-"` // the session that asked did not live to see the answer
}

// Choice is a possible answer.
type Choice struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Kind string `json:"kind"` // allow_once, allow_always, reject_once or reject_always
}

// Choose returns the choice with an ID. "approve" and "deny" stand for the first choices that allow and reject, once
// before always.
func (q Question) Choose(id string) (Choice, bool) {
	for _, c := range q.Choices {
		if c.ID == id {
			return c, true
		}
	}

	prefix := map[string]string{"approve": "allow_", "deny": "reject_"}[id]
	for _, kind := range []string{"once", "always"} {
		for _, c := range q.Choices {
			if prefix != "" && c.Kind == prefix+kind {
				return c, true
			}
		}
	}

	return Choice{}, false
}

// maxQuestions is how many questions of a run wait for an answer at most, and maxAsked how many it may ask.
const (
	maxQuestions = 20
	maxAsked     = 1000
)

const (
	askedSQL = `SELECT count(*)
		FROM run_questions
		WHERE run_id = $1`

	insertQuestionSQL = `INSERT INTO run_questions (run_id, uid, factory_uid, execution, question, asked_at)
		VALUES ($1, $2, $3, $4, $5, $6)`

	blockSQL = `UPDATE runs
		SET state = 'BLOCKED', questions = questions + 1, status_message = $2, updated_at = $3, next_seq = next_seq + 2
		WHERE id = $1`
)

// AskQuestion records what the agent of a claim asks: INPROGRESS to BLOCKED. It returns the question's UID. ErrLost
// when the claim no longer holds; ErrFull when too many wait, or too many were asked.
func (s *Store) AskQuestion(ctx context.Context, c Claim, q Question) (uid string, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		r, err := s.lockHeld(ctx, tx, c)
		if err != nil {
			return err
		}

		var asked int
		if err := tx.QueryRow(ctx, askedSQL, r.ID).Scan(&asked); err != nil {
			return err
		}
		if r.questions >= maxQuestions || asked >= maxAsked {
			return refuse(ErrFull, "run %s has asked %d questions, of which %d wait", r.ID, asked, r.questions)
		}

		now := time.Now()
		q.UID, q.Title = NewID(PrefixQuestion), db.Text(q.Title)
		text, err := json.Marshal(q)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, insertQuestionSQL, r.ID, q.UID, r.FactoryUID, r.Execution, string(text), db.Micros(now))
		if err != nil {
			return err
		}

		r.State, r.StatusMessage = RunBlocked, "the agent asks: "+q.Title
		if _, err := tx.Exec(ctx, blockSQL, r.ID, r.StatusMessage, db.Micros(now)); err != nil {
			return err
		}
		if err := r.say(ctx, tx, r.nextSeq, RoleAssistant, questionBlock(q), now); err != nil {
			return err
		}

		r.nextSeq += 2
		return r.entered(ctx, tx, now)
	})
	if err != nil {
		return "", err
	}

	s.Notify(notice.Run, c.RunID)
	return q.UID, nil
}

// questionBlock is the question in the conversation.
func questionBlock(q Question) Block {
	data, err := json.Marshal(struct {
		ID string `json:"question_id"`
		Question
	}{q.UID, q})
	if err != nil {
		data = json.RawMessage("null")
	}
	return Block{Type: "event", Name: "question", Data: data}
}

// say adds a message to the conversation, for which the row's next_seq has room.
func (r *Run) say(ctx context.Context, tx *db.Tx, seq int64, by MessageRole, b Block, at time.Time) error {
	content, err := json.Marshal([]Block{b})
	if err != nil {
		return err
	}
	return r.enter(ctx, tx, seq, string(by), content, at)
}

const questionColumns = `SELECT uid, execution, question, asked_at, closed_at, choice, message, answered_by, late
	FROM run_questions
	WHERE run_id = $1`

func scanQuestion(row db.Row) (q Question, err error) {
	var text string
	var asked int64
	var late int
	var closed sql.NullInt64
	err = row.Scan(&q.UID, &q.Execution, &text, &asked, &closed, &q.Choice, &q.Message, &q.Answerer, &late)
	if err != nil {
		return q, err
	}

	q.Late = late == 1
	q.Asked, q.Closed = db.Time(asked), db.TimeOrNil(closed)
	return q, json.Unmarshal([]byte(text), &q)
}

// Questions returns what the agent of a run has asked, the oldest question first.
func (s *Store) Questions(ctx context.Context, runID string) ([]Question, error) {
	return db.All(ctx, s.db.Reader, scanQuestion, questionColumns+` ORDER BY uid LIMIT 1000`, runID)
}

const (
	answerSQL = `UPDATE run_questions
		SET closed_at = $3, choice = $4, message = $5, answered_by = $6, late = $7
		WHERE run_id = $1 AND uid = $2`

	unblockSQL = `UPDATE runs
		SET state = $2, questions = questions - 1, status_message = $3, updated_at = $4, next_seq = next_seq + $5
		WHERE id = $1`
)

// Answer is a choice that somebody made.
type Answer struct {
	Question string // UID
	Choice   string // as of Question.Choose
	Message  string // for the agent; may be empty
	By       string // name of who answers
}

// text is what an agent is told that did not live to see the answer.
func (a Answer) text(q Question, c Choice) string {
	text := fmt.Sprintf("You asked: %s. The answer is: %s (%s).", q.Title, c.Name, c.ID)
	if a.Message != "" {
		text += "\n\n" + a.Message
	}
	return text
}

// AnswerQuestion answers what an agent asks. With the last answer the run goes on: BLOCKED to INPROGRESS where a
// worker holds its session, else to QUEUED for an execution that resumes it. ErrNotFound when there is no such run,
// question or choice; ErrConflict when the question is closed.
func (s *Store) AnswerQuestion(
	ctx context.Context, runID string, a Answer,
) (r Run, outcome FollowupOutcome, err error) {
	err = s.commitRun(ctx, runID, func(ctx context.Context, tx *db.Tx) (err error) {
		if r, err = s.lockRun(ctx, tx, runID); err != nil {
			return err
		}
		q, err := scanQuestion(tx.QueryRow(ctx, questionColumns+` AND uid = $2`, runID, a.Question))
		if errors.Is(err, sql.ErrNoRows) {
			return refuse(ErrNotFound, "question %q of run %s", a.Question, runID)
		}
		if err != nil {
			return err
		}

		choice, ok := q.Choose(a.Choice)
		switch {
		case q.Closed != nil && q.Choice != "":
			return refuse(ErrConflict, "%s answered this question already", q.Answerer)
		case q.Closed != nil || r.CancelRequested != nil:
			return refuse(ErrConflict, "run %s does not wait for an answer any more: it is %s", runID, r.State)
		case !ok:
			return refuse(ErrNotFound, "choice %q of question %s", a.Choice, a.Question)
		}

		now := time.Now()
		_, err = tx.Exec(ctx, answerSQL, runID, q.UID, db.Micros(now), choice.ID, db.Text(a.Message), db.Text(a.By),
			db.Flag(!r.Held()))
		if err != nil {
			return err
		}

		outcome = FollowupHandoff
		if r.Held() {
			outcome = FollowupLive
		}
		return r.answered(ctx, tx, a, q, choice, now)
	})
	if err != nil {
		return Run{}, "", err
	}

	s.moved(ctx, r)
	if outcome == FollowupLive {
		s.Notify(notice.Wake, r.Worker+" "+runID)
	}
	return r, outcome, nil
}

// answered moves a locked run on of which a question was answered.
func (r *Run) answered(ctx context.Context, tx *db.Tx, a Answer, q Question, c Choice, now time.Time) error {
	held := r.Held()
	entries := int64(0)
	if held {
		entries = 1
	}
	if r.questions--; r.questions == 0 && held {
		r.State, r.StatusMessage, entries = RunInProgress, "", 2
	}

	_, err := tx.Exec(ctx, unblockSQL, r.ID, string(r.State), r.StatusMessage, db.Micros(now), entries)
	if err != nil {
		return err
	}

	if held {
		said := Text(strings.TrimSpace(c.Name + "\n\n" + a.Message))
		if err := r.say(ctx, tx, r.nextSeq, RoleUser, said, now); err != nil {
			return err
		}
		if r.nextSeq += entries; r.State == RunBlocked {
			return nil
		}
		return r.entered(ctx, tx, now)
	}

	_, err = tx.Exec(ctx, insertFollowupSQL, NewID(PrefixFollowup), r.ID, r.FactoryUID, a.text(q, c), r.Execution+1,
		db.Micros(now), "", 0)
	if err != nil || r.questions > 0 {
		return err
	}

	r.Execution, r.Attempt, r.StatusMessage, r.ErrorCode = r.Execution+1, 1, "", ""
	return r.requeue(ctx, tx)
}

const undeliveredSQL = `UPDATE followups
	SET execution = $2 + 1, live = 0
	WHERE run_id = $1 AND execution = $2 AND live = 1`

// leaveSession has the messages that did not reach the living session of a locked run wait for the next execution.
func (r *Run) leaveSession(ctx context.Context, tx *db.Tx) error {
	if !r.live {
		return nil
	}

	r.live = false
	_, err := tx.Exec(ctx, undeliveredSQL, r.ID, r.Execution)
	return err
}

const waitingMessagesSQL = `SELECT message
FROM followups
WHERE run_id = $1
	AND (execution > $2 OR execution = $2 AND live = 1)
ORDER BY execution, uid`

// WaitingMessages returns the messages to a run that its agent has not got yet, the oldest first.
func (s *Store) WaitingMessages(ctx context.Context, r Run) ([]string, error) {
	return db.Strings(ctx, s.db.Reader, waitingMessagesSQL, r.ID, r.Execution)
}

// LiveMessage is a message for the living session of an agent.
type LiveMessage struct{ UID, Text string }

const (
	liveSQL = `UPDATE runs
		SET live = 1
		WHERE id = $1`

	liveMessagesSQL = `SELECT uid, message
		FROM followups
		WHERE run_id = $1 AND execution = $2 AND live = 1
		ORDER BY uid`

	deliveredSQL = `UPDATE followups
		SET live = 2
		WHERE run_id = $1 AND uid = $2`

	roomForOneSQL = `UPDATE runs
		SET next_seq = next_seq + 1
		WHERE id = $1`
)

// Inbox returns the messages for the living session of a claim that it has not got, the oldest first, and the answers
// to questions of its execution. From now on, messages to the run go to the session. seen is the UID of the last
// message that the agent got: it becomes part of the conversation. ErrLost when the claim no longer holds.
func (s *Store) Inbox(ctx context.Context, c Claim, seen string) (fresh []LiveMessage, answers []Question, err error) {
	spoken := false
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		fresh, answers, spoken = nil, nil, false
		r, err := s.lockHeld(ctx, tx, c)
		if err != nil {
			return err
		}
		if !r.live {
			if _, err := tx.Exec(ctx, liveSQL, r.ID); err != nil {
				return err
			}
		}

		scan := func(row db.Row) (m LiveMessage, err error) { return m, row.Scan(&m.UID, &m.Text) }
		waiting, err := db.All(ctx, tx.Reader, scan, liveMessagesSQL, r.ID, r.Execution)
		if err != nil {
			return err
		}

		for _, m := range waiting {
			if m.UID > seen {
				fresh = append(fresh, m)
				continue
			}
			if err := r.deliver(ctx, tx, m); err != nil {
				return err
			}
			spoken = true
		}

		answers, err = db.All(ctx, tx.Reader, scanQuestion, questionColumns+` AND execution = $2 AND choice <> ''`,
			r.ID, r.Execution)
		return err
	})
	if err == nil && spoken {
		s.Notify(notice.Run, c.RunID)
	}

	return fresh, answers, err
}

// deliver makes a message that reached the agent of a locked run a part of the conversation.
func (r *Run) deliver(ctx context.Context, tx *db.Tx, m LiveMessage) error {
	if _, err := tx.Exec(ctx, deliveredSQL, r.ID, m.UID); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, roomForOneSQL, r.ID); err != nil {
		return err
	}

	r.nextSeq++
	return r.say(ctx, tx, r.nextSeq-1, RoleUser, Text(m.Text), time.Now())
}

// FollowupOutcome is the effect of a follow-up message.
type FollowupOutcome string

// The outcomes (docs/contract.md, section 4).
const (
	FollowupQueued  FollowupOutcome = "queued_prompt"     // the agent gets it with the prompt of the queued run
	FollowupPending FollowupOutcome = "queue_pending"     // it waits for the end of the execution
	FollowupHandoff FollowupOutcome = "handoff_execution" // the run had ended, and is queued again
	FollowupLive    FollowupOutcome = "live_session"      // the worker hands it to the agent's living session
)

const insertFollowupSQL = `INSERT INTO followups (
	uid, run_id, factory_uid, message, execution, created_at, delivery_uid, live
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
