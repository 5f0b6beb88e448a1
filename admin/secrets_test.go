package admin_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"millwright/admin"
	"millwright/state"
)

func TestSecrets(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		boss := state.RoleAdmin
		r := w.call(boss, "GET", "/secrets", "").want(200)
		r.hasKeys("secrets page_info")
		r.length(0, "secrets")

		r = w.call(boss, "PUT", "/secrets/ALERTS", `{"value": "s3cret-value", "unknown": [1]}`).want(200)
		r.hasKeys("name version pending webhooks used_by reserved created_at updated_at")
		if strings.Contains(string(r.body), "s3cret") {
			t.Errorf("the value is in the answer: %s", r.body)
		}
		if r.at("name") != "ALERTS" || fmt.Sprint(r.at("version")) != "1" || r.at("pending") != false {
			t.Errorf("answer %s", r.body)
		}
		value, err := w.store.SecretValue(context.Background(), "ALERTS")
		if err != nil || string(value) != "s3cret-value" {
			t.Errorf("stored %q, %v", value, err)
		}

		f := w.factory("payments", state.Source{Kind: "dir", Path: "/srv"}, map[string]string{"webhooks/alerts.yaml": "secretName: ALERTS\n"})
		r = w.call(boss, "PUT", "/secrets/ALERTS", `{"value": "another"}`).want(200)
		if fmt.Sprint(r.at("version")) != "2" {
			t.Errorf("answer %s", r.body)
		}
		r.length(1, "webhooks")
		hooks, err := w.store.Webhooks(context.Background(), f.UID, false)
		if err != nil || r.at("webhooks", 0) != hooks[0].UID {
			t.Errorf("webhooks %v, %v", r.at("webhooks"), err)
		}
		w.call(boss, "DELETE", "/secrets/ALERTS", "").problem(409, "conflict")
		w.apply(f.UID, map[string]string{})
		if r := w.call(boss, "DELETE", "/secrets/ALERTS", "").want(204); len(r.body) > 0 {
			t.Errorf("body %q", r.body)
		}
		w.call(boss, "DELETE", "/secrets/ALERTS", "").problem(404, "resource_not_found")

		r = w.call(boss, "PUT", "/secrets/LATER", `{"pending": true}`).want(200)
		if r.at("pending") != true {
			t.Errorf("answer %s", r.body)
		}
	})
}

func TestSecretsRefuseWhatIsWrong(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		for _, c := range []struct{ name, body, field string }{
			{"A", ``, ""},
			{"A", `{}`, "value"},
			{"A", `{"value": ""}`, "value"},
			{"A", `{"value": null}`, "value"},
			{"A", `{"value": 12345678901}`, "value"},
			{"A", `{"value": "hidden", "pending": true}`, "pending"},
			{"A", `{"pending": false}`, "value"},
			{"A", `{"pending": "hidden"}`, "pending"},
			{"A", `["hidden"]`, ""},
			{"A", `{"value": "hidden"`, ""},
			{"A", `{"value": "` + strings.Repeat("x", 64<<10+1) + `"}`, "value"},
			{"A", `{"value": "` + strings.Repeat("é", 64<<10) + `"}`, "value"},
			{"1A", `{"value": "hidden"}`, "name"},
			{"A-B", `{"value": "hidden"}`, "name"},
			{"A%2FB", `{"value": "hidden"}`, "name"},
			{strings.Repeat("A", 129), `{"value": "hidden"}`, "name"},
		} {
			r := w.call(state.RoleAdmin, "PUT", "/secrets/"+c.name, c.body).problem(400, "invalid_request")
			if strings.Contains(string(r.body), "hidden") {
				t.Errorf("%s %.40s: the value is in the answer: %s", c.name, c.body, r.body)
			}
			if c.field != "" && r.at("errors", 0, "field") != c.field {
				t.Errorf("%s %.40s: %s", c.name, c.body, r.body)
			}
		}
		w.call(state.RoleAdmin, "PUT", "/secrets/A", `{"value": "`+strings.Repeat("x", 9<<20)+`"}`).problem(413, "payload_too_large")
		w.call(state.RoleAdmin, "GET", "/secrets", "").length(0, "secrets")
	})
}

func TestListsArePaged(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		var want []string
		for i := range 7 {
			name := fmt.Sprintf("S%d", i)
			w.secret(name, "value")
			want = append(want, name)
		}
		for _, limit := range []int{1, 3, 7, 500} {
			if got := w.all("/secrets", "secrets", "name", limit); !slices.Equal(got, want) {
				t.Errorf("limit %d: %v", limit, got)
			}
		}
		next := w.call(state.RoleAdmin, "GET", "/secrets?limit=2", "").want(200).at("page_info", "next_cursor").(string)
		w.secret("S0A", "value") // before the cursor: not shown, and nothing is shown twice
		r := w.call(state.RoleAdmin, "GET", "/secrets?limit=2&cursor="+next, "").want(200)
		if r.at("secrets", 0, "name") != "S2" {
			t.Errorf("second page: %s", r.body)
		}
		for query, field := range map[string]string{
			"limit=0": "limit", "limit=501": "limit", "limit=-1": "limit", "limit=x": "limit", "limit=1e2": "limit", "limit=99999999999999999999": "limit",
			"cursor=!": "cursor", "cursor=AAAA": "cursor", "cursor=bnVsbA": "cursor", "cursor=e30": "cursor", "cursor=" + strings.Repeat("A", 2000): "cursor",
		} {
			r := w.call(state.RoleAdmin, "GET", "/secrets?"+query, "").problem(400, "invalid_request")
			if r.at("errors", 0, "field") != field {
				t.Errorf("%s: %s", query, r.body)
			}
		}
		w.call(state.RoleAdmin, "GET", "/keys?cursor="+next, "").problem(400, "invalid_request") // of another list
		w.call(state.RoleAdmin, "GET", "/secrets?unknown=1", "").want(200)
	})
}

// TestSecretsOfSources has a source use a secret: it is neither deleted nor named by a definition.
func TestSecretsOfSources(t *testing.T) {
	uses := map[string]string{"GIT_TOKEN": "the tokenSecret of the source of factory git", "SHARED": "the pushSecret of the source of factory git"}
	cfg := admin.Config{SourceSecrets: func() (used, reserved map[string]string) {
		return uses, map[string]string{"GIT_TOKEN": uses["GIT_TOKEN"]}
	}}
	each(t, cfg, func(w *world) {
		f := w.factory("payments", state.Source{Kind: "dir", Path: "/srv"}, nil)
		for name, use := range uses {
			w.secret(name, "value")
			r := w.call(state.RoleAdmin, "DELETE", "/secrets/"+name, "").problem(409, "conflict")
			if !strings.Contains(string(r.body), use) {
				t.Errorf("%s: %s", name, r.body)
			}
		}
		w.secret("CI_TOKEN", "value")
		list := w.call(state.RoleAdmin, "GET", "/secrets", "").want(200)
		if list.at("secrets", 1, "name") != "GIT_TOKEN" || list.at("secrets", 1, "used_by", 0) != uses["GIT_TOKEN"] {
			t.Errorf("list %s", list.body)
		}

		plan := func(name string) string {
			return string(w.call(state.RoleViewer, "POST", "/factory/"+f.UID+"/plan", files(map[string]string{
				"webhooks/ci.yaml": "secretName: " + name + "\n",
			})).want(200).body)
		}
		if got := plan("GIT_TOKEN"); !strings.Contains(got, "secret-reserved") || !strings.Contains(got, `"would_apply":false`) {
			t.Errorf("plan with the source's secret: %s", got)
		}
		if got := plan("SHARED"); !strings.Contains(got, `"would_apply":true`) {
			t.Errorf("plan with a shared one: %s", got)
		}
		if got := plan("GIT_TOKE"); !strings.Contains(got, "secret-missing") || strings.Contains(got, "GIT_TOKEN") {
			t.Errorf("plan with a name like it: %s", got)
		}
	})
}

// TestSecretsThatTheirWebhooksCannotUse sets values that the next apply or every sender would stumble over.
func TestSecretsThatTheirWebhooksCannotUse(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		for _, name := range []string{"LINK", "BEARER", "SIGNED", "UNUSED"} {
			w.secret(name, "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
		}
		w.secret("LINK", "safe")
		w.factory("payments", state.Source{Kind: "dir", Path: "/srv"}, map[string]string{
			"webhooks/link.yaml":   "authMode: url_token\nsecretName: LINK\n",
			"webhooks/bearer.yaml": "secretName: BEARER\n",
			"webhooks/signed.yaml": "authMode: signature\nsignatureScheme: standard_webhooks\nsecretName: SIGNED\n",
		})
		for _, c := range []struct{ name, value, want string }{
			{"LINK", "a/b", "Webhook link of factory payments cannot use it: it is part of the URL"},
			{"LINK", "a-b", ""},
			{"BEARER", "two words", "Webhook bearer of factory payments cannot use it: many senders"},
			{"BEARER", "a/b", ""},
			{"SIGNED", "not-base64!", "Webhook signed of factory payments cannot use it: it is no signing secret of standard_webhooks"},
			{"SIGNED", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", ""},
			{"UNUSED", "two words / more", ""},
		} {
			r := w.call(state.RoleAdmin, "PUT", "/secrets/"+c.name, string(mustJSON(map[string]string{"value": c.value}))).want(200)
			if got := string(r.body); !strings.Contains(got, c.want) || strings.Contains(got, "warnings") != (c.want != "") || strings.Contains(got, c.value) {
				t.Errorf("%s %q: %s", c.name, c.value, got)
			}
		}
		w.call(state.RoleAdmin, "PUT", "/secrets/LINK", `{"pending": true}`).want(200)
	})
}
