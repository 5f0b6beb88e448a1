package runs

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"millwright/api"
	"millwright/state"
)

// RunTimeline lists the changes of a run.
type RunTimeline struct {
	Events []RunTimelineEvent `json:"events" nullable:"false" doc:"The changes of the run's state, oldest first: at most the first 1,000"`
}

// RunStateEvent is a state change of a run: the data of an event named state.
type RunStateEvent struct {
	RunID     string    `json:"run_id" doc:"The run's ID"`
	State     RunState  `json:"state" doc:"The new state"`
	Execution int       `json:"execution" doc:"Number of the execution, from 1; a follow-up to an ended run starts a new one"`
	Attempt   int       `json:"attempt" doc:"Number of the attempt, from 1"`
	Message   string    `json:"message,omitempty" doc:"Text for people"`
	ErrorCode string    `json:"error_code,omitempty" doc:"Kind of failure"`
	Timestamp time.Time `json:"timestamp" doc:"Time of the change"`
}

// RunTimelineEvent is one change of a run's state.
type RunTimelineEvent struct {
	EventUUID   string        `json:"event_uuid" doc:"The event's identifier"`
	EventType   string        `json:"event_type" enum:"oz_run_created,oz_run_claimed,agent_started,oz_run_done,oz_run_failed,oz_run_errored,oz_run_blocked,oz_run_cancelled" doc:"What happened: the run was queued, claimed by a worker, begun, and ended as SUCCEEDED, FAILED, ERROR, BLOCKED or CANCELLED"`
	RunID       string        `json:"run_id" doc:"The run"`
	ExecutionID int           `json:"execution_id" doc:"Which execution, from 1"`
	OccurredAt  time.Time     `json:"occurred_at" doc:"When it happened"`
	Payload     RunStateEvent `json:"payload" doc:"The change, as the stream of events has it"`
}

func (s *service) registerTimeline() {
	api.Handle(s.api, api.Explained(
		api.Operation(http.MethodGet, "/agent/runs/{runId}/timeline", "getRunTimeline", state.RoleViewer,
			"Show the changes of a run's state"),
		"The first entry is the creation of the run.",
	), s.timeline)
}

func (s *service) timeline(ctx context.Context, in *RunPath) (RunTimeline, error) {
	r, err := s.run(ctx, *in)
	if err != nil {
		return RunTimeline{}, err
	}

	changes, err := s.Store.RunChanges(ctx, r.ID)
	if err != nil {
		return RunTimeline{}, err
	}

	created := state.Entry{At: r.Created, Change: &state.ChangeInfo{State: state.RunQueued, Execution: 1, Attempt: 1}}
	out := RunTimeline{Events: []RunTimelineEvent{}}
	for _, e := range append([]state.Entry{created}, changes...) {
		out.Events = append(out.Events, RunTimelineEvent{
			EventUUID:   uuid.NewSHA1(uuid.MustParse(r.ID), strconv.AppendInt(nil, e.Seq, 10)).String(),
			EventType:   eventType(e.Change.State),
			RunID:       r.ID,
			ExecutionID: e.Change.Execution,
			OccurredAt:  e.At,
			Payload:     stateEvent(r.ID, e),
		})
	}

	return out, nil
}

// eventType returns the word of timelines for a state that a run is now in.
func eventType(st state.RunState) string {
	switch st {
	case state.RunClaimed:
		return "oz_run_claimed"
	case state.RunInProgress:
		return "agent_started"
	case state.RunSucceeded:
		return "oz_run_done"
	case state.RunFailed:
		return "oz_run_failed"
	case state.RunError:
		return "oz_run_errored"
	case state.RunBlocked:
		return "oz_run_blocked"
	case state.RunCancelled:
		return "oz_run_cancelled"
	}

	return "oz_run_created"
}

// stateEvent describes a change of a run's state.
func stateEvent(runID string, e state.Entry) RunStateEvent {
	return RunStateEvent{
		RunID:     runID,
		State:     RunState(e.Change.State),
		Execution: e.Change.Execution,
		Attempt:   e.Change.Attempt,
		Message:   e.Change.Message,
		ErrorCode: e.Change.ErrorCode,
		Timestamp: e.At,
	}
}
