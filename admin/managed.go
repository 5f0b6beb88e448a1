package admin

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"millwright/api"
	"millwright/state"
)

// CreateWebhookRequest asks for a new webhook of a managed factory.
type CreateWebhookRequest struct {
	Name             string `json:"name" pattern:"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$" doc:"Its name" example:"alerts"`
	AuthMode         string `json:"auth_mode,omitempty" enum:"token,url_token,signature" default:"token" doc:"How senders show who they are"`
	SignatureScheme  string `json:"signature_scheme,omitempty" doc:"The provider's signing scheme, with signature"`
	SecretName       string `json:"secret_name,omitempty" pattern:"^[A-Za-z_][A-Za-z0-9_]{0,127}$" doc:"Name for its secret, or of an existing one; absent for a name made from the webhook's"`
	Secret           string `json:"secret,omitempty" maxLength:"65536" doc:"The provider's signing secret, with signature; absent for one that is yet to come"`
	DeliveryIDHeader string `json:"delivery_id_header,omitempty" doc:"Header in which the sender puts its own event ID"`
	Enabled          *bool  `json:"enabled,omitempty" doc:"Whether it takes deliveries; true when absent"`
	Handshake        bool   `json:"handshake,omitempty" doc:"Whether the provider's set-up probes are answered"`
}

// UpdateWebhookRequest changes a webhook of a managed factory. What is absent stays.
type UpdateWebhookRequest struct {
	AuthMode         *string `json:"auth_mode,omitempty" enum:"token,url_token,signature" doc:"How senders show who they are"`
	SignatureScheme  *string `json:"signature_scheme,omitempty" doc:"The provider's signing scheme; empty for none"`
	SecretName       *string `json:"secret_name,omitempty" pattern:"^[A-Za-z_][A-Za-z0-9_]{0,127}$" doc:"The team secret that holds the credential"`
	DeliveryIDHeader *string `json:"delivery_id_header,omitempty" doc:"Header in which the sender puts its own event ID; empty for none"`
	Enabled          *bool   `json:"enabled,omitempty" doc:"Whether it takes deliveries"`
	Handshake        *bool   `json:"handshake,omitempty" doc:"Whether the provider's set-up probes are answered"`
}

// RotateSecretRequest gives a webhook of a managed factory a new secret.
type RotateSecretRequest struct {
	Secret string `json:"secret,omitempty" maxLength:"65536" doc:"The provider's new signing secret, with signature"`
	Shared bool   `json:"shared,omitempty" doc:"Rotate although other webhooks use the secret too"`
}

// WebhookWithSecret is a webhook with the secret that was made for it.
type WebhookWithSecret struct {
	Webhook
	Secret string `json:"secret,omitempty" doc:"The secret, shown this once; absent when it was there before"`
}

// EditFileRequest is the new text of a definition file.
type EditFileRequest struct {
	Content string `json:"content" doc:"The text of the file"`
}

// FilePath are the path parameters that name a definition file.
type FilePath struct {
	FactoryUID
	Path string `path:"path" doc:"Path of the file, relative to the root of the definition; its slashes may be written as they are" example:"automations/ci/automation.md"`
}

func (s *service) registerManaged() {
	edit := func(method, path, id, summary string) huma.Operation {
		return explained(also(api.Operation(method, "/factory/{uid}"+path, id, state.RoleAdmin, summary),
			http.StatusConflict, http.StatusUnprocessableEntity),
			"Only for a factory whose definition the server itself holds; for others the answer names the file to edit.")
	}
	handle(s, edit(http.MethodPost, "/webhooks", "createWebhook", "Create a webhook"), s.createWebhook)
	handle(s, edit(http.MethodPatch, "/webhooks/{webhook_uid}", "updateWebhook", "Change a webhook"), s.updateWebhook)
	handleEmpty(s, edit(http.MethodDelete, "/webhooks/{webhook_uid}", "deleteWebhook", "Delete a webhook"), s.deleteWebhook)
	handle(s, edit(http.MethodPost, "/webhooks/{webhook_uid}/rotate", "rotateSecret", "Give a webhook a new secret, at once"), s.rotate)
	handle(s, edit(http.MethodPut, "/files/{path}", "putFile", "Write a definition file"), s.putFile)
	handle(s, edit(http.MethodDelete, "/files/{path}", "deleteFile", "Delete a definition file"), s.deleteFile)
	s.api.Router().Put(api.Base+"/factory/{uid}/files/*", s.slashes)
	s.api.Router().Delete(api.Base+"/factory/{uid}/files/*", s.slashes)
}

// slashes takes a path of several elements as the one parameter that it is.
func (s *service) slashes(w http.ResponseWriter, r *http.Request) {
	u := *r.URL
	head, tail, _ := strings.Cut(u.EscapedPath(), "/files/")
	u.RawPath = head + "/files/" + strings.ReplaceAll(tail, "/", "%2F")
	again := r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, (*chi.Context)(nil))) // routed anew
	again.URL = &u
	s.api.Router().ServeHTTP(w, again)
}

// elsewhere is the answer to an edit of a definition that the server does not hold.
func elsewhere(f state.Factory, file, todo string) error {
	where := path.Join(f.Source.Path, file)
	switch f.Source.Kind {
	case "git":
		return api.Problem("operation_not_supported", "factory %q is defined in the branch %s of a git repository: %s", f.Name, f.Source.Branch, fmt.Sprintf(todo, where))
	case "dir":
		return api.Problem("operation_not_supported", "factory %q is defined in a directory of the server: %s", f.Name, fmt.Sprintf(todo, where))
	}
	return api.Problem("operation_not_supported", "this server cannot edit the definition of factory %q", f.Name)
}

func (s *service) createWebhook(ctx context.Context, in *struct {
	FactoryUID
	Body CreateWebhookRequest
},
) (WebhookWithSecret, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return WebhookWithSecret{}, err
	}
	return WebhookWithSecret{}, elsewhere(f, "webhooks/"+in.Body.Name+".yaml", "write %s and commit it there")
}

func (s *service) updateWebhook(ctx context.Context, in *struct {
	WebhookUID
	Body UpdateWebhookRequest
},
) (Webhook, error) {
	f, w, err := s.webhook(ctx, in.WebhookUID)
	if err != nil {
		return Webhook{}, err
	}
	return Webhook{}, elsewhere(f, w.Spec.Path, "edit %s there")
}

func (s *service) deleteWebhook(ctx context.Context, in *WebhookUID) error {
	f, w, err := s.webhook(ctx, *in)
	if err != nil {
		return err
	}
	return elsewhere(f, w.Spec.Path, "delete %s there")
}

func (s *service) rotate(ctx context.Context, in *struct {
	WebhookUID
	Body *RotateSecretRequest
},
) (WebhookWithSecret, error) {
	f, w, err := s.webhook(ctx, in.WebhookUID)
	if err != nil {
		return WebhookWithSecret{}, err
	}
	return WebhookWithSecret{}, elsewhere(f, w.Spec.Path, "give the secret "+w.Spec.SecretName+", which %s names, a new value, and apply")
}

func (s *service) putFile(ctx context.Context, in *struct {
	FilePath
	Body EditFileRequest
},
) (Sync, error) {
	return Sync{}, s.editFile(ctx, in.FilePath, "write %s there")
}

func (s *service) deleteFile(ctx context.Context, in *FilePath) (Sync, error) {
	return Sync{}, s.editFile(ctx, *in, "delete %s there")
}

func (s *service) editFile(ctx context.Context, in FilePath, todo string) error {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return err
	}
	if !validPath(in.Path) {
		return api.InvalidField("path", "%q is not a path relative to the root of the definition", in.Path)
	}
	return elsewhere(f, in.Path, todo)
}
