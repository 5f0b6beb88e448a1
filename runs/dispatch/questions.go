package dispatch

import (
	"context"
	"encoding/json"
	"fmt"

	"millwright/runs/wire"
	"millwright/state"
)

// Limits of a question.
const (
	maxTitle   = 500      // characters
	maxInput   = 64 << 10 // bytes
	maxChoices = 20
	maxChoice  = 200 // bytes of each text
)

// onAsk records a question of an agent.
func (d *Dispatcher) onAsk(ctx context.Context, worker string, r wire.Request) wire.Answer {
	q := r.Question
	if q == nil || q.Title == "" || len(q.Choices) == 0 || len(q.Choices) > maxChoices || len(q.Input) > maxInput ||
		len(q.Input) > 0 && (!json.Valid(q.Input) || wire.Deep(q.Input)) {
		return failure(fmt.Errorf("question: want a title, at most %d choices, and an input of at most %d bytes: %w",
			maxChoices, maxInput, wire.ErrRefused))
	}

	asked := state.Question{Title: clean(q.Title, maxTitle), Input: q.Input}
	for _, c := range q.Choices {
		if c.ID == "" || clean(c.ID, maxChoice) != c.ID {
			return failure(fmt.Errorf("choice %.50q: %w", c.ID, wire.ErrRefused))
		}
		asked.Choices = append(asked.Choices, state.Choice{
			ID: c.ID, Name: clean(c.Name, maxChoice), Kind: clean(c.Kind, maxChoice),
		})
	}

	uid, err := d.cfg.Store.AskQuestion(ctx, claimOf(worker, r), asked)
	if err != nil {
		return failure(err)
	}
	return wire.Answer{UID: uid}
}

// onInbox answers with the messages and replies for an agent's living session.
func (d *Dispatcher) onInbox(ctx context.Context, worker string, r wire.Request) wire.Answer {
	messages, answered, err := d.cfg.Store.Inbox(ctx, claimOf(worker, r), r.Seen)
	if err != nil {
		return failure(err)
	}

	inbox := &wire.Mail{Replies: replies(answered)}
	size := 0
	for _, m := range messages {
		if size += len(m.Text); size > wire.MaxInline && len(inbox.Messages) > 0 {
			break // it asks for more when it has these
		}
		inbox.Messages = append(inbox.Messages, wire.LiveMessage(m))
	}

	return wire.Answer{Inbox: inbox}
}

func replies(answered []state.Question) (all []wire.Reply) {
	for _, q := range answered {
		all = append(all, wire.Reply{Question: q.UID, Title: q.Title, Choice: q.Choice, Message: q.Message})
	}
	return all
}

// lateReplies returns the answers that the session before the run's present execution did not live to see.
func (d *Dispatcher) lateReplies(ctx context.Context, r state.Run) ([]wire.Reply, error) {
	if r.Execution == 1 {
		return nil, nil
	}

	all, err := d.cfg.Store.Questions(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	var late []state.Question
	for _, q := range all {
		if q.Late && q.Execution == r.Execution-1 {
			late = append(late, q)
		}
	}
	return replies(late), nil
}
