package runs

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"millwright/api"
	"millwright/state"
)

// Conversation is the conversation of one or more runs.
type Conversation struct {
	ConversationID string             `json:"conversation_id" doc:"The conversation's ID"`
	Steps          []ConversationStep `json:"steps" nullable:"false" doc:"The conversation, with one step for each execution"`
}

// ConversationStep is one execution of a run.
type ConversationStep struct {
	ID       string                `json:"id" doc:"The step's ID"`
	Messages []ConversationMessage `json:"messages" nullable:"false" doc:"The messages, oldest first"`
	Steps    []ConversationStep    `json:"steps" nullable:"false" doc:"Nested steps: output of earlier attempts, whose worker was lost or returned the run"`
}

// ConversationMessage is one turn.
type ConversationMessage struct {
	Role      state.MessageRole   `json:"role" enum:"user,assistant" doc:"Author of the message"`
	Content   []ConversationBlock `json:"content" nullable:"false" doc:"The parts of the message"`
	Timestamp time.Time           `json:"timestamp" doc:"Time of the message"`
}

// ConversationBlock is a part of a message. Which fields count depends on its type.
type ConversationBlock struct {
	Type     string `json:"type" enum:"text,action,action_result,event" doc:"Kind of the block"`
	Text     string `json:"text,omitempty" doc:"text: the text"`
	ID       string `json:"id,omitempty" doc:"action: its ID"`
	ActionID string `json:"action_id,omitempty" doc:"action_result: the ID of its action"`
	Category string `json:"category,omitempty" doc:"action, action_result: kind of action. Presets write command, files, search, integration and skill" example:"skill"`
	Name     string `json:"name,omitempty" doc:"Name of the action or event; read_skill if a skill was loaded" example:"read_skill"`
	State    string `json:"state,omitempty" doc:"action_result: the end state. Presets write completed, failed and denied"`
	Input    any    `json:"input,omitempty" doc:"action: the input; for read_skill: skill_path and, for bundled skills, bundled_skill_id"`
	Output   any    `json:"output,omitempty" doc:"action_result: the output"`
	Data     any    `json:"data,omitempty" doc:"event: its data"`
}

type conversationInput struct {
	ID string `path:"id" doc:"The conversation's ID"`
}

const leftOut = "If it exceeds 16 MiB, the answer has the newest part, after an event block named left_out."

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
			"Returns the conversation of this run only. "+leftOut,
		),
		s.runConversation,
	)
	api.Handle(
		s.api,
		api.Explained(
			api.Filtered(api.Operation(
				http.MethodGet,
				"/agent/conversations/{id}",
				"getConversation",
				state.RoleViewer,
				"Show a conversation",
			)),
			"Returns all runs of the conversation, oldest first. "+leftOut,
		),
		s.conversation,
	)
}

func (s *service) runConversation(ctx context.Context, in *RunPath) (Conversation, error) {
	r, err := s.run(ctx, *in)
	if err != nil {
		return Conversation{}, err
	}

	steps, err := s.Store.Steps(ctx, r, 0)
	return Conversation{r.ConversationID, conversationSteps(steps)}, err
}

func (s *service) conversation(ctx context.Context, in *conversationInput) (Conversation, error) {
	id, err := uuid.Parse(in.ID)
	if err != nil {
		return Conversation{}, api.Problem("resource_not_found", "no such conversation")
	}

	if err := s.mayRead(ctx, id.String()); err != nil {
		return Conversation{}, err
	}

	runs, err := s.Store.Conversation(ctx, id.String(), "")
	c := Conversation{id.String(), []ConversationStep{}}
	for _, r := range runs {
		c.Steps = append(c.Steps, conversationSteps(r.Steps)...)
	}

	return c, err
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
