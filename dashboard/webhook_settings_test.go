package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"millwright/state"
)

// TestWebhookSettings changes mode, scheme, secret and header of a webhook without its file, and refuses what
// the definition would not take.
func TestWebhookSettings(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleAdmin)
		base := "/factories/" + w.held + "/webhooks/"
		b.page(base + "new")
		b.post(base+"new", "name", "alerts", "auth_mode", "token", "secret_name", "CI_TOKEN")
		hook := w.webhook(w.held, "alerts")
		path := base + hook.UID
		says(t, b.page(path), "Settings…", `value="token" checked`, `name="secret_name"`, `value="CI_TOKEN"`)

		settings := func(fields ...string) []string {
			return append([]string{"auth_mode", "token", "secret_name", "CI_TOKEN"}, fields...)
		}
		for name, c := range map[string]struct {
			field  string
			fields []string
		}{
			"no such secret": {"s-secret_name", []string{"auth_mode", "token", "secret_name", "NONE"}},
			"no scheme":      {"s-scheme", []string{"auth_mode", "signature", "secret_name", "CI_TOKEN"}},
			"a bad header":   {"s-delivery_id_header", settings("delivery_id_header", "<no header>")},
			"a bad window":   {"s-duplicate_window", settings("duplicate_window", "soon")},
			"a bad budget":   {"s-deliveries_per_minute", settings("deliveries_per_minute", "-1")},
		} {
			a := b.post(path+"/settings", c.fields...)
			if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.Text, `id="`+c.field+`-error"`) {
				t.Errorf("%s: %d %s", name, a.StatusCode, plain(a.Text))
			}
		}
		if got := w.webhook(w.held, "alerts"); got.Spec != hook.Spec {
			t.Errorf("a refused form changed %+v to %+v", hook.Spec, got.Spec)
		}

		says(t, b.follow(path+"/settings", settings("delivery_id_header", "X-Event", "deliveries_per_minute", "90")...),
			"Saved and applied", "<code>X-Event</code>, else <code>X-Service-Delivery-Id</code>", "90 of each sender")
		says(t, b.follow(path+"/settings", "auth_mode", "signature", "signature_scheme", "github", "secret_name", "HUB"),
			"Provider signature (GitHub)", "HUB", "<code>X-GitHub-Delivery</code>, else <code>X-Service-Delivery-Id</code>")
		if status := w.deliver(hook.UID, "{}", "Authorization", "Bearer "+ciToken); status != http.StatusUnauthorized {
			t.Errorf("the old mode: %d", status)
		}
		says(t, b.follow(path+"/settings", "auth_mode", "url_token", "signature_scheme", "github", "secret_name", "PING"),
			"URL token", "/{token}")
		if status := w.deliver(hook.UID+"/ping-token", "{}"); status != http.StatusAccepted {
			t.Errorf("the new mode: %d", status)
		}
		saysNot(t, w.signedIn(state.RoleViewer).page(path), "Settings…")
	})
}
