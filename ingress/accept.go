package ingress

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"millwright/schema"
	"millwright/signature"
	"millwright/state"
	"millwright/trace"
)

// accept is step 10, for an authenticated delivery.
func (in *Ingress) accept(
	q *request,
	m signature.Message,
	proof signature.Proof,
	payload schema.Payload,
) (answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.ctx), acceptTimeout)
	defer cancel()

	w := q.hook
	reason, event := "", w.event(proof, q.body)
	if w.scheme != nil && w.scheme.HasHandshake() {
		if probe, ok := w.verifier.Handshake(m); ok && w.handshake {
			r := q.rejection(state.DeliveryHandshake, "a set-up probe of "+w.scheme.Name()+", answered")
			r.Event, r.Status = event, probe.Status
			err := in.store.RecordRejected(ctx, r)
			return answer{
				status:      probe.Status,
				result:      resultHandshake,
				body:        probe.Body,
				contentType: probe.ContentType,
			}, err
		} else if ok {
			reason = "looks like a set-up probe of " + w.scheme.Name() +
				": handshake: true in the webhook's file would answer it"
		}
	}

	followed := in.store.Followed(w.uid)
	id, signed := identify(w, q.r.Header, q.body, proof)
	k := w.kindOf(q.r.Header, proof)
	shown := w.shownHeaders(q.r.Header, q.target)

	var kept []byte
	if w.headers || followed {
		kept = w.keptHeaders(q.r.Header, q.target)
	}

	d := w.delivered(proof.Event, q.r.Header, q.body, payload)
	a := w.acceptance(d, k, q.now)
	a.Identity, a.Sender, a.Reason, a.Event = id, q.sender, reason, event
	a.Shown, a.Headers, a.Status = shown, kept, http.StatusAccepted
	if id.Source == state.IdentityBodyHash {
		a.Window = w.window
	}
	if w.mode == schema.AuthSignature && !signed {
		a.Digest = proof.Digest[:]
	}

	if err := in.dropOwn(ctx, &a, w, d); err != nil {
		return answer{}, err
	}

	done, err := in.storeTraced(ctx, a)
	if err != nil {
		return answer{}, err
	}

	q.span.Set(trace.Delivery, done.DeliveryUID)
	return accepted(done.DeliveryUID, done.Duplicate), nil
}

// maxLoggedRuns is how many runs a log line names.
const maxLoggedRuns = 100

// storeTraced stores a delivery as a span of the trace of ctx, which its runs continue.
func (in *Ingress) storeTraced(ctx context.Context, a state.Acceptance) (state.Accepted, error) {
	ctx, span := in.cfg.Tracer.Start(ctx, "accept", time.Time{})
	defer span.End()

	position := trace.Position(ctx)
	for i := range a.Runs {
		a.Runs[i].Traceparent = position
	}

	done, err := in.store.Accept(ctx, a)
	if err != nil {
		span.Fail("not_stored")
		return done, err
	}

	span.Set(trace.Delivery, done.DeliveryUID)
	if done.Duplicate {
		in.log.Debug("delivery repeated", "webhook", a.WebhookUID, "delivery_id", done.DeliveryUID)
		return done, nil
	}

	if len(a.Undecided) > 0 {
		in.askSoon()
	}

	started := done.Started(a.Runs)
	in.metrics.decided(done.Flow)
	span.Count(trace.Runs, len(started))
	if in.log.Enabled(ctx, slog.LevelInfo) {
		runs := make([]string, min(len(started), maxLoggedRuns))
		for i := range runs {
			runs[i] = started[i].ID
		}

		for _, d := range done.Flow {
			in.log.Info("delivery was not a run of its own", "delivery_id", done.DeliveryUID,
				"automation", d.AutomationUID, "flow", d.Decision, "run_id", d.RunID)
		}

		in.log.Info(
			"delivery accepted",
			"webhook",
			a.WebhookUID,
			"delivery_id",
			done.DeliveryUID,
			"run_ids",
			runs,
			"runs",
			len(started),
		)
	}

	return done, nil
}

// dropOwn drops the runs of a delivery of what this server did itself, and notes why.
func (in *Ingress) dropOwn(ctx context.Context, a *state.Acceptance, w *webhook, d *schema.Delivered) error {
	if in.cfg.Own == nil || len(a.Runs)+len(a.Undecided) == 0 || w.source == "" {
		return nil
	}

	origin, ok := d.OfProvider().Origin()
	if !ok {
		return nil
	}

	why, err := in.cfg.Own(ctx, origin)
	if err != nil || why == "" {
		return err
	}

	a.Runs, a.Undecided = nil, nil
	if a.Reason != "" {
		a.Reason += "; "
	}
	a.Reason += "starts nothing: " + why
	in.log.Info("delivery is of our own doing", "webhook", w.uid, "delivery_id", a.UID, "reason", why)
	return nil
}

// eventSearched is how many bytes of a body are searched for the event type, which is for display only.
const eventSearched = 4 << 10

// event returns the provider's event type, for display.
func (w *webhook) event(proof signature.Proof, body []byte) string {
	if proof.Event != "" || w.scheme == nil {
		return state.Preview(proof.Event)
	}
	if field := w.scheme.EventField(); field != "" {
		if v := gjson.GetBytes(body[:min(len(body), eventSearched)], field); v.Type == gjson.String {
			return state.Preview(v.Str)
		}
	}
	return ""
}
