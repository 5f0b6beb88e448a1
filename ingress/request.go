package ingress

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"time"

	"millwright/api"
	"millwright/bounds"
	"millwright/schema"
	"millwright/signature"
	"millwright/state"
	"millwright/trace"
)

// request is a request on its way through receive.
type request struct {
	in      *Ingress
	w       http.ResponseWriter
	r       *http.Request
	now     time.Time
	path    string // as sent: not decoded, not cleaned
	query   string // as sent, with its question mark
	target  target
	hook    *webhook
	sender  string
	bearer  bool        // a 401 asks for a bearer token
	limit   int         // the delivery budget of each sender
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

// traced starts the trace of a request to an existing webhook. It ignores trace headers of senders, who are
// strangers.
func (q *request) traced() {
	if q.span == nil {
		q.ctx, q.span = q.in.cfg.Tracer.Start(q.ctx, "receive", q.now)
		q.span.Set(trace.Factory, q.hook.factory.uid).Set(trace.Webhook, q.hook.uid)
	}
}

// identifySender sets the sender of the request.
func (q *request) identifySender() {
	if q.sender != "" {
		return
	}
	sender := api.SenderOf(q.r, q.in.cfg.TrustedProxies)
	if q.sender = sender.Key; sender.Unheeded {
		q.in.noteForwarded(q.sender)
	}
}

// checkToken compares the credential of a token or url_token webhook. It returns the reason of a refusal,
// for the owner. It compares hashes in constant time.
func (w *webhook) checkToken(h http.Header, t target) (reason string) {
	token, reason := t.token, ""
	if w.mode == schema.AuthToken {
		if token, reason = bearer(h["Authorization"]); reason != "" {
			return reason
		}
	} else if !t.hasToken {
		return "the URL has no token"
	}

	sum := sha256.Sum256([]byte(token))
	same := subtle.ConstantTimeCompare(sum[:], w.tokenHash[:]) == 1
	switch {
	case !w.hasSecret:
		return "the webhook's secret is empty or pending: every request is refused"
	case !same && w.mode == schema.AuthToken:
		return "the bearer token is not this webhook's secret"
	case !same:
		return "the token in the URL is not this webhook's secret"
	}

	return ""
}

// bearer returns the token of an Authorization header: "Bearer" in any case, spaces, the token.
func bearer(values []string) (token, reason string) {
	if len(values) == 0 {
		return "", "there is no Authorization header"
	}

	for _, v := range values[1:] {
		if v != values[0] {
			return "", "there are several Authorization headers that differ"
		}
	}

	scheme, token, ok := strings.Cut(strings.Trim(values[0], " "), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", "the Authorization header is not of the form Bearer <token>"
	}

	return strings.TrimLeft(token, " "), ""
}

// charge charges the delivery budget, once for a request.
func (q *request) charge() time.Duration {
	if q.charged {
		return 0
	}
	wait := q.in.deliveries.ChargeUpTo(q.budget(), q.limit, q.now)
	q.charged = wait == 0
	return wait
}

// askedFor reports whether the server asked the forge to send this delivery again.
func (q *request) askedFor() (bool, error) {
	if !q.hook.redelivers {
		return false, nil
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.r.Context()), storeTimeout)
	defer cancel()
	return q.in.store.Registrations().Asked(ctx, q.hook.uid, q.r.Header.Get("X-Github-Delivery"))
}

// chargeUnless is charge, but for deliveries that the server asked for.
func (q *request) chargeUnless(asked bool) time.Duration {
	if asked {
		return 0
	}
	return q.charge()
}

func (q *request) budget() bounds.WebhookSender {
	return bounds.WebhookSender{Webhook: q.hook.uid, Sender: q.sender}
}

// parse validates the body, and decodes it if an automation has a payload filter.
func (w *webhook) parse(body []byte) (schema.Payload, error) {
	if !w.filtered {
		return schema.Payload{}, schema.ValidJSON(body)
	}
	return schema.ParsePayload(body)
}

// unreadable says, for the owner, why a body is not taken.
func unreadable(q *request, err error) string {
	packed := bytes.HasPrefix(q.body, []byte{0x1f, 0x8b}) || q.r.Header.Get("Content-Encoding") != ""
	if !packed {
		return err.Error()
	}
	return "the body is compressed, which is not supported: have the sender send plain JSON"
}

// refuseSigned refuses a request with a wrong signature. It stores a secret that a provider sends before it
// signs, for the webhook's owner.
func (q *request) refuseSigned(m signature.Message, reason string) (answer, error) {
	w := q.hook
	if !w.hasSecret && w.scheme != nil {
		if token, ok := w.scheme.PendingToken(m); ok {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(q.r.Context()), storeTimeout)
			defer cancel()

			offer := state.OfferedSecret{Value: token, Sender: q.sender, Received: q.now}
			if err := q.in.store.OfferSecret(ctx, w.factory.uid, w.uid, offer); err != nil {
				return answer{}, err
			}

			reason = "the webhook's secret is still pending, and this request brought one: the webhook's " +
				"page in the dashboard shows it"
		}
	}

	return q.rejectFailed(http.StatusUnauthorized, state.DeliveryRejectedAuth, reason)
}

// chargeFailed charges the budget of failed authentications.
func (q *request) chargeFailed() time.Duration { return q.in.failures.Charge(q.budget(), q.now) }

// rejectFailed rejects an unauthenticated request, and charges the budget of failed authentications.
func (q *request) rejectFailed(status int, outcome state.DeliveryOutcome, reason string) (answer, error) {
	if wait := q.chargeFailed(); wait > 0 { // other requests spent it meanwhile
		return q.overBudget(resultFailures, wait), nil
	}
	return q.reject(status, outcome, reason)
}

// broken refuses a request whose body did not arrive. On a signature webhook the sender is unauthenticated,
// so it charges the budget of failed authentications.
func (q *request) broken() answer {
	if q.hook.mode == schema.AuthSignature {
		if wait := q.chargeFailed(); wait > 0 {
			return q.overBudget(resultFailures, wait)
		}
	}
	return refused(http.StatusBadRequest, resultBroken)
}

// reject logs the request with its precise cause for the owner, and answers with the status alone.
func (q *request) reject(status int, outcome state.DeliveryOutcome, reason string) (answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.r.Context()), acceptTimeout)
	defer cancel()

	r := q.rejection(outcome, reason)
	r.Status = status
	err := q.in.store.RecordRejected(ctx, r)
	return refused(status, resultOf(outcome)), err
}

// overBudget refuses the request until a budget has room again.
func (q *request) overBudget(r result, wait time.Duration) answer {
	kind, budget := state.RefusedDeliveries, q.limit
	if r == resultFailures {
		kind, budget = state.RefusedFailures, int(q.in.failuresLimit.Load())
	}

	q.note(kind, budget)
	return tooMany(r, wait)
}

// note counts the request.
func (q *request) note(kind state.RefusalKind, budget int) {
	w, r := q.hook, &q.in.refusals
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.waiting == nil {
		r.waiting, r.minute = map[refusalKey]*state.RefusedRequests{}, map[string]map[state.RefusalKind]int64{}
	}

	key := refusalKey{w.id, q.now.Unix() / 3600, kind}
	one := r.waiting[key]
	if one == nil {
		if len(r.waiting) >= maxRefusals {
			return
		}
		one = &state.RefusedRequests{WebhookID: w.id, FactoryUID: w.factory.uid, Kind: kind}
		r.waiting[key] = one
	}
	one.Count++
	one.Sender, one.Budget, one.Last = q.sender, budget, q.now

	if r.minute[w.uid] == nil {
		if len(r.minute) >= maxLogged {
			return
		}
		r.minute[w.uid] = map[state.RefusalKind]int64{}
	}
	r.minute[w.uid][kind]++
}

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
