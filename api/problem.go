package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millwright/bounds"
	"millwright/state"
)

// Error is the body of every error answer: problem details (RFC 9457) with the members of docs/contract.md,
// section 3. The document names this model Error.
type Error struct {
	Type      string       `json:"type" doc:"URI reference that ends in the code" example:"/errors/invalid-request"`
	Title     string       `json:"title" doc:"Short text for the code"`
	Status    int          `json:"status" doc:"HTTP status"`
	Detail    string       `json:"detail,omitempty" doc:"The exact problem"`
	Instance  string       `json:"instance,omitempty" doc:"Path of the request"`
	Err       string       `json:"error" doc:"Title, or title (detail)"`
	Code      string       `json:"code" doc:"Kind of error" example:"invalid_request"`
	Retryable bool         `json:"retryable" doc:"Whether the same request may succeed later"`
	TraceID   string       `json:"trace_id,omitempty" doc:"ID of the request, also in the X-Request-Id header"`
	Errors    []FieldError `json:"errors,omitempty" doc:"The invalid fields"`

	header http.Header
}

// FieldError describes an invalid field of a request.
type FieldError struct {
	Field   string `json:"field" doc:"Path of the field" example:"config.skill_spec"`
	Message string `json:"message" doc:"The problem"`
}

var codes = map[string]struct {
	status    int
	title     string
	retryable bool
}{
	"invalid_request":         {http.StatusBadRequest, "Invalid request", false},
	"authentication_required": {http.StatusUnauthorized, "Authentication required", false},
	"not_authorized":          {http.StatusForbidden, "Not authorized", false},
	"resource_not_found":      {http.StatusNotFound, "Not found", false},
	"conflict":                {http.StatusConflict, "Conflict", false},
	"payload_too_large":       {http.StatusRequestEntityTooLarge, "Payload too large", false},
	"operation_not_supported": {http.StatusUnprocessableEntity, "Operation not supported", false},
	"rate_limited":            {http.StatusTooManyRequests, "Too many requests", true},
	"resource_unavailable":    {http.StatusServiceUnavailable, "Temporarily unavailable", true},
	"internal_error":          {http.StatusInternalServerError, "Internal error", true},
}

// Problem returns an error with one of the codes of docs/contract.md, section 3. detail is a format for
// args, and may be empty.
func Problem(code, detail string, args ...any) *Error {
	if len(args) > 0 {
		detail = fmt.Sprintf(detail, args...)
	}

	c, ok := codes[code]
	if !ok {
		code, c = "internal_error", codes["internal_error"]
	}

	e := &Error{
		Type: "/errors/" + strings.ReplaceAll(code, "_", "-"), Title: c.title, Status: c.status,
		Detail: detail, Code: code, Retryable: c.retryable, header: http.Header{},
	}
	switch code {
	case "conflict":
		e.header.Set("X-Should-Retry", "false")
	case "rate_limited", "resource_unavailable":
		e.header.Set("Retry-After", "1")
	case "authentication_required":
		e.header.Set("WWW-Authenticate", "Bearer")
	}

	return e
}

// InvalidField returns an invalid_request that names one field.
func InvalidField(field, message string, args ...any) *Error {
	if len(args) > 0 {
		message = fmt.Sprintf(message, args...)
	}
	e := Problem("invalid_request", "%s: %s", field, message)
	e.Errors = []FieldError{{field, message}}
	return e
}

// WithRetryAfter sets the seconds after which to retry, and returns e.
func (e *Error) WithRetryAfter(seconds int) *Error {
	e.header.Set("Retry-After", fmt.Sprint(seconds))
	return e
}

// WaitingHelps marks a conflict as temporary, and returns e.
func (e *Error) WaitingHelps() *Error {
	e.Retryable = true
	e.header.Set("X-Should-Retry", "true")
	e.header.Set("Retry-After", "1")
	return e
}

// FromState converts errors of package state to problems. It returns problems unchanged, and an
// internal_error without details for any other error.
func FromState(err error) error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, state.ErrNotFound):
		return Problem("resource_not_found", "%s does not exist", state.Detail(err))
	case errors.Is(err, state.ErrConflict):
		return Problem("conflict", "%s", state.Detail(err))
	case errors.Is(err, state.ErrMoved):
		return Problem("conflict", "the definition changed meanwhile: try again").WaitingHelps()
	case errors.Is(err, state.ErrUnavailable):
		return Problem("resource_unavailable", "the state cannot be reached just now")
	}

	return fmt.Errorf("internal: %w", err)
}

// IsNotFound reports whether err means that something does not exist, as an error of package state or as a
// problem.
func IsNotFound(err error) bool {
	var e *Error
	return errors.Is(err, state.ErrNotFound) || errors.As(err, &e) && e.Code == "resource_not_found"
}

// Error makes Error an error.
func (e *Error) Error() string { return e.line() }

func (e *Error) line() string {
	if e.Detail == "" {
		return e.Title
	}
	return e.Title + " (" + e.Detail + ")"
}

// GetStatus returns the HTTP status.
func (e *Error) GetStatus() int { return e.Status }

// GetHeaders returns the headers of the answer.
func (e *Error) GetHeaders() http.Header { return e.header }

// ContentType returns the media type of problem details.
func (e *Error) ContentType(string) string { return "application/problem+json" }

func (e *Error) at(path, requestID string) *Error {
	out := *e
	out.Instance, out.TraceID, out.Err = path, requestID, e.line()
	return &out
}

// fromHuma converts huma's validation errors to a problem.
func fromHuma(status int, msg string, errs ...error) huma.StatusError {
	code := "internal_error"
	for name, c := range codes {
		if c.status == status {
			code = name
		}
	}

	switch status {
	case http.StatusUnprocessableEntity,
		http.StatusUnsupportedMediaType,
		http.StatusNotAcceptable,
		http.StatusRequestTimeout:
		code = "invalid_request"
	}

	switch {
	case msg == "cannot read request body": // of huma; the sender broke off, or the chunks are malformed
		return Problem("invalid_request", "the body is incomplete, or does not match its headers")
	case code == "internal_error":
		return Problem(code, "")
	}

	e := Problem(code, "")
	var details []string
	for _, err := range errs {
		f := fieldError(err)
		if f.Message == "" {
			continue
		}

		e.Errors = append(e.Errors, f)
		details = append(details, strings.TrimPrefix(f.Field+": "+f.Message, ": "))
	}

	e.Detail = strings.Join(details, "; ")
	switch {
	case status == http.StatusRequestEntityTooLarge:
		limit := int64(bounds.MaxBody + 1)
		fmt.Sscanf(msg, "request body is too large limit=%d", &limit)
		return tooLarge(limit - 1)
	case status == http.StatusRequestTimeout:
		e.Detail = "the body did not arrive in time"
	case e.Detail == "":
		e.Detail = msg
	}

	return e
}

func tooLarge(limit int64) *Error {
	return Problem("payload_too_large", "the body is larger than %d bytes", limit)
}

// wording shortens huma's messages for common mistakes, by their beginning.
var wording = [][2]string{
	{"invalid date/time for format", "want a time such as 2026-01-02T15:04:05Z (RFC 3339)"},
	{"expected string to be RFC 3339 date-time", "want a time such as 2026-01-02T15:04:05Z (RFC 3339)"},
	{"invalid integer", "want a whole number"},
	{"invalid boolean", "want true or false"},
	{"unexpected end of JSON input", "the JSON ends too early"},
}

// fieldError keeps the place and the reason, and drops the value, which may be a secret.
func fieldError(err error) FieldError {
	if err == nil {
		return FieldError{}
	}

	var detailer huma.ErrorDetailer
	if !errors.As(err, &detailer) {
		return FieldError{Message: err.Error()}
	}

	d := detailer.ErrorDetail()
	field := d.Location
	for _, prefix := range []string{"body.", "query.", "path.", "header."} {
		field = strings.TrimPrefix(field, prefix)
	}

	for _, w := range wording {
		if strings.HasPrefix(d.Message, w[0]) {
			return FieldError{Field: field, Message: w[1]}
		}
	}

	return FieldError{Field: field, Message: d.Message}
}

// Refuse answers a request of a handler that is not registered with huma with a problem.
func (a *API) Refuse(w http.ResponseWriter, r *http.Request, e *Error) { a.write(w, r, e) }

// write answers a request outside of huma with a problem.
func (a *API) write(w http.ResponseWriter, r *http.Request, e *Error) {
	for k, values := range e.header {
		w.Header()[k] = values
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(e.Status)
	json.NewEncoder(w).Encode(e.at(r.URL.Path, RequestID(r.Context())))
}
