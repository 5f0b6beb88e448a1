package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"millwright/api/identity"
	"millwright/bounds"
	"millwright/state"
)

// Events is an open stream of server-sent events.
type Events struct {
	w interface{ Write([]byte) (int, error) }
}

const (
	// eventWrite is how long a client may take to receive an event.
	eventWrite = 10 * time.Second
	// keyCheck is the interval at which a stream checks that its key is still valid.
	keyCheck = 2 * time.Second
)

// StreamEvents returns an answer that runs follow to write a stream of events, while it holds one of
// streams. The stream ends when follow returns, when the server stops, or soon after the caller's key is
// revoked or expires. If too many streams are open, in all or of this key, the error is
// resource_unavailable.
func (a *API) StreamEvents(
	ctx context.Context,
	streams *bounds.Pool,
	follow func(context.Context, *Events),
) (*huma.StreamResponse, error) {
	caller := CallerOf(ctx)
	key := caller.UID
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
		events.flush() // tell the client at once that the stream is open
		if ctx.Method() == http.MethodHead {
			return
		}

		r, _ := humachi.Unwrap(ctx)
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
					if a.ended(until, caller, r) {
						return
					}
				}
			}
		}()

		follow(until, events)
	}}, nil
}

// ended reports whether the caller of a request may no longer use what it asked for: its key is revoked or has
// expired, or its ID token is worth less.
func (a *API) ended(ctx context.Context, caller Caller, r *http.Request) bool {
	if caller.Kind != CallerToken {
		key, err := a.cfg.Store.Key(ctx, caller.UID)
		return errors.Is(err, state.ErrNotFound) || err == nil && !key.Live(time.Now())
	}

	raw, _ := bearer(r.Header)
	key, err := a.keyOfToken(ctx, raw)
	var refusal *identity.Refusal
	return errors.As(err, &refusal) || err == nil && key.UID != caller.UID
}

// EventStream marks op as an operation that answers with server-sent events.
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

// Send writes an event. An event with an empty ID does not change where the stream would resume.
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

// Waiting sends a comment, so that proxies do not close a silent connection.
func (e *Events) Waiting() error { return e.write(": waiting\n\n") }

func (e *Events) write(text string) error {
	e.until(time.Now().Add(eventWrite))
	if _, err := e.w.Write([]byte(text)); err != nil {
		return err
	}
	e.flush()
	return nil
}

// flush sends the written bytes. It clears the deadline: over HTTP/2 a deadline would end the stream even
// between writes.
func (e *Events) flush() {
	e.until(time.Now().Add(eventWrite))
	if f, ok := e.w.(http.Flusher); ok {
		f.Flush()
	}
	e.until(time.Time{})
}

// until sets the write deadline, if the connection supports one.
func (e *Events) until(deadline time.Time) {
	if d, ok := e.w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = d.SetWriteDeadline(deadline)
	}
}
