package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"millwright/api"
	"millwright/schema"
	"millwright/signature"
	"millwright/state"
	"millwright/state/audit"
)

// RotateSecretRequest gives a webhook of a managed factory a new secret.
type RotateSecretRequest struct {
	Secret string `json:"secret,omitempty" maxLength:"65536" doc:"For auth_mode signature: the provider's new signing secret; absent: the server generates it"`
	Shared bool   `json:"shared,omitempty" doc:"Rotate even if other webhooks use the secret"`
}

// credential sets the secret of a new webhook: the existing one of the given name, or a new one. It returns
// the value of a new secret, "" if it is pending.
func (d *draft) credential(w *schema.Webhook, given string) (string, error) {
	if d.hasSecret(w.SecretName) {
		if given != "" {
			return "", api.InvalidField(
				"secret",
				"the secret %s exists already and would be used as it is: leave this out, or choose "+
					"another secret_name",
				w.SecretName,
			)
		}

		return "", nil
	}

	if w.SecretName == "" {
		w.SecretName = SecretNameFor(w.Name, d.hasSecret)
	}

	value, err := newCredential(*w, given)
	if err != nil {
		return "", err
	}

	var stored []byte
	if value != "" {
		stored = []byte(value)
	}

	d.setSecret(w.SecretName, stored)
	return value, nil
}

// SecretNameFor suggests a name for the secret of a webhook: ALERTS_SECRET for alerts, or ALERTS_SECRET_2
// if that is taken.
func SecretNameFor(webhook string, taken func(name string) bool) string {
	base := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}

		return '_'
	}, webhook) + "_SECRET"
	if base[0] >= '0' && base[0] <= '9' {
		base = "WEBHOOK_" + base
	}

	name := base
	for i := 2; taken(name); i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}

	return name
}

// newCredential returns the new secret of a webhook: the given one if the provider issues it, "" if the
// provider has not issued it yet, and a generated one otherwise.
func newCredential(w schema.Webhook, given string) (string, error) {
	if w.AuthMode != schema.AuthSignature {
		if given != "" {
			return "", api.InvalidField(
				"secret",
				"the server generates it when auth_mode is %s: leave it out",
				w.AuthMode,
			)
		}

		return state.NewToken(state.TokenPrefix), nil
	}

	name := w.SignatureScheme
	if w.SignatureSchemeAlias != "" {
		name = w.SignatureSchemeAlias
	}
	if given == "" {
		made, _ := signature.NewSecret(name)
		return made, nil
	}
	if len(given) > maxSecretBytes {
		return "", api.InvalidField("secret", "has %d bytes; at most %d are kept", len(given), maxSecretBytes)
	}

	scheme, known := signature.Lookup(name)
	if w.CustomScheme != nil {
		custom, err := signature.Custom(*w.CustomScheme)
		scheme, known = custom, err == nil
	}
	if !known {
		return given, nil // the definition will be refused for this
	}
	if _, err := scheme.Verifier([]byte(given)); err != nil {
		return "", api.InvalidField("secret", "is no signing secret of %s: %s", name, err)
	}

	return given, nil
}

// WebhookWithSecret is a webhook with its new secret. Its URL contains a URL token.
type WebhookWithSecret struct {
	Webhook
	Secret string `json:"secret,omitempty" doc:"The secret; no other answer contains it. A URL token is in ingress_url. Absent for an existing or pending secret"`
}

// withSecret returns the current webhook with its new secret.
func (s *service) withSecret(ctx context.Context, factoryUID, uid, secret string) (WebhookWithSecret, error) {
	w, err := s.Store.Webhook(ctx, factoryUID, uid)
	if err != nil {
		return WebhookWithSecret{}, err
	}
	counts, err := s.figures(ctx, factoryUID)
	out := WebhookWithSecret{s.newWebhook(w, counts), secret}
	if secret != "" {
		out.IngressURL = strings.Replace(out.IngressURL, "{token}", secret, 1)
	}
	return out, err
}

func (s *service) rotate(ctx context.Context, in *struct {
	WebhookUID
	Body *RotateSecretRequest
},
) (WebhookWithSecret, error) {
	f, w, err := s.liveWebhook(ctx, in.WebhookUID, "give the secret %[2]s, which %[1]s names, a new value, and apply")
	if err != nil {
		return WebhookWithSecret{}, err
	}

	var how RotateSecretRequest
	if in.Body != nil {
		how = *in.Body
	}

	var secret string
	_, err = s.edit(
		ctx,
		f.UID,
		editing{
			subject: "rotate the secret of webhook " + w.Spec.Name,
			action:  audit.WebhookRotate,
			object:  w.UID,
		},
		func(d *draft) error {
			now, err := d.webhook(w.UID)
			if err != nil {
				return err
			}

			if now.SecretOwn {
				return api.Problem(
					"conflict",
					"the secret %s is in the definition: write secrets/%s.age anew with millwright secret seal",
					now.Spec.SecretName,
					now.Spec.SecretName,
				)
			}

			if err := s.ownSecret(ctx, now.Spec.SecretName); err != nil {
				return err
			}

			if !how.Shared {
				others, err := s.otherUsers(ctx, now)
				if err != nil {
					return err
				}

				if len(others) > 0 {
					return api.Problem(
						"conflict",
						"the secret %s is also used by %s: they would need the new value too; pass "+
							"shared: true to rotate it for all",
						now.Spec.SecretName,
						strings.Join(others, ", "),
					)
				}
			}

			if secret, err = newCredential(now.Spec, how.Secret); err != nil {
				return err
			}
			if secret == "" {
				return api.InvalidField("secret", "is required: the new signing secret that the provider issued")
			}

			d.setSecret(now.Spec.SecretName, []byte(secret))
			return nil
		},
	)
	if err != nil {
		return WebhookWithSecret{}, answered(err, func(p schema.Problem) string {
			if strings.HasPrefix(p.Code, "secret-") {
				return "secret"
			}
			return ""
		})
	}

	return s.withSecret(ctx, f.UID, w.UID, secret)
}

// ownSecret returns nil if the caller may replace or delete the value of a webhook's secret. A key that is limited
// to factories may not if anything else uses it, since that may be of another factory.
func (s *service) ownSecret(ctx context.Context, name string) error {
	key := api.KeyOf(ctx)
	if !key.Limited() {
		return nil
	}

	infos, err := s.Store.Secrets(ctx)
	if err != nil {
		return err
	}
	if len(s.newSecret(infos[name]).UsedBy) > 1 {
		return api.Problem(
			"not_authorized",
			"the secret %s has other users, and the key %q is limited to factories",
			name,
			key.Name,
		)
	}

	return nil
}

// otherUsers names the other live webhooks that use a webhook's secret, those of other factories with the
// name of the factory.
func (s *service) otherUsers(ctx context.Context, w state.Webhook) ([]string, error) {
	infos, err := s.Store.Secrets(ctx)
	if err != nil {
		return nil, err
	}

	users := infos[w.SecretKey()].Webhooks
	if len(users) == 1 && users[0] == w.UID {
		return nil, nil
	}

	factories, err := s.Store.Factories(ctx)
	if err != nil {
		return nil, err
	}

	var names []string
	for _, f := range factories {
		hooks, err := s.Store.Webhooks(ctx, f.UID, false)
		if err != nil {
			return nil, err
		}

		for _, other := range hooks {
			if other.UID == w.UID || !slices.Contains(users, other.UID) {
				continue
			}

			name := fmt.Sprintf("webhook %q", other.Spec.Name)
			if f.UID != w.FactoryUID {
				name += fmt.Sprintf(" of factory %q", f.Name)
			}

			names = append(names, name)
		}
	}

	return names, nil
}
