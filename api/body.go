package api

import (
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"millwright/bounds"
)

// Estimated memory of a parsed body.
const (
	parsedTimes = 2   // per byte of text
	parsedValue = 400 // per value: a map with one member
)

// bounded is the key of an operation's Metadata for its Bounded.
const bounded = "bounded"

// Bounded configures the bounds of an operation's bodies. The zero value means the defaults.
type Bounded struct {
	// Keyless is the limit of a body without a key, in bytes; 0: the same as with a key.
	Keyless int64
	// Bytes is the pool for bodies without a key; nil: the shared pool of such operations.
	Bytes *bounds.Pool
	// Raw marks operations whose bodies are not parsed as JSON.
	Raw bool
	// Keyed and Strangers bound concurrent work on bodies, with a key and without.
	Keyed, Strangers *bounds.Slots
}

// WithBounds sets the bounds of op.
func WithBounds(op huma.Operation, b Bounded) huma.Operation {
	op.Metadata[bounded] = b
	return op
}

// receive reads the body of a request before it is parsed. It reserves room for the bytes that arrive and
// for their parsed form, until the request is answered. Expensive work waits for its turn.
func (a *API) receive(ctx huma.Context, next func(huma.Context)) {
	op := ctx.Operation()
	if op.RequestBody == nil {
		next(ctx)
		return
	}

	r, w := humachi.Unwrap(ctx)
	b, _ := op.Metadata[bounded].(Bounded)
	sender, raw, limit, slots := a.holder(r, ctx, b)
	defer raw.Release()

	body, problem := readBody(&raw, r, limit)
	if problem != nil {
		if problem.Status == http.StatusRequestEntityTooLarge && KeyOf(ctx.Context()).UID != "" {
			discard(r, 2*limit)
		}
		a.write(w, r, problem)
		return
	}

	if slots != nil {
		leave, ok := slots.Enter(r.Context(), sender)
		if !ok {
			a.write(
				w,
				r,
				Problem(
					"resource_unavailable",
					"too many requests of this kind at once: try again soon",
				).WithRetryAfter(2),
			)
			return
		}
		defer leave()
	}

	parsed := a.cfg.Bounds.Parsed.Hold(sender)
	defer parsed.Release()

	if problem := parse(&parsed, body, op.SkipValidateBody, b.Raw); problem != nil {
		a.write(w, r, problem)
		return
	}

	r.Body = &received{body}
	next(ctx)
}

// holder returns the sender and the pool that a request's body counts for.
func (a *API) holder(
	r *http.Request,
	ctx huma.Context,
	b Bounded,
) (sender string, raw bounds.Hold, limit int64, slots *bounds.Slots) {
	limit = ctx.Operation().MaxBodyBytes - 1
	if key := KeyOf(ctx.Context()).UID; key != "" {
		if r.Context().Value(calledByKey) == nil { // else the body is in memory, and the caller holds it
			raw = a.cfg.Bounds.Keyed.Hold(key)
		}
		return key, raw, limit, b.Keyed
	}

	if b.Keyless > 0 {
		limit = b.Keyless
	}

	pool := b.Bytes
	if pool == nil {
		pool = a.cfg.Bounds.Keyless
	}

	sender = a.SenderOf(r)
	return sender, pool.Hold(sender), limit, b.Strangers
}

// ReceiveBody reads the JSON body of a request behind Authorised. Until release is called, it reserves room for
// the body and its parsed form.
func (a *API) ReceiveBody(r *http.Request) (body []byte, release func(), problem *Error) {
	sender := KeyOf(r.Context()).UID
	raw, parsed := a.cfg.Bounds.Keyed.Hold(sender), a.cfg.Bounds.Parsed.Hold(sender)
	release = func() {
		raw.Release()
		parsed.Release()
	}

	body, problem = readBody(&raw, r, bounds.MaxBody)
	if problem == nil {
		problem = parse(&parsed, body, false, false)
	}
	if problem != nil {
		release()
	}
	return body, release, problem
}

// discard reads and drops up to most bytes of a refused body, within the time for bodies. Otherwise a
// client that sends its whole body before it reads would lose the connection, and with it the answer.
func discard(r *http.Request, most int64) {
	if r.Body == nil || r.Header.Get("Expect") != "" || r.ContentLength > most {
		return
	}

	io.CopyN(io.Discard, r.Body, most)
}

// readBody reads the whole body.
func readBody(hold *bounds.Hold, r *http.Request, limit int64) ([]byte, *Error) {
	if r.Body == nil {
		return nil, nil
	}

	length := r.ContentLength
	if length == 0 && r.Body != http.NoBody { // of a Call
		length = -1
	}

	body, err := hold.ReadBody(r.Body, length, limit)
	var network net.Error
	switch {
	case err == nil:
		return body, nil
	case errors.Is(err, bounds.ErrTooLarge):
		return nil, tooLarge(limit)
	case errors.Is(err, bounds.ErrNoRoom):
		return nil, Problem("resource_unavailable", "too many bytes of requests at once: try again soon")
	case errors.As(err, &network) && network.Timeout():
		return nil, Problem("invalid_request", "the body did not arrive in time")
	}

	return nil, Problem("invalid_request", "the body is incomplete, or does not match its headers")
}

// parse reserves room for the parsed form of a body. Unless the endpoint parses the body itself, it limits
// the number of JSON values.
func parse(hold *bounds.Hold, body []byte, itself, raw bool) *Error {
	if raw {
		return nil
	}

	values := bounds.Values(body)
	if values > bounds.MaxValues && !itself {
		return Problem("payload_too_large", "the body holds more than %d values", bounds.MaxValues)
	}

	estimate := parsedTimes * len(body)
	if !itself {
		estimate += parsedValue * values
	}
	if !hold.Grow(int64(estimate)) {
		return Problem("resource_unavailable", "too many requests are being parsed: try again soon")
	}

	return nil
}

// received is a body in memory, which is freed once read.
type received struct{ rest []byte }

// Read implements io.Reader.
func (b *received) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	if b.rest = b.rest[n:]; len(b.rest) == 0 {
		b.rest = nil
	}
	return n, nil
}

// Close does nothing.
func (b *received) Close() error { return nil }
