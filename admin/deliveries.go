package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"millwright/api"
	"millwright/schema"
	"millwright/state"
)

// Delivery is a row of a webhook's log.
type Delivery struct {
	DeliveryID     string            `json:"delivery_id" doc:"Identifier" example:"dlv_01h455vb4pex5vsknk084sn02q"`
	Outcome        string            `json:"outcome" enum:"accepted,duplicate,rejected_auth,rejected_invalid_json,rejected_too_large,handshake" doc:"Outcome"`
	Label          string            `json:"label" doc:"The outcome, as text for people" example:"Rejected (auth)"`
	Reason         string            `json:"reason" doc:"The precise cause; may be empty"`
	SizeBytes      *int64            `json:"size_bytes" doc:"Size of the body in bytes; null if unknown; the smallest if count is above 1"`
	SizeBytesMax   *int64            `json:"size_bytes_max,omitempty" doc:"The largest size, if count is above 1"`
	ReceivedAt     time.Time         `json:"received_at" doc:"Time of arrival, or that of the first of count requests"`
	LastReceivedAt *time.Time        `json:"last_received_at,omitempty" doc:"Time of the last request, if count is above 1"`
	Count          int64             `json:"count" doc:"Number of requests that share this row; above 1 only if many were rejected"`
	Identity       string            `json:"identity" doc:"Identity of the delivery, escaped, at most 128 characters; empty if an earlier check refused it"`
	IdentitySource string            `json:"identity_source" enum:",header,provider,service_header,body_hash" doc:"Origin of the identity; empty without an identity"`
	Sender         string            `json:"sender" doc:"Address of the sender, or its IPv6 network"`
	Event          string            `json:"event,omitempty" doc:"The provider's name of the event, escaped, at most 128 characters"`
	RequestHeaders map[string]string `json:"request_headers,omitempty" doc:"A few headers of the request, each escaped and at most 128 characters: content type, client, event and delivery ID. The sender chose them" example:"{\"User-Agent\": \"GitHub-Hookshot/1\"}"`
	Answer         *DeliveryAnswer   `json:"answer,omitempty" doc:"The answer to the sender; absent for a replay"`
	StartedNothing bool              `json:"started_nothing,omitempty" doc:"Whether the delivery was accepted, and neither started a run nor went to one"`
	DuplicateOf    string            `json:"duplicate_of,omitempty" doc:"For a duplicate: ID of the accepted delivery"`
	ReplayOf       string            `json:"replay_of,omitempty" doc:"For a replay: ID of the original delivery"`
	Runs           []DeliveryRun     `json:"runs" nullable:"false" doc:"The started runs, oldest first"`

	Flow []FlowDecision `json:"flow,omitempty" nullable:"false" doc:"The automations for which the delivery started no run of its own, or one that waits for more deliveries"`
}

// DeliveryAnswer is what the sender of a delivery was answered.
type DeliveryAnswer struct {
	Status int    `json:"status" doc:"HTTP status" example:"401"`
	Code   string `json:"code" doc:"The error in the body of a refusal, or the outcome of a success" example:"unauthorized"`
}

// DeliveryRun is a run that a delivery started.
type DeliveryRun struct {
	RunID        string `json:"run_id" doc:"Identifier of the run"`
	Title        string `json:"title" doc:"Title"`
	State        string `json:"state" doc:"State"`
	WaitsFor     string `json:"waits_for,omitempty" enum:"concurrency,debounce,retry,budget" doc:"What keeps a queued run from workers"`
	AutomationID string `json:"automation_id" doc:"Automation that started the run"`
}

// DeliveryDetail is a delivery with its payload and the verdict of each automation.
type DeliveryDetail struct {
	Delivery
	Payload           json.RawMessage     `json:"payload,omitempty" doc:"The body of an accepted delivery, while it is stored"`
	Automations       []AutomationVerdict `json:"automations" nullable:"false" doc:"The verdict of each automation that selects the webhook, evaluated now"`
	TriggerEvents     []string            `json:"trigger_events" nullable:"false" doc:"The events of a provider that the delivery is, as triggers name them" example:"[\"github/pull_request_opened\"]"`
	DefinitionChanged bool                `json:"definition_changed" doc:"Whether the definition has changed since the delivery, so the verdicts may have changed"`
}

// ListDeliveriesResponse is a page of a delivery log.
type ListDeliveriesResponse struct {
	Deliveries []Delivery   `json:"deliveries" nullable:"false" doc:"The deliveries, newest first"`
	PageInfo   api.PageInfo `json:"page_info" doc:"Whether there is another page"`
}

// ReplayResponse names the delivery that a replay made.
type ReplayResponse struct {
	DeliveryID string        `json:"delivery_id" doc:"The new delivery"`
	ReplayOf   string        `json:"replay_of" doc:"The original delivery"`
	Runs       []DeliveryRun `json:"runs" nullable:"false" doc:"The started runs"`
}

// DeliveryUID are the path parameters that name a delivery.
type DeliveryUID struct {
	WebhookUID
	Delivery string `path:"delivery_id" doc:"Identifier of the delivery" example:"dlv_01h455vb4pex5vsknk084sn02q"`
}

func (s *service) registerDeliveries() {
	const path = "/factory/{uid}/webhooks/{webhook_uid}/deliveries"
	api.Handle(s.api, api.Operation(http.MethodGet, path, "listDeliveries", state.RoleViewer,
		"List a webhook's deliveries, newest first"), s.listDeliveries)
	api.Handle(s.api, api.Operation(http.MethodGet, path+"/{delivery_id}", "getDelivery", state.RoleViewer,
		"Get a delivery with its payload and the verdict of each automation"), s.getDelivery)
	api.Handle(
		s.api,
		api.Also(api.Operation(
			http.MethodPost,
			path+"/{delivery_id}/replay",
			"replayDelivery",
			state.RoleRunner,
			"Replay a delivery: start its matching runs again, as a new delivery",
		), http.StatusConflict, http.StatusUnprocessableEntity),
		s.replay,
	)
}

func newDelivery(d state.Delivery, runs []state.DeliveryRun) Delivery {
	out := Delivery{
		DeliveryID:     d.UID,
		Outcome:        string(d.Outcome),
		Label:          d.Outcome.Label(),
		Reason:         d.Reason,
		SizeBytes:      d.Size,
		SizeBytesMax:   d.SizeMax,
		ReceivedAt:     d.Received,
		LastReceivedAt: d.Last,
		Count:          d.Count,
		Identity:       d.Identity,
		IdentitySource: string(d.IdentitySource),
		Sender:         d.Sender,
		Event:          d.Event,
		StartedNothing: d.Idle(),
		DuplicateOf:    d.DuplicateOf,
		ReplayOf:       d.ReplayOf,
		Runs:           deliveryRuns(runs),
		Flow:           flowDecisions(d.Flow),
	}
	if d.Status != 0 {
		out.Answer = &DeliveryAnswer{Status: d.Status, Code: answerCode(d)}
	}

	for name, values := range schema.StoredHeader(d.Headers) {
		if out.RequestHeaders == nil {
			out.RequestHeaders = map[string]string{}
		}
		out.RequestHeaders[name] = strings.Join(values, ", ")
	}

	return out
}

// answerCode names the answer to the sender: what its body has as the error, or the outcome of a success.
func answerCode(d state.Delivery) string {
	if d.Status >= http.StatusBadRequest {
		return strings.ToLower(http.StatusText(d.Status))
	}
	return string(d.Outcome)
}

func deliveryRuns(runs []state.DeliveryRun) []DeliveryRun {
	out := []DeliveryRun{}
	for _, r := range runs {
		out = append(out, DeliveryRun{
			RunID: r.ID, Title: r.Title, State: r.State, WaitsFor: r.WaitsFor, AutomationID: r.AutomationUID,
		})
	}
	return out
}

func (s *service) listDeliveries(ctx context.Context, in *struct {
	WebhookUID
	PageQuery
	Outcome string `query:"outcome" enum:"accepted,duplicate,rejected_auth,rejected_invalid_json,rejected_too_large,handshake" doc:"Only those with this outcome"`
},
) (ListDeliveriesResponse, error) {
	f, w, err := s.webhook(ctx, in.WebhookUID)
	if err != nil {
		return ListDeliveriesResponse{}, err
	}

	list := "deliveries " + w.UID
	after, err := in.after(list)
	if err != nil {
		return ListDeliveriesResponse{}, err
	}

	rows, err := s.Store.Deliveries(
		ctx,
		f.UID,
		w.UID,
		state.DeliveryFilter{Outcome: state.DeliveryOutcome(in.Outcome)},
		after,
		in.Limit+1,
	)
	if err != nil {
		return ListDeliveriesResponse{}, err
	}

	rows, info := page(in.PageQuery, list, rows, func(d state.Delivery) string { return d.UID })
	var uids []string
	for _, d := range rows {
		uids = append(uids, d.UID)
	}

	runs, err := s.Store.RunsOfDeliveries(ctx, uids...)
	out := ListDeliveriesResponse{[]Delivery{}, info}
	for _, d := range rows {
		out.Deliveries = append(out.Deliveries, newDelivery(d, runs[d.UID]))
	}

	return out, err
}

// delivery returns a delivery of a webhook, and its payload, which is nil if it is not stored.
func (s *service) delivery(ctx context.Context, factoryUID, webhookUID, uid string) (state.Delivery, []byte, error) {
	if !state.ValidID(state.PrefixDelivery, uid) {
		return state.Delivery{}, nil, api.Problem("resource_not_found", "delivery %q does not exist", uid)
	}

	d, err := s.Store.Delivery(ctx, factoryUID, webhookUID, uid)
	if err != nil || d.Outcome != state.DeliveryAccepted {
		return d, nil, err
	}

	payload, err := s.Store.Payload(ctx, factoryUID, uid)
	if errors.Is(err, state.ErrNotFound) {
		return d, nil, nil
	}

	return d, payload, err
}

func (s *service) getDelivery(ctx context.Context, in *DeliveryUID) (DeliveryDetail, error) {
	f, w, err := s.webhook(ctx, in.WebhookUID)
	if err != nil {
		return DeliveryDetail{}, err
	}

	d, payload, err := s.delivery(ctx, f.UID, w.UID, in.Delivery)
	if err != nil {
		return DeliveryDetail{}, err
	}

	runs, err := s.Store.RunsOfDeliveries(ctx, d.UID)
	if err != nil {
		return DeliveryDetail{}, err
	}

	out := DeliveryDetail{
		Delivery:          newDelivery(d, runs[d.UID]),
		Automations:       []AutomationVerdict{},
		TriggerEvents:     []string{},
		DefinitionChanged: d.Generation != f.Generation,
	}
	if d.Outcome == state.DeliveryAccepted {
		err = s.judge(ctx, &out, w, d, payload)
	}

	return out, err
}

// judge adds what an accepted delivery is, and the verdicts on it.
func (s *service) judge(
	ctx context.Context,
	out *DeliveryDetail,
	w state.Webhook,
	d state.Delivery,
	payload []byte,
) error {
	out.Payload = embeddable(payload)
	delivered := DeliveredOf(w, d.Event, nil, payload)
	if payload != nil {
		headers, _, err := s.Store.Request(ctx, d.FactoryUID, d.UID)
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
		delivered.Header = schema.StoredHeader(headers)
		out.TriggerEvents = append(out.TriggerEvents, delivered.Events()...)
	}

	var err error
	out.Automations, err = s.verdicts(ctx, d.FactoryUID, w, delivered)
	return err
}

// DeliveredOf returns a stored delivery to a webhook as triggers see it, but for its parsed payload. headers
// and body are as Request of the store returns them.
func DeliveredOf(w state.Webhook, event string, headers, body []byte) *schema.Delivered {
	d := &schema.Delivered{WebhookUID: w.UID, Event: event, Header: schema.StoredHeader(headers), Body: body}
	if w.Spec.AuthMode == schema.AuthSignature {
		d.Scheme = w.Spec.SignatureScheme
	}
	return d
}

// embeddable returns a payload that fits into another JSON value, or nil if it is nested too deep.
func embeddable(payload []byte) json.RawMessage {
	if payload == nil || !json.Valid(append(append([]byte{'['}, payload...), ']')) {
		return nil
	}
	return payload
}

func (s *service) replay(ctx context.Context, in *DeliveryUID) (ReplayResponse, error) {
	f, w, err := s.webhook(ctx, in.WebhookUID)
	if err != nil {
		return ReplayResponse{}, err
	}

	d, payload, err := s.delivery(ctx, f.UID, w.UID, in.Delivery)
	switch {
	case err != nil:
		return ReplayResponse{}, err
	case d.Outcome != state.DeliveryAccepted:
		return ReplayResponse{}, api.Problem(
			"conflict",
			"the delivery was not accepted (%s), so it has no payload to start runs with",
			d.Outcome.Label(),
		)

	case payload == nil:
		return ReplayResponse{}, api.Problem("conflict", "the payload of this delivery is no longer stored")
	case w.Deleted != nil:
		return ReplayResponse{}, api.Problem(
			"conflict",
			"webhook %q is deleted, so no automation fires for it",
			w.Spec.Name,
		)

	case f.Detached:
		return ReplayResponse{}, detached(f)
	case s.Replay == nil:
		return ReplayResponse{}, api.Problem("operation_not_supported", "this server takes no deliveries")
	}

	uid, err := s.Replay(ctx, f.UID, w.UID, d.UID, api.KeyOf(ctx))
	if err != nil {
		return ReplayResponse{}, err
	}

	runs, err := s.Store.RunsOfDeliveries(ctx, uid)
	return ReplayResponse{uid, d.UID, deliveryRuns(runs[uid])}, err
}
