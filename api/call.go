package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
)

// Call sends a request to the program's own API in the name of a caller who authenticated by other means,
// such as a dashboard session. The request passes the same checks of role and fields as one from outside.
// path is relative to Base. in is sent as JSON, or unchanged if it is a []byte or io.Reader. The answer is
// decoded into out, or copied if out is an io.Writer; either may be nil. header has names and values in turn.
// An answer that is not a success is returned as an *Error.
func (a *API) Call(
	ctx context.Context,
	caller Caller,
	method, path string,
	in, out any,
	header ...string,
) error {
	var body io.Reader
	switch v := in.(type) {
	case nil:
	case io.Reader:
		body = v
	case []byte:
		body = bytes.NewReader(v)
	default:
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("call %s %s: %w", method, path, err)
		}

		body = bytes.NewReader(text)
	}

	ctx = context.WithValue(ctx, chi.RouteCtxKey, (*chi.Context)(nil)) // route it anew
	r, err := http.NewRequestWithContext(context.WithValue(ctx, calledByKey, caller), method, Base+path, body)
	if err != nil {
		return fmt.Errorf("call %s %s: %w", method, path, err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}

	answer := &answered{header: http.Header{}}
	if w, ok := out.(io.Writer); ok {
		answer.to = w
	}

	a.ServeHTTP(answer, r)
	switch {
	case answer.status >= 300:
		problem := &Error{header: http.Header{}}
		if err := json.Unmarshal(answer.body.Bytes(), problem); err != nil || problem.Code == "" {
			return Problem("internal_error", "")
		}

		return problem
	case out == nil || answer.to != nil:
		return nil
	}

	d := json.NewDecoder(&answer.body)
	d.UseNumber()
	if err := d.Decode(out); err != nil {
		return fmt.Errorf("call %s %s: %w", method, path, err)
	}

	return nil
}

// answered records the answer to a Call. It copies a success to to, if set.
type answered struct {
	header http.Header
	status int
	body   bytes.Buffer
	to     io.Writer
}

// Header returns the headers of the answer.
func (w *answered) Header() http.Header { return w.header }

// WriteHeader records the status of the answer.
func (w *answered) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write receives a part of the body.
func (w *answered) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.to != nil && w.status < 300 {
		return w.to.Write(b)
	}
	return w.body.Write(b)
}

// SetReadDeadline does nothing: a Call has no connection.
func (w *answered) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (w *answered) SetWriteDeadline(time.Time) error { return nil }
