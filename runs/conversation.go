package runs

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"millwright/api"
	"millwright/state"
)

// Conversation is what was said, in steps.
type Conversation struct {
	ConversationID string             `json:"conversation_id" doc:"The conversation's ID"`
	Steps          []ConversationStep `json:"steps" nullable:"false" doc:"What was said, a step for each execution of a run"`
}

// ConversationStep is one execution of a run.
type ConversationStep struct {
	ID       string                `json:"id" doc:"The step's ID"`
	Messages []ConversationMessage `json:"messages" nullable:"false" doc:"The messages, oldest first"`
	Steps    []ConversationStep    `json:"steps" nullable:"false" doc:"Steps inside this one: what attempts said that were given up, when a worker was lost or handed the run back"`
}

// ConversationMessage is one turn.
type ConversationMessage struct {
	Role      state.MessageRole   `json:"role" enum:"user,assistant" doc:"Who speaks"`
	Content   []ConversationBlock `json:"content" nullable:"false" doc:"The parts of the message"`
	Timestamp time.Time           `json:"timestamp" doc:"When it was said"`
}

// ConversationBlock is a part of a message. Which fields count depends on its type.
type ConversationBlock struct {
	Type     string `json:"type" enum:"text,action,action_result,event" doc:"Kind of the block"`
	Text     string `json:"text,omitempty" doc:"text: what is said"`
	ID       string `json:"id,omitempty" doc:"action: its ID"`
	ActionID string `json:"action_id,omitempty" doc:"action_result: the ID of its action"`
	Category string `json:"category,omitempty" doc:"action, action_result: kind of action; skill for skills" example:"skill"`
	Name     string `json:"name,omitempty" doc:"What is done, or what happened; read_skill for the load of a skill" example:"read_skill"`
	State    string `json:"state,omitempty" doc:"action_result: how it ended"`
	Input    any    `json:"input,omitempty" doc:"action: what it was given; of read_skill: skill_path and, for bundled skills, bundled_skill_id"`
	Output   any    `json:"output,omitempty" doc:"action_result: what came out"`
	Data     any    `json:"data,omitempty" doc:"event: what it tells"`
}

type conversationInput struct {
	ID string `path:"id" doc:"The conversation's ID"`
}

const leftOut = "Of more than 16 MiB the newest is shown, and an event block named left_out stands for what was said before."

func (s *service) registerConversation() {
	api.Handle(
		s.api,
		api.Explained(
			api.Operation(
				http.MethodGet,
				"/agent/runs/{runId}/conversation",
				"getRunConversation",
				state.RoleViewer,
				"Show the conversation of a run",
			),
			"Only what was said in this run. "+leftOut,
		),
		func(ctx context.Context, in *RunPath) (Conversation, error) {
			r, err := s.run(ctx, *in)
			if err != nil {
				return Conversation{}, err
			}

			steps, err := s.Store.Steps(ctx, r, 0)
			return Conversation{r.ConversationID, conversationSteps(steps)}, err
		},
	)
	api.Handle(
		s.api,
		api.Explained(
			api.Operation(
				http.MethodGet,
				"/agent/conversations/{id}",
				"getConversation",
				state.RoleViewer,
				"Show a conversation",
			),
			"All runs that belong to it, oldest first. "+leftOut,
		),
		func(ctx context.Context, in *conversationInput) (Conversation, error) {
			id, err := uuid.Parse(in.ID)
			if err != nil {
				return Conversation{}, api.Problem("resource_not_found", "no such conversation")
			}

			runs, err := s.Store.Conversation(ctx, id.String(), "")
			c := Conversation{id.String(), []ConversationStep{}}
			for _, r := range runs {
				c.Steps = append(c.Steps, conversationSteps(r.Steps)...)
			}

			return c, err
		},
	)
}

func conversationSteps(steps []state.Step) []ConversationStep {
	all := []ConversationStep{}
	for _, step := range steps {
		out := ConversationStep{ID: step.ID, Messages: []ConversationMessage{}, Steps: conversationSteps(step.Steps)}
		for _, m := range step.Messages {
			out.Messages = append(out.Messages, message(m))
		}
		all = append(all, out)
	}
	return all
}

func message(m state.Message) ConversationMessage {
	out := ConversationMessage{Role: m.Role, Content: []ConversationBlock{}, Timestamp: m.At}
	for _, b := range m.Content {
		block := ConversationBlock{
			Type:     b.Type,
			Text:     b.Text,
			ID:       b.ID,
			ActionID: b.ActionID,
			Category: b.Category,
			Name:     b.Name,
			State:    b.State,
		}
		if b.Input != nil {
			block.Input = b.Input
		}
		if b.Output != nil {
			block.Output = b.Output
		}
		if b.Data != nil {
			block.Data = b.Data
		}

		out.Content = append(out.Content, block)
	}

	return out
}
