package admin_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"millwright/admin"
	"millwright/state"
)

const webhookKeys = "uid name auth_mode signature_scheme secret_name secret_version secret_stale secret_pending delivery_id_header enabled handshake ingress_url created_at updated_at deleted_at file line refused_by_budget refused_while_disabled counts"

// hooks is a tree with a webhook of each mode.
var hooks = map[string]string{
	"webhooks/bearer.yaml":  "secretName: A\ndeliveryIdHeader: X-My-Id\n",
	"webhooks/linked.yaml":  "secretName: B\nauthMode: url_token\nenabled: false\n",
	"webhooks/signed.yaml":  "secretName: C\nauthMode: signature\nsignatureScheme: github\n",
	"webhooks/waiting.yaml": "secretName: D\nauthMode: signature\nsignatureScheme: stripe\n",
}

func (w *world) withHooks(name string) (state.Factory, map[string]state.Webhook) {
	w.t.Helper()
	if all, _ := w.store.Secrets(context.Background()); len(all) == 0 {
		w.secret("A", "bearer-secret")
		w.secret("B", "url-secret")
		w.secret("C", "signing-secret")
		if _, err := w.store.SetSecret(context.Background(), "D", nil); err != nil {
			w.t.Fatal(err)
		}
	}
	f := w.factory(name, state.Source{Kind: "dir", Path: "/srv/" + name}, hooks)
	return f, w.hooksOf(f)
}

func (w *world) hooksOf(f state.Factory) map[string]state.Webhook {
	w.t.Helper()
	all, err := w.store.Webhooks(context.Background(), f.UID, true)
	if err != nil {
		w.t.Fatal(err)
	}
	byName := map[string]state.Webhook{}
	for _, h := range all {
		byName[h.Spec.Name] = h
	}
	return byName
}

func TestWebhooks(t *testing.T) {
	each(t, admin.Config{PublicURL: "https://hooks.example.com/"}, func(w *world) {
		f, byName := w.withHooks("payments")
		other, _ := w.withHooks("other")
		base := "/factory/" + f.UID + "/webhooks"

		r := w.call(state.RoleViewer, "GET", base, "").want(200)
		r.hasKeys("webhooks page_info")
		r.length(4, "webhooks")
		for i := range 4 {
			r.hasKeys(webhookKeys, "webhooks", i)
			r.hasKeys("accepted duplicate rejected_auth rejected_invalid_json rejected_too_large handshake", "webhooks", i, "counts")
		}
		for _, secret := range []string{"bearer-secret", "url-secret", "signing-secret"} {
			if strings.Contains(string(r.body), secret) {
				t.Errorf("a secret is in the answer")
			}
		}
		for i, want := range []map[string]any{
			{"name": "bearer", "auth_mode": "token", "delivery_id_header": "X-My-Id", "ingress_url": "https://hooks.example.com/webhooks/w/" + byName["bearer"].UID, "file": "webhooks/bearer.yaml", "enabled": true, "signature_scheme": "", "deleted_at": nil, "secret_name": "A"},
			{"name": "linked", "auth_mode": "url_token", "ingress_url": "https://hooks.example.com/webhooks/w/" + byName["linked"].UID + "/{token}", "enabled": false},
			{"name": "signed", "auth_mode": "signature", "signature_scheme": "github", "secret_pending": false, "secret_stale": false},
			{"name": "waiting", "secret_pending": true},
		} {
			for k, v := range want {
				if got := r.at("webhooks", i, k); got != v {
					t.Errorf("webhook %d: %s is %v, want %v", i, k, got, v)
				}
			}
		}

		one := base + "/" + byName["bearer"].UID
		r = w.call(state.RoleViewer, "GET", one, "").want(200)
		r.hasKeys(webhookKeys)
		w.secret("A", "newer")
		if r := w.call(state.RoleViewer, "GET", one, "").want(200); r.at("secret_stale") != true {
			t.Errorf("answer %s", r.body)
		}

		// Deleted for good, and back under the same name as another one.
		less := map[string]string{"webhooks/linked.yaml": hooks["webhooks/linked.yaml"], "webhooks/signed.yaml": hooks["webhooks/signed.yaml"], "webhooks/waiting.yaml": hooks["webhooks/waiting.yaml"]}
		w.applyForgetting(f.UID, less, byName["bearer"].UID)
		if r := w.call(state.RoleViewer, "GET", one, "").want(200); r.at("deleted_at") == nil || r.at("name") != "bearer" {
			t.Errorf("answer %s", r.body)
		}
		w.call(state.RoleViewer, "GET", base, "").length(3, "webhooks")
		w.apply(f.UID, hooks)
		for _, limit := range []int{1, 2, 20} {
			if got := w.all(base, "webhooks", "name", limit); !slices.Equal(got, []string{"bearer", "linked", "signed", "waiting"}) {
				t.Errorf("limit %d: %v", limit, got)
			}
			if got := w.all(base+"?include_deleted=true", "webhooks", "name", limit); !slices.Equal(got, []string{"bearer", "bearer", "linked", "signed", "waiting"}) {
				t.Errorf("with deleted, limit %d: %v", limit, got)
			}
		}

		uid := byName["bearer"].UID
		for _, path := range []string{
			"/factory/" + other.UID + "/webhooks/" + uid, // of another factory
			base + "/bearer", base + "/wh_00000000000000000000000000", base + "/%00",
			"/factory/nonsense/webhooks", "/factory/nonsense/webhooks/" + uid, "/factory/nonsense/webhooks/" + uid + "/deliveries",
		} {
			w.call(state.RoleViewer, "GET", path, "").problem(404, "resource_not_found")
		}
		w.call(state.RoleViewer, "GET", base+"?include_deleted=2", "").problem(400, "invalid_request")
		next := w.call(state.RoleViewer, "GET", base+"?limit=1", "").at("page_info", "next_cursor").(string)
		w.call(state.RoleViewer, "GET", "/factory/"+other.UID+"/webhooks?cursor="+next, "").problem(400, "invalid_request")
	})
}
