package ingress

import (
	"net/http"
	"time"

	"millwright/schema"
	"millwright/schema/provider"
	"millwright/state"
)

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
