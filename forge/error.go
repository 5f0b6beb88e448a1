package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Kinds of errors. Only ErrLater passes by itself: repeating a request that met another one does not help
// until somebody changes the forge or the settings.
var (
	ErrNotFound    = errors.New("not found")
	ErrDenied      = errors.New("denied")
	ErrConflict    = errors.New("conflict")
	ErrRefused     = errors.New("refused")
	ErrLater       = errors.New("try again later")
	ErrUnsupported = errors.New("not supported")
)

// Error is an error of a forge.
type Error struct {
	Kind  error  // one of the kinds above
	Forge string // the name in the settings
	Doing string // such as: read branch main of acme/tool
	// Status is the HTTP status; 0 if there was no answer.
	Status int
	// Words is the reason in one printable line of at most 300 bytes: the forge's own words if it gave any.
	Words string
	// RetryAfter is the time to wait as the forge asked for, or 0.
	RetryAfter time.Duration

	cause error // of the server itself, as when it cannot read the credential; may be nil
}

// Error returns one printable line.
func (e *Error) Error() string {
	text := fmt.Sprintf("forge %q: %s: %s", e.Forge, e.Doing, e.Words)
	if e.Status != 0 {
		text += " (" + strconv.Itoa(e.Status) + ")"
	}
	return text
}

// Unwrap returns the kind, and an error of the server itself that is the cause.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.cause}
}

// RetryAfter returns how long the forge asked to wait, or 0.
func RetryAfter(err error) time.Duration {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// maxWords bounds the words of a forge, in bytes.
const maxWords = 300

// printable makes one line of foreign text: at most maxWords bytes, without control characters.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))

	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxWords {
		text = strings.ToValidUTF8(text[:maxWords-len("…")], "") + "…"
	}

	return text
}

// explain returns the error of a request. It keeps the end of ctx, and takes the words of an *Error that
// the transport made.
func explain(ctx context.Context, forge, doing string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("forge %q: %s: %w", forge, doing, context.Cause(ctx))
	}

	said := Error{Kind: ErrLater, Words: printable(reason(err))}
	if timedOut(err) {
		said.RetryAfter = lateAnswer
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		said = *e
	}
	said.Forge, said.Doing = forge, doing

	return &said
}

// lateAnswer is how long a forge that did not answer in time may still do what it was asked to do.
const lateAnswer = time.Minute

// timedOut reports whether a forge did not answer in time.
func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// notDocumented is the reason of an answer that no client can read.
const notDocumented = "the answer is cut, or not the JSON that the forge's documentation describes"

// reason returns the text of an error without the method and address that net/http puts before it.
func reason(err error) string {
	if timedOut(err) {
		return "the forge did not answer in time"
	}

	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	cut := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if cut || errors.As(err, &syntax) || errors.As(err, &kind) {
		return notDocumented
	}

	if outer := (*url.Error)(nil); errors.As(err, &outer) {
		err = outer.Err
	}

	return err.Error()
}
