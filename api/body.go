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

// What a body is estimated to take once it is parsed.
const (
	parsedTimes = 2   // the bytes of its texts
	parsedValue = 400 // each value: a map of one member
)

// bounded is the key of an operation's Metadata for what bounds its bodies.
const bounded = "bounded"

// Bounded says how bodies of an operation are bounded. The zero value bounds them as usual.
type Bounded struct {
	// Keyless is the most that a body without a key may have, in bytes; 0: as much as with one.
	Keyless int64
	// Bytes holds the bodies without a key; nil: the pool that such operations share.
	Bytes *bounds.Pool
	// Raw says that bodies are not parsed as JSON.
	Raw bool
	// Keyed and Strangers bound the work for a body, with a key and without.
	Keyed, Strangers *bounds.Slots
}

// WithBounds makes op an operation whose bodies are bounded so.
func WithBounds(op huma.Operation, b Bounded) huma.Operation {
	op.Metadata[bounded] = b
	return op
}

// receive reads the body of a request before it is parsed. It holds room for what arrives, and for what
// parsing makes of it, until the request is answered; work that costs much begins when it is its turn.
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

// holder returns for whom, and how, the body of a request is held.
func (a *API) holder(
	r *http.Request,
	ctx huma.Context,
	b Bounded,
) (sender string, raw bounds.Hold, limit int64, slots *bounds.Slots) {
	limit = ctx.Operation().MaxBodyBytes - 1
	if key := KeyOf(ctx.Context()).UID; key != "" {
		if r.Context().Value(callerKey) == nil { // else it is in memory, and whoever calls holds it
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

// discard reads up to most bytes of a body that is refused, within the time for bodies, and holds none of
// them. A client that sends the whole body before it reads would else lose its connection, and with it the
// answer.
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

	return nil, Problem("invalid_request", "the body broke off, or is not as its headers say")
}

// parse takes room for what parsing makes of a body. Unless the endpoint looks into the body itself, it is
// parsed wholly, and may hold so many values.
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

// received is a body in memory, which is let go of once it was read.
type received struct{ rest []byte }

// Read reads the next part.
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
