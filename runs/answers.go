package runs

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"millwright/api"
	"millwright/state"
)

// RunQuestion is what the agent of a run asks before it goes on.
type RunQuestion struct {
	QuestionID string              `json:"question_id" doc:"The question's ID"`
	Title      string              `json:"title" doc:"What the agent asks permission for"`
	Input      any                 `json:"input,omitempty" doc:"What it is about to do"`
	Choices    []RunQuestionChoice `json:"choices" nullable:"false" doc:"The possible answers"`
	AskedAt    time.Time           `json:"asked_at" doc:"When it was asked"`
}

// RunQuestionChoice is a possible answer.
type RunQuestionChoice struct {
	ID   string `json:"id" doc:"Value for choice of an answer"`
	Name string `json:"name" doc:"Text for people"`
	Kind string `json:"kind" doc:"allow_once, allow_always, reject_once, reject_always, or another"`
}

// RunAnswerRequest answers a question.
type RunAnswerRequest struct {
	QuestionID string `json:"question_id" minLength:"1" maxLength:"100" doc:"The question"`
	Choice     string `json:"choice" minLength:"1" maxLength:"200" doc:"The ID of a choice; approve and deny stand for the first one that allows and rejects, once before always"`
	Message    string `json:"message,omitempty" maxLength:"4000" doc:"Text for the conversation. An agent whose session has ended gets it too"`
}

// RunAnswerResponse is the effect of an answer.
type RunAnswerResponse struct {
	QuestionID string                `json:"question_id" doc:"The question"`
	Outcome    state.FollowupOutcome `json:"outcome" enum:"live_session,handoff_execution" doc:"live_session: the agent waits for the answer and goes on. handoff_execution: its session had ended, and the run is queued to resume it"`
	State      RunState              `json:"state" doc:"State of the run now"`
}

type answerInput struct {
	RunPath
	Body RunAnswerRequest
}

func (s *service) registerAnswers() {
	api.Handle(
		s.api,
		api.Also(api.Explained(
			api.Operation(
				http.MethodPost,
				"/agent/runs/{runId}/answers",
				"answerQuestion",
				state.RoleRunner,
				"Answer what an agent asks",
			),
			"A run is BLOCKED while its agent waits for permission. The field questions lists what it asks. "+
				"The run goes on after the last answer. "+
				"409 when the question has an answer, or the run went on without one.",
		), http.StatusConflict),
		s.answer,
	)
}

func (s *service) answer(ctx context.Context, in *answerInput) (RunAnswerResponse, error) {
	id, ok := runID(in.RunID)
	if !ok {
		return RunAnswerResponse{}, noRun(in.RunID)
	}
	if !clean(in.Body.Message) {
		return RunAnswerResponse{}, api.InvalidField("message", "holds a NUL character or invalid UTF-8")
	}
	if err := s.mayContinue(ctx, id); err != nil {
		return RunAnswerResponse{}, err
	}

	questions, err := s.Store.Questions(ctx, id)
	if err != nil {
		return RunAnswerResponse{}, err
	}
	for _, q := range questions {
		if q.UID != in.Body.QuestionID || q.Closed != nil {
			continue
		}
		if _, ok := q.Choose(in.Body.Choice); !ok {
			return RunAnswerResponse{}, api.InvalidField("choice", "want one of "+strings.Join(choiceIDs(q), ", "))
		}
	}

	r, outcome, err := s.Store.AnswerQuestion(ctx, id, state.Answer{
		Question: in.Body.QuestionID,
		Choice:   in.Body.Choice,
		Message:  strings.TrimSpace(in.Body.Message),
		By:       api.KeyOf(ctx).Name,
	})
	return RunAnswerResponse{in.Body.QuestionID, outcome, RunState(r.State)}, err
}

func choiceIDs(q state.Question) (ids []string) {
	for _, c := range q.Choices {
		ids = append(ids, c.ID)
	}
	return ids
}

// openQuestions returns the questions of a run that wait for an answer.
func (s *service) openQuestions(ctx context.Context, r state.Run) ([]RunQuestion, error) {
	if r.State != state.RunBlocked {
		return nil, nil
	}

	questions, err := s.Store.Questions(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	var open []RunQuestion
	for _, q := range questions {
		if q.Closed != nil {
			continue
		}

		item := RunQuestion{QuestionID: q.UID, Title: q.Title, Choices: []RunQuestionChoice{}, AskedAt: q.Asked}
		if len(q.Input) > 0 && json.Unmarshal(q.Input, &item.Input) != nil {
			item.Input = nil
		}
		for _, c := range q.Choices {
			item.Choices = append(item.Choices, RunQuestionChoice(c))
		}
		open = append(open, item)
	}
	return open, nil
}
