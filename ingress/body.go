package ingress

import (
	"errors"
	"net/http"
	"time"

	"millwright/bounds"
)

// readBody reads the body, once. It reads at most one byte more than MaxBody, under a deadline. It reserves
// room for the bytes that arrive and for large headers until the request is answered.
func (q *request) readBody() error {
	if q.body != nil {
		return nil
	}

	q.room = q.in.bounds.Deliveries.Hold(q.sender)
	if !q.room.Grow(bounds.HeaderBytes(q.r.Header)) {
		return bounds.ErrNoRoom
	}

	length := q.r.ContentLength
	if length > MaxBody {
		return bounds.ErrTooLarge
	}
	if length == 0 {
		q.body, q.ended = []byte{}, true
		return nil
	}

	control := http.NewResponseController(q.w)
	deadline := time.Now().Add(q.in.cfg.BodyTimeout)
	if err := control.SetReadDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}

	body, err := q.room.ReadBody(q.r.Body, length, MaxBody)
	q.size = int64(len(body))
	if err != nil {
		return err
	}

	q.body, q.ended = body, true

	// Clear the deadline. Otherwise its end would look like a disconnected sender.
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}

	return q.waitForSlot()
}

// waitForSlot waits for the turn of a large delivery. The request keeps it until it is decided.
func (q *request) waitForSlot() error {
	if len(q.body) <= bounds.LargeDelivery {
		return nil
	}

	leave, ok := q.in.bounds.Large.EnterWith(q.ctx, q.sender, int64(len(q.body)))
	if !ok {
		return bounds.ErrNoRoom
	}

	q.leave = leave
	return nil
}
