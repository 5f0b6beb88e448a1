package admin

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"millwright/api"
	"millwright/schema"
	"millwright/signature"
	"millwright/state"
)

// Secret describes a secret without its value.
type Secret struct {
	Name      string    `json:"name" doc:"Name, as in secretName of a webhook"`
	Factory   string    `json:"factory_uid,omitempty" doc:"The factory whose definition holds the secret, in a file of secrets/. Only this factory sees it. Absent for a secret of the team"`
	Revision  string    `json:"revision,omitempty" doc:"The revision of the definition that brought the value; absent for a secret of the team"`
	Version   int64     `json:"version" doc:"Version of the value; webhooks use the version that was current at their last apply"`
	Pending   bool      `json:"pending" doc:"The secret has no value yet: its webhooks answer 401"`
	Webhooks  []string  `json:"webhooks" nullable:"false" doc:"UIDs of the webhooks that use it"`
	UsedBy    []string  `json:"used_by" nullable:"false" doc:"Users of the secret: webhooks, sources, and agents and automations that grant it to runs. A secret in use cannot be deleted" example:"webhook ci of factory default"`
	Reserved  bool      `json:"reserved" doc:"A source uses the secret, so definitions may not name it"`
	Warnings  []string  `json:"warnings,omitempty" doc:"After a new value: webhooks that cannot use it, and factories with a secret of this name in their definition"`
	CreatedAt time.Time `json:"created_at" doc:"When it was created"`
	UpdatedAt time.Time `json:"updated_at" doc:"Time of the last change of the value"`
}

// ListSecretsResponse is a page of secrets, by name.
type ListSecretsResponse struct {
	Secrets  []Secret     `json:"secrets" nullable:"false" doc:"The secrets, by name"`
	PageInfo api.PageInfo `json:"page_info" doc:"Whether there is another page"`
}

// SetSecretRequest sets the value of a secret, or makes it pending.
type SetSecretRequest struct {
	Value   *string `json:"value,omitempty" minLength:"1" maxLength:"65536" doc:"The value; required unless pending is true"`
	Pending *bool   `json:"pending,omitempty" doc:"true: the provider has not issued the value yet"`
}

// SecretName is the path parameter that names a secret.
type SecretName struct {
	Name string `path:"name" pattern:"^[A-Za-z_][A-Za-z0-9_]{0,127}$" patternDescription:"up to 128 letters, digits and _, the first no digit" doc:"Name of the secret" example:"ALERTS_SECRET"`
}

// maxSecretBytes bounds a secret's value, as package state does.
const maxSecretBytes = 64 << 10

func (s *service) registerSecrets() {
	api.Handle(s.api, api.Operation(http.MethodGet, "/secrets", "listSecrets", state.RoleViewer,
		"List the secrets of the team and of definitions, without values"), s.listSecrets)
	api.Handle(s.api, api.Also(api.Operation(
		http.MethodPut,
		"/secrets/{name}",
		"setSecret",
		state.RoleAdmin,
		"Create a secret of the team or set its value, which webhooks use from their next apply",
	), http.StatusConflict), s.setSecret)

	api.HandleEmpty(
		s.api,
		api.Also(api.Operation(http.MethodDelete, "/secrets/{name}", "deleteSecret", state.RoleAdmin,
			"Delete a secret that no source, webhook, agent or automation uses"), http.StatusConflict),
		s.deleteSecret,
	)
}

func (s *service) newSecret(i state.SecretInfo) Secret {
	out := Secret{
		Name: i.Name, Factory: i.FactoryUID, Revision: i.Revision, Version: i.Version, Pending: i.Pending,
		Webhooks: append(
			[]string{},
			i.Webhooks...), UsedBy: append([]string{}, i.Users...), CreatedAt: i.Created, UpdatedAt: i.Updated,
	}

	if i.FactoryUID != "" {
		return out
	}

	used, reserved := s.sourceSecrets()
	if use, ok := used[i.Name]; ok {
		out.UsedBy = append(out.UsedBy, use)
	}

	_, out.Reserved = reserved[i.Name]
	return out
}

func (s *service) listSecrets(ctx context.Context, in *struct{ PageQuery }) (ListSecretsResponse, error) {
	infos, err := s.Store.Secrets(ctx)
	if err != nil {
		return ListSecretsResponse{}, err
	}
	var all []Secret
	for _, name := range slices.Sorted(maps.Keys(infos)) {
		all = append(all, s.newSecret(infos[name]))
	}

	key := func(s Secret) string { return state.SecretKey(s.Factory, s.Name) }
	rows, info, err := paginate(in.PageQuery, "secrets", all, key, false)
	return ListSecretsResponse{rows, info}, err
}

func (s *service) setSecret(ctx context.Context, in *struct {
	SecretName
	Body SetSecretRequest
},
) (Secret, error) {
	var value []byte
	pending := in.Body.Pending != nil && *in.Body.Pending
	switch {
	case in.Body.Value == nil && !pending:
		return Secret{}, api.InvalidField("value", "is required, unless pending is true")
	case in.Body.Value != nil && pending:
		return Secret{}, api.InvalidField("pending", "cannot be true together with a value")
	case in.Body.Value != nil:
		value = []byte(*in.Body.Value)
	}

	if len(value) > maxSecretBytes {
		return Secret{}, api.InvalidField("value", "has %d bytes; at most %d are kept", len(value), maxSecretBytes)
	}

	info, err := s.Store.SetSecret(ctx, in.Name, value)
	if err != nil {
		return Secret{}, err
	}

	all, err := s.Store.Secrets(ctx)
	if err != nil {
		return Secret{}, err
	}
	if stored, ok := all[in.Name]; ok { // unless it was deleted meanwhile
		info = stored
	}

	out := s.newSecret(info)
	if out.Warnings, err = s.unusable(ctx, in.Name, value); err != nil {
		return out, err
	}

	hiding, err := s.hiding(ctx, in.Name, all)
	out.Warnings = append(out.Warnings, hiding...)
	return out, err
}

// unusable returns warnings about live webhooks that cannot use a value of their secret, with the effect of
// the next apply.
func (s *service) unusable(ctx context.Context, name string, value []byte) ([]string, error) {
	if value == nil {
		return nil, nil
	}

	factories, err := s.Store.Factories(ctx)
	if err != nil {
		return nil, err
	}

	var warnings []string
	for _, f := range factories {
		hooks, err := s.Store.Webhooks(ctx, f.UID, false)
		if err != nil {
			return nil, err
		}

		for _, w := range hooks {
			if w.SecretKey() != name {
				continue
			}
			if why := unusableBy(w.Spec, value); why != "" {
				warnings = append(
					warnings,
					fmt.Sprintf("Webhook %s of factory %s cannot use it: %s.", w.Spec.Name, f.Name, why),
				)
			}
		}
	}

	return warnings, nil
}

// hiding returns warnings about factories that have a secret of this name in their definition.
func (s *service) hiding(ctx context.Context, name string, all map[string]state.SecretInfo) ([]string, error) {
	factories, err := s.Store.Factories(ctx)
	var warnings []string
	for _, f := range factories {
		if _, own := all[state.SecretKey(f.UID, name)]; own && !f.Detached {
			warnings = append(warnings,
				fmt.Sprintf("Factory %s has a secret %s in its definition, and goes on using that one.", f.Name, name))
		}
	}

	return warnings, err
}

// unusableBy returns the reason why a webhook cannot use a value of its secret, or "".
func unusableBy(w schema.Webhook, value []byte) string {
	switch {
	case w.AuthMode == schema.AuthURLToken && !schema.URLSafe(string(value)):
		return "it is part of the URL, and may hold only letters, digits, -, ., _ and ~; the next apply " +
			"is refused"
	case w.AuthMode == schema.AuthToken && !schema.VisibleASCII(string(value)):
		return "many senders cannot put blanks or characters beyond ASCII into a header"
	}

	scheme, known := signature.Lookup(w.SignatureScheme)
	if w.CustomScheme != nil {
		custom, err := signature.Custom(*w.CustomScheme)
		scheme, known = custom, err == nil
	}

	if known {
		if _, err := scheme.Verifier(value); err != nil {
			return fmt.Sprintf("it is no signing secret of %s: %s", w.SignatureScheme, err)
		}
	}

	return ""
}

// deleteSecret deletes a secret that neither a source nor a definition uses.
func (s *service) deleteSecret(ctx context.Context, in *SecretName) error {
	used, _ := s.sourceSecrets()
	var others []string
	if use, ok := used[in.Name]; ok {
		others = []string{use}
	}
	return s.Store.DeleteSecret(ctx, in.Name, others...)
}

// forgeKinds returns the kinds of the server's forges; nil if they are unknown.
func (s *service) forgeKinds() []string {
	if s.ForgeKinds == nil {
		return nil
	}
	return s.ForgeKinds()
}

func (s *service) sourceSecrets() (used, reserved map[string]string) {
	if s.SourceSecrets == nil {
		return nil, nil
	}
	return s.SourceSecrets()
}
