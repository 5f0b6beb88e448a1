package dashboard

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"millwright/admin"
	"millwright/schema"
)

// changeWebhook changes the settings of a webhook of a managed factory: those that the form changed.
func (q *request) changeWebhook() error {
	_, f, w, err := q.webhookPage("", "")
	if err != nil {
		return err
	}

	now := settingsOf(w)
	typed := q.formOf("auth_mode", "signature_scheme", "secret_name", "delivery_id_header", "duplicate_window",
		"deliveries_per_minute", "handshake")
	changed := func(name string) *string {
		value := strings.TrimSpace(typed.Values[name])
		if value == now[name] {
			return nil
		}
		return &value
	}

	in := admin.UpdateWebhookRequest{
		AuthMode:         changed("auth_mode"),
		SecretName:       changed("secret_name"),
		DeliveryIDHeader: changed("delivery_id_header"),
		DuplicateWindow:  changed("duplicate_window"),
	}
	if typed.Values["auth_mode"] == string(schema.AuthSignature) { // the others have no scheme
		in.SignatureScheme = changed("signature_scheme")
		if handshake := changed("handshake"); handshake != nil {
			on := *handshake == "yes"
			in.Handshake = &on
		}
	}

	if text := changed("deliveries_per_minute"); text != nil {
		n, err := strconv.Atoi(cmp.Or(*text, "0"))
		if err != nil || n < 0 {
			typed.Errors["deliveries_per_minute"] = "want a whole number, 1 or more, or nothing"
			return q.showWebhook(http.StatusUnprocessableEntity, webhookView{Settings: typed}, nil)
		}
		in.DeliveriesPerMinute = &n
	}

	if err := q.call(http.MethodPatch, "/factory/"+f.UID+"/webhooks/"+w.UID, in, nil); err != nil {
		if !typed.take(err) {
			return err
		}
		return q.showWebhook(http.StatusUnprocessableEntity, webhookView{Settings: typed}, nil)
	}

	return q.redirect("/factories/"+f.UID+"/webhooks/"+w.UID, "saved")
}
