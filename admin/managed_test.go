package admin_test

import (
	"strings"
	"testing"

	"millwright/admin"
	"millwright/state"
)

func TestEditsOfWhatIsHeldElsewhere(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		w.secret("A", "value")
		tree := map[string]string{"webhooks/alerts.yaml": "secretName: A\n"}
		for _, c := range []struct {
			source state.Source
			say    []string
		}{
			{state.Source{Kind: "git", URL: "https://user:pass@git.example.com/a.git", Branch: "trunk", Path: "ops/factory"}, []string{"trunk", "ops/factory/"}},
			{state.Source{Kind: "dir", Path: "/srv/factory"}, []string{"/srv/factory/"}},
		} {
			f := w.factory(c.source.Kind, c.source, tree)
			hook := w.hooksOf(f)["alerts"].UID
			in := "/factory/" + f.UID
			for _, e := range []struct{ method, path, body, file string }{
				{"POST", in + "/webhooks", `{"name": "new"}`, "webhooks/new.yaml"},
				{"PATCH", in + "/webhooks/" + hook, `{"enabled": false}`, "webhooks/alerts.yaml"},
				{"DELETE", in + "/webhooks/" + hook, ``, "webhooks/alerts.yaml"},
				{"POST", in + "/webhooks/" + hook + "/rotate", ``, "webhooks/alerts.yaml"},
				{"POST", in + "/webhooks/" + hook + "/rotate", `{"shared": true}`, "webhooks/alerts.yaml"},
				{"PUT", in + "/files/automations/ci/automation.md", `{"content": "x"}`, "automations/ci/automation.md"},
				{"PUT", in + "/files/automations%2Fci%2Fautomation.md", `{"content": "x"}`, "automations/ci/automation.md"},
				{"DELETE", in + "/files/factory.yaml", ``, "factory.yaml"},
				{"DELETE", in + "/files/a/files/b%20c%25.yaml", ``, "a/files/b c%.yaml"},
				{"PUT", in + "/files", `{"files": []}`, ""},
				{"PUT", in + "/files.tar", `{}`, ""},
				{"GET", in + "/files/a/b", ``, "a/b"},
				{"GET", in + "/files.tar", ``, ""},
				{"GET", in + "/revisions/r1", ``, ""},
				{"POST", in + "/revisions/r1/restore", ``, ""},
			} {
				w.call(state.RoleRunner, e.method, e.path, e.body).problem(403, "not_authorized")
				w.call("", e.method, e.path, e.body).problem(401, "authentication_required")
				r := w.call(state.RoleAdmin, e.method, e.path, e.body).problem(422, "operation_not_supported")
				detail := r.at("detail").(string)
				for _, part := range c.say {
					if strings.HasSuffix(part, "/") {
						part = strings.TrimSuffix(part+e.file, "/")
					}
					if !strings.Contains(detail, part) {
						t.Errorf("%s %s: %q does not say %q", e.method, e.path, detail, part)
					}
				}
				if strings.Contains(detail, "pass") || !strings.Contains(detail, c.source.Kind) {
					t.Errorf("%s %s: %q", e.method, e.path, detail)
				}
			}
			for _, e := range []struct {
				method, path, body string
				status             int
			}{
				{"POST", in + "/webhooks", `{}`, 400},
				{"POST", in + "/webhooks", `{"name": ".hidden"}`, 400},
				{"POST", in + "/webhooks", `{"name": "a/b"}`, 400},
				{"POST", in + "/webhooks", `{"name": "a", "auth_mode": "basic"}`, 400},
				{"PATCH", in + "/webhooks/" + hook, `{"enabled": "no"}`, 400},
				{"PATCH", in + "/webhooks/wh_00000000000000000000000000", `{}`, 404},
				{"DELETE", in + "/webhooks/alerts", ``, 404},
				{"PUT", in + "/files/a%2F..%2Fb", `{"content": "x"}`, 400},
				{"PUT", in + "/files/a//b", `{"content": "x"}`, 400},
				{"PUT", in + "/files/factory.yaml", `{"text": "x"}`, 400},
				{"PUT", "/factory/nonsense/files/factory.yaml", `{"content": "x"}`, 404},
				{"GET", in + "/files", ``, 422},
				{"GET", in + "/revisions", ``, 422},
				{"POST", in + "/files/factory.yaml", ``, 405},
			} {
				if r := w.call(state.RoleAdmin, e.method, e.path, e.body); r.status != e.status {
					t.Errorf("%s %s %s: %d, want %d: %s", e.method, e.path, e.body, r.status, e.status, r.body)
				}
			}
		}
	})
}
