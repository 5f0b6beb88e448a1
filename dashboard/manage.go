package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"millwright/admin"
	"millwright/api"
	"millwright/schema"
	"millwright/state"
)

type newWebhookView struct {
	Form    form
	Schemes []admin.SignatureScheme
	Managed bool
	Where   place
	Count   int
	Max     int
	Secrets []string
}

// newWebhook shows the form for a webhook of a managed factory.
func (q *request) newWebhook() error {
	return q.showNewWebhook(http.StatusOK, form{Values: map[string]string{"auth_mode": string(schema.AuthToken)}})
}

func (q *request) showNewWebhook(status int, f form) error {
	p, factory, err := q.factoryPage("New webhook", "webhooks")
	if err != nil {
		return err
	}

	hooks, err := q.Store.Webhooks(q.Context(), factory.UID, false)
	if err != nil {
		return err
	}

	var list admin.ListSecretsResponse
	if !q.key.Limited() {
		if err := q.call(http.MethodGet, "/secrets?limit=500", nil, &list); err != nil {
			return err
		}
	}

	v := newWebhookView{
		Form: f, Schemes: admin.SignatureSchemes(), Managed: managed(factory),
		Where: placeOf(factory, "webhooks/<name>.yaml"), Count: len(hooks), Max: schema.MaxWebhooks,
	}
	for _, s := range list.Secrets {
		if !s.Reserved && (s.Factory == "" || s.Factory == factory.UID) {
			v.Secrets = append(v.Secrets, s.Name)
		}
	}

	p.Crumbs = append(p.Crumbs, crumb{"Webhooks", "/factories/" + factory.UID + "/webhooks"})
	p.Data = v
	return q.renderStatus(status, "webhook-new", p)
}

type createdView struct {
	Webhook admin.WebhookWithSecret
	Path    string
	URL     string
	Pending bool
}

// createWebhook makes a webhook, and shows its URL and secret this once.
func (q *request) createWebhook() error {
	p, f, err := q.factoryPage("Webhook created", "webhooks")
	if err != nil {
		return err
	}

	typed := q.formOf("name", "auth_mode", "signature_scheme", "secret_name", "delivery_id_header",
		"duplicate_window", "deliveries_per_minute", "handshake")
	given := func(name string) string { return strings.TrimSpace(typed.Values[name]) }
	in := admin.CreateWebhookRequest{
		Name:             given("name"),
		AuthMode:         typed.Values["auth_mode"],
		SecretName:       given("secret_name"),
		DeliveryIDHeader: given("delivery_id_header"),
		DuplicateWindow:  given("duplicate_window"),
	}

	if text := given("deliveries_per_minute"); text != "" {
		in.DeliveriesPerMinute, err = strconv.Atoi(text)
		if err != nil || in.DeliveriesPerMinute < 1 {
			typed.Errors["deliveries_per_minute"] = "want a whole number, 1 or more"
			return q.showNewWebhook(http.StatusUnprocessableEntity, typed)
		}
	}

	if in.AuthMode == string(schema.AuthSignature) {
		in.SignatureScheme = typed.Values["signature_scheme"]
		in.Secret = strings.TrimRight(q.PostForm.Get("secret"), "\r\n")
		in.Handshake = typed.Values["handshake"] == "yes"
	}

	var made admin.WebhookWithSecret
	if err := q.call(http.MethodPost, "/factory/"+f.UID+"/webhooks", in, &made); err != nil {
		if !typed.take(err) {
			return err
		}
		return q.showNewWebhook(http.StatusUnprocessableEntity, typed)
	}

	w, err := q.Store.Webhook(q.Context(), f.UID, made.UID)
	if err != nil {
		return err
	}

	v := createdView{
		Webhook: made,
		Path:    "/factories/" + f.UID + "/webhooks/" + made.UID,
		URL:     made.IngressURL,
		Pending: w.SecretPending,
	}
	if made.Secret != "" && w.Spec.AuthMode == schema.AuthURLToken {
		v.URL = strings.Replace(v.URL, "{token}", made.Secret, 1)
	}

	p.Crumbs = append(p.Crumbs, crumb{"Webhooks", "/factories/" + f.UID + "/webhooks"})
	p.Data = v
	return q.render("webhook-created", p)
}

// enableWebhook turns a webhook of a managed factory on or off.
func (q *request) enableWebhook() error {
	_, f, w, err := q.webhookPage("", "")
	if err != nil {
		return err
	}
	on := q.PostForm.Get("enabled") == "yes"
	change := admin.UpdateWebhookRequest{Enabled: &on}
	if err := q.call(http.MethodPatch, "/factory/"+f.UID+"/webhooks/"+w.UID, change, nil); err != nil {
		return err
	}

	did := map[bool]string{true: "enabled", false: "disabled"}[on]
	return q.redirect("/factories/"+f.UID+"/webhooks/"+w.UID, did)
}

// renameWebhook gives a webhook of a managed factory another name. Its URL stays.
func (q *request) renameWebhook() error {
	_, f, w, err := q.webhookPage("", "")
	if err != nil {
		return err
	}

	typed := q.formOf("name")
	name := strings.TrimSpace(typed.Values["name"])
	change := admin.UpdateWebhookRequest{Name: &name}
	if err := q.call(http.MethodPatch, "/factory/"+f.UID+"/webhooks/"+w.UID, change, nil); err != nil {
		if !typed.take(err) {
			return err
		}
		return q.showWebhook(http.StatusUnprocessableEntity, webhookView{Rename: typed}, nil)
	}

	return q.redirect("/factories/"+f.UID+"/webhooks/"+w.UID, "renamed")
}

// rotateSecret gives a webhook of a managed factory a new secret, and shows it this once.
func (q *request) rotateSecret() error {
	_, f, w, err := q.webhookPage("", "")
	if err != nil {
		return err
	}

	typed := q.formOf("shared")
	typed.Values["secret"] = "" // so that its problem is shown beside it
	in := admin.RotateSecretRequest{Shared: typed.Values["shared"] == "yes"}
	if w.Spec.AuthMode == schema.AuthSignature {
		in.Secret = strings.TrimRight(q.PostForm.Get("secret"), "\r\n")
	}

	var made admin.WebhookWithSecret
	if err := q.call(http.MethodPost, "/factory/"+f.UID+"/webhooks/"+w.UID+"/rotate", in, &made); err != nil {
		if !typed.take(err) {
			return err
		}
		if problemOf(err).Code == "conflict" && !in.Shared {
			if others, _, err := q.sharedWith(w); err == nil && len(others) > 0 {
				typed.Error = fmt.Sprintf(
					"The secret %s is also used by %s, and they need the new value too: "+
						"tick the box to rotate it all the same.",
					w.Spec.SecretName,
					strings.Join(others, ", "),
				)
			}
		}
		return q.showWebhook(http.StatusUnprocessableEntity, webhookView{Rotate: typed}, nil)
	}

	return q.showWebhook(http.StatusOK, webhookView{Entered: w.SecretPending}, &made)
}

// deleteWebhook deletes a webhook of a managed factory, once its name has been typed.
func (q *request) deleteWebhook() error {
	_, f, w, err := q.webhookPage("", "")
	if err != nil {
		return err
	}

	typed := q.formOf("name", "secret", "restorable")
	if managed(f) && strings.TrimSpace(typed.Values["name"]) != w.Spec.Name {
		typed.Errors["name"] = "is not the name of this webhook: type " + w.Spec.Name
		return q.showWebhook(http.StatusUnprocessableEntity, webhookView{Delete: typed}, nil)
	}

	query := url.Values{}
	for field, name := range map[string]string{"secret": "delete_secret", "restorable": "restorable"} {
		if q.PostForm.Get(field) == "yes" {
			query.Set(name, "true")
		}
	}

	path := "/factory/" + f.UID + "/webhooks/" + w.UID + "?" + query.Encode()
	if err := q.call(http.MethodDelete, path, nil, nil); err != nil {
		return err
	}

	return q.redirect("/factories/"+f.UID+"/webhooks", "deleted")
}

type secretsView struct {
	Secrets []secretRow
	Form    form
}

// secretRow is a secret with who uses it.
type secretRow struct {
	admin.Secret
	In     string // the name of the factory whose definition holds it; empty: the team's
	Users  []webhookLink
	Others []string // what else uses it, in words
}

// secrets lists the team's secrets: names, versions, users; never values.
func (q *request) secrets() error { return q.showSecrets(http.StatusOK, form{}) }

func (q *request) showSecrets(status int, f form) error {
	var list admin.ListSecretsResponse
	if err := q.call(http.MethodGet, "/secrets?limit=500", nil, &list); err != nil {
		return err
	}

	known, err := q.webhookNames()
	if err != nil {
		return err
	}

	factories, err := q.Store.Factories(q.Context())
	if err != nil {
		return err
	}

	names := map[string]string{}
	for _, f := range factories {
		names[f.UID] = f.Name
	}

	v := secretsView{Form: f}
	for _, s := range list.Secrets {
		row := secretRow{Secret: s, In: names[s.Factory]}
		for _, uid := range s.Webhooks {
			if w, ok := known[uid]; ok {
				row.Users = append(row.Users, w)
			}
		}

		for _, user := range s.UsedBy {
			if !strings.HasPrefix(user, "webhook ") {
				row.Others = append(row.Others, user)
			}
		}

		v.Secrets = append(v.Secrets, row)
	}

	return q.renderStatus(
		status,
		"secrets",
		page{Title: "Secrets", Section: "secrets", Live: []string{"secret", "sync"}, Self: "/secrets", Data: v},
	)
}

// setSecret creates a secret or gives it a new value.
func (q *request) setSecret() error {
	typed := q.formOf("name", "pending")
	typed.Values["value"] = ""
	name := strings.TrimSpace(typed.Values["name"])
	in := admin.SetSecretRequest{}
	if pending := typed.Values["pending"] == "yes"; pending {
		in.Pending = &pending
	}
	if value := strings.ReplaceAll(q.PostForm.Get("value"), "\r\n", "\n"); value != "" || in.Pending == nil {
		value = strings.TrimSuffix(value, "\n") // as the command line does
		in.Value = &value
	}
	if !secretName(name) {
		typed.Errors["name"] = "is a letter or _, then letters, digits and _, at most 128 in all"
		return q.showSecrets(http.StatusUnprocessableEntity, typed)
	}

	var set admin.Secret
	if err := q.call(http.MethodPut, "/secrets/"+name, in, &set); err != nil {
		if !typed.take(err) {
			return err
		}
		return q.showSecrets(http.StatusUnprocessableEntity, typed)
	}

	if len(set.Warnings) > 0 {
		return q.showSecrets(
			http.StatusOK,
			form{Error: "The new value is stored. " + strings.Join(set.Warnings, " ")},
		)
	}

	if in.Value == nil {
		return q.redirect("/secrets", "pending")
	}

	return q.redirect("/secrets", "secret")
}

func secretName(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= 128
}

func (q *request) deleteSecret() error {
	name := q.param("name")
	if !secretName(name) {
		return api.Problem("resource_not_found", "there is no secret %s", line(name))
	}

	if err := q.call(http.MethodDelete, "/secrets/"+name, nil, nil); err != nil {
		f := form{Values: map[string]string{}, Errors: map[string]string{}}
		if !f.take(err) {
			return err
		}

		return q.showSecrets(http.StatusConflict, f)
	}

	return q.redirect("/secrets", "deleted")
}

type keysView struct {
	Keys  []admin.APIKey
	Roles []state.Role
	Lives []life

	Factories []state.Factory
	Names     map[string]string // of factories, by UID

	Form form
	Made *admin.CreatedAPIKey
}

// life is how long a key may work.
type life struct{ Value, Name string }

// keys lists the API keys. Their secrets are not kept.
func (q *request) keys() error { return q.showKeys(http.StatusOK, keysView{}) }

func (q *request) showKeys(status int, v keysView) error {
	var list admin.ListAPIKeysResponse
	if err := q.call(http.MethodGet, "/keys?limit=500", nil, &list); err != nil {
		return err
	}

	v.Keys = list.Keys
	v.Roles = []state.Role{state.RolePlanner, state.RoleViewer, state.RoleRunner, state.RoleAdmin, state.RoleWorker}
	all, err := q.Store.Factories(q.Context())
	if err != nil {
		return err
	}

	v.Names = map[string]string{}
	for _, f := range all {
		v.Names[f.UID] = f.Name
		if !f.Detached {
			v.Factories = append(v.Factories, f)
		}
	}

	v.Lives = []life{
		{"24h", "in a day"},
		{"7d", "in a week"},
		{"30d", "in 30 days"},
		{"90d", "in 90 days"},
		{"365d", "in a year"},
	}

	return q.renderStatus(status, "keys", page{Title: "API keys", Section: "keys", Data: v})
}

// createKey makes an API key, and shows it this once.
func (q *request) createKey() error {
	v := keysView{Form: q.formOf("name", "role", "expires_in", "factories")}
	in := map[string]any{"name": strings.TrimSpace(v.Form.Values["name"]), "role": v.Form.Values["role"]}
	if factories := q.PostForm["factories"]; factories != nil {
		in["factories"] = factories
	}
	if life := v.Form.Values["expires_in"]; life != "" {
		in["expires_in"] = life
	}

	var made admin.CreatedAPIKey
	if err := q.call(http.MethodPost, "/keys", in, &made); err != nil {
		if !v.Form.take(err) {
			return err
		}
		return q.showKeys(http.StatusUnprocessableEntity, v)
	}

	return q.showKeys(http.StatusOK, keysView{Made: &made})
}

func (q *request) revokeKey() error {
	uid := q.param("key")
	if !state.ValidID(state.PrefixKey, uid) {
		return api.Problem("resource_not_found", "there is no API key %s", line(uid))
	}

	if err := q.call(http.MethodDelete, "/keys/"+uid, nil, nil); err != nil {
		f := form{Values: map[string]string{}, Errors: map[string]string{}}
		if !f.take(err) {
			return err
		}

		return q.showKeys(http.StatusConflict, keysView{Form: f})
	}

	return q.redirect("/keys", "revoked")
}
