package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millwright/bounds"
	"millwright/state"
)

// Events is a stream of server-sent events under way.
type Events struct {
	w interface{ Write([]byte) (int, error) }
}

const (
	// eventWrite is how long a client may take to receive one event.
	eventWrite = 10 * time.Second
	// keyCheck is how often it is looked whether the key of a stream still holds.
	keyCheck = 2 * time.Second
)

// StreamEvents returns the answer that holds one of streams while follow writes a stream, until its context
// ends; with the server, or soon after the caller's key is revoked or expires. It is the problem
// resource_unavailable when too many streams are open, of this key or in all.
func (a *API) StreamEvents(
	ctx context.Context,
	streams *bounds.Pool,
	follow func(context.Context, *Events),
) (*huma.StreamResponse, error) {
	key := KeyOf(ctx).UID
	if !streams.Take(key, 1) {
		return nil, Problem("resource_unavailable", "too many event streams are open")
	}

	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		defer streams.Give(key, 1)

		ctx.SetHeader("Content-Type", "text/event-stream")
		ctx.SetHeader("Cache-Control", "no-store")
		ctx.SetHeader("X-Accel-Buffering", "no")
		ctx.SetStatus(http.StatusOK)
		events := &Events{ctx.BodyWriter()}
		events.flush() // the client learns at once that the stream is open
		if ctx.Method() == http.MethodHead {
			return
		}

		until, cancel := context.WithCancel(ctx.Context())
		defer cancel()

		go func() {
			defer cancel()

			check := time.NewTicker(keyCheck)
			defer check.Stop()

			for {
				select {
				case <-a.cfg.Done:
					return
				case <-until.Done():
					return
				case <-check.C:
					key, err := a.cfg.Store.Key(until, KeyOf(until).UID)
					if errors.Is(err, state.ErrNotFound) || err == nil && !key.Live(time.Now()) {
						return
					}
				}
			}
		}()

		follow(until, events)
	}}, nil
}

// EventStream makes op an operation that answers with server-sent events.
func EventStream(op huma.Operation) huma.Operation {
	op.Responses = map[string]*huma.Response{"200": {
		Description: "The events",
		Content: map[string]*huma.MediaType{
			"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString, Description: "Server-sent events"}},
		},
	}}
	op.DefaultStatus = http.StatusOK
	return op
}

// Send writes an event. One with an empty ID does not move the place where the stream would be resumed.
func (e *Events) Send(name, id string, data any) error {
	body, err := json.Marshal(data)
	if err != nil {
		return err
	}
	text := ""
	if id != "" {
		text = "id: " + id + "\n"
	}
	return e.write(text + "event: " + name + "\ndata: " + string(body) + "\n\n")
}

// Waiting says that nothing happens, for proxies that would close a silent connection.
func (e *Events) Waiting() error { return e.write(": waiting\n\n") }

func (e *Events) write(text string) error {
	e.until(time.Now().Add(eventWrite))
	if _, err := e.w.Write([]byte(text)); err != nil {
		return err
	}
	e.flush()
	return nil
}

// flush sends what was written. It leaves no deadline: over HTTP/2 that would end the stream, though nobody
// writes.
func (e *Events) flush() {
	e.until(time.Now().Add(eventWrite))
	if f, ok := e.w.(http.Flusher); ok {
		f.Flush()
	}
	e.until(time.Time{})
}

// until sets the time at which writing fails, where the connection has one.
func (e *Events) until(deadline time.Time) {
	if d, ok := e.w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = d.SetWriteDeadline(deadline)
	}
}
