package admin

import (
	"context"
	"net/http"
	"strings"
	"time"

	"millwright/api"
	"millwright/schema"
	"millwright/state"
	"millwright/state/registrations"
)

// Webhook is a webhook of a factory, live or deleted.
type Webhook struct {
	UID                 string         `json:"uid" doc:"Identifier, part of the ingress URL" example:"wh_01h455vb4pex5vsknk084sn02q"`
	Name                string         `json:"name" doc:"Name, as its file"`
	AuthMode            string         `json:"auth_mode" enum:"token,url_token,signature" doc:"How senders authenticate"`
	SignatureScheme     string         `json:"signature_scheme" doc:"The provider's signing scheme, as in the file; empty unless auth_mode is signature"`
	SecretName          string         `json:"secret_name" doc:"The team secret that holds the credential"`
	SecretVersion       int64          `json:"secret_version" doc:"Version of the secret in use; 0 for a deleted webhook"`
	SecretStale         bool           `json:"secret_stale" doc:"Whether a newer value of the secret waits for the next apply"`
	SecretPending       bool           `json:"secret_pending" doc:"Whether the secret has no value yet; every request is then 401"`
	DeliveryIDHeader    string         `json:"delivery_id_header" doc:"Header with the sender's own event ID, or empty"`
	Enabled             bool           `json:"enabled" doc:"Whether the webhook accepts deliveries; a disabled one answers 404"`
	Handshake           bool           `json:"handshake" doc:"Whether the webhook answers the provider's set-up probes"`
	IngressURL          string         `json:"ingress_url" doc:"URL for senders, with {token} in place of a URL token" example:"https://hooks.example.com/webhooks/w/wh_01h455vb4pex5vsknk084sn02q"`
	CreatedAt           time.Time      `json:"created_at" doc:"Time of the first apply"`
	UpdatedAt           time.Time      `json:"updated_at" doc:"Time of the last change"`
	DeletedAt           *time.Time     `json:"deleted_at" doc:"Time of deletion; null for a live webhook"`
	File                string         `json:"file" doc:"The definition file, relative to the root of the definition" example:"webhooks/alerts.yaml"`
	Line                int            `json:"line" doc:"Line of the webhook's first key in the file, from 1"`
	DuplicateWindow     string         `json:"duplicate_window,omitempty" doc:"How long the hash of a body counts as an identity; absent for ever" example:"10m"`
	DeliveriesPerMinute int            `json:"deliveries_per_minute,omitempty" doc:"The delivery budget of each sender; absent as the server has it"`
	Registration        *Registration  `json:"registration,omitempty" doc:"The webhook that the server makes at a forge; absent: none"`
	RefusedByBudget     int64          `json:"refused_by_budget" doc:"How many requests of the last 24 hours got 429: they are not in the log"`
	RefusedDisabled     int64          `json:"refused_while_disabled" doc:"How many of the last 24 hours got 404 because the webhook was disabled"`
	Counts              DeliveryCounts `json:"counts" doc:"Number of logged requests by outcome"`
}

// Registration is the webhook of a repository that the server makes at a forge.
type Registration struct {
	Forge      string     `json:"forge" enum:"github,gitlab,gitea" doc:"Kind of the forge"`
	Repository string     `json:"repository" doc:"The repository" example:"acme/shop"`
	Events     []string   `json:"events" nullable:"false" doc:"The events that the definition names"`
	State      string     `json:"state" enum:"pending,registered,drifted,failed,removing" doc:"pending: about to be made; drifted: changed by somebody at the forge, and repaired by the next apply; removing: the definition no longer has it"`
	Reason     string     `json:"reason" doc:"How it drifted, or why it is not registered; else empty"`
	CheckedAt  *time.Time `json:"checked_at" doc:"Time of the last look at the forge; null: never"`
}

// DeliveryCounts are the numbers of logged requests by outcome.
type DeliveryCounts struct {
	Accepted            int64 `json:"accepted" doc:"Accepted"`
	Duplicate           int64 `json:"duplicate" doc:"Duplicates of accepted deliveries"`
	RejectedAuth        int64 `json:"rejected_auth" doc:"Failed authentications"`
	RejectedInvalidJSON int64 `json:"rejected_invalid_json" doc:"Invalid JSON"`
	RejectedTooLarge    int64 `json:"rejected_too_large" doc:"Too large"`
	Handshake           int64 `json:"handshake" doc:"Answered set-up probes"`
}

// ListWebhooksResponse is a page of webhooks, by name.
type ListWebhooksResponse struct {
	Webhooks []Webhook    `json:"webhooks" nullable:"false" doc:"The webhooks, by name"`
	PageInfo api.PageInfo `json:"page_info" doc:"Whether there is another page"`
}

// WebhookUID are the path parameters that name a webhook.
type WebhookUID struct {
	FactoryUID
	Webhook string `path:"webhook_uid" doc:"UID of the webhook" example:"wh_01h455vb4pex5vsknk084sn02q"`
}

func (s *service) registerWebhooks() {
	api.Handle(
		s.api,
		api.Operation(
			http.MethodGet,
			"/factory/{uid}/webhooks",
			"listWebhooks",
			state.RoleViewer,
			"List a factory's webhooks",
		),
		s.listWebhooks,
	)
	api.Handle(
		s.api,
		api.Operation(
			http.MethodGet,
			"/factory/{uid}/webhooks/{webhook_uid}",
			"getWebhook",
			state.RoleViewer,
			"Get a webhook, live or deleted",
		),
		s.getWebhook,
	)
}

// webhook returns a webhook of a factory, live or deleted.
func (s *service) webhook(ctx context.Context, in WebhookUID) (state.Factory, state.Webhook, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return f, state.Webhook{}, err
	}
	if !state.ValidID(state.PrefixWebhook, in.Webhook) {
		return f, state.Webhook{}, api.Problem("resource_not_found", "webhook %q does not exist", in.Webhook)
	}

	w, err := s.Store.Webhook(ctx, f.UID, in.Webhook)
	return f, w, err
}

// figures are the counts of a factory's webhooks, by UID.
type figures struct {
	counts   map[string]map[state.DeliveryOutcome]int64
	refusals map[string]map[state.RefusalKind]state.RefusedRequests

	registered map[string]registrations.Registration
}

func (s *service) figures(ctx context.Context, factoryUID string) (f figures, err error) {
	if f.counts, err = s.Store.DeliveryCounts(ctx, factoryUID); err != nil {
		return f, err
	}

	if f.registered, err = s.registered(ctx, factoryUID); err != nil {
		return f, err
	}

	f.refusals, err = s.Store.Refusals(ctx, factoryUID, time.Now().Add(-24*time.Hour))
	return f, err
}

func (s *service) newWebhook(w state.Webhook, f figures) Webhook {
	counts, refused := f.counts[w.UID], f.refusals[w.UID]
	scheme := w.Spec.SignatureScheme
	if w.Spec.SignatureSchemeAlias != "" {
		scheme = w.Spec.SignatureSchemeAlias
	}

	return Webhook{
		UID: w.UID, Name: w.Spec.Name, AuthMode: string(w.Spec.AuthMode), SignatureScheme: scheme,
		SecretName:       w.Spec.SecretName,
		SecretVersion:    w.SecretVersion,
		SecretStale:      w.SecretStale,
		SecretPending:    w.SecretPending,
		DeliveryIDHeader: w.Spec.DeliveryIDHeader,
		Enabled:          w.Spec.Enabled,
		Handshake:        w.Spec.Handshake,
		IngressURL:       IngressURL(s.PublicURL, w),
		CreatedAt:        w.Created,
		UpdatedAt:        w.Updated,
		DeletedAt:        w.Deleted,
		Registration:     newRegistration(f.registered, w.UID),
		File:             w.Spec.Path,
		Line:             max(w.Spec.Line, 1),

		RefusedByBudget: refused[state.RefusedDeliveries].Count + refused[state.RefusedFailures].Count,
		RefusedDisabled: refused[state.RefusedDisabled].Count,
		DuplicateWindow: w.Spec.DuplicateWindow, DeliveriesPerMinute: w.Spec.DeliveriesPerMinute,
		Counts: DeliveryCounts{
			Accepted:            counts[state.DeliveryAccepted],
			Duplicate:           counts[state.DeliveryDuplicate],
			RejectedAuth:        counts[state.DeliveryRejectedAuth],
			RejectedInvalidJSON: counts[state.DeliveryInvalidJSON],
			RejectedTooLarge:    counts[state.DeliveryTooLarge],
			Handshake:           counts[state.DeliveryHandshake],
		},
	}
}

// registered returns the webhooks that the server makes at forges, by UID: of several of one webhook, the one that is
// to stay.
func (s *service) registered(ctx context.Context, factoryUID string) (map[string]registrations.Registration, error) {
	all, err := s.Store.Registrations().Of(ctx, factoryUID)
	by := map[string]registrations.Registration{}
	for _, r := range all {
		if _, known := by[r.WebhookUID]; !known || r.State != registrations.Removing {
			by[r.WebhookUID] = r
		}
	}
	return by, err
}

func newRegistration(all map[string]registrations.Registration, webhookUID string) *Registration {
	r, ok := all[webhookUID]
	if !ok {
		return nil
	}

	out := &Registration{
		Forge: r.Forge, Repository: r.Repository, Events: r.Events, State: string(r.State), Reason: r.Reason,
	}
	if !r.Checked.IsZero() {
		out.CheckedAt = &r.Checked
	}
	return out
}

// IngressURL returns the URL for senders, under the server's public origin publicURL. It has {token} in
// place of a URL token.
func IngressURL(publicURL string, w state.Webhook) string {
	u := strings.TrimSuffix(publicURL, "/") + "/webhooks/w/" + w.UID
	if w.Spec.AuthMode == schema.AuthURLToken {
		u += "/{token}"
	}
	return u
}

func (s *service) listWebhooks(ctx context.Context, in *struct {
	FactoryUID
	PageQuery
	IncludeDeleted bool `query:"include_deleted" doc:"Include deleted ones"`
},
) (ListWebhooksResponse, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return ListWebhooksResponse{}, err
	}

	hooks, err := s.Store.Webhooks(ctx, f.UID, in.IncludeDeleted)
	if err != nil {
		return ListWebhooksResponse{}, err
	}

	rows, info, err := paginate(in.PageQuery, "webhooks "+f.UID, hooks, webhookKey, false)
	if err != nil {
		return ListWebhooksResponse{}, err
	}

	counts, err := s.figures(ctx, f.UID)
	out := ListWebhooksResponse{[]Webhook{}, info}
	for _, w := range rows {
		out.Webhooks = append(out.Webhooks, s.newWebhook(w, counts))
	}

	return out, err
}

// webhookKey orders webhooks by name, and those of one name from the oldest to the newest.
func webhookKey(w state.Webhook) string { return w.Spec.Name + "\x00" + paddedNumber(w.Ordinal) }

func (s *service) getWebhook(ctx context.Context, in *WebhookUID) (Webhook, error) {
	f, w, err := s.webhook(ctx, *in)
	if err != nil {
		return Webhook{}, err
	}

	counts, err := s.figures(ctx, f.UID)
	return s.newWebhook(w, counts), err
}
