package admin_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/admin"
	"millwright/ingress"
	"millwright/signature"
	"millwright/state"
)

// ops is a managed factory, with a real ingress.
type ops struct {
	*world
	in     string // path of the factory
	uid    string
	origin string // of the ingress
}

func eachOps(t *testing.T, f func(o *ops)) {
	t.Helper()
	each(t, admin.Config{}, func(w *world) { f(w.ops()) })
}

func (w *world) ops() *ops {
	w.t.Helper()
	f := w.factory("ops", state.Source{Kind: "managed"}, nil)
	return &ops{world: w, in: "/factory/" + f.UID, uid: f.UID, origin: w.ingress()}
}

// ingress serves a real ingress over the same state.
func (w *world) ingress() string {
	w.t.Helper()
	in, err := ingress.New(context.Background(), ingress.Config{Store: w.store, PublicURL: "https://hooks.example.com"})
	if err != nil {
		w.t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	cfg := ingress.ServerConfig{Ingress: in}
	srv := ingress.NewServer(cfg)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(ingress.Limit(ln, cfg)) }()
	w.t.Cleanup(func() {
		srv.Close()
		<-done
		if err := in.Close(context.Background()); err != nil {
			w.t.Error(err)
		}
	})
	return "http://" + ln.Addr().String()
}

// deliver posts a body to an ingress URL as the API tells it, and checks the status.
func (o *ops) deliver(ingressURL, body string, status int, header ...string) {
	o.t.Helper()
	req, err := http.NewRequest("POST", o.origin+strings.TrimPrefix(ingressURL, "https://hooks.example.com"), strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != status {
		answer, _ := io.ReadAll(res.Body)
		o.t.Fatalf("delivery to %s: %d, want %d: %s", ingressURL, res.StatusCode, status, answer)
	}
}

// signed posts a body signed by a scheme.
func (o *ops) signed(ingressURL, scheme, secret, body string, status int) {
	o.t.Helper()
	s, ok := signature.Lookup(scheme)
	if !ok {
		o.t.Fatal(scheme)
	}
	headers, err := s.Sign([]byte(secret), signature.Message{Method: "POST", URL: ingressURL, Body: []byte(body)}, "id-"+body, time.Now())
	if err != nil {
		o.t.Fatal(err)
	}
	var list []string
	for name, value := range headers {
		list = append(list, name, value)
	}
	o.deliver(ingressURL, body, status, list...)
}

func (o *ops) create(body string) *reply {
	o.t.Helper()
	return o.call(state.RoleAdmin, "POST", o.in+"/webhooks", body).want(200)
}

func (o *ops) text(r *reply, path ...any) string {
	o.t.Helper()
	text, ok := r.at(path...).(string)
	if !ok {
		o.t.Fatalf("no text at %v: %s", path, r.body)
	}
	return text
}

// head returns the newest revision.
func (o *ops) head() state.ManagedRevision {
	o.t.Helper()
	h, err := o.store.ManagedHead(context.Background(), o.uid)
	if err != nil {
		o.t.Fatal(err)
	}
	return h
}

// file returns the newest text of a file; "" if it does not exist.
func (o *ops) file(path string) string {
	o.t.Helper()
	r := o.call(state.RoleAdmin, "GET", o.in+"/files/"+path, "")
	if r.status == 404 {
		return ""
	}
	return o.text(r.want(200), "content")
}

func (o *ops) put(path, content string) *reply {
	o.t.Helper()
	return o.call(state.RoleAdmin, "PUT", o.in+"/files/"+path, string(mustJSON(map[string]string{"content": content})))
}

// refused makes a call that must change neither revisions nor secrets nor webhooks.
func (o *ops) refused(status int, code, method, path, body string) *reply {
	o.t.Helper()
	before := o.everything()
	r := o.call(state.RoleAdmin, method, path, body).problem(status, code)
	if after := o.everything(); after != before {
		o.t.Errorf("%s %s %s: refused, and yet it changed\n%s\nto\n%s", method, path, body, before, after)
	}
	return r
}

func (o *ops) everything() string {
	o.t.Helper()
	secrets, err := o.store.Secrets(context.Background())
	if err != nil {
		o.t.Fatal(err)
	}
	hooks, err := o.store.Webhooks(context.Background(), o.uid, true)
	if err != nil {
		o.t.Fatal(err)
	}
	f, err := o.store.Factory(context.Background(), o.uid)
	if err != nil {
		o.t.Fatal(err)
	}
	return string(mustJSON([]any{o.head(), secrets, hooks, f}))
}

func TestManagedWebhookLife(t *testing.T) {
	eachOps(t, func(o *ops) {
		// Bearer token: made here, shown once.
		r := o.create(`{"name": "alerts", "delivery_id_header": "X-Event"}`)
		uid, secret, address := o.text(r, "uid"), o.text(r, "secret"), o.text(r, "ingress_url")
		if len(secret) < 32 || r.at("secret_name") != "ALERTS_SECRET" || r.at("auth_mode") != "token" || r.at("enabled") != true || address != "https://hooks.example.com/webhooks/w/"+uid {
			t.Fatalf("created: %s", r.body)
		}
		for _, path := range []string{"/webhooks", "/webhooks/" + uid, "/files/webhooks/alerts.yaml", "/revisions/r1", "/syncs"} {
			if r := o.call(state.RoleAdmin, "GET", o.in+path, "").want(200); strings.Contains(string(r.body), secret) {
				t.Errorf("%s tells the secret", path)
			}
		}
		o.call(state.RoleViewer, "GET", "/secrets", "").want(200)
		o.deliver(address, `{"n": 1}`, 202, "Authorization", "Bearer "+secret)
		o.deliver(address, `{"n": 1}`, 401)
		if got, want := o.file("webhooks/alerts.yaml"), "authMode: token\ndeliveryIdHeader: X-Event\nsecretName: ALERTS_SECRET\n"; got != want {
			t.Errorf("file:\n%s", got)
		}

		// Off and on again.
		hook := o.in + "/webhooks/" + uid
		r = o.call(state.RoleAdmin, "PATCH", hook, `{"enabled": false}`).want(200)
		if r.at("enabled") != false || r.at("uid") != uid {
			t.Errorf("disabled: %s", r.body)
		}
		o.deliver(address, `{"n": 2}`, 404, "Authorization", "Bearer "+secret)
		o.call(state.RoleAdmin, "PATCH", hook, `{"enabled": true}`).want(200)
		o.deliver(address, `{"n": 2}`, 202, "Authorization", "Bearer "+secret)

		// A new secret: the old one is refused when the call has returned.
		r = o.call(state.RoleAdmin, "POST", hook+"/rotate", "").want(200)
		fresh := o.text(r, "secret")
		if fresh == secret || r.at("secret_version") != json.Number("2") || r.at("secret_stale") != false {
			t.Fatalf("rotated: %s", r.body)
		}
		o.deliver(address, `{"n": 3}`, 401, "Authorization", "Bearer "+secret)
		o.deliver(address, `{"n": 3}`, 202, "Authorization", "Bearer "+fresh)

		// Gone, at once and for good.
		if r := o.call(state.RoleAdmin, "DELETE", hook, "").want(204); len(r.body) > 0 {
			t.Errorf("deleted: %s", r.body)
		}
		o.deliver(address, `{"n": 4}`, 404, "Authorization", "Bearer "+fresh)
		for _, c := range []struct{ method, path, body string }{
			{"PATCH", hook, `{"enabled": true}`},
			{"POST", hook + "/rotate", ``},
			{"DELETE", hook, ``},
		} {
			o.refused(404, "resource_not_found", c.method, c.path, c.body)
		}
		if r := o.call(state.RoleAdmin, "GET", hook, "").want(200); r.at("deleted_at") == nil {
			t.Errorf("a deleted webhook: %s", r.body)
		}
		// One of the same name is another one, and its secret gets another name: the first is still there.
		r = o.create(`{"name": "alerts"}`)
		if r.at("uid") == uid || r.at("secret_name") != "ALERTS_SECRET_2" {
			t.Errorf("created again: %s", r.body)
		}
		var did []string
		for _, row := range o.call(state.RoleViewer, "GET", o.in+"/revisions", "").want(200).at("revisions").([]any) {
			did = append(did, row.(map[string]any)["subject"].(string)+" by "+row.(map[string]any)["author"].(string))
		}
		want := "create webhook alerts by admin, delete webhook alerts by admin, rotate the secret of webhook alerts by admin, enable webhook alerts by admin, disable webhook alerts by admin, create webhook alerts by admin"
		if got := strings.Join(did, ", "); got != want {
			t.Errorf("history: %s", got)
		}
	})
}

func TestManagedURLToken(t *testing.T) {
	eachOps(t, func(o *ops) {
		r := o.create(`{"name": "uptime-2", "auth_mode": "url_token"}`)
		uid, secret, address := o.text(r, "uid"), o.text(r, "secret"), o.text(r, "ingress_url")
		if address != "https://hooks.example.com/webhooks/w/"+uid+"/"+secret || r.at("secret_name") != "UPTIME_2_SECRET" {
			t.Fatalf("created: %s", r.body)
		}
		o.deliver(address, `1`, 202)
		r = o.call(state.RoleAdmin, "GET", o.in+"/webhooks/"+uid, "").want(200)
		if r.at("ingress_url") != "https://hooks.example.com/webhooks/w/"+uid+"/{token}" {
			t.Errorf("later: %s", r.body)
		}
		r = o.call(state.RoleAdmin, "PATCH", o.in+"/webhooks/"+uid, `{"delivery_id_header": "X-Id"}`).want(200)
		if strings.Contains(string(r.body), secret) {
			t.Errorf("changed: %s", r.body)
		}
		r = o.call(state.RoleAdmin, "POST", o.in+"/webhooks/"+uid+"/rotate", `{}`).want(200)
		o.deliver(address, `2`, 401)
		o.deliver(o.text(r, "ingress_url"), `2`, 202)

		// An existing secret is used as it is, and not told.
		o.secret("SHARED", "kn0wn")
		r = o.create(`{"name": "other", "auth_mode": "url_token", "secret_name": "SHARED"}`)
		if _, told := r.json.(map[string]any)["secret"]; told || !strings.HasSuffix(o.text(r, "ingress_url"), "/{token}") {
			t.Errorf("with an existing secret: %s", r.body)
		}
		o.deliver(strings.Replace(o.text(r, "ingress_url"), "{token}", "kn0wn", 1), `3`, 202)
	})
}

func TestManagedSignatures(t *testing.T) {
	eachOps(t, func(o *ops) {
		// The secret is made for Standard Webhooks.
		r := o.create(`{"name": "std", "auth_mode": "signature", "signature_scheme": "standard_webhooks"}`)
		secret := o.text(r, "secret")
		if !strings.HasPrefix(secret, "whsec_") {
			t.Fatalf("created: %s", r.body)
		}
		o.signed(o.text(r, "ingress_url"), "standard_webhooks", secret, `{"n": 1}`, 202)

		// Others issue theirs once they know the URL: until then everybody is refused.
		r = o.create(`{"name": "gh", "auth_mode": "signature", "signature_scheme": "github", "secret_name": "GH"}`)
		address, hook := o.text(r, "ingress_url"), o.in+"/webhooks/"+o.text(r, "uid")
		if _, told := r.json.(map[string]any)["secret"]; told || r.at("secret_pending") != true {
			t.Fatalf("pending: %s", r.body)
		}
		empty := hmac.New(sha256.New, nil)
		empty.Write([]byte(`{"n": 1}`))
		o.deliver(address, `{"n": 1}`, 401, "X-Hub-Signature-256", "sha256="+hex.EncodeToString(empty.Sum(nil)))
		o.refused(400, "invalid_request", "POST", hook+"/rotate", `{}`)
		r = o.call(state.RoleAdmin, "POST", hook+"/rotate", `{"secret": "from github"}`).want(200)
		if r.at("secret_pending") != false {
			t.Errorf("finished: %s", r.body)
		}
		o.signed(address, "github", "from github", `{"n": 1}`, 202)
		o.call(state.RoleAdmin, "POST", hook+"/rotate", `{"secret": "the next"}`).want(200)
		o.signed(address, "github", "from github", `{"n": 2}`, 401)
		o.signed(address, "github", "the next", `{"n": 2}`, 202)

		// Known from the start; under an alias, which stays as it was written.
		r = o.create(`{"name": "svix", "auth_mode": "signature", "signature_scheme": "svix", "secret": "` + secret + `", "enabled": false}`)
		if r.at("signature_scheme") != "svix" || r.at("enabled") != false {
			t.Errorf("created: %s", r.body)
		}
		o.deliver(o.text(r, "ingress_url"), `1`, 404)
		if r := o.create(`{"name": "sl", "auth_mode": "signature", "signature_scheme": "slack", "secret": "x", "handshake": true}`); r.at("handshake") != true {
			t.Errorf("created: %s", r.body)
		}
		// Another mode: what does not go with it goes.
		r = o.call(state.RoleAdmin, "PATCH", hook, `{"auth_mode": "token"}`).want(200)
		if r.at("signature_scheme") != "" || r.at("auth_mode") != "token" {
			t.Errorf("changed: %s", r.body)
		}
		o.deliver(address, `{"n": 3}`, 202, "Authorization", "Bearer the next")
		r = o.call(state.RoleAdmin, "PATCH", hook, `{"auth_mode": "signature", "signature_scheme": "gitlab", "secret_name": "STD_SECRET"}`).want(200)
		if r.at("signature_scheme") != "gitlab" || r.at("secret_name") != "STD_SECRET" {
			t.Errorf("changed: %s", r.body)
		}
	})
}

func TestWebhookEditsThatAreRefused(t *testing.T) {
	eachOps(t, func(o *ops) {
		o.secret("SPACES", "not url safe")
		hook := o.in + "/webhooks/" + o.text(o.create(`{"name": "alerts"}`), "uid")
		std := o.in + "/webhooks/" + o.text(o.create(`{"name": "std", "auth_mode": "signature", "signature_scheme": "standard_webhooks"}`), "uid")
		for _, c := range []struct {
			method, path, body string
			field, says        string
		}{
			{"POST", "", `{}`, "body", "required property name"},
			{"POST", "", `{"name": "a/b"}`, "name", "letters, digits"},
			{"POST", "", `{"name": "a", "auth_mode": "basic"}`, "auth_mode", ""},
			{"POST", "", `{"name": "ALERTS"}`, "name", "case"},
			{"POST", "", `{"name": "a", "signature_scheme": "github"}`, "signature_scheme", "webhooks/a.yaml:"},
			{"POST", "", `{"name": "a", "auth_mode": "signature"}`, "signature_scheme", ""},
			{"POST", "", `{"name": "a", "auth_mode": "signature", "signature_scheme": "githup"}`, "signature_scheme", "github"},
			{"POST", "", `{"name": "a", "auth_mode": "signature", "signature_scheme": "custom"}`, "signature_scheme", "customScheme"},
			{"POST", "", `{"name": "a", "secret": "mine"}`, "secret", "the server generates it"},
			{"POST", "", `{"name": "a", "auth_mode": "signature", "signature_scheme": "github", "secret": "x", "secret_name": "SPACES"}`, "secret", "exists already"},
			{"POST", "", `{"name": "a", "auth_mode": "signature", "signature_scheme": "standard_webhooks", "secret": "whsec_short"}`, "secret", "standard_webhooks"},
			{"POST", "", `{"name": "a", "secret_name": "1A"}`, "secret_name", ""},
			{"POST", "", `{"name": "a", "auth_mode": "url_token", "secret_name": "SPACES"}`, "secret_name", "SPACES"},
			{"POST", "", `{"name": "a", "delivery_id_header": "Authorization"}`, "delivery_id_header", "credentials"},
			{"POST", "", `{"name": "a", "delivery_id_header": "X Y\nenabled: false"}`, "delivery_id_header", ""},
			{"POST", "", `{"name": "a", "delivery_id_header": "X\u007f"}`, "delivery_id_header", "not a header name"},
			{"POST", "", `{"name": "a", "handshake": true}`, "handshake", "handshake"},
			{"PATCH", hook, `{"secret_name": "NOWHERE"}`, "secret_name", "NOWHERE"},
			{"PATCH", hook, `{"auth_mode": "signature"}`, "signature_scheme", ""},
			{"PATCH", hook, `{"auth_mode": "url_token", "secret_name": "SPACES"}`, "secret_name", ""},
			{"PATCH", hook, `{"delivery_id_header": "Cookie"}`, "delivery_id_header", ""},
			{"PATCH", std, `{"signature_scheme": ""}`, "signature_scheme", ""},
			{"POST", hook + "/rotate", `{"secret": "mine"}`, "secret", "the server generates it"},
			{"POST", std + "/rotate", `{"secret": "whsec_x"}`, "secret", ""},
		} {
			path := c.path
			if path == "" {
				path = o.in + "/webhooks"
			}
			r := o.refused(400, "invalid_request", c.method, path, c.body)
			found := false
			for i := range r.at("errors").([]any) {
				found = found || r.at("errors", i, "field") == c.field && strings.Contains(o.text(r, "errors", i, "message"), c.says)
			}
			if !found {
				t.Errorf("%s %s: no error of %s that says %q: %s", c.method, c.body, c.field, c.says, r.body)
			}
			if strings.Contains(string(r.body), "not url safe") || strings.Contains(string(r.body), "mine") {
				t.Errorf("%s %s tells a secret: %s", c.method, c.body, r.body)
			}
		}
		r := o.refused(409, "conflict", "POST", o.in+"/webhooks", `{"name": "alerts"}`)
		if r.at("retryable") != false {
			t.Errorf("a name that is taken: %s", r.body)
		}

		for i := range 18 {
			o.create(`{"name": "w` + itoa(i) + `"}`)
		}
		r = o.refused(400, "invalid_request", "POST", o.in+"/webhooks", `{"name": "one-more"}`)
		if !strings.Contains(string(r.body), "20") || !strings.Contains(string(r.body), "webhook-limit") {
			t.Errorf("the 21st: %s", r.body)
		}
	})
}

func TestRotateASharedSecret(t *testing.T) {
	eachOps(t, func(o *ops) {
		r := o.create(`{"name": "a"}`)
		old := o.text(r, "secret")
		hook := o.in + "/webhooks/" + o.text(r, "uid")
		second := o.text(o.create(`{"name": "b", "secret_name": "A_SECRET"}`), "ingress_url")
		other := o.factory("elsewhere", state.Source{Kind: "dir", Path: "/x"}, map[string]string{"webhooks/c.yaml": "secretName: A_SECRET\n"})
		third := "/webhooks/w/" + o.hooksOf(other)["c"].UID
		r = o.refused(409, "conflict", "POST", hook+"/rotate", `{}`)
		if detail := o.text(r, "detail"); !strings.Contains(detail, `webhook "b"`) || !strings.Contains(detail, `webhook "c" of factory "elsewhere"`) || r.at("retryable") != false {
			t.Errorf("rotate: %s", r.body)
		}
		fresh := o.text(o.call(state.RoleAdmin, "POST", hook+"/rotate", `{"shared": true}`).want(200), "secret")
		o.deliver(second, `1`, 401, "Authorization", "Bearer "+old)
		o.deliver(second, `1`, 202, "Authorization", "Bearer "+fresh)
		o.deliver(third, `1`, 202, "Authorization", "Bearer "+old) // until that factory applies again
	})
}

func TestManagedFactoriesThatCannotBeEdited(t *testing.T) {
	eachOps(t, func(o *ops) {
		o.create(`{"name": "a"}`)
		if _, err := o.store.EnsureFactory(context.Background(), "ops", state.Source{Kind: "managed"}, true); err != nil {
			t.Fatal(err)
		}
		r := o.refused(409, "conflict", "POST", o.in+"/webhooks", `{"name": "b"}`)
		if !strings.Contains(o.text(r, "detail"), "suspended") {
			t.Errorf("suspended: %s", r.body)
		}
		if _, err := o.store.ConfigureFactories(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		o.refused(409, "conflict", "PUT", o.in+"/files/README.md", `{"content": "x"}`)
		o.call(state.RoleAdmin, "GET", o.in+"/files", "").want(200).length(1, "files")

		// A definition that came from elsewhere is not replaced by accident.
		f := o.factory("moved", state.Source{Kind: "dir", Path: "/x"}, map[string]string{"webhooks/a.yaml": "secretName: A_SECRET\n"})
		o.factory("moved", state.Source{Kind: "managed"}, nil)
		moved := &ops{world: o.world, in: "/factory/" + f.UID, uid: f.UID}
		r = moved.refused(409, "conflict", "POST", moved.in+"/webhooks", `{"name": "b"}`)
		if !strings.Contains(o.text(r, "detail"), "import") {
			t.Errorf("nothing held yet: %s", r.body)
		}
		moved.call(state.RoleAdmin, "PUT", moved.in+"/files", `{"files": [{"path": "webhooks/a.yaml", "content": "secretName: A_SECRET\n"}]}`).want(200)
		moved.call(state.RoleAdmin, "POST", moved.in+"/webhooks", `{"name": "b"}`).want(200)
	})
}

func TestSecretNameFor(t *testing.T) {
	taken := map[string]bool{"A_SECRET": true, "A_SECRET_2": true}
	for name, want := range map[string]string{
		"alerts": "ALERTS_SECRET", "a": "A_SECRET_3", "my.ci-Build": "MY_CI_BUILD_SECRET", "2nd": "WEBHOOK_2ND_SECRET", "_x": "_X_SECRET",
	} {
		if got := admin.SecretNameFor(name, func(n string) bool { return taken[n] }); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// untar returns the files of a tar.
func untar(t *testing.T, body []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(body)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || h.Mode != 0o644 {
			t.Errorf("%s: type %c, mode %o", h.Name, h.Typeflag, h.Mode)
		}
		files[h.Name] = string(content)
	}
}

// raw sends bytes that are not JSON, and returns the answer's body.
func (w *world) raw(method, path string, body []byte, status int) []byte {
	w.t.Helper()
	req, err := http.NewRequest(method, w.url+path, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.keys[state.RoleAdmin])
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if res.StatusCode != status {
		w.t.Fatalf("%s %s: %d, want %d: %s", method, path, res.StatusCode, status, answer)
	}
	return answer
}

func TestDeleteAWebhookWithItsSecret(t *testing.T) {
	eachOps(t, func(o *ops) {
		remaining := func() string {
			infos, err := o.store.Secrets(context.Background())
			if err != nil {
				o.t.Fatal(err)
			}
			return strings.Join(slices.Sorted(maps.Keys(infos)), " ")
		}
		left := o.text(o.create(`{"name": "left", "secret_name": "LEFT"}`), "uid")
		own := o.text(o.create(`{"name": "own", "secret_name": "OWN"}`), "uid")
		one := o.text(o.create(`{"name": "one", "secret_name": "SHARED"}`), "uid")
		two := o.text(o.create(`{"name": "two", "secret_name": "SHARED"}`), "uid")
		before := remaining()
		for _, step := range []struct{ query, gone string }{
			{left, ""},
			{own + "?delete_secret=true", "OWN"},
			{one + "?delete_secret=true", ""},
			{two + "?delete_secret=true", "SHARED"},
		} {
			o.call(state.RoleAdmin, "DELETE", o.in+"/webhooks/"+step.query, "").want(204)
			want := before
			if step.gone != "" {
				want = strings.Join(strings.Fields(strings.Replace(" "+before+" ", " "+step.gone+" ", " ", 1)), " ")
			}
			if before = remaining(); before != want {
				o.t.Errorf("after %s: secrets %s, want %s", step.query, before, want)
			}
		}
		o.call(state.RoleAdmin, "DELETE", o.in+"/webhooks/"+left+"?delete_secret=maybe", "").want(400)
	})
}
