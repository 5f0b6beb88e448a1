package admin

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"millwright/api"
	"millwright/schema"
	"millwright/signature"
	"millwright/state"
	"millwright/state/audit"
)

// CreateWebhookRequest creates a webhook of a managed factory.
type CreateWebhookRequest struct {
	Name             string `json:"name" pattern:"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$" patternDescription:"up to 64 letters, digits, dots, _ and -, the first no dot" doc:"Name" example:"alerts"`
	AuthMode         string `json:"auth_mode,omitempty" enum:"token,url_token,signature" default:"token" doc:"How senders authenticate"`
	SignatureScheme  string `json:"signature_scheme,omitempty" doc:"For auth_mode signature: the provider's signing scheme"`
	SecretName       string `json:"secret_name,omitempty" pattern:"^[A-Za-z_][A-Za-z0-9_]{0,127}$" patternDescription:"up to 128 letters, digits and _, the first no digit" doc:"Name of a new or existing secret; absent: a name derived from the webhook's"`
	Secret           string `json:"secret,omitempty" maxLength:"65536" doc:"For auth_mode signature: the provider's signing secret. Absent: set later, or generated for standard_webhooks and svix"`
	DeliveryIDHeader string `json:"delivery_id_header,omitempty" maxLength:"256" doc:"Header with the sender's own event ID"`
	DuplicateWindow  string `json:"duplicate_window,omitempty" pattern:"^[0-9]{1,4}[mhd]$" patternDescription:"minutes, hours or days, such as 10m" doc:"How long the hash of a body counts as an identity, 1m to 30d; absent for ever" example:"10m"`

	DeliveriesPerMinute int `json:"deliveries_per_minute,omitempty" minimum:"1" maximum:"1000000" doc:"The delivery budget of each sender; absent as the server has it"`

	Enabled   *bool `json:"enabled,omitempty" doc:"Whether the webhook accepts deliveries; true when absent"`
	Handshake bool  `json:"handshake,omitempty" doc:"Whether the webhook answers the provider's set-up probes"`
}

// UpdateWebhookRequest changes a webhook of a managed factory. Absent members stay unchanged.
type UpdateWebhookRequest struct {
	Name             *string `json:"name,omitempty" pattern:"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$" patternDescription:"up to 64 letters, digits, dots, _ and -, the first no dot" doc:"A new name; UID and URL stay"`
	AuthMode         *string `json:"auth_mode,omitempty" enum:"token,url_token,signature" doc:"How senders authenticate; removes a signature_scheme that does not fit"`
	SignatureScheme  *string `json:"signature_scheme,omitempty" doc:"The provider's signing scheme; empty for none"`
	SecretName       *string `json:"secret_name,omitempty" pattern:"^[A-Za-z_][A-Za-z0-9_]{0,127}$" patternDescription:"up to 128 letters, digits and _, the first no digit" doc:"The team secret that holds the credential"`
	DeliveryIDHeader *string `json:"delivery_id_header,omitempty" maxLength:"256" doc:"Header with the sender's own event ID; empty for none"`
	DuplicateWindow  *string `json:"duplicate_window,omitempty" pattern:"^([0-9]{1,4}[mhd])?$" patternDescription:"minutes, hours or days, such as 10m, or empty" doc:"How long the hash of a body counts as an identity, 1m to 30d; empty for ever"`

	DeliveriesPerMinute *int `json:"deliveries_per_minute,omitempty" minimum:"0" maximum:"1000000" doc:"The delivery budget of each sender; 0 as the server has it"`

	Enabled   *bool `json:"enabled,omitempty" doc:"Whether the webhook accepts deliveries"`
	Handshake *bool `json:"handshake,omitempty" doc:"Whether the webhook answers the provider's set-up probes"`
}

func (s *service) registerManaged() {
	api.Handle(
		s.api,
		editOperation(http.MethodPost, "/webhooks", "createWebhook", "Create a webhook"),
		s.createWebhook,
	)
	api.Handle(
		s.api,
		editOperation(http.MethodPatch, "/webhooks/{webhook_uid}", "updateWebhook", "Change a webhook"),
		s.updateWebhook,
	)
	api.HandleEmpty(
		s.api,
		editOperation(http.MethodDelete, "/webhooks/{webhook_uid}", "deleteWebhook", "Delete a webhook"),
		s.deleteWebhook,
	)
	api.Handle(
		s.api,
		editOperation(
			http.MethodPost,
			"/webhooks/{webhook_uid}/rotate",
			"rotateSecret",
			"Rotate a webhook's secret; the old one stops working at once",
		),
		s.rotate,
	)

	s.registerFiles()
	s.registerRevisions()
}

func (s *service) createWebhook(ctx context.Context, in *struct {
	FactoryUID
	Body CreateWebhookRequest
},
) (WebhookWithSecret, error) {
	file := webhookFile(in.Body.Name)
	f, err := s.managed(ctx, in.Factory, file, "write %s and commit it there")
	if err != nil {
		return WebhookWithSecret{}, err
	}

	var secret string
	e := editing{
		subject: "create webhook " + in.Body.Name,
		action:  audit.WebhookCreate,
		object:  in.Body.Name,
	}
	done, err := s.edit(ctx, f.UID, e, func(d *draft) error {
		if _, exists := d.files[file]; exists {
			return api.Problem("conflict", "a webhook named %q exists already", in.Body.Name)
		}
		if len(d.Webhooks) >= schema.MaxWebhooks {
			return api.InvalidField(
				"name",
				"a factory has at most %d webhooks: delete one first [webhook-limit]",
				schema.MaxWebhooks,
			)
		}

		w := schema.Webhook{
			Name:            in.Body.Name,
			Path:            file,
			AuthMode:        schema.AuthMode(in.Body.AuthMode),
			SignatureScheme: in.Body.SignatureScheme,
			SecretName:      in.Body.SecretName, DeliveryIDHeader: in.Body.DeliveryIDHeader,
			DuplicateWindow: in.Body.DuplicateWindow, DeliveriesPerMinute: in.Body.DeliveriesPerMinute,
			Enabled: in.Body.Enabled == nil || *in.Body.Enabled, Handshake: in.Body.Handshake,
		}
		var err error
		if secret, err = d.credential(&w, in.Body.Secret); err != nil {
			return err
		}

		return d.writeWebhook(w)
	})
	if err != nil {
		return WebhookWithSecret{}, answered(err, inWebhook(file))
	}

	return s.withSecret(ctx, f.UID, done.uids[in.Body.Name], secret)
}

func webhookFile(name string) string { return "webhooks/" + name + ".yaml" }

// writeWebhook writes w to the draft. It preserves comments and unchanged keys of the file.
func (d *draft) writeWebhook(w schema.Webhook) error {
	file := webhookFile(w.Name)
	var src []byte
	if text, exists := d.files[file]; exists {
		src = []byte(text)
	}

	text, err := schema.EditWebhookFile(src, w)
	if err != nil {
		return err
	}

	d.files[file] = string(text)
	return nil
}

// inWebhook returns a function that maps a problem to the member of a request to create or change a
// webhook.
func inWebhook(file string) func(schema.Problem) string {
	members := map[string]string{
		"auth-mode":           "auth_mode",
		"signature-scheme":    "signature_scheme",
		"custom-scheme":       "signature_scheme",
		"handshake":           "handshake",
		"secret-name":         "secret_name",
		"secret-missing":      "secret_name",
		"secret-not-url-safe": "secret_name",
		"delivery-id-header":  "delivery_id_header",
		"deliveries-limit":    "deliveries_per_minute",
		"webhook-limit":       "name",
		"duplicate-name":      "name",
		"invalid-name":        "name",
	}
	return func(p schema.Problem) string {
		if p.Path == file && strings.HasPrefix(p.Message, "duplicateWindow ") {
			return "duplicate_window"
		}
		if member := members[p.Code]; p.Path == file || member == "name" {
			return member
		}
		return ""
	}
}

func (s *service) updateWebhook(ctx context.Context, in *struct {
	WebhookUID
	Body UpdateWebhookRequest
},
) (Webhook, error) {
	f, w, err := s.liveWebhook(ctx, in.WebhookUID, "edit %[1]s there")
	if err != nil {
		return Webhook{}, err
	}

	_, err = s.edit(ctx, f.UID, editing{
		subject: in.Body.subject(w.Spec.Name),
		action:  in.Body.action(),
		object:  w.UID,
	}, func(d *draft) error {
		now, err := d.webhook(w.UID)
		if err != nil {
			return err
		}

		in.Body.change(&now.Spec)
		if in.Body.Name != nil {
			if err := d.rename(&now.Spec, *in.Body.Name); err != nil {
				return err
			}
		}

		return d.writeWebhook(now.Spec)
	})
	if err != nil {
		file := w.Spec.Path
		if in.Body.Name != nil {
			file = webhookFile(*in.Body.Name)
		}
		return Webhook{}, answered(err, inWebhook(file))
	}

	changed, err := s.withSecret(ctx, f.UID, w.UID, "")
	return changed.Webhook, err
}

// rename moves the file of a webhook. The webhook keeps its UID.
func (d *draft) rename(w *schema.Webhook, name string) error {
	if name == w.Name {
		return nil
	}

	file := webhookFile(name)
	if _, exists := d.files[file]; exists {
		return api.Problem("conflict", "a webhook named %q exists already", name)
	}

	d.files[file] = d.files[w.Path]
	delete(d.files, w.Path)
	d.renamed = map[string]string{name: w.Name}
	w.Name, w.Path = name, file
	return nil
}

func (u *UpdateWebhookRequest) subject(name string) string {
	if u.Name != nil && *u.Name != name {
		return "rename webhook " + name + " to " + *u.Name
	}

	onlyEnabled := u.Enabled != nil && *u == (UpdateWebhookRequest{Name: u.Name, Enabled: u.Enabled})
	switch {
	case onlyEnabled && *u.Enabled:
		return "enable webhook " + name
	case onlyEnabled:
		return "disable webhook " + name
	}
	return "change webhook " + name
}

// action names the change in the audit log.
func (u *UpdateWebhookRequest) action() string {
	switch {
	case u.Enabled == nil:
		return audit.WebhookUpdate
	case *u.Enabled:
		return audit.WebhookEnable
	}
	return audit.WebhookDisable
}

func (u *UpdateWebhookRequest) change(w *schema.Webhook) {
	if u.AuthMode != nil {
		w.AuthMode = schema.AuthMode(*u.AuthMode)
		if w.AuthMode != schema.AuthSignature {
			w.SignatureScheme, w.SignatureSchemeAlias, w.CustomScheme, w.Handshake = "", "", nil, false
		}
	}

	if u.SignatureScheme != nil {
		w.SignatureScheme, w.SignatureSchemeAlias = *u.SignatureScheme, ""
		if w.SignatureScheme != signature.CustomName {
			w.CustomScheme = nil
		}
	}

	if u.SecretName != nil {
		w.SecretName = *u.SecretName
	}
	if u.DeliveryIDHeader != nil {
		w.DeliveryIDHeader = *u.DeliveryIDHeader
	}
	if u.DuplicateWindow != nil {
		w.DuplicateWindow = *u.DuplicateWindow
	}
	if u.DeliveriesPerMinute != nil {
		w.DeliveriesPerMinute = *u.DeliveriesPerMinute
	}
	if u.Enabled != nil {
		w.Enabled = *u.Enabled
	}
	if u.Handshake != nil {
		w.Handshake = *u.Handshake
	}
}

func (s *service) deleteWebhook(ctx context.Context, in *struct {
	WebhookUID
	DeleteSecret bool `query:"delete_secret" doc:"Also delete its secret, unless something else uses it"`
	Restorable   bool `query:"restorable" doc:"A webhook of this name within 30 days gets the UID and URL back; without this the URL ends for good"`
},
) error {
	f, w, err := s.liveWebhook(ctx, in.WebhookUID, "delete %[1]s there")
	if err != nil {
		return err
	}

	if in.DeleteSecret {
		if err := s.ownSecret(ctx, w.Spec.SecretName); err != nil {
			return err
		}
	}

	_, err = s.edit(ctx, f.UID, editing{
		subject: "delete webhook " + w.Spec.Name,
		action:  audit.WebhookDelete,
		object:  w.UID,
	}, func(d *draft) error {
		now, err := d.webhook(w.UID)
		if err != nil {
			return err
		}

		delete(d.files, now.Spec.Path)
		if !in.Restorable {
			d.forget = []string{now.UID}
		}
		return nil
	})
	if err != nil || !in.DeleteSecret || w.SecretOwn { // a secret of the definition goes with its file
		return answered(err, inFiles)
	}

	err = s.deleteSecret(ctx, &SecretName{w.Spec.SecretName})
	if errors.Is(err, state.ErrConflict) || errors.Is(err, state.ErrNotFound) {
		return nil
	}

	return err
}
