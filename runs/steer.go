package runs

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"millwright/api"
	"millwright/state"
	"millwright/state/notice"
)

// RunFollowupRequest is a message to a run.
type RunFollowupRequest struct {
	Message string `json:"message" minLength:"1" doc:"The text; not blank"`
}

// RunFollowupResponse is the effect of a message.
type RunFollowupResponse struct {
	FollowupID string                `json:"followup_id" doc:"The message's ID"`
	Outcome    state.FollowupOutcome `json:"outcome" enum:"queued_prompt,queue_pending,handoff_execution,live_session" doc:"queued_prompt: the message joined the prompt of the queued run. queue_pending: it follows when the execution ends. handoff_execution: the run had ended, and is queued again. live_session: the agent's living session gets it when its present turn ends"`
}

type followupInput struct {
	RunPath
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"Repeats with the same key and body within 24 hours get the first answer, and send nothing"`
	Body           RunFollowupRequest
	RawBody        []byte
}

type conversationFollowupInput struct {
	ID             string `path:"id" doc:"The conversation's ID"`
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"Repeats with the same key and body within 24 hours get the first answer, and send nothing"`
	Body           RunFollowupRequest
	RawBody        []byte
}

// ConversationFollowupResponse is the effect of a message to a conversation.
type ConversationFollowupResponse struct {
	RunFollowupResponse
	RunID string `json:"run_id" doc:"The newest run of the conversation, which got the message"`
}

// cancelWait is how long a cancel waits for the run to end (docs/contract.md, section 4).
const cancelWait = 10 * time.Second

func (s *service) registerSteer() {
	api.Handle(
		s.api,
		api.Also(api.Explained(
			api.Operation(
				http.MethodPost,
				"/agent/runs/{runId}/followups",
				"createFollowup",
				state.RoleRunner,
				"Send a message to a run",
			),
			"Queues a run that has ended again, as a new execution of the same run. Repeats with the "+
				"same Idempotency-Key get the first answer for 24 hours.",
		), http.StatusConflict),
		s.followup,
	)
	api.Handle(
		s.api,
		api.Explained(
			api.Operation(
				http.MethodPost,
				"/agent/runs/{runId}/cancel",
				"cancelRun",
				state.RoleRunner,
				"Cancel a run",
			),
			"Cancels a queued run at once. A run in progress is stopped, and killed after 5 seconds; the "+
				"answer comes when it is CANCELLED, or after 10 seconds, with cancel_requested_at set. "+
				"The answer is the run's ID.",
		),
		s.cancel,
	)

	s.registerConversationFollowup()
}

func (s *service) registerConversationFollowup() {
	api.Handle(
		s.api,
		api.Also(api.Explained(
			api.Filtered(api.Operation(
				http.MethodPost,
				"/agent/conversations/{id}/followups",
				"createConversationFollowup",
				state.RoleRunner,
				"Send a message to a conversation",
			)),
			"Sends the message to its newest run, like POST /agent/runs/{runId}/followups.",
		), http.StatusConflict),
		s.conversationFollowup,
	)
}

func (s *service) conversationFollowup(
	ctx context.Context,
	in *conversationFollowupInput,
) (ConversationFollowupResponse, error) {
	id, err := uuid.Parse(in.ID)
	if err != nil {
		return ConversationFollowupResponse{}, api.Problem("resource_not_found", "no such conversation")
	}

	if err := s.mayRead(ctx, id.String()); err != nil {
		return ConversationFollowupResponse{}, err
	}

	runID, err := s.Store.NewestRun(ctx, id.String())
	if err != nil {
		return ConversationFollowupResponse{}, err
	}

	answer, err := s.followup(ctx, &followupInput{RunPath{runID}, in.IdempotencyKey, in.Body, in.RawBody})
	return ConversationFollowupResponse{answer, runID}, err
}

func (s *service) followup(ctx context.Context, in *followupInput) (RunFollowupResponse, error) {
	id, ok := runID(in.RunID)
	if !ok {
		return RunFollowupResponse{}, noRun(in.RunID)
	}
	if blank(in.Body.Message) {
		return RunFollowupResponse{}, api.InvalidField("message", "required")
	}
	if !clean(in.Body.Message) {
		return RunFollowupResponse{}, api.InvalidField("message", "holds a NUL character or invalid UTF-8")
	}
	if err := s.mayContinue(ctx, id); err != nil {
		return RunFollowupResponse{}, err
	}

	uid, outcome, err := s.Store.Followup(
		ctx,
		id,
		in.Body.Message,
		idempotency(ctx, in.IdempotencyKey, append([]byte(id+"\n"), in.RawBody...)),
	)
	if errors.Is(err, state.ErrFull) { // they are sent when the execution ends
		return RunFollowupResponse{}, api.Problem("conflict", "%s", state.Detail(err)).WaitingHelps()
	}

	return RunFollowupResponse{uid, outcome}, err
}

func (s *service) cancel(ctx context.Context, in *RunPath) (string, error) {
	id, ok := runID(in.RunID)
	if !ok {
		return "", noRun(in.RunID)
	}

	notices, end := s.Store.Subscribe(64, notice.Run)
	defer end()

	r, err := s.Store.RequestCancel(ctx, id, api.KeyOf(ctx).Name)
	if errors.Is(err, state.ErrConflict) {
		return "", api.Problem("invalid_request", "%s", state.Detail(err))
	}

	if err != nil {
		return "", err
	}
	if s.Dispatcher != nil {
		s.Dispatcher.Cancelled(r)
	}

	patience := time.NewTimer(cancelWait)
	defer patience.Stop()

	poll := time.NewTicker(500 * time.Millisecond) // a notice may be lost
	defer poll.Stop()

	for {
		switch {
		case r.State == state.RunCancelled:
			return r.ID, nil
		case r.Ended():
			return "", api.Problem(
				"invalid_request",
				"run %s ended as %s before it could be cancelled",
				r.ID,
				r.State,
			)

		case r.CancelRequested == nil: // it was cancelled, and a follow-up reopened it meanwhile
			return r.ID, nil
		}

		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-patience.C:
				return r.ID, nil
			case n := <-notices:
				waiting = n.ID != r.ID
			case <-poll.C:
				waiting = false
			}
		}

		if r, err = s.Store.Run(ctx, id); err != nil {
			return "", err
		}
	}
}
