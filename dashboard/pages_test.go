package dashboard_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"millwright/dashboard"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// pages are the addresses of all pages, of a world that was furnished and has a delivery and a run.
func (w *world) everyPage() []string {
	w.t.Helper()
	ci := w.webhook(w.repo, "ci")
	d := w.deliveries(ci)[0]
	runs, _, err := w.store.Runs(w.t.Context(), state.RunFilter{}, state.RunOrder{}, nil, 1)
	if err != nil || len(runs) == 0 {
		w.t.Fatalf("runs %v, %v", runs, err)
	}
	f, h := "/factories/"+w.repo, "/factories/"+w.held
	return []string{
		"/", "/factories", f, f + "/history", f + "/deliveries", f + "/deliveries?outcome=rejected_auth&webhook=" + ci.UID, f + "/webhooks", f + "/webhooks/" + ci.UID,
		f + "/webhooks/" + w.webhook(w.repo, "hub").UID, f + "/webhooks/new", w.deliveryPath(d), f + "/automations", f + "/automations/triage", f + "/automations/off",
		f + "/automations/deaf", f + "/filter", f + "/filter?automation=triage&delivery=" + d.UID,
		h, h + "/webhooks", h + "/webhooks/new", h + "/automations", h + "/automations/new", h + "/files", h + "/history",
		"/runs", "/runs?state=SUCCEEDED&source=API&q=x", "/runs/new", "/runs/" + runs[0].ID, "/workers", "/secrets",
		"/search", "/search?q=ci", "/search?q=status%3Dfailed", "/search?q=" + d.UID, f + "/compare", f + "/replay",
		"/deliveries", "/?since=2026-01-01T00:00&until=2026-02-01T00:00",
	}
}

func TestEveryPage(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		w.ciDelivery(`{"status":"failed"}`)
		w.notices = []dashboard.Notice{{Message: "set trustedProxies", Since: time.Now()}}
		for _, role := range []state.Role{state.RoleViewer, state.RoleRunner, state.RoleAdmin} {
			b := w.signedIn(role)
			for _, path := range w.everyPage() {
				page := b.page(path)
				for _, broken := range []string{"%!", "ZgotmplZ", "<no value>", "&lt;nil&gt;", "hunter2"} {
					if strings.Contains(page, broken) {
						t.Errorf("%s has %q", path, broken)
					}
				}
				if !strings.HasSuffix(strings.TrimSpace(page), "</html>") {
					t.Errorf("%s is cut off", path)
				}
				if n := strings.Count(page, "<h1"); n != 1 {
					t.Errorf("%s has %d headings of the first order", path, n)
				}
			}
		}
		b := w.signedIn(state.RoleAdmin)
		b.page("/keys")
		b.page("/factories/" + w.repo + "/plan")
		says(t, b.page("/"), "set trustedProxies", "/ deaf does not fire", "is disabled")
		if strings.Contains(w.log.String(), "level=ERROR") {
			t.Errorf("the log has errors:\n%s", w.log)
		}
	})
}

func TestHeaders(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	w.furnish()
	d := w.ciDelivery(`{"status":"failed"}`)
	in, out := w.signedIn(state.RoleAdmin), w.browser()
	for _, a := range []answer{
		out.get("/"), out.get("/login"), out.get("/assets/app.css"), out.get("/assets/none"), out.get("/favicon.ico"), out.post("/login", "key", "x"),
		in.get("/"), in.get("/no/such/page"), in.get("/factories/none"), in.get("/live?on=x"), in.post("/secrets"), in.post("/secrets", "name", "1"), in.get(w.deliveryPath(d)),
	} {
		where := a.Request.Method + " " + a.Request.URL.Path
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", where, name, got)
			}
		}
		cached := strings.HasPrefix(a.Request.URL.Path, "/assets/app")
		if got := a.Header.Get("Cache-Control"); (got == "no-store") == cached {
			t.Errorf("%s: Cache-Control %q", where, got)
		}
	}
	payload := in.get(w.deliveryPath(d) + "/payload")
	if payload.Text != `{"status":"failed"}` || payload.Header.Get("Content-Type") != "application/octet-stream" ||
		!strings.HasPrefix(payload.Header.Get("Content-Disposition"), "attachment") || !strings.Contains(payload.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("payload %q with %v", payload.Text, payload.Header)
	}

	css := regexp.MustCompile(`/assets/app\.css\?v=[0-9a-f]+`).FindString(in.page("/"))
	a := in.get(css)
	if !strings.Contains(a.Header.Get("Cache-Control"), "immutable") {
		t.Errorf("%s: Cache-Control %q", css, a.Header.Get("Cache-Control"))
	}
	r := in.request(http.MethodGet, "/assets/app.css", nil)
	r.Header.Set("If-None-Match", a.Header.Get("Etag"))
	if a := in.do(r); a.StatusCode != http.StatusNotModified {
		t.Errorf("the same version again: %d", a.StatusCode)
	}
	if a := in.do(in.request(http.MethodHead, "/", nil)); a.StatusCode != http.StatusOK || a.Text != "" {
		t.Errorf("HEAD /: %d %q", a.StatusCode, a.Text)
	}
}

// TestNothingInline: what the content security policy would refuse is not in the pages to begin with.
func TestNothingInline(t *testing.T) {
	wrong := regexp.MustCompile(`(?i)<style|\sstyle=|<script(?: [^>]*)?>[^<]|\son[a-z]+=|javascript:|(?:src|href|action)="(?:https?:)?//`)
	files, err := filepath.Glob("templates/*.html")
	if err != nil || len(files) < 20 {
		t.Fatalf("templates %v, %v", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if m := wrong.Find(text); m != nil {
			t.Errorf("%s has %q", name, m)
		}
	}
	scripts, err := filepath.Glob("assets/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(`(?i)eval\(|innerHTML\s*=[^=]|insertAdjacentHTML|document\.write|@import|url\(|https?://[^w]`).Find(text); m != nil {
			t.Errorf("%s has %q", name, m)
		}
	}
}

const (
	markup  = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>{{.}}` + "`${x}`"
	control = "\x1b[31mred\x1b[0m\x07\u202eevil\u2066\u200b\ufeffend"
)

// hostile fails the test when a page shows foreign text unescaped or hidden, or is very long.
func hostile(t *testing.T, path, page string) {
	t.Helper()
	if len(page) > 3<<20 {
		t.Errorf("%s has %d bytes", path, len(page))
	}
	for _, raw := range []string{"<script>alert", "<img src=x", "\x1b", "\x07", "\u202e", "\u2066", "\u200b", "\ufeff"} {
		if strings.Contains(page, raw) {
			t.Errorf("%s has %q", path, raw)
		}
	}
	for i, r := range page {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			t.Errorf("%s has %U at %q", path, r, page[max(0, i-20):min(len(page), i+20)])
			return
		}
	}
	if n := strings.Count(page, "<script"); n != 1 {
		t.Errorf("%s has %d scripts", path, n)
	}
}

func TestHostileText(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		ctx := t.Context()
		ci := w.webhook(w.repo, "ci")
		body, _ := json.Marshal(map[string]string{"status": "failed", markup: control, "long": strings.Repeat("x", 200_000)})
		status := w.deliver(ci.UID, string(body), "Authorization", "Bearer "+ciToken, "X-Service-Delivery-Id", markup+"\u202e\t\xff")
		if status != http.StatusAccepted {
			t.Fatalf("delivery: %d", status)
		}
		d := w.deliveries(ci)[0]
		w.deliver(ci.UID, "{", "Authorization", "Bearer "+ciToken)
		w.deliver(ci.UID, markup, "Authorization", "Bearer "+markup)
		deep := w.ciDelivery(strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000))
		wide := w.ciDelivery("[" + strings.Repeat("[],", 80_000) + "[]]")

		// A tree whose problems quote it.
		bad := append([]schema.File{{Path: "webhooks/bad.yaml", Content: "authMode: \"" + markup[:20] + "\"\nsecretName: NOPE # " + strings.Repeat(markup, 2000) + "\n" + control + "\n"}}, repoFiles...)
		if a, err := w.apply(ctx, w.repo, bad); err != nil || a.Outcome != state.OutcomeRefused {
			t.Fatalf("%+v, %v", a.Outcome, err)
		}

		long := strings.Repeat("ten megabytes ", 750_000)
		r, err := w.store.CreateRun(ctx, state.NewRun{
			Title: markup + control, Prompt: long, Source: markup, Creator: state.Creator{Type: "user", UID: "u", DisplayName: markup + control},
			Metadata: map[string]string{"k": markup}, Config: json.RawMessage(`{"name":"<script>alert(3)</script>"}`), TriggerURL: "javascript:alert(1)",
		}, []state.Attachment{{Name: markup + ".html", MimeType: "text/html", Body: []byte(markup)}}, state.Idempotency{})
		if err != nil {
			t.Fatal(err)
		}
		input, _ := json.Marshal(map[string]string{"skill_path": markup, "bundled_skill_id": control})
		w.finish(r.ID, state.RunFailed,
			said(state.Text(long), state.Text(markup+control), state.Text("\xff\xfe bytes")),
			said(state.Block{Type: "action", Name: "read_skill", Category: "skill", Input: input}, state.Block{Type: "action", ID: "a", Name: markup, Category: markup, Input: json.RawMessage(`{"x":"` + strings.Repeat("y", 3<<20) + `"}`)},
				state.Block{Type: "action_result", ActionID: markup, Output: body, State: "failed"}, state.Block{Type: "event", Name: control, Data: json.RawMessage(`"\u001b[2J"`)}))

		b := w.signedIn(state.RoleAdmin)
		for _, path := range append(w.everyPage(), "/runs/"+r.ID, w.deliveryPath(d), w.deliveryPath(deep), w.deliveryPath(wide), "/factories/"+w.repo+"/history", "/runs?q="+"%3Cscript%3Ealert(1)%3C%2Fscript%3E%E2%80%AE",
			"/factories/"+w.repo+"/deliveries?outcome=%3Cscript%3E&from=%3Cimg+src%3Dx", "/factories/"+w.repo+"/filter?delivery=%22%3E%3Cscript%3Ealert", "/?done=%3Cscript%3E",
			"/factories/"+w.repo+"/compare?delivery="+d.UID+"&delivery="+deep.UID, "/factories/"+w.repo+"/compare?delivery="+wide.UID+"&delivery="+deep.UID,
			"/factories/"+w.repo+"/compare?delivery=%3Cscript%3Ealert", "/search?q=%3Cscript%3Ealert(1)%E2%80%AE", "/search?q=long:xx", "/search?q=a.a.a.a.a.a.a.a.a.a=1", "/factories/"+w.repo+"/replay?delivery="+d.UID) {
			hostile(t, path, b.page(path))
		}
		says(t, b.page(w.deliveryPath(d)), `alert(1)`, `\u202e`)
		says(t, b.page("/runs/"+r.ID), "10.5 MB in all", "Loads", "failed", `\u202e`)
		says(t, b.page("/factories/"+w.repo), "webhooks/bad.yaml:3:1: error:", `\u202e`, "^^^")
		for _, path := range []string{"/factories/%3Cscript%3Ealert(1)", "/runs/%3Cscript%3Ealert", "/%1b%5b31m%E2%80%AE", "/factories/" + w.repo + "/webhooks/%22%3E%3Cscript%3Ealert"} {
			a := b.get(path)
			if a.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %d", path, a.StatusCode)
			}
			hostile(t, path, a.Text)
		}
		name := strings.NewReplacer("<", "%3C", ">", "%3E", `"`, "%22", " ", "%20", "/", "%2F", "`", "%60", "{", "%7B", "}", "%7D").Replace(markup + ".html")
		a := b.get("/runs/" + r.ID + "/attachments/" + name)
		if a.StatusCode != http.StatusOK || a.Text != markup || a.Header.Get("Content-Type") != "application/octet-stream" || strings.ContainsAny(a.Header.Get("Content-Disposition"), "<>\"") {
			t.Errorf("attachment: %d %v", a.StatusCode, a.Header)
		}

		// Typed text comes back in the form unchanged, and nowhere else.
		b.page("/factories/" + w.repo + "/filter")
		for _, form := range [][]string{
			{"/factories/" + w.repo + "/filter", "filter", markup + control, "payload", control},
			{"/factories/" + w.repo + "/filter", "filter", `{"a":["` + strings.Repeat("b", 5000) + `"]}`, "payload", `{"` + markup[:8] + `":1}`},
			{"/secrets", "name", markup + control, "value", "the-secret-value"},
			{"/keys", "name", markup + control, "role", markup},
			{"/runs/" + r.ID + "/followups", "message", "  \t "},
			{"/runs/new", "prompt", markup + control, "title", markup + control, "to", markup},
		} {
			a := b.post(form[0], form[1:]...)
			hostile(t, "POST "+form[0], a.Text)
			if strings.Contains(a.Text, "the-secret-value") {
				t.Errorf("%s shows a secret", form[0])
			}
		}
	})
}

func TestLargeForms(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	w.furnish()
	b := w.signedIn(state.RoleAdmin)
	b.page("/secrets")
	if a := b.post("/secrets", "name", "BIG", "value", strings.Repeat("x", 3<<20)); a.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("3 MB in a form: %d", a.StatusCode)
	}
	if a := b.post("/secrets", "name", "BIG", "value", strings.Repeat("x", 100<<10)); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a secret of 100 kB: %d", a.StatusCode)
	} else {
		says(t, a.Text, "BIG", "65536")
	}
}

// TestUnavailable: without the state there is an error page, and no panic.
func TestUnavailable(t *testing.T) {
	s, err := state.Open(t.Context(), state.Config{DSN: statetest.SQLite(t), MasterKey: statetest.MasterKey()})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, s, "")
	w.furnish()
	w.ciDelivery(`{}`)
	b := w.signedIn(state.RoleAdmin)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/factories/" + w.repo, "/runs", "/secrets", "/keys"} {
		a := b.get(path)
		if a.StatusCode < 500 || !strings.Contains(a.Text, "<h1>") || strings.Contains(a.Text, "sql") {
			t.Errorf("%s: %d %s", path, a.StatusCode, plain(a.Text))
		}
	}
	if a := b.get("/login"); a.StatusCode != http.StatusOK {
		t.Errorf("/login: %d", a.StatusCode)
	}
}

func TestDeliveryFilters(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		ci := w.webhook(w.repo, "ci")
		for i := range 60 {
			w.ciDelivery(fmt.Sprintf(`{"n":%d}`, i))
		}
		w.deliver(ci.UID, "{}", "Authorization", "Bearer wrong")
		b := w.signedIn(state.RoleViewer)
		path := "/factories/" + w.repo + "/deliveries"
		rows := regexp.MustCompile(`deliveries/(dlv_[0-9a-z]{26})`)
		seen := map[string]bool{}
		for pages := 0; path != "" && pages < 10; pages++ {
			page := b.page(path)
			for _, m := range rows.FindAllStringSubmatch(page, -1) {
				if seen[m[1]] {
					t.Errorf("%s is on two pages", m[1])
				}
				seen[m[1]] = true
			}
			path = ""
			if m := regexp.MustCompile(`href="([^"]*)" rel="next"`).FindStringSubmatch(page); m != nil {
				path = strings.ReplaceAll(m[1], "&amp;", "&")
			}
		}
		if len(seen) != 61 {
			t.Errorf("%d deliveries on all pages", len(seen))
		}
		path = "/factories/" + w.repo + "/webhooks/" + ci.UID
		only := func(query string) int { return len(rows.FindAllString(b.page(path+query), -1)) }
		now := time.Now().UTC()
		for query, want := range map[string]int{
			"?outcome=rejected_auth": 1, "?outcome=duplicate": 0,
			"?from=" + now.Add(time.Hour).Format("2006-01-02T15:04"): 0, "?to=" + now.Add(-time.Hour).Format("2006-01-02T15:04"): 0,
			"?outcome=rejected_auth&from=" + now.Add(-time.Hour).Format("2006-01-02T15:04") + "&to=" + now.Add(time.Hour).Format("2006-01-02T15:04"): 1,
		} {
			if got := only(query); got != want {
				t.Errorf("%s: %d rows, want %d", query, got, want)
			}
		}
		says(t, b.page(path+"?from=yesterday"), "is not a time such as")
		says(t, b.page(path+"?outcome=nothing"), "is none of the outcomes")
		says(t, b.page("/factories/"+w.repo+"/deliveries?webhook=wh_x"), "is none of this factory")
		if a := b.get(path + "?before=x"); a.StatusCode != http.StatusBadRequest {
			t.Errorf("a bad place: %d", a.StatusCode)
		}
	})
}

func TestEveryViewHasTemplates(t *testing.T) {
	if err := dashboard.EveryView(); err != nil {
		t.Error(err)
	}
}
