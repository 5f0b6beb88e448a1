package admin

import (
	"context"
	"encoding/json"
	"net/textproto"
	"strings"

	"millwright/api"
	"millwright/schema"
	"millwright/schema/provider"
	"millwright/state"
)

// The trigger of a custom webhook.
const (
	webhookProvider = "webhook"
	webhookEvent    = "received"
)

// FilterTestRequest tests a trigger with a delivery.
type FilterTestRequest struct {
	Filter     json.RawMessage `json:"filter,omitempty" doc:"The payload filter, an object; absent for none"`
	Headers    json.RawMessage `json:"headers,omitempty" doc:"The filter of headers, as in an automation's file; absent for none" example:"{\"X-Event-Kind\": [\"push\"]}"`
	FilterText string          `json:"filter_text,omitempty" doc:"The filter as YAML or JSON, instead of filter: the text under payload in an automation's file, or under filter, with its webhook_ids and headers"`
	WebhookIDs *[]string       `json:"webhook_ids,omitempty" doc:"Webhooks that the trigger selects; absent for any"`
	DeliveryID string          `json:"delivery_id,omitempty" doc:"A stored delivery of this factory"`
	Payload    json.RawMessage `json:"payload,omitempty" doc:"A body to test, instead of delivery_id"`

	RequestHeaders map[string]string `json:"request_headers,omitempty" doc:"With payload: the headers that it came with. If the header that names a provider's event is absent, the payload counts as the event" example:"{\"X-GitHub-Event\": \"pull_request\"}"`
	Provider       string            `json:"provider,omitempty" doc:"For a trigger of a provider: the provider, such as github. filter is then the trigger's filter" example:"github"`
	Event          string            `json:"event,omitempty" doc:"With provider: the event" example:"pull_request_opened"`
	Example        bool              `json:"example,omitempty" doc:"With provider: test the provider's example of the event, instead of delivery_id"`
}

// invalidFilter returns a problem with all errors of a filter.
func invalidFilter(wrong []schema.FilterProblem) error {
	first := api.InvalidField("filter", "%s", wrong[0].Message)
	first.Errors = nil
	for _, p := range wrong {
		message := p.Message
		if p.Hint != "" {
			message += ": " + p.Hint
		}

		first.Errors = append(
			first.Errors,
			api.FieldError{Field: strings.Join(append([]string{"filter"}, p.Path...), "."), Message: message},
		)
	}

	return first
}

// trigger returns the trigger that a request is about.
func (req *FilterTestRequest) trigger() (schema.Trigger, error) {
	custom := req.Provider == "" || req.Provider == webhookProvider && req.Event == webhookEvent
	given := 0
	for _, is := range []bool{req.DeliveryID != "", req.Payload != nil, req.Example && !custom} {
		if is {
			given++
		}
	}

	switch {
	case given != 1 && custom:
		return schema.Trigger{}, api.InvalidField("payload", "give either delivery_id or payload")
	case given != 1:
		return schema.Trigger{}, api.InvalidField("payload", "give one of delivery_id, payload and example")
	case custom:
		return req.customTrigger()
	}

	t := schema.Trigger{Provider: req.Provider, Event: req.Event, Filter: req.Filter}
	if !t.Fires() || !provider.Known(t.Provider) {
		return t, api.InvalidField("event", "%s/%s is no event of a provider that this server fires",
			t.Provider, t.Event)
	}
	if req.FilterText == "" {
		return t, nil
	}

	raw, err := req.text()
	t.Filter = raw
	return t, err
}

// customTrigger returns the trigger of a custom webhook that a request is about.
func (req *FilterTestRequest) customTrigger() (schema.Trigger, error) {
	t := schema.Trigger{
		Provider: webhookProvider, Event: webhookEvent, Payload: req.Filter, Headers: req.Headers,
	}
	if string(t.Payload) == "null" {
		t.Payload = nil
	}

	if req.FilterText != "" {
		if t.Payload != nil {
			return t, api.InvalidField("filter_text", "give either filter or filter_text")
		}

		raw, err := req.text()
		if err != nil {
			return t, err
		}

		parts := schema.FilterParts(raw)
		t.Payload = parts.Payload
		if parts.Webhooks != nil {
			t.Headers = parts.Headers
		}
		if req.WebhookIDs == nil && parts.Webhooks != nil {
			req.WebhookIDs = &parts.Webhooks
		}
	}

	if _, err := schema.CompileHeaders(t.Headers); err != nil {
		return t, api.InvalidField("headers", "%s", err)
	}
	if _, wrong := schema.CompileFilter(t.Payload); len(wrong) > 0 {
		return t, invalidFilter(wrong)
	}
	return t, nil
}

// text reads filter_text.
func (req *FilterTestRequest) text() ([]byte, error) {
	raw, problems := schema.FilterText("filter_text", []byte(req.FilterText))
	if len(problems) > 0 {
		p := problems[0]
		return nil, api.InvalidField("filter_text", "line %d, column %d: %s", p.Line, p.Column, p.Message)
	}
	return raw, nil
}

// deliveredTo returns what a trigger is tested with.
func (s *service) deliveredTo(
	ctx context.Context,
	f state.Factory,
	hooks []state.Webhook,
	req FilterTestRequest,
) (*schema.Delivered, error) {
	if req.DeliveryID != "" {
		return s.storedDelivery(ctx, f.UID, hooks, req.DeliveryID)
	}

	d := &schema.Delivered{Header: map[string][]string{}, Body: req.Payload}
	for name, value := range req.RequestHeaders {
		d.Header[textproto.CanonicalMIMEHeaderKey(name)] = []string{value}
	}
	if !provider.Known(req.Provider) {
		return d, nil
	}

	d.Scheme = provider.Schemes(req.Provider)[0]
	named, example, _ := provider.Example(d.Scheme, req.Event)
	if req.Example {
		d.Body = example
	}

	d.Event = named
	if values := d.Header[textproto.CanonicalMIMEHeaderKey(provider.EventHeader(d.Scheme))]; values != nil {
		d.Event = values[0]
	}
	return d, nil
}

// storedDelivery returns a delivery of a factory whose payload is stored.
func (s *service) storedDelivery(
	ctx context.Context,
	factoryUID string,
	hooks []state.Webhook,
	uid string,
) (*schema.Delivered, error) {
	for _, w := range hooks {
		row, payload, err := s.delivery(ctx, factoryUID, w.UID, uid)
		switch {
		case api.IsNotFound(err):
			continue
		case err != nil:
			return nil, err
		case payload == nil:
			return nil, api.Problem(
				"conflict",
				"delivery %q has no stored payload: its outcome was %s",
				uid,
				row.Outcome.Label(),
			)
		}

		headers, body, err := s.Store.Request(ctx, factoryUID, uid)
		return DeliveredOf(w, row.Event, headers, body), err
	}

	return nil, api.Problem("resource_not_found", "delivery %q does not exist", uid)
}
