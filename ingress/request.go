package ingress

import (
	"context"
	"net/http"
	"time"

	"millwright/bounds"
	"millwright/state"
	"millwright/trace"
)

// request is a request on its way through receive.
type request struct {
	in      *Ingress
	w       http.ResponseWriter
	r       *http.Request
	now     time.Time
	target  target
	hook    *webhook
	sender  string
	bearer  bool        // a 401 asks for a bearer token
	charged bool        // the delivery budget
	room    bounds.Hold // of the bytes of deliveries
	leave   func()      // the slot of a large delivery
	body    []byte
	size    int64           // number of bytes read
	ended   bool            // the body was read to its end
	ctx     context.Context // of the request, in its trace
	span    *trace.Span
}

const acceptTimeout = 12 * time.Second

func (q *request) rejection(outcome state.DeliveryOutcome, reason string) state.Rejection {
	return state.Rejection{
		FactoryUID: q.hook.factory.uid,
		WebhookID:  q.hook.id,
		WebhookUID: q.hook.uid,
		Generation: q.hook.factory.generation,
		Outcome:    outcome, Reason: reason, Size: q.sizeKnown(), Sender: q.sender, Received: q.now,
		Shown: q.hook.shownHeaders(q.r.Header, q.target),
	}
}

// sizeKnown returns the number of bytes read, else the announced size, else nil.
func (q *request) sizeKnown() *int64 {
	size := q.size
	if size == 0 && !q.ended {
		if size = q.r.ContentLength; size < 0 {
			return nil
		}
	}
	return &size
}
