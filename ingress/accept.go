package ingress

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"millwright/schema"
	"millwright/schema/provider"
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

	id, signed := identify(w, q.r.Header, q.body, proof)
	d := w.delivered(proof.Event, q.r.Header, q.body, payload)
	a := w.acceptance(d, w.kindOf(q.r.Header, proof), q.now)
	a.Identity, a.Sender, a.Reason, a.Event = id, q.sender, reason, event
	a.Shown, a.Status = w.shownHeaders(q.r.Header, q.target), http.StatusAccepted
	if id.Source == state.IdentityBodyHash {
		a.Window = w.window
	}
	if w.mode == schema.AuthSignature && !signed {
		a.Digest = proof.Digest[:]
	}
	if w.headers || in.store.Followed(w.uid) {
		a.Headers = w.keptHeaders(q.r.Header, q.target)
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

// kindOf reads the headers of a delivery whose scheme found an event in them.
func (w *webhook) kindOf(h http.Header, proof signature.Proof) kind {
	k := kind{content: contentType(h)}
	if w.scheme != nil {
		k.event = w.scheme.KnownEvent(proof.Event)
	}
	return k
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

// delivered returns a delivery as triggers see it.
func (w *webhook) delivered(event string, h http.Header, body []byte, payload schema.Payload) *schema.Delivered {
	d := &schema.Delivered{WebhookUID: w.uid, Event: event, Header: h, Body: body, Payload: payload}
	if w.scheme != nil {
		d.Scheme = w.scheme.Name()
	}
	return d
}

// acceptance returns the delivery and its runs: one for each automation with a trigger that matches.
func (w *webhook) acceptance(d *schema.Delivered, k kind, now time.Time) state.Acceptance {
	a := state.Acceptance{
		UID: state.NewID(state.PrefixDelivery), FactoryUID: w.factory.uid, Generation: w.factory.generation,
		WebhookID: w.id, WebhookUID: w.uid, Body: d.Body, Received: now,
	}
	for _, auto := range w.automations {
		switch v := auto.judge(d); {
		case v.matched:
			run := w.run(auto, a.UID, d.Payload, k, now)
			run.Source, run.CheckoutHead = v.source, v.head
			a.Runs = append(a.Runs, run)
		case v.ask.Any():
			a.Undecided = append(a.Undecided, auto.UID)
		}
	}
	return a
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

// verdict is what an automation makes of a delivery.
type verdict struct {
	matched bool
	source  string       // of the runs that the first trigger that matches starts
	head    bool         // the first trigger that matches has runs start in the commits of forks
	ask     provider.Ask // what decides, if no trigger matches by what is known
}

// judge compares the automation's triggers for the webhook with a delivery. A filter with an error does not
// match.
func (a *automation) judge(d *schema.Delivered) (v verdict) {
	defer func() {
		if recover() != nil {
			v = verdict{}
		}
	}()

	for _, m := range a.matchers {
		matched, ask := m.Judge(d)
		if matched {
			return verdict{matched: true, source: m.source, head: m.head}
		}
		v.ask = v.ask.And(ask)
	}

	return v
}

// run returns the run that the automation starts for a delivery, without what depends on the trigger.
func (w *webhook) run(a *automation, deliveryUID string, p schema.Payload, k kind, now time.Time) state.NewRun {
	id := state.NewRunID()
	message := ""
	if a.Spec.Conversation != nil {
		message = a.Spec.Prompt + "\n\n" + w.envelope.followup(deliveryUID, k)
	}

	return state.NewRun{
		ID: id, RootRunID: id, ConversationID: state.NewRunID(), FactoryUID: w.factory.uid, Title: a.title,
		Prompt: a.Spec.Prompt, Envelope: w.envelope.text(deliveryUID, k),
		Creator:       state.Creator{Type: "service_account", UID: a.UID, DisplayName: a.Spec.Name},
		AutomationUID: a.UID, WebhookUID: w.uid, DeliveryUID: deliveryUID, AgentUID: a.Agent,
		Config:        a.Config,
		Sealed:        a.Sealed,
		Secrets:       a.Secrets,
		ConfigName:    a.Spec.Name,
		ModelID:       a.Model,
		EnvironmentID: a.Env,
		At:            now,
		Flow:          state.FlowOf(a.RoutedAutomation, w.uid, p, message),
	}
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
