package dashboard_test

import (
	"archive/tar"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

var (
	shownURL    = regexp.MustCompile(`id="url">([^<]+)<`)
	shownSecret = regexp.MustCompile(`<code class="copy secret"[^>]*>([^<]+)</code>`)
)

// find returns what a pattern's first group finds in a page.
func find(t *testing.T, pattern *regexp.Regexp, page string) string {
	t.Helper()
	m := pattern.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("nothing like %s in %s", pattern, plain(page))
	}
	return html.UnescapeString(m[1])
}

// TestWebhookStory creates a webhook of a managed factory, and changes it in every way.
func TestWebhookStory(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleAdmin)
		base := "/factories/" + w.held
		b.page(base + "/webhooks/new")
		a := b.post(base+"/webhooks/new", "name", "no good", "auth_mode", "token", "delivery_id_header", "Authorization")
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.Text, `value="no good"`) || !strings.Contains(a.Text, `id="name-error"`) {
			t.Errorf("a bad name: %d %s", a.StatusCode, plain(a.Text))
		}
		a = b.post(base+"/webhooks/new", "name", "alerts", "auth_mode", "token", "delivery_id_header", "Authorization")
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.Text, `id="dh-error"`) || !strings.Contains(a.Text, `value="alerts"`) {
			t.Errorf("a header that cannot be: %d %s", a.StatusCode, plain(a.Text))
		}
		for field, wrong := range map[string]string{"duplicate_window": "31d", "deliveries_per_minute": "many"} {
			a = b.post(base+"/webhooks/new", "name", "alerts", "auth_mode", "token", field, wrong)
			if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.Text, `value="`+wrong+`"`) || !strings.Contains(a.Text, `<p class="wrong"`) {
				t.Errorf("%s %s: %d %s", field, wrong, a.StatusCode, plain(a.Text))
			}
		}
		a = b.post(base+"/webhooks/new", "name", "alerts", "auth_mode", "token", "delivery_id_header", "X-Event",
			"duplicate_window", "24h", "deliveries_per_minute", "300")
		says(t, a.Text, "alerts is ready", "only time the secret is shown", "ALERTS_SECRET")
		hook := w.webhook(w.held, "alerts")
		address, secrets := find(t, shownURL, a.Text), shownSecret.FindAllStringSubmatch(a.Text, -1)
		secret := html.UnescapeString(secrets[len(secrets)-1][1])
		if !strings.HasSuffix(address, "/webhooks/w/"+hook.UID) {
			t.Errorf("URL %s", address)
		}
		if status := w.deliver(hook.UID, `{"a":1}`, "Authorization", "Bearer "+secret, "X-Event", "1"); status != http.StatusAccepted {
			t.Errorf("with the secret: %d", status)
		}
		path := base + "/webhooks/" + hook.UID
		var page string
		statetest.Until(t, "the page has its figures", func() bool {
			page = b.page(path)
			return strings.Contains(plain(page), "Accepted 1")
		})
		says(t, page, "Bearer token", "ALERTS_SECRET", "X-Event", "300 of each sender", "Rotate secret",
			"stops working immediately", "with no overlap")
		saysNot(t, page, secret)

		// Rotate: the new one is shown once, the old one stops at once.
		a = b.post(path + "/rotate")
		rotated := find(t, shownSecret, a.Text)
		if a.StatusCode != http.StatusOK || rotated == secret {
			t.Errorf("rotated: %d %s", a.StatusCode, plain(a.Text))
		}
		if status := w.deliver(hook.UID, `{"a":2}`, "Authorization", "Bearer "+secret); status != http.StatusUnauthorized {
			t.Errorf("with the old secret: %d", status)
		}
		if status := w.deliver(hook.UID, `{"a":2}`, "Authorization", "Bearer "+rotated); status != http.StatusAccepted {
			t.Errorf("with the new secret: %d", status)
		}
		saysNot(t, b.page(path), rotated)

		// Another name; the URL stays.
		for _, name := range []string{"", "no good", "alerts/x"} {
			if a := b.post(path+"/rename", "name", name); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.Text, `id="new-name-error"`) {
				t.Errorf("the new name %q: %d", name, a.StatusCode)
			}
		}
		says(t, b.follow(path+"/rename", "name", "pages"), "Renamed. The URL is the same.", "webhooks/pages.yaml")
		if status := w.deliver(hook.UID, `{"renamed":1}`, "Authorization", "Bearer "+rotated); status != http.StatusAccepted {
			t.Errorf("under another name: %d", status)
		}
		b.follow(path+"/rename", "name", "alerts")

		// Disable and enable.
		says(t, b.follow(path+"/enabled", "enabled", "no"), "Disabled", "Senders get 404")
		if status := w.deliver(hook.UID, `{"a":3}`, "Authorization", "Bearer "+rotated); status != http.StatusNotFound {
			t.Errorf("disabled: %d", status)
		}
		says(t, b.follow(path+"/enabled", "enabled", "yes"), "Enabled", "Disable")
		if status := w.deliver(hook.UID, `{"a":4}`, "Authorization", "Bearer "+rotated); status != http.StatusAccepted {
			t.Errorf("enabled again: %d", status)
		}

		// An automation that selects it, by the form and by the file.
		b.page(base + "/automations/new")
		a = b.post(base+"/automations/new", "name", "triage", "filter", `{"status":`, "prompt", "")
		if a.StatusCode != http.StatusUnprocessableEntity || strings.Count(a.Text, `class="wrong"`) != 3 || !strings.Contains(a.Text, "{&#34;status&#34;:") {
			t.Errorf("a form with three mistakes: %d %s", a.StatusCode, plain(a.Text))
		}
		page = b.follow(base+"/automations/new", "name", "triage", "webhook", hook.UID, "filter", `{"status": ["failed"]}`, "prompt", "Find the cause.\r\nSay it.")
		says(t, page, "Saved and applied", "fires", "Find the cause.", `"failed"`)
		w.deliver(hook.UID, `{"status":"failed"}`, "Authorization", "Bearer "+rotated)
		if runs, _, err := w.store.Runs(t.Context(), state.RunFilter{}, state.RunOrder{}, nil, 10); err != nil || len(runs) != 1 || !strings.HasPrefix(runs[0].Prompt, "Find the cause.\nSay it.") {
			t.Errorf("runs %+v, %v", runs, err)
		}

		// Delete, with its warning.
		says(t, b.page(path), "triage stays visible but stops firing", "never works again")
		for _, name := range []string{"", "alert", "ALERTS"} {
			a := b.post(path+"/delete", "name", name)
			if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.Text, `id="delete-name-error"`) {
				t.Errorf("deleting with the name %q: %d", name, a.StatusCode)
			}
		}
		says(t, b.follow(path+"/delete", "name", " alerts "), "Deleted", "1 deleted")
		if status := w.deliver(hook.UID, `{"a":5}`, "Authorization", "Bearer "+rotated); status != http.StatusNotFound {
			t.Errorf("deleted: %d", status)
		}
		says(t, b.page(path), "senders get 404", "Recent deliveries", "dlv_")
		says(t, b.page(base+"/automations/triage"), "does not fire", "is deleted")
		says(t, b.page(base+"/history"), "create webhook alerts", "rotate the secret of webhook alerts", "disable webhook alerts", "the admin")
	})
}

// TestOfferedSecret: the token that a provider sends before it signs is shown to who may use it, and works
// from then on.
func TestOfferedSecret(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	w.furnish()
	b, viewer := w.signedIn(state.RoleAdmin), w.signedIn(state.RoleViewer)
	base := "/factories/" + w.held
	b.page(base + "/webhooks/new")
	b.post(base+"/webhooks/new", "name", "pages", "auth_mode", "signature", "signature_scheme", "notion")
	hook := w.webhook(w.held, "pages")
	path := base + "/webhooks/" + hook.UID
	saysNot(t, b.page(path), "Is this the provider's secret?")

	forged, _ := json.Marshal(map[string]string{"verification_token": markup + control})
	if status := w.deliver(hook.UID, string(forged)); status != http.StatusUnauthorized {
		t.Errorf("a forged offer: %d", status)
	}
	hostile(t, path, b.page(path))
	if status := w.deliver(hook.UID, `{"verification_token":"secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl"}`); status != http.StatusUnauthorized {
		t.Errorf("an offer: %d", status)
	}
	page := b.page(path)
	says(t, page, "Is this the provider's secret?", "127.0.0.1", "the last of 2", "Use this secret", "this request brought one")
	for _, other := range []string{viewer.page(path), viewer.page("/"), b.page("/"), b.page(base + "/deliveries")} {
		saysNot(t, other, "secret_tMrlL1")
	}
	offered := find(t, shownSecret, page)
	if a := b.post(path+"/rotate", "secret", offered); a.StatusCode != http.StatusOK {
		t.Fatalf("using it: %d %s", a.StatusCode, plain(a.Text))
	}
	saysNot(t, b.page(path), "Is this the provider's secret?", "secret_tMrlL1", "Pending.")
	mac := hmac.New(sha256.New, []byte(offered))
	mac.Write([]byte(`{"id":"1"}`))
	if status := w.deliver(hook.UID, `{"id":"1"}`, "X-Notion-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil))); status != http.StatusAccepted {
		t.Errorf("signed with it: %d", status)
	}
}

func TestWebhookModes(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	w.furnish()
	b := w.signedIn(state.RoleAdmin)
	base := "/factories/" + w.held
	b.page(base + "/webhooks/new")

	// The token of a URL is shown in it once, and {token} afterwards.
	a := b.post(base+"/webhooks/new", "name", "pager", "auth_mode", "url_token")
	address := find(t, shownURL, a.Text)
	_, path, ok := strings.Cut(address, "/webhooks/w/")
	if !ok || strings.Contains(path, "{token}") {
		t.Fatalf("URL %s", address)
	}
	if status := w.deliver(path, `{}`); status != http.StatusAccepted {
		t.Errorf("with the token: %d", status)
	}
	hook := w.webhook(w.held, "pager")
	page := b.page(base + "/webhooks/" + hook.UID)
	says(t, page, "/{token}", "URL token")
	saysNot(t, page, strings.TrimPrefix(path, hook.UID+"/"))
	a = b.post(base + "/webhooks/" + hook.UID + "/rotate")
	_, rotated, _ := strings.Cut(find(t, shownSecret, a.Text), "/webhooks/w/")
	if was, is := w.deliver(path, `{"n":1}`), w.deliver(rotated, `{"n":1}`); was != http.StatusUnauthorized || is != http.StatusAccepted {
		t.Errorf("after the rotation the old URL is answered %d, the new one %d", was, is)
	}

	// A provider that issues its secret later: pending, which is 401, then finished.
	a = b.post(base+"/webhooks/new", "name", "hub", "auth_mode", "signature", "signature_scheme", "github")
	says(t, a.Text, "pending", "401")
	hook = w.webhook(w.held, "hub")
	if status := w.deliver(hook.UID, `{}`, "X-Hub-Signature-256", "sha256=b82fcb791acec57859b989b430a826488ce2e479fdf92326bd0a2e8375a42ba4"); status != http.StatusUnauthorized {
		t.Errorf("pending: %d", status)
	}
	path = base + "/webhooks/" + hook.UID
	says(t, b.page(path), "Pending.", "Enter the provider's secret")
	a = b.post(path+"/rotate", "secret", "")
	if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.Text, `id="secret-error"`) {
		t.Errorf("an empty secret: %d %s", a.StatusCode, plain(a.Text))
	}
	a = b.post(path+"/rotate", "secret", "provider-secret")
	says(t, a.Text, "The secret is stored")
	saysNot(t, a.Text, "has been rotated")
	if a.StatusCode != http.StatusOK || strings.Contains(plain(b.page(path)), "Pending.") {
		t.Errorf("finished: %d %s", a.StatusCode, plain(a.Text))
	}

	// standard_webhooks: a blank secret is generated.
	a = b.post(base+"/webhooks/new", "name", "std", "auth_mode", "signature", "signature_scheme", "standard_webhooks")
	says(t, a.Text, "whsec_")
	a = b.post(base+"/webhooks/new", "name", "svix", "auth_mode", "signature", "signature_scheme", "svix")
	says(t, a.Text, "whsec_")
	svix := base + "/webhooks/" + w.webhook(w.held, "svix").UID
	says(t, b.page(svix), "Delete its secret SVIX_SECRET too, which nothing else uses")
	b.post("/secrets", "name", "SVIX_SECRET", "value", "no base64")
	a = b.post("/secrets", "name", "SVIX_SECRET", "value", "no base64")
	says(t, a.Text, "The new value is stored. Webhook svix of factory ", " cannot use it: it is no signing secret of svix: the secret is not base64.")
	b.page(svix)
	b.post(svix+"/delete", "name", "svix", "secret", "yes")
	saysNot(t, b.page("/secrets"), "SVIX_SECRET")
	// An existing secret: its value is not shown, and rotating it names its other users.
	a = b.post(base+"/webhooks/new", "name", "shared", "auth_mode", "token", "secret_name", "CI_TOKEN")
	says(t, a.Text, "present value of the secret")
	saysNot(t, a.Text, ciToken)
	path = base + "/webhooks/" + w.webhook(w.held, "shared").UID
	page = b.page(path)
	says(t, page, "also used by repo / ci")
	saysNot(t, page, "Delete its secret")
	if a = b.post(path + "/rotate"); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("rotating a shared secret: %d", a.StatusCode)
	}
	says(t, a.Text, "is also used by repo / ci", "tick the box")
	saysNot(t, a.Text, "shared: true")
	if a = b.post(path+"/rotate", "shared", "yes"); a.StatusCode != http.StatusOK {
		t.Errorf("rotating it all the same: %d %s", a.StatusCode, plain(a.Text))
	}
	says(t, b.page("/"), "Webhook repo / ci uses an old secret")
	says(t, b.page("/factories/"+w.repo), "Secrets that wait for the next apply", "Sync now picks up")
	says(t, b.follow("/factories/"+w.repo+"/sync"), "Applied")
	saysNot(t, b.page("/factories/"+w.repo), "Secrets that wait")

	// The limit.
	for i := len("0123"); i < schema.MaxWebhooks; i++ {
		if a := b.post(base+"/webhooks/new", "name", "w"+string(rune('a'+i)), "auth_mode", "token"); a.StatusCode != http.StatusOK {
			t.Fatalf("webhook %d: %d %s", i, a.StatusCode, plain(a.Text))
		}
	}
	says(t, b.page(base+"/webhooks"), "20 of 20")
	full := b.page(base + "/webhooks/new")
	says(t, full, "20 of 20 webhooks", "Delete one to make another")
	saysNot(t, full, "Create</button>")
	b.page(base + "/webhooks")
	if a := b.post(base+"/webhooks/new", "name", "w-more", "auth_mode", "token"); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("the 21st: %d", a.StatusCode)
	} else {
		says(t, a.Text, "20")
	}
	says(t, b.page(svix), "Provider signature (Svix)")
}

// TestProviders: the form of a webhook lists providers by their names, with those that sign as others do.
func TestProviders(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	w.furnish()
	b := w.signedIn(state.RoleAdmin)
	base := "/factories/" + w.held
	page := b.page(base + "/webhooks/new")
	says(t, page, `<option value="github">GitHub</option>`, `<option value="openai">OpenAI</option>`, `<option value="forgejo">Forgejo</option>`)
	saysNot(t, page, `value="custom"`)
	b.post(base+"/webhooks/new", "name", "models", "auth_mode", "signature", "signature_scheme", "openai")
	says(t, b.page(base+"/webhooks/"+w.webhook(w.held, "models").UID), "Provider signature (OpenAI)")
}

func TestReadOnlyFactory(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	w.furnish()
	b := w.signedIn(state.RoleAdmin)
	ci, path := w.webhook(w.repo, "ci"), "/factories/"+w.repo
	page := b.page(path + "/webhooks/" + ci.UID)
	says(t, page, "factory/webhooks/ci.yaml", "on branch main of https://git.example.com/acme/repo.git", "and commit it", "enabled: false")
	saysNot(t, page, "Rotate secret…", "Delete…", "hunter2")
	says(t, b.page(path+"/webhooks"), "write factory/webhooks/<name>.yaml on branch main")
	says(t, b.page(path+"/automations/triage"), "factory/automations/triage/automation.md")
	says(t, b.page(path+"/webhooks/new"), "definition comes from its source")
	for _, c := range [][]string{{"/webhooks/" + ci.UID + "/enabled", "enabled", "no"}, {"/webhooks/" + ci.UID + "/delete"}, {"/webhooks/" + ci.UID + "/rotate"}, {"/webhooks/new", "name", "x", "auth_mode", "token"}} {
		a := b.post(path+c[0], c[1:]...)
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.Text, "git repository") {
			t.Errorf("%s: %d %s", c[0], a.StatusCode, plain(a.Text))
		}
	}
	for _, missing := range []string{"/files", "/files/edit", "/automations/new", "/revisions/r1", "/files.tar"} {
		if a := b.get(path + missing); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s of a factory that is not held: %d", missing, a.StatusCode)
		}
	}
}

func TestFiles(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleAdmin)
		base := "/factories/" + w.held
		b.page(base + "/webhooks/new")
		b.post(base+"/webhooks/new", "name", "alerts", "auth_mode", "token")

		edit := base + "/files/edit?path=webhooks%2Falerts.yaml"
		page := b.page(edit)
		says(t, page, "secretName: ALERTS_SECRET", `name="base" value="r1"`)
		bad := "authMode: tokn\r\nsecretName: NOPE\u202e # \u200d\r\n"
		a := b.post(base+"/files/edit", "path", "webhooks/alerts.yaml", "base", "r1", "content", bad)
		if a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("a definition with errors: %d", a.StatusCode)
		}
		says(t, a.Text, "Nothing was saved", "webhooks/alerts.yaml:1:11: error: authMode cannot be tokn [auth-mode]", "1 | authMode: tokn", "^^^^", "secretName: NOPE")
		if !strings.Contains(a.Text, "NOPE&#8238; # \u200d") {
			t.Errorf("what was typed is not in the form as it was: %q", a.Text)
		}
		a = b.post(base+"/files/edit", "path", "webhooks/alerts.yaml", "base", "r1", "content", "# changed here\r\nsecretName: ALERTS_SECRET\r\n")
		if a.StatusCode != http.StatusSeeOther {
			t.Errorf("a good one: %d %s", a.StatusCode, plain(a.Text))
		}
		files, err := w.store.ManagedFiles(t.Context(), w.held, 2)
		if err != nil || len(files) != 1 || files[0].Content != "# changed here\nsecretName: ALERTS_SECRET\n" {
			t.Errorf("files %q, %v", files, err)
		}
		// Somebody else was first.
		a = b.post(base+"/files/edit", "path", "webhooks/alerts.yaml", "base", "r1", "content", "# mine\nsecretName: ALERTS_SECRET\n")
		says(t, a.Text, "was changed after r1", "# mine")
		a = b.post(base+"/files/edit", "new", "yes", "path", "webhooks/alerts.yaml", "base", "r2", "content", "x")
		says(t, a.Text, "there is a file of this path already")

		// A draft says what its triggers would have done.
		draft := "---\ntriggers:\n  - {provider: webhook, event: received, filter: {webhook_ids: [" +
			w.webhook(w.held, "alerts").UID + "]}}\n---\nGo.\n"
		a = b.post(base+"/files/edit", "new", "yes", "path", "automations/look/automation.md", "base", "r2",
			"content", draft, "try", "yes")
		says(t, a.Text, "Not saved yet", "look : its webhooks had no delivery within 7 days")
		for _, path := range []string{"", "../etc/passwd", "/etc/passwd", "webhooks/../../x", `a\b`} {
			if a := b.post(base+"/files/edit", "new", "yes", "path", path, "content", "x: 1\n"); a.StatusCode != http.StatusUnprocessableEntity && a.StatusCode != http.StatusNotFound {
				t.Errorf("path %q: %d", path, a.StatusCode)
			}
		}

		// History, difference, restore.
		says(t, b.page(base+"/history"), "write webhooks/alerts.yaml", "r2", "the admin")
		says(t, b.page(base+"/revisions/r2"), "+# changed here", "update", "webhooks/alerts.yaml")
		b.page(base + "/revisions/r1")
		says(t, b.follow(base+"/revisions/r1/restore", "base", "r2"), "Saved and applied", "r3")
		saysNot(t, b.page(edit), "# changed here")

		// Export, change, import.
		a = b.get(base + "/files.tar")
		if a.StatusCode != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") {
			t.Fatalf("export: %d", a.StatusCode)
		}
		names := ""
		for r := tar.NewReader(strings.NewReader(a.Text)); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			names += h.Name + "\n"
		}
		if !strings.Contains(names, "webhooks/alerts.yaml\n") {
			t.Errorf("the tar has %q", names)
		}
		var out bytes.Buffer
		tw := tar.NewWriter(&out)
		for _, f := range []schema.File{{Path: "webhooks/alerts.yaml", Content: "secretName: ALERTS_SECRET\n"}, {Path: "webhooks/more.yaml", Content: "secretName: CI_TOKEN\n"}} {
			if err := tw.WriteHeader(&tar.Header{Name: f.Path, Mode: 0o644, Size: int64(len(f.Content))}); err != nil {
				t.Fatal(err)
			}
			tw.Write([]byte(f.Content))
		}
		tw.Close()
		for name, c := range map[string]struct {
			body   []byte
			status int
		}{"no file": {nil, 422}, "not a tar": {[]byte("hello"), 422}, "a tree": {out.Bytes(), 303}} {
			var form bytes.Buffer
			m := multipart.NewWriter(&form)
			m.WriteField("csrf", b.csrf)
			if c.body != nil {
				part, err := m.CreateFormFile("tar", "tree.tar")
				if err != nil {
					t.Fatal(err)
				}
				part.Write(c.body)
			}
			m.Close()
			r := b.request(http.MethodPost, base+"/files/import", &form)
			r.Header.Set("Content-Type", m.FormDataContentType())
			if a := b.do(r); a.StatusCode != c.status {
				t.Errorf("importing %s: %d %s", name, a.StatusCode, plain(a.Text))
			}
		}
		if w.webhook(w.held, "more").Deleted != nil {
			t.Error("the imported webhook is not there")
		}
		b.page(base + "/files/edit?path=webhooks%2Fmore.yaml")
		a = b.post(base+"/files/delete", "path", "webhooks/more.yaml")
		says(t, a.Text, "Nothing was deleted: type more")
		says(t, b.follow(base+"/files/delete", "path", "webhooks/more.yaml", "name", "more"), "Saved and applied")
		if w.webhook(w.held, "more").Deleted == nil {
			t.Error("the webhook whose file was deleted lives on")
		}
	})
}

func TestRunPage(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleRunner)
		d := w.ciDelivery(`{"status":"failed"}`)
		runs, _, err := w.store.Runs(t.Context(), state.RunFilter{DeliveryUID: d.UID}, state.RunOrder{}, nil, 10)
		if err != nil || len(runs) != 1 {
			t.Fatalf("runs %v, %v", runs, err)
		}
		path := "/runs/" + runs[0].ID
		says(t, b.page(path), "QUEUED", "joins the prompt", "triage", "ci", d.UID, "event-payload.json", "untrusted context", "has said nothing yet")
		w.finish(runs[0].ID, state.RunSucceeded, said(state.Text("It was the **cache**."),
			state.Block{Type: "action", ID: "1", Category: "skill", Name: "read_skill", Input: []byte(`{"skill_path":"skills/x/SKILL.md","bundled_skill_id":"pr-comments"}`)},
			state.Block{Type: "action", ID: "2", Category: "shell", Name: "make", Input: []byte(`{"command":"make test"}`)},
			state.Block{Type: "action_result", ActionID: "2", Name: "make", State: "failed", Output: []byte(`"exit 2"`)}))
		page := b.page(path)
		says(t, page, "SUCCEEDED", "It was the <strong>cache</strong>.", "<code>make test</code>", "Loads pr-comments", "bundled, skills/x/SKILL.md", "make test", "exit 2", "by mill-1", "reopens the run", "Timeline")
		if strings.Contains(page, path+"/cancel") {
			t.Error("a run that ended can be cancelled")
		}
		a := b.post(path+"/followups", "message", " \r\n ")
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.Text, `id="message-error"`) {
			t.Errorf("an empty message: %d", a.StatusCode)
		}
		says(t, b.follow(path+"/followups", "message", "Now mend it.\r\nPlease."), "Sent to the run", "QUEUED", "Now mend it.")
		says(t, b.follow(path+"/cancel"), "Cancelled", "CANCELLED")
		if a := b.post(path + "/cancel"); a.StatusCode != http.StatusBadRequest {
			t.Errorf("cancelling it again: %d", a.StatusCode)
		}
		says(t, b.follow(path+"/retry"), "Started again, as this new run", "QUEUED", "Retry of", runs[0].ID, "event-payload.json")
		says(t, b.page("/runs?state=CANCELLED&factory="+w.repo), "triage")
		says(t, b.page("/runs?state=FAILED"), "matches")
		says(t, b.page("/runs?state=NONSENSE"), "is none of the states")
		says(t, b.page("/runs?q="+runs[0].ID), "triage")
		says(t, b.page("/runs?from=2001-01-01T00:00&to=2001-01-02T00:00"), "matches")
		if a := b.get("/runs?cursor=x"); a.StatusCode != http.StatusBadRequest {
			t.Errorf("a bad cursor: %d", a.StatusCode)
		}
		says(t, b.page("/"), "All runs", "triage")
	})
}
