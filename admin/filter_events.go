package admin

import (
	"context"

	"millwright/api"
	"millwright/schema"
	"millwright/schema/provider"
	"millwright/state"
)

// testEvent tests a trigger of a provider with a delivery, a body or the provider's example of the event.
func (s *service) testEvent(ctx context.Context, f state.Factory, req FilterTestRequest) (FilterTestResponse, error) {
	var out FilterTestResponse
	trigger, err := req.trigger()
	if err != nil {
		return out, err
	}

	matcher, err := schema.CompileTrigger(trigger)
	if err != nil {
		return out, api.InvalidField("filter", "%s", err)
	}

	hooks, err := s.Store.Webhooks(ctx, f.UID, true)
	if err != nil {
		return out, err
	}

	delivered, err := s.deliveredTo(ctx, f, hooks, req)
	if err != nil {
		return out, err
	}

	out.Explanation = matcher.Explain(delivered)
	out.PayloadCheck = out.Explanation.Matched
	uids, why := selectedBy(trigger, hooks)
	if out.WebhookReason = why; why == "" {
		out.WebhookCheck, out.WebhookReason = checkWebhook(hooks, &uids, delivered.WebhookUID)
	}
	out.WouldTrigger = out.WebhookCheck && out.PayloadCheck
	return out, nil
}

// trigger returns the trigger of a provider that a request is about.
func (req *FilterTestRequest) trigger() (schema.Trigger, error) {
	given := 0
	for _, is := range []bool{req.DeliveryID != "", req.Payload != nil, req.Example} {
		if is {
			given++
		}
	}
	if given != 1 {
		return schema.Trigger{}, api.InvalidField("payload", "give one of delivery_id, payload and example")
	}

	t := schema.Trigger{Provider: req.Provider, Event: req.Event, Filter: req.Filter}
	if !t.Fires() || !provider.Known(t.Provider) {
		return t, api.InvalidField("event", "%s/%s is no event of a provider that this server fires",
			t.Provider, t.Event)
	}
	if req.FilterText == "" {
		return t, nil
	}

	raw, problems := schema.FilterText("filter_text", []byte(req.FilterText))
	if len(problems) > 0 {
		p := problems[0]
		return t, api.InvalidField("filter_text", "line %d, column %d: %s", p.Line, p.Column, p.Message)
	}
	t.Filter = raw
	return t, nil
}

// deliveredTo returns what a trigger is tested with.
func (s *service) deliveredTo(
	ctx context.Context,
	f state.Factory,
	hooks []state.Webhook,
	req FilterTestRequest,
) (*schema.Delivered, error) {
	d := &schema.Delivered{Scheme: provider.Schemes(req.Provider)[0]}
	if req.DeliveryID == "" {
		var example []byte
		d.Event, example, _ = provider.Example(d.Scheme, req.Event)
		if d.Body = example; !req.Example {
			d.Body = req.Payload
		}
		return d, nil
	}

	body, from, err := s.storedPayload(ctx, f.UID, hooks, req.DeliveryID)
	if err != nil {
		return nil, err
	}

	row, err := s.Store.Delivery(ctx, f.UID, from, req.DeliveryID)
	if err != nil {
		return nil, err
	}

	d.WebhookUID, d.Event, d.Body, d.Scheme = from, row.Event, body, ""
	for _, w := range hooks {
		if w.UID == from && w.Spec.AuthMode == schema.AuthSignature {
			d.Scheme = w.Spec.SignatureScheme
		}
	}
	return d, nil
}
