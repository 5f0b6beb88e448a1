package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"millwright/api"
	"millwright/schema"
	"millwright/state"
)

// FilterTestRequest tests a trigger with a delivery.
type FilterTestRequest struct {
	Filter     json.RawMessage `json:"filter,omitempty" doc:"The payload filter, an object; absent for none"`
	FilterText string          `json:"filter_text,omitempty" doc:"The filter as YAML or JSON, instead of filter: what stands under payload in an automation's file, or under filter, whose webhook_ids then count too"`
	WebhookIDs *[]string       `json:"webhook_ids,omitempty" doc:"Webhooks that the trigger selects; absent for any"`
	DeliveryID string          `json:"delivery_id,omitempty" doc:"A stored delivery of this factory"`
	Payload    json.RawMessage `json:"payload,omitempty" doc:"A body to test, instead of delivery_id"`
	Provider   string          `json:"provider,omitempty" doc:"For a trigger of a provider: the provider, such as github. filter is then the trigger's filter" example:"github"`
	Event      string          `json:"event,omitempty" doc:"With provider: the event" example:"pull_request_opened"`
	Example    bool            `json:"example,omitempty" doc:"With provider: test the provider's example of the event, instead of delivery_id"`
}

// FilterTestResponse is the result of a test of a trigger.
type FilterTestResponse struct {
	WouldTrigger  bool               `json:"would_trigger" doc:"Whether both checks pass"`
	WebhookCheck  bool               `json:"webhook_check" doc:"Whether the trigger selects the delivery's webhook, and that is enabled; without a delivery, whether it selects an enabled webhook"`
	WebhookReason string             `json:"webhook_reason" doc:"Reason for the result of the webhook check"`
	PayloadCheck  bool               `json:"payload_check" doc:"Whether the payload matches the filter"`
	Explanation   schema.Explanation `json:"explanation" doc:"Result of the filter on the payload, for each leaf"`
}

func (s *service) registerFilters() {
	op := api.Also(api.Operation(http.MethodPost, "/factory/{uid}/filter-tests", "testFilter", state.RoleViewer,
		"Test a payload filter with a stored delivery or a payload"), http.StatusConflict)

	// The general check reads numbers as float64 and would refuse 1e400, which a delivery may contain.
	op.SkipValidateBody = true
	api.Handle(s.api, op, s.testFilter)
}

func (s *service) testFilter(ctx context.Context, in *struct {
	FactoryUID
	Body FilterTestRequest
},
) (FilterTestResponse, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return FilterTestResponse{}, err
	}

	req := in.Body
	if req.Provider != "" {
		return s.testEvent(ctx, f, req)
	}
	if (req.DeliveryID == "") == (req.Payload == nil) {
		return FilterTestResponse{}, api.InvalidField("payload", "give either delivery_id or payload")
	}
	if string(req.Filter) == "null" {
		req.Filter = nil
	}

	if err := req.readText(); err != nil {
		return FilterTestResponse{}, err
	}

	filter, wrong := schema.CompileFilter(req.Filter)
	if len(wrong) > 0 {
		return FilterTestResponse{}, invalidFilter(wrong)
	}

	hooks, err := s.Store.Webhooks(ctx, f.UID, true)
	if err != nil {
		return FilterTestResponse{}, err
	}

	body, from := []byte(req.Payload), ""
	if req.DeliveryID != "" {
		if body, from, err = s.storedPayload(ctx, f.UID, hooks, req.DeliveryID); err != nil {
			return FilterTestResponse{}, err
		}
	}

	payload, err := schema.ParsePayload(body)
	if err != nil {
		return FilterTestResponse{}, api.InvalidField("payload", "%s", err)
	}

	out := FilterTestResponse{Explanation: filter.Explain(payload)}
	out.PayloadCheck = out.Explanation.Matched
	out.WebhookCheck, out.WebhookReason = checkWebhook(hooks, req.WebhookIDs, from)
	out.WouldTrigger = out.WebhookCheck && out.PayloadCheck
	return out, nil
}

// readText turns a filter that is given as the text of a file into one that is given as JSON.
func (req *FilterTestRequest) readText() error {
	if req.FilterText == "" {
		return nil
	}
	if req.Filter != nil {
		return api.InvalidField("filter_text", "give either filter or filter_text")
	}

	raw, problems := schema.FilterText("filter_text", []byte(req.FilterText))
	if len(problems) > 0 {
		p := problems[0]
		return api.InvalidField("filter_text", "line %d, column %d: %s", p.Line, p.Column, p.Message)
	}

	payload, webhooks := schema.FilterParts(raw)
	req.Filter = payload
	if req.WebhookIDs == nil && webhooks != nil {
		req.WebhookIDs = &webhooks
	}

	return nil
}

// storedPayload returns the payload of a delivery of a factory, and the UID of its webhook.
func (s *service) storedPayload(
	ctx context.Context,
	factoryUID string,
	hooks []state.Webhook,
	uid string,
) ([]byte, string, error) {
	for _, w := range hooks {
		d, payload, err := s.delivery(ctx, factoryUID, w.UID, uid)
		switch {
		case api.IsNotFound(err):
			continue
		case err != nil:
			return nil, "", err
		case payload == nil:
			return nil, "", api.Problem(
				"conflict",
				"delivery %q has no stored payload: its outcome was %s",
				uid,
				d.Outcome.Label(),
			)
		}

		return payload, w.UID, nil
	}

	return nil, "", api.Problem("resource_not_found", "delivery %q does not exist", uid)
}

// checkWebhook reports whether a trigger that selects these webhooks accepts deliveries to the webhook
// from, or, if from is empty, to any webhook.
func checkWebhook(hooks []state.Webhook, selected *[]string, from string) (bool, string) {
	switch {
	case selected == nil:
		return true, "no webhooks were given to check"
	case from != "" && !slices.Contains(*selected, from):
		return false, "the delivery came to " + from + ", which is not selected"
	case from != "":
		if _, why := selectedWebhook(hooks, from); why != "" {
			return false, why
		}
		return true, "the delivery came to " + from + ", which is selected"
	}

	reason := "no webhook is selected"
	for _, uid := range *selected {
		w, why := selectedWebhook(hooks, uid)
		if why == "" {
			return true, "webhook " + w.Name + " is selected and enabled"
		}

		reason = why
	}

	return false, reason
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
