package runs

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millwright/api"
	"millwright/state"
	"millwright/state/notice"
)

type eventsInput struct {
	RunPath
	LastEventID string `header:"Last-Event-ID" maxLength:"30" doc:"ID of the last received event; the stream continues after it"`
}

func (s *service) registerEvents() {
	op := api.Explained(
		api.Operation(
			http.MethodGet,
			"/agent/runs/{runId}/events",
			"streamRunEvents",
			state.RoleViewer,
			"Follow a run",
		),
		"Server-sent events: state with a RunStateEvent, message with a ConversationMessage. The stream "+
			"ends with the run; a client that reconnects then gets 204.",
	)

	schemas := s.api.Huma().OpenAPI().Components.Schemas
	schemas.Schema(typeOf[RunStateEvent](), true, "")
	schemas.Schema(typeOf[ConversationMessage](), true, "")
	op = api.EventStream(op)
	op.Responses["204"] = &huma.Response{Description: "The run has ended, and the client has every event"}
	api.Register(s.api, op, s.events)
}

// events opens the stream of a run.
func (s *service) events(ctx context.Context, in *eventsInput) (*huma.StreamResponse, error) {
	r, err := s.run(ctx, in.RunPath)
	if err != nil {
		return nil, err
	}

	stream := &eventStream{service: s, run: r, last: -1}
	if in.LastEventID != "" {
		if stream.last, err = strconv.ParseInt(in.LastEventID, 10, 64); err != nil || stream.last < 0 ||
			stream.last > r.LastEntry() {
			return nil, api.InvalidField("Last-Event-ID", "not an ID of an event of this stream")
		}
	}

	if r.Ended() && stream.last >= 0 {
		entries, err := s.Store.Entries(ctx, r.ID, stream.last, 1)
		if err != nil {
			return nil, err
		}
		if len(entries) == 0 {
			return &huma.StreamResponse{Body: func(ctx huma.Context) { ctx.SetStatus(http.StatusNoContent) }}, nil
		}
	}

	return s.api.StreamEvents(ctx, s.api.Bounds().RunStreams, func(ctx context.Context, events *api.Events) {
		stream.Events = events
		if err := stream.follow(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("event stream ended", "run_id", r.ID, "error", err)
		}
	})
}

// eventStream writes the events of a run.
type eventStream struct {
	*service
	*api.Events
	run  state.Run
	last int64 // the last entry that was written; 0 is the run's creation
}

// keepAlive is the interval of keep-alive comments on an idle stream, for proxies.
const keepAlive = 15 * time.Second

// follow writes events until the run has ended, or ctx has.
func (e *eventStream) follow(ctx context.Context) error {
	notices, end := e.Store.Subscribe(64, notice.Run)
	defer end()

	poll := time.NewTicker(2 * time.Second) // a notice may be lost
	defer poll.Stop()

	alive := time.NewTicker(keepAlive)
	defer alive.Stop()

	for {
		if err := e.catchUp(ctx); err != nil {
			return err
		}
		if e.run.Ended() {
			return nil
		}

		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case n := <-notices:
				waiting = n.ID != e.run.ID
			case <-poll.C:
				waiting = false
			case <-alive.C:
				if err := e.Waiting(); err != nil {
					return err
				}
			}
		}
	}
}

// catchUp writes all events up to now.
func (e *eventStream) catchUp(ctx context.Context) error {
	r, err := e.Store.Run(ctx, e.run.ID) // before the entries, so that an end is not written before them
	if err != nil {
		return err
	}

	e.run = r
	if e.last < 0 {
		first := RunStateEvent{RunID: r.ID, State: queued, Execution: 1, Attempt: 1, Timestamp: r.Created}
		if err := e.send("state", 0, first); err != nil {
			return err
		}
		e.last = 0
	}

	const page = 50 // entries may be large
	for {
		entries, err := e.Store.Entries(ctx, r.ID, e.last, page)
		if err != nil {
			return err
		}

		for _, entry := range entries {
			if err := e.entry(ctx, entry); err != nil {
				return err
			}
			e.last = entry.Seq
		}

		if len(entries) < page {
			return nil
		}
	}
}

func (e *eventStream) entry(ctx context.Context, entry state.Entry) error {
	if entry.Message != nil {
		return e.send("message", entry.Seq, message(*entry.Message))
	}

	c := entry.Change
	if c.State == state.RunClaimed && c.Attempt == 1 { // the prompt of this execution is fixed now
		steps, err := e.Store.Steps(ctx, e.run, 1)
		if err != nil {
			return err
		}

		if i := c.Execution - 1; i < len(steps) && len(steps[i].Messages[0].Content) > 0 {
			if err := e.send("message", -1, message(steps[i].Messages[0])); err != nil {
				return err
			}
		}
	}

	return e.send("state", entry.Seq, stateEvent(e.run.ID, entry))
}

// send writes an event. An event with a negative ID is sent together with the next one.
func (e *eventStream) send(name string, id int64, data any) error {
	if id < 0 {
		return e.Send(name, "", data)
	}
	return e.Send(name, strconv.FormatInt(id, 10), data)
}
