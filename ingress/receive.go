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

const (
	maxJudged = 5 // how often a request is judged again when the definition changes meanwhile
)

// ServeHTTP answers a request for which Handles is true.
func (in *Ingress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{in: in, w: w, r: r, now: time.Now(), ctx: r.Context(), leave: func() {}}
	a := q.decide()
	in.metrics.count(a.result, q.now)
	q.span.Set(trace.Result, a.result.String()).Count(trace.Status, a.status).End()
	q.write(a)
}

// decide releases the body's room and slot before the answer is sent, which a slow sender may take long to
// read.
func (q *request) decide() answer {
	defer q.room.Release()
	defer func() { q.leave() }()
	return q.in.receive(q)
}

// receive implements docs/contract.md, section 8.
func (in *Ingress) receive(q *request) answer {
	var ok bool
	if q.target, ok = parsePath(rawPath(q.r)); !ok { // 1
		return refused(http.StatusNotFound, resultNotFound)
	}
	if q.r.Method != http.MethodPost { // 2
		return refused(http.StatusMethodNotAllowed, resultMethod)
	}
	if lines(q.r.Header) > bounds.MaxFields {
		return refused(http.StatusRequestHeaderFieldsTooLarge, resultHeaders)
	}

	for range maxJudged {
		if !in.live() {
			return unavailable()
		}

		a, err := in.judge(q, in.current.Load())
		if err == nil {
			return a
		}
		if !errors.Is(err, state.ErrMoved) {
			in.outage.say(in.log, "storing a delivery", err)
			return unavailable()
		}

		ctx, cancel := context.WithTimeout(context.WithoutCancel(q.r.Context()), storeTimeout)
		err = in.reload(ctx)
		cancel()
		if err != nil {
			return unavailable()
		}
	}

	return unavailable()
}

func lines(h http.Header) (n int) {
	for _, values := range h {
		n += len(values)
	}
	return n
}

// judge performs steps 3 to 10 with one snapshot. An error means that nothing was decided: state.ErrMoved
// if the snapshot is outdated, any other if the state cannot be written.
func (in *Ingress) judge(q *request, s *snapshot) (answer, error) {
	w := s.webhooks[q.target.uid] // 3
	if w == nil && in.store.Announced(s.generation) {
		return answer{}, state.ErrMoved // a reader of the state may know the webhook already
	}
	if w != nil && w.unreadable {
		return unavailable(), nil
	}
	if w != nil && !w.enabled {
		q.hook = w
		q.identifySender()
		q.note(state.RefusedDisabled, 0)
		return refused(http.StatusNotFound, resultDisabled), nil
	}
	if w == nil || q.target.hasToken && w.mode != schema.AuthURLToken {
		return refused(http.StatusNotFound, resultNotFound), nil
	}

	q.hook, q.bearer = w, w.mode == schema.AuthToken
	q.traced()
	q.identifySender()
	if wait := in.failures.Spent(q.budget(), q.now); wait > 0 { // 4
		return q.overBudget(resultFailures, wait), nil
	}

	if w.mode != schema.AuthSignature { // 5
		if reason := w.checkToken(q.r.Header, q.target); reason != "" {
			return q.rejectFailed(http.StatusUnauthorized, state.DeliveryRejectedAuth, reason)
		}
		if wait := q.charge(); wait > 0 { // 6
			return q.overBudget(resultDeliveries, wait), nil
		}
	}

	switch err := q.readBody(); { // 7
	case errors.Is(err, bounds.ErrTooLarge):
		reason := "the body is larger than 262144 bytes"
		if w.mode == schema.AuthSignature {
			return q.rejectFailed(http.StatusRequestEntityTooLarge, state.DeliveryTooLarge, reason)
		}

		return q.reject(http.StatusRequestEntityTooLarge, state.DeliveryTooLarge, reason)

	case errors.Is(err, bounds.ErrNoRoom):
		return unavailable(), nil
	case err != nil:
		return q.broken(), nil
	}

	var proof signature.Proof
	m := signature.Message{Method: q.r.Method, Header: q.r.Header, Body: q.body}
	if w.mode == schema.AuthSignature { // 8
		m.URL = in.cfg.PublicURL + rawPath(q.r) + rawQuery(q.r)
		var err error
		if proof, err = w.verifier.Verify(m, q.now); err != nil {
			in.metrics.refusal(err)
			return q.refuseSigned(m, err.Error())
		}

		asked, err := q.askedFor()
		if err != nil {
			return answer{}, err
		}
		if wait := q.chargeUnless(asked); wait > 0 { // 6
			return q.overBudget(resultDeliveries, wait), nil
		}
	}

	payload, err := w.parse(q.body) // 9
	if err != nil {
		return q.reject(http.StatusBadRequest, state.DeliveryInvalidJSON, unreadable(q, err))
	}

	return in.accept(q, m, proof, payload) // 10
}

// unreadable says, for the owner, why a body is not taken.
func unreadable(q *request, err error) string {
	packed := bytes.HasPrefix(q.body, []byte{0x1f, 0x8b}) || q.r.Header.Get("Content-Encoding") != ""
	if !packed {
		return err.Error()
	}
	return "the body is compressed, which is not supported: have the sender send plain JSON"
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

func (q *request) budget() bounds.WebhookSender {
	return bounds.WebhookSender{Webhook: q.hook.uid, Sender: q.sender}
}

// charge charges the delivery budget, once for a request.
func (q *request) charge() time.Duration {
	if q.charged {
		return 0
	}
	wait := q.in.deliveries.ChargeUpTo(q.budget(), q.in.deliveriesOf(q.hook), q.now)
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

// parse validates the body, and decodes it if an automation has a payload filter.
func (w *webhook) parse(body []byte) (schema.Payload, error) {
	if !w.filtered {
		return schema.Payload{}, schema.ValidJSON(body)
	}
	return schema.ParsePayload(body)
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

// rejectFailed rejects an unauthenticated request, and charges the budget of failed authentications.
func (q *request) rejectFailed(status int, outcome state.DeliveryOutcome, reason string) (answer, error) {
	if wait := q.in.failures.Charge(q.budget(), q.now); wait > 0 { // other requests spent it meanwhile
		return q.overBudget(resultFailures, wait), nil
	}
	return q.reject(status, outcome, reason)
}

// broken refuses a request whose body did not arrive. On a signature webhook the sender is unauthenticated,
// so it charges the budget of failed authentications.
func (q *request) broken() answer {
	if q.hook.mode == schema.AuthSignature {
		if wait := q.in.failures.Charge(q.budget(), q.now); wait > 0 {
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
