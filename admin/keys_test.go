package admin_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/admin"
	"millwright/state"
)

func TestKeys(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		boss := state.RoleAdmin
		r := w.call(boss, "POST", "/keys", `{"name": "CI of payments", "role": "viewer", "expires_in": "1h"}`).want(200)
		r.hasKeys("uid name kind role created_at expires_at revoked_at secret")
		secret, uid := r.at("secret").(string), r.at("uid").(string)
		if !strings.HasPrefix(secret, "mw_") || len(secret) < 35 || !state.ValidID(state.PrefixKey, uid) {
			t.Errorf("answer %s", r.body)
		}
		expires, err := time.Parse(time.RFC3339Nano, r.at("expires_at").(string))
		if left := time.Until(expires); err != nil || left < 50*time.Minute || left > time.Hour {
			t.Errorf("expires_at %v, %v", expires, err)
		}
		w.keys["new"] = secret
		w.call("new", "GET", "/factory", "").want(200)
		w.call("new", "GET", "/keys", "").problem(403, "not_authorized")

		r = w.call(boss, "GET", "/keys", "").want(200)
		r.length(5, "keys")
		r.hasKeys("uid name kind role created_at expires_at revoked_at", "keys", 0)
		if r.at("keys", 0, "uid") != uid || strings.Contains(string(r.body), "mw_") {
			t.Errorf("list %s", r.body)
		}
		uids := w.all("/keys", "keys", "uid", 2)
		if len(uids) != 5 || !slices.IsSortedFunc(uids, func(a, b string) int { return strings.Compare(b, a) }) {
			t.Errorf("pages %v", uids)
		}

		w.call(boss, "DELETE", "/keys/"+uid, "").want(204)
		w.call("new", "GET", "/factory", "").problem(401, "authentication_required")
		w.call(boss, "DELETE", "/keys/"+uid, "").problem(404, "resource_not_found")
		w.call(boss, "DELETE", "/keys/nonsense", "").problem(404, "resource_not_found")

		at := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
		r = w.call(boss, "POST", "/keys", `{"name": "w", "role": "worker", "expires_at": "`+at.Format(time.RFC3339)+`"}`).want(200)
		if r.at("expires_at") != at.Format(time.RFC3339) {
			t.Errorf("answer %s", r.body)
		}
		for text, want := range map[string]time.Duration{"90d": 90 * 24 * time.Hour, "1d12h": 36 * time.Hour, "1h30m": 90 * time.Minute, "720h": 720 * time.Hour} {
			r := w.call(boss, "POST", "/keys", `{"name": "w", "role": "viewer", "expires_in": "`+text+`"}`).want(200)
			expires, err := time.Parse(time.RFC3339Nano, r.at("expires_at").(string))
			if left := time.Until(expires); err != nil || left > want || left < want-time.Minute {
				t.Errorf("%s: %s", text, r.body)
			}
		}
		if r = w.call(boss, "POST", "/keys", `{"name": "x", "role": "admin"}`).want(200); r.at("expires_at") != nil || r.at("revoked_at") != nil {
			t.Errorf("answer %s", r.body)
		}
	})
}

func TestKeysRefuseWhatIsWrong(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		for body, field := range map[string]string{
			`{}`:                                 "",
			`{"name": "a"}`:                      "",
			`{"name": "", "role": "viewer"}`:     "name",
			`{"name": "a", "role": "root"}`:      "role",
			`{"name": "a", "role": "ADMIN"}`:     "role",
			`{"name": ["a"], "role": "viewer"}`:  "name",
			`{"name": "a\nb", "role": "viewer"}`: "name",
			`{"name": "` + strings.Repeat("a", 101) + `", "role": "viewer"}`:                            "name",
			`{"name": "a", "role": "viewer", "expires_in": "0s"}`:                                       "expires_in",
			`{"name": "a", "role": "viewer", "expires_in": ""}`:                                         "expires_in",
			`{"name": "a", "role": "viewer", "expires_in": "1"}`:                                        "expires_in",
			`{"name": "a", "role": "viewer", "expires_in": "1.5h"}`:                                     "expires_in",
			`{"name": "a", "role": "viewer", "expires_in": "-1h"}`:                                      "expires_in",
			`{"name": "a", "role": "viewer", "expires_in": "h"}`:                                        "expires_in",
			`{"name": "a", "role": "viewer", "expires_in": "1w"}`:                                       "expires_in",
			`{"name": "a", "role": "viewer", "expires_in": "99999999999999999999h"}`:                    "expires_in",
			`{"name": "a", "role": "viewer", "expires_in": "99999d9999999h"}`:                           "expires_in",
			`{"name": "a", "role": "viewer", "expires_in": 3600}`:                                       "expires_in",
			`{"name": "a", "role": "viewer", "expires_at": "tomorrow"}`:                                 "expires_at",
			`{"name": "a", "role": "viewer", "expires_at": "2020-01-01T00:00:00Z"}`:                     "expires_at",
			`{"name": "a", "role": "viewer", "expires_in": "1h", "expires_at": "2999-01-01T00:00:00Z"}`: "expires_at",
		} {
			r := w.call(state.RoleAdmin, "POST", "/keys", body).problem(400, "invalid_request")
			if field != "" && r.at("errors", 0, "field") != field {
				t.Errorf("%s: %s", body, r.body)
			}
		}
		w.call(state.RoleAdmin, "GET", "/keys", "").length(4, "keys")
	})
}

func TestLastAdminKeyStays(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		boss := state.RoleAdmin
		var own string
		for _, k := range w.call(boss, "GET", "/keys", "").at("keys").([]any) {
			if k := k.(map[string]any); k["role"] == "admin" {
				own = k["uid"].(string)
			}
		}
		w.call(boss, "POST", "/keys", `{"name": "short", "role": "viewer"}`).want(200)
		w.call(boss, "DELETE", "/keys/"+own, "").problem(409, "conflict")
		other := w.call(boss, "POST", "/keys", `{"name": "second", "role": "admin"}`).want(200)
		w.call(boss, "DELETE", "/keys/"+own, "").want(204)
		w.keys["second"] = other.at("secret").(string)
		w.call(boss, "GET", "/keys", "").problem(401, "authentication_required")
		w.call("second", "DELETE", "/keys/"+other.at("uid").(string), "").problem(409, "conflict")
	})
}
