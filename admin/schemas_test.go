package admin_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"millwright/admin"
	"millwright/schema"
)

func TestSchemas(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		r := w.call("", "GET", "/factory-files/schemas", "").want(200)
		r.hasKeys("current_version versions")
		r.hasKeys("schema_version schema_url", "versions", 0)
		if got := r.at("versions", 0, "schema_url"); got != "https://hooks.example.com/api/v1/factory-files/schemas/v1alpha1" {
			t.Errorf("schema_url %v", got)
		}
		r = w.call("", "GET", "/factory-files/schemas/v1alpha1", "").want(200)
		r.hasKeys("schema_version documents")
		r.hasKeys(strings.Join(schema.JSONSchemaNames(), " "), "documents")

		r = w.call("", "GET", "/factory-files/schemas/v1alpha1/webhook", "").want(200)
		text, _ := schema.JSONSchema("webhook")
		var want bytes.Buffer
		if err := json.Compact(&want, text); err != nil || !bytes.Equal(bytes.TrimSpace(r.body), want.Bytes()) {
			t.Errorf("another schema than the one that is checked: %v", err)
		}
		suffixed := w.call("", "GET", "/factory-files/schemas/v1alpha1/webhook.schema.json", "").want(200)
		if !bytes.Equal(suffixed.body, r.body) {
			t.Error("another schema with the suffix")
		}
		for _, path := range []string{"/factory-files/schemas", "/factory-files/schemas/v1alpha1", "/factory-files/schemas/v1alpha1/automation"} {
			r := w.call("", "GET", path, "").want(200)
			etag := r.header.Get("ETag")
			if len(etag) < 10 || etag != w.call("", "GET", path, "").header.Get("ETag") {
				t.Errorf("%s: ETag %q", path, etag)
			}
			for _, header := range []string{etag, "W/" + etag, `"other", ` + etag, "*"} {
				again := w.call("", "GET", path, "", "If-None-Match", header).want(304)
				if len(again.body) > 0 || again.header.Get("ETag") != etag {
					t.Errorf("%s: body %q, ETag %q", path, again.body, again.header.Get("ETag"))
				}
			}
			w.call("", "GET", path, "", "If-None-Match", `"other"`).want(200)
		}
		for _, path := range []string{"/v2", "/v1alpha1/nothing", "/v2/webhook", "/v1alpha1/..%2Fwebhook", "/v1alpha1/webhook.json", "/v1alpha1/nothing.schema.json", "/v1alpha1/.schema.json", "/v1alpha1/"} {
			w.call("", "GET", "/factory-files/schemas"+path, "", "If-None-Match", "*").problem(404, "resource_not_found")
		}
	})
}
