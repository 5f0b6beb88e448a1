package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"millwright/admin"
	"millwright/schema"
	"millwright/state"
	"millwright/state/registrations"
)

// webhookRow is a webhook with what its log holds.
type webhookRow struct {
	state.Webhook
	URL    string
	Counts map[state.DeliveryOutcome]int64
}

// Refused counts the rejected requests.
func (w webhookRow) Refused() int64 {
	return w.Counts[state.DeliveryRejectedAuth] + w.Counts[state.DeliveryInvalidJSON] + w.Counts[state.DeliveryTooLarge]
}

// Of counts the requests of one outcome.
func (w webhookRow) Of(outcome string) int64 { return w.Counts[state.DeliveryOutcome(outcome)] }

// Accepted counts the accepted deliveries.
func (w webhookRow) Accepted() int64 { return w.Counts[state.DeliveryAccepted] }

// Duplicates counts the duplicates.
func (w webhookRow) Duplicates() int64 { return w.Counts[state.DeliveryDuplicate] }

// Standing returns enabled, disabled or deleted.
func (w webhookRow) Standing() string {
	switch {
	case w.Deleted != nil:
		return "deleted"
	case !w.Spec.Enabled:
		return "disabled"
	}
	return "enabled"
}

// Mode names the authentication of senders.
func (w webhookRow) Mode() string {
	switch w.Spec.AuthMode {
	case schema.AuthToken:
		return "Bearer token"
	case schema.AuthURLToken:
		return "URL token"
	}
	return "Provider signature (" + admin.Provider(cmp.Or(w.Spec.SignatureSchemeAlias, w.Spec.SignatureScheme)) + ")"
}

func (q *request) webhookRow(w state.Webhook, counts map[string]map[state.DeliveryOutcome]int64) webhookRow {
	return webhookRow{w, admin.IngressURL(q.PublicURL, w), counts[w.UID]}
}

type webhooksView struct {
	Live, Deleted []webhookRow
	Counted       bool
	Managed       bool
	Max           int
	Where         place
}

func (q *request) webhooks() error {
	p, f, err := q.factoryPage("Webhooks", "webhooks")
	if err != nil {
		return err
	}

	hooks, err := q.Store.Webhooks(q.Context(), f.UID, true)
	if err != nil {
		return err
	}

	counts, known := q.deliveryCounts(f.UID)
	v := webhooksView{
		Counted: known,
		Managed: managed(f),
		Max:     schema.MaxWebhooks,
		Where:   placeOf(f, "webhooks/<name>.yaml"),
	}

	for _, w := range hooks {
		if row := q.webhookRow(w, counts); w.Deleted == nil {
			v.Live = append(v.Live, row)
		} else {
			v.Deleted = append(v.Deleted, row)
		}
	}

	p.Live, p.Data = []string{"sync." + f.UID, "secret", "delivery"}, v
	return q.render("webhooks", p)
}

type webhookView struct {
	Registered  *registrations.Registration // nil: none
	Webhook     webhookRow
	Counted     bool
	Managed     bool
	Where       place  // the file to edit
	File        string // beside the definition's root
	Log         deliveryList
	Automations []selection
	SharedWith  []string // names of other webhooks that use the secret
	OwnSecret   bool     // nothing else uses the secret
	IDHeaders   []string // that identify a delivery: the first that a request has
	Refused     []string // what the log does not show, in words
	Repeated    int      // duplicates that only the hash of their body makes such, hours apart
	Restorable  bool     // it is deleted, and its name brings it back
	Rotate      form
	Delete      form
	Rename      form
	Settings    form
	Schemes     []admin.SignatureScheme
	Secret      string // shown once
	URL         string // with the token in it, shown once
	Rotated     bool
	Entered     bool                 // what was rotated was pending
	Offered     *state.OfferedSecret // by a provider, while the secret is pending; for admins
}

// selection is an automation that selects a webhook.
type selection struct {
	admin.Automation
	Filtered bool
}

func (q *request) webhook() error { return q.showWebhook(http.StatusOK, webhookView{}, nil) }

// showWebhook shows a webhook: with a form of v that was not right, or with a secret that was just made.
func (q *request) showWebhook(status int, v webhookView, made *admin.WebhookWithSecret) error {
	p, f, w, err := q.webhookPage("", "webhooks")
	if err != nil {
		return err
	}

	counts, known := q.deliveryCounts(f.UID)
	v.Webhook, v.Counted, v.Managed = q.webhookRow(w, counts), known, managed(f) && w.Deleted == nil
	v.Where, v.File = placeOf(f, w.Spec.Path).at(w.Spec.Line), w.Spec.Path
	if made != nil {
		v.Rotated, v.Secret = true, made.Secret
		if w.Spec.AuthMode == schema.AuthURLToken && made.Secret != "" {
			v.URL = strings.Replace(made.IngressURL, "{token}", url.PathEscape(made.Secret), 1)
		}
	}

	if w.SecretPending && w.Deleted == nil && q.key.Role.Allows(state.RoleAdmin) {
		offered, err := q.Store.OfferedSecret(q.Context(), f.UID, w.UID)
		if err == nil {
			v.Offered = &offered
		} else if !errors.Is(err, state.ErrNotFound) {
			return err
		}
	}

	if v.Registered, err = q.registered(w); err != nil {
		return err
	}
	if v.Log, err = q.deliveryList([]state.Webhook{w}); err != nil {
		return err
	}
	if v.Automations, err = q.selecting(f.UID, w.UID); err != nil {
		return err
	}
	refused, err := q.refusedRequests(f.UID)
	if err != nil {
		return err
	}

	v.IDHeaders, v.Refused = idHeaders(w.Spec), refusalNotes(refused[w.UID])
	if v.Repeated, err = q.Store.RepeatedBodies(q.Context(), w); err != nil {
		return err
	}

	v.Restorable = w.Restorable != nil && w.Restorable.After(time.Now())
	if v.SharedWith, v.OwnSecret, err = q.sharedWith(w); err != nil {
		return err
	}

	if v.Schemes = schemesFor(w); v.Settings.Values == nil {
		v.Settings.Values = settingsOf(w)
	}

	p.Title, p.Self, p.Crumbs = w.Spec.Name, p.Crumbs[len(p.Crumbs)-1].Path, p.Crumbs[:len(p.Crumbs)-1]
	p.Live, p.Data = []string{"delivery." + w.UID, "run", "sync." + f.UID, "secret." + w.Spec.SecretName}, v
	return q.renderStatus(status, "webhook", p)
}

// settingsOf returns the settings of a webhook as its form has them.
func settingsOf(w state.Webhook) map[string]string {
	values := map[string]string{
		"auth_mode":             string(w.Spec.AuthMode),
		"signature_scheme":      cmp.Or(w.Spec.SignatureSchemeAlias, w.Spec.SignatureScheme),
		"secret_name":           w.Spec.SecretName,
		"delivery_id_header":    w.Spec.DeliveryIDHeader,
		"duplicate_window":      w.Spec.DuplicateWindow,
		"deliveries_per_minute": "",
		"handshake":             "",
	}
	if n := w.Spec.DeliveriesPerMinute; n > 0 {
		values["deliveries_per_minute"] = strconv.Itoa(n)
	}
	if w.Spec.Handshake {
		values["handshake"] = "yes"
	}

	return values
}

// schemesFor returns the schemes to choose from, and the present one of a webhook if it is none of them.
func schemesFor(w state.Webhook) []admin.SignatureScheme {
	all := admin.SignatureSchemes()
	now := settingsOf(w)["signature_scheme"]
	if now != "" && !slices.ContainsFunc(all, func(s admin.SignatureScheme) bool { return s.Name == now }) {
		all = append(all, admin.SignatureScheme{Name: now, Provider: admin.Provider(now)})
	}
	return all
}

// selecting returns the automations that select a webhook.
func (q *request) selecting(factoryUID, webhookUID string) (all []selection, err error) {
	var list admin.ListAutomationsResponse
	if err := q.call(http.MethodGet, "/factory/"+factoryUID+"/automations?limit=500", nil, &list); err != nil {
		return nil, err
	}

	for _, a := range list.Automations {
		if slices.ContainsFunc(a.Webhooks, func(w admin.SelectedWebhook) bool { return w.UID == webhookUID }) {
			all = append(all, selection{a, slices.ContainsFunc(a.Triggers, func(t admin.AutomationTrigger) bool {
				return len(t.Payload) > 0 && string(t.Payload) != "{}" || len(t.Filter) > 0 && string(t.Filter) != "{}"
			})})
		}
	}

	return all, nil
}

// sharedWith returns the names of the other live webhooks that use a webhook's secret, and whether nothing
// else uses it at all.
func (q *request) sharedWith(w state.Webhook) (names []string, own bool, err error) {
	infos, err := q.Store.Secrets(q.Context())
	if err != nil {
		return nil, false, err
	}

	users := infos[w.SecretKey()].Webhooks
	own = len(infos[w.SecretKey()].Users) == 1
	if len(users) < 2 {
		return nil, own, nil
	}

	known, err := q.webhookNames()
	for _, uid := range users {
		if uid != w.UID {
			names = append(names, cmp.Or(known[uid].Name, "a webhook of another factory"))
		}
	}

	return names, own, err
}

// webhookLink names a webhook and where its page is.
type webhookLink struct {
	Name, Path string
	Stale      bool
}

// webhookNames returns every live webhook of the factories that the key reaches, by UID.
func (q *request) webhookNames() (map[string]webhookLink, error) {
	factories, err := q.ownFactories()
	if err != nil {
		return nil, err
	}

	all := map[string]webhookLink{}
	for _, f := range factories {
		hooks, err := q.Store.Webhooks(q.Context(), f.UID, false)
		if err != nil {
			return nil, err
		}

		for _, w := range hooks {
			all[w.UID] = webhookLink{
				f.Name + " / " + w.Spec.Name,
				"/factories/" + f.UID + "/webhooks/" + w.UID,
				w.SecretStale,
			}
		}
	}

	return all, nil
}

// registered returns how a webhook stands at its forge; nil if it is at none.
func (q *request) registered(w state.Webhook) (*registrations.Registration, error) {
	all, err := q.Store.Registrations().Of(q.Context(), w.FactoryUID)
	var found *registrations.Registration
	for i, r := range all {
		if r.WebhookUID == w.UID && (found == nil || r.State != registrations.Removing) {
			found = &all[i]
		}
	}
	return found, err
}
