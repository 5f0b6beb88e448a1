package admin

import (
	"context"
	"net/http"
	"slices"

	"millwright/api"
	"millwright/schema"
	"millwright/state"
)

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
		"Test a trigger with a stored delivery or a payload"), http.StatusConflict)

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
	trigger, err := req.trigger()
	if err != nil {
		return FilterTestResponse{}, err
	}

	matcher, err := schema.CompileTrigger(trigger)
	if err != nil {
		return FilterTestResponse{}, api.InvalidField("filter", "%s", err)
	}

	hooks, err := s.Store.Webhooks(ctx, f.UID, true)
	if err != nil {
		return FilterTestResponse{}, err
	}

	delivered, err := s.deliveredTo(ctx, f, hooks, req)
	if err != nil {
		return FilterTestResponse{}, err
	}
	if delivered.Payload, err = schema.ParsePayload(delivered.Body); err != nil {
		return FilterTestResponse{}, api.InvalidField("payload", "%s", err)
	}

	out := FilterTestResponse{Explanation: matcher.Explain(delivered)}
	out.PayloadCheck = out.Explanation.Matched
	out.checkWebhook(trigger, hooks, req.WebhookIDs, delivered.WebhookUID)
	out.WouldTrigger = out.WebhookCheck && out.PayloadCheck
	return out, nil
}

// checkWebhook adds whether the trigger selects the webhook of a delivery or, if from is empty, any.
func (out *FilterTestResponse) checkWebhook(
	t schema.Trigger,
	hooks []state.Webhook,
	ids *[]string,
	from string,
) {
	if t.Provider != webhookProvider {
		uids, why := selectedBy(t, hooks)
		if ids = &uids; why != "" {
			out.WebhookReason = why
			return
		}
	}
	out.WebhookCheck, out.WebhookReason = checkWebhook(hooks, ids, from)
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
