package ingress

import (
	"errors"
	"io"
	"net/http"
	"time"
)

var (
	errTooLarge   = errors.New("the body is larger than a delivery may be")
	errNoRoom     = errors.New("too many bytes of bodies in flight")
	errBrokenBody = errors.New("the body did not arrive in full")
)

// readBody reads the body, once. It reads no more than one byte beyond MaxBody, under a deadline, and
// holds room for what it reads until the request has been answered.
func (q *request) readBody() error {
	if q.body != nil {
		return nil
	}
	length := q.r.ContentLength
	if length > MaxBody {
		return errTooLarge
	}
	room := length
	if length < 0 {
		room = MaxBody + 1
	}
	if q.room = room; q.in.inFlight.Add(room) > q.in.room.Load() {
		return errNoRoom
	}
	if length == 0 {
		q.body, q.ended = []byte{}, true
		return nil
	}
	control := http.NewResponseController(q.w)
	if err := control.SetReadDeadline(time.Now().Add(q.in.cfg.BodyTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errBrokenBody
	}
	body, err := read(q.r.Body, length)
	q.size = int64(len(body))
	if err != nil {
		return err
	}
	q.body, q.ended = body, true
	// Without a deadline again, or its end would look as if the sender had gone.
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errBrokenBody
	}
	return nil
}

// read reads a body of the given length, or of any length up to MaxBody when it is negative.
func read(from io.Reader, length int64) ([]byte, error) {
	if length >= 0 {
		body := make([]byte, length)
		n, err := io.ReadFull(from, body)
		if err != nil {
			return body[:n], errBrokenBody
		}
		return body, nil
	}
	body := make([]byte, 0, 4<<10)
	for {
		if len(body) == cap(body) {
			grown := make([]byte, len(body), min(2*cap(body), MaxBody+1))
			copy(grown, body)
			body = grown
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > MaxBody:
			return body, errTooLarge
		case err == io.EOF:
			return body, nil
		case err != nil:
			return body, errBrokenBody
		}
	}
}

// release gives back the room that readBody took.
func (q *request) release() { q.in.inFlight.Add(-q.room) }
