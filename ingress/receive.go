package ingress

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"millwright/bounds"
	"millwright/schema"
	"millwright/signature"
	"millwright/state"
	"millwright/trace"
)

const (
	maxJudged    = 5                // how often a request is judged again when the definition changes meanwhile
	writeTimeout = 10 * time.Second // how long an HTTP/2 client may take to read its answer
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
	q.path, q.query = rawPath(q.r), rawQuery(q.r)
	if q.target, ok = parsePath(q.path); !ok { // 1
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
	q.limit = in.deliveriesOf(w)

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
		m.URL = in.cfg.PublicURL + q.path + q.query
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

// write sends the answer. If the body has not been read to its end, it closes the connection and does not
// wait for the rest.
func (q *request) write(a answer) {
	h := q.w.Header()
	switch {
	case len(a.body) > 0:
		h.Set("Content-Type", cmp.Or(a.contentType, "application/json"))
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	case a.status != http.StatusNoContent:
		h.Set("Content-Length", "0")
	}

	switch a.status {
	case http.StatusMethodNotAllowed:
		h.Set("Allow", http.MethodPost)
	case http.StatusUnauthorized:
		if q.bearer {
			h.Set("WWW-Authenticate", "Bearer")
		}
	}

	if a.wait > 0 {
		h.Set("Retry-After", strconv.Itoa(a.wait))
	}

	early := !q.ended && q.r.ContentLength != 0
	if early && q.r.ProtoMajor == 1 {
		h.Set("Connection", "close")
		abandonBody(q.w)
	}
	if q.r.ProtoMajor == 2 { // or a stream whose window is closed stays open for ever
		_ = http.NewResponseController(q.w).SetWriteDeadline(time.Now().Add(writeTimeout))
	}

	q.w.WriteHeader(a.status)
	if q.r.Method != http.MethodHead {
		_, _ = q.w.Write(a.body) // a sender that went away will retry
	}
	if early && q.r.ProtoMajor == 1 {
		// Otherwise the server would read the rest of the body after the answer.
		_ = http.NewResponseController(q.w).SetReadDeadline(time.Unix(1, 0))
	}
}

// abandonBody makes the server close the connection after the answer, write side first, although the body
// was not read: otherwise a reset could lose the answer. net/http does that only for a body beyond the
// limit of http.MaxBytesReader, so it gets one.
func abandonBody(w http.ResponseWriter) {
	var b [1]byte
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0).Read(b[:])
}
