package dashboard_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"millwright/bounds"
	"millwright/state"
	"millwright/state/statetest"
)

func TestSignIn(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		b := w.browser()
		for _, path := range []string{"/", "/factories", "/runs?state=FAILED", "/no/such/page"} {
			a := b.get(path)
			if a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/login") {
				t.Errorf("%s without a session: %d to %q", path, a.StatusCode, a.Header.Get("Location"))
			}
		}
		says(t, b.page("/login"), "Sign in", "API key")
		for name, c := range map[string]struct {
			key, want string
			status    int
		}{
			"empty":   {"", "unknown, revoked or expired", http.StatusUnauthorized},
			"wrong":   {"mw_wrong", "unknown, revoked or expired", http.StatusUnauthorized},
			"worker":  {w.keys[state.RoleWorker], "role worker", http.StatusForbidden},
			"a UID":   {w.uids[state.RoleAdmin], "unknown, revoked or expired", http.StatusUnauthorized},
			"session": {state.NewToken(state.SessionPrefix), "unknown, revoked or expired", http.StatusUnauthorized},
		} {
			if a := b.post("/login", "key", c.key); a.StatusCode != c.status || !strings.Contains(a.Text, c.want) || strings.Contains(a.Text, "mw_wrong") {
				t.Errorf("%s: %d %s", name, a.StatusCode, plain(a.Text))
			}
		}
		a := b.post("/login", "key", " "+w.keys[state.RoleViewer]+"\n", "next", "/runs?state=FAILED")
		if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/runs?state=FAILED" {
			t.Errorf("signing in: %d to %q", a.StatusCode, a.Header.Get("Location"))
		}
		says(t, b.page("/runs?state=FAILED"), "Runs")

		if a := b.post("/logout"); a.StatusCode != http.StatusSeeOther {
			t.Errorf("signing out: %d", a.StatusCode)
		}
		if a := b.get("/"); a.StatusCode != http.StatusSeeOther {
			t.Errorf("after signing out: %d", a.StatusCode)
		}
		if strings.Contains(w.log.String(), "mw_") {
			t.Errorf("a key is in the log:\n%s", w.log)
		}
	})
}

// TestProgramsAreNotAskedToSignIn: a post to an unknown address, or to one like the ingress's,
// gets an error, and is not redirected to a page.
func TestProgramsAreNotAskedToSignIn(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	for _, b := range []*browser{w.browser(), w.signedIn(state.RoleAdmin)} {
		for _, c := range []struct {
			method, path string
			status       int
		}{
			{http.MethodPost, "/Webhooks/w/wh_01h455vb4pex5vsknk084sn02q", http.StatusNotFound},
			{http.MethodPost, "/WEBHOOKS/w/x", http.StatusNotFound},
			{http.MethodGet, "/Webhooks/w/wh_01h455vb4pex5vsknk084sn02q", http.StatusNotFound},
			{http.MethodGet, "/Webhooks", http.StatusNotFound},
			{http.MethodPost, "/no/such/page", http.StatusNotFound},
			{http.MethodPost, "/factories/x/webhooks/y/no", http.StatusNotFound},
			{http.MethodPut, "/no/such/page", http.StatusNotFound},
			{http.MethodPost, "/runs", http.StatusMethodNotAllowed},
			{http.MethodDelete, "/secrets", http.StatusMethodNotAllowed},
		} {
			a := b.do(b.request(c.method, c.path, strings.NewReader("{}")))
			if a.StatusCode != c.status || a.Header.Get("Location") != "" || a.Header.Get("Content-Security-Policy") == "" {
				t.Errorf("%s %s: %d to %q, want %d", c.method, c.path, a.StatusCode, a.Header.Get("Location"), c.status)
			}
		}
	}
	if a := w.browser().get("/no/such/page"); a.StatusCode != http.StatusSeeOther {
		t.Errorf("a browser that looks for a page: %d", a.StatusCode)
	}
}

func TestSessionEndsWithItsKey(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		b := w.signedIn(state.RoleViewer)
		if err := w.store.RevokeKey(t.Context(), w.uids[state.RoleViewer]); err != nil {
			t.Fatal(err)
		}
		if a := b.get("/"); a.StatusCode != http.StatusSeeOther {
			t.Errorf("after its key was revoked: %d", a.StatusCode)
		}
	})
}

func TestSignInAttemptsAreLimited(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	b := w.browser()
	b.get("/login")
	refused := 0
	for range 25 {
		a := b.post("/login", "key", "mw_wrong")
		if a.StatusCode == http.StatusTooManyRequests {
			if refused++; a.Header.Get("Retry-After") == "" {
				t.Error("429 without Retry-After")
			}
		}
		b.get("/login")
	}
	if refused < 5 {
		t.Fatalf("%d of 25 attempts were refused", refused)
	}
	if a := b.post("/login", "key", w.keys[state.RoleAdmin]); a.StatusCode != http.StatusSeeOther {
		t.Errorf("the right key after that: %d", a.StatusCode)
	}
}

// Before the sign-in little is read of a form, after it as much as a definition file may have.
func TestFormsOfStrangersAreSmall(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	b := w.browser()
	b.get("/login")
	for _, size := range []int{bounds.MaxSignIn, 100_000, 2 << 20} {
		if a := b.post("/login", "key", strings.Repeat("x", size)); a.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("a sign-in of %d bytes: %d", size, a.StatusCode)
		}
	}
	if a := b.post("/login", "key", w.keys[state.RoleAdmin]); a.StatusCode != http.StatusSeeOther {
		t.Errorf("the right key: %d", a.StatusCode)
	}

	in := w.signedIn(state.RoleAdmin)
	if a := in.post("/secrets", "name", "LARGE", "value", strings.Repeat("x", 60_000)); a.StatusCode >= 400 {
		t.Errorf("a large form of somebody who is signed in: %d", a.StatusCode)
	}
	if a := in.post("/secrets", "name", "LARGE", "value", strings.Repeat("x", bounds.MaxForm)); a.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a form beyond the bound: %d", a.StatusCode)
	}
}

func cookieNamed(cookies []*http.Cookie, name string) *http.Cookie {
	for _, c := range cookies {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func TestCookies(t *testing.T) {
	for _, c := range []struct {
		publicURL, session, signIn string
		secure                     bool
	}{
		{"http://mill.example.com", "millwright", "millwright-sign-in", false},
		{"https://mill.example.com", "__Host-millwright", "__Host-millwright-sign-in", true},
	} {
		t.Run(c.publicURL, func(t *testing.T) {
			w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), c.publicURL)
			b := w.browser()
			a := b.get("/login")
			nonce := cookieNamed(a.Cookies(), c.signIn)
			if nonce == nil {
				t.Fatalf("cookies %v", a.Cookies())
			}
			r := b.request(http.MethodPost, "/login", strings.NewReader("csrf="+b.csrf+"&key="+w.keys[state.RoleAdmin]))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			b.client.Jar = nil // it would not send Secure cookies over http
			r.AddCookie(nonce)
			a = b.do(r)
			cookie := cookieNamed(a.Cookies(), c.session)
			if a.StatusCode != http.StatusSeeOther || cookie == nil {
				t.Fatalf("signing in: %d %v", a.StatusCode, a.Cookies())
			}
			if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Secure != c.secure || cookie.Path != "/" || cookie.Domain != "" || cookie.MaxAge != 12*60*60 {
				t.Errorf("session cookie: %s", cookie)
			}
			if !nonce.HttpOnly || nonce.SameSite != http.SameSiteStrictMode || nonce.Secure != c.secure {
				t.Errorf("sign-in cookie: %s", nonce)
			}
			if strings.Contains(cookie.Value, w.keys[state.RoleAdmin]) {
				t.Error("the cookie has the key in it")
			}
		})
	}
}

func TestSessionFixation(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		b := w.browser()
		b.get("/login")
		planted := state.NewToken(state.SessionPrefix)
		r := b.request(http.MethodPost, "/login", strings.NewReader("csrf="+b.csrf+"&key="+w.keys[state.RoleAdmin]))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.AddCookie(&http.Cookie{Name: "millwright", Value: planted})
		a := b.do(r)
		if c := cookieNamed(a.Cookies(), "millwright"); c == nil || c.Value == planted {
			t.Fatalf("signing in kept the cookie that was there: %v", c)
		}
		if _, err := w.store.SessionKey(t.Context(), planted); err == nil {
			t.Error("the planted token is a session")
		}

		// Signing in again ends the session that there was.
		first := w.signedIn(state.RoleViewer)
		old := first.client.Jar.Cookies(first.request(http.MethodGet, "/", nil).URL)[0].Value
		first.get("/login")
		if a := first.post("/login", "key", w.keys[state.RoleAdmin]); a.StatusCode != http.StatusSeeOther {
			t.Fatalf("signing in again: %d", a.StatusCode)
		}
		if _, err := w.store.SessionKey(t.Context(), old); err == nil {
			t.Error("the session before lives on")
		}
	})
}

func TestNoOpenRedirect(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	for next, want := range map[string]string{
		"": "/", "/": "/", "/runs": "/runs", "/runs?q=a%20b&state=FAILED": "/runs?q=a%20b&state=FAILED", "/factories/x#y": "/factories/x",
		"//evil.example": "/", "///evil.example": "/", `/\evil.example`: "/", `\\evil.example`: "/", "https://evil.example": "/", "//evil.example/%2f..": "/",
		"javascript:alert(1)": "/", "data:text/html,x": "/", "evil.example": "/", "/\t/evil.example": "/", "/\n/evil.example": "/", "http:/evil.example": "/",
		"/%0d%0aSet-Cookie:x=1": "/%0d%0aSet-Cookie:x=1", "/" + strings.Repeat("a", 3000): "/", " //evil.example": "/", "/\x00": "/", "/%zz": "/",
	} {
		b := w.browser()
		b.get("/login")
		a := b.post("/login", "key", w.keys[state.RoleViewer], "next", next)
		if got := a.Header.Get("Location"); got != want {
			t.Errorf("next %q leads to %q, want %q", next, got, want)
		}
	}
	// A page that asks to sign in leads back to itself, and only to itself.
	if got := w.browser().get("//evil.example/x").Header.Get("Location"); strings.Contains(got, "next=%2F%2Fevil") && !strings.HasPrefix(got, "/login?next=") {
		t.Errorf("asked to sign in at %q", got)
	}
}

// changes are the paths of all forms, with parameters of existing resources.
func (w *world) changes() []string {
	w.t.Helper()
	routes, ok := w.pages.(chi.Routes)
	if !ok {
		w.t.Fatal("the handler does not list its routes")
	}
	ci := w.webhook(w.repo, "ci")
	replace := strings.NewReplacer("{factory}", w.repo, "{webhook}", ci.UID, "{delivery}", w.deliveries(ci)[0].UID, "{run}", w.run("x").ID,
		"{name}", "SPARE", "{key}", w.uids[state.RoleWorker], "{automation}", "triage", "{revision}", "r1", "{output}", state.NewID(state.PrefixOutput), "/*/", "/")
	var all []string
	err := chi.Walk(routes, func(method, path string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method == http.MethodPost && path != "/login" {
			all = append(all, replace.Replace(path))
		}
		return nil
	})
	if err != nil || len(all) < 15 {
		w.t.Fatalf("forms %v, %v", all, err)
	}
	return all
}

func TestForgedRequestsAreRefused(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	w.furnish()
	w.ciDelivery(`{"status":"failed"}`)
	b, other := w.signedIn(state.RoleAdmin), w.signedIn(state.RoleAdmin)
	mine, theirs := b.csrf, other.csrf
	if mine == theirs {
		t.Fatal("two sessions share a token")
	}
	for _, path := range w.changes() {
		for name, c := range map[string]struct {
			token  string
			header http.Header
		}{
			"no token":              {"", nil},
			"wrong token":           {strings.Repeat("0", 64), nil},
			"another session's":     {theirs, nil},
			"from another site":     {mine, http.Header{"Sec-Fetch-Site": {"cross-site"}}},
			"from a sibling":        {mine, http.Header{"Sec-Fetch-Site": {"same-site"}}},
			"from another origin":   {mine, http.Header{"Sec-Fetch-Site": nil, "Origin": {"https://evil.example"}}},
			"without token, opaque": {"", http.Header{"Sec-Fetch-Site": nil, "Origin": {"null"}}},
		} {
			r := b.request(http.MethodPost, path, strings.NewReader("csrf="+c.token))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			for k, v := range c.header {
				r.Header[k] = v
			}
			if a := b.do(r); a.StatusCode != http.StatusForbidden {
				t.Errorf("%s, %s: %d", path, name, a.StatusCode)
			}
		}
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch} {
		if a := b.do(b.request(method, "/secrets", nil)); a.StatusCode < 400 {
			t.Errorf("%s /secrets: %d", method, a.StatusCode)
		}
	}
	if keys, err := w.store.Keys(t.Context()); err != nil || len(keys) != 4 {
		t.Errorf("keys %v, %v", keys, err)
	}
	// From a page of ours it goes through, also from a browser that hides the origin.
	b.header = http.Header{"Origin": {"null"}}
	b.csrf = mine
	if a := b.post("/secrets", "name", "NEW", "value", "v"); a.StatusCode != http.StatusSeeOther {
		t.Errorf("an honest form: %d", a.StatusCode)
	}
}

func TestSignInFormIsNotForgeable(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	victim, attacker := w.browser(), w.browser()
	attacker.get("/login")
	for name, token := range map[string]string{"no token": "", "the attacker's token": attacker.csrf} {
		a := victim.postRaw("/login", "csrf", token, "key", w.keys[state.RoleAdmin])
		if a.StatusCode != http.StatusForbidden || cookieNamed(a.Cookies(), "millwright") != nil {
			t.Errorf("%s, without a cookie: %d %v", name, a.StatusCode, a.Cookies())
		}
		victim.get("/login")
		a = victim.postRaw("/login", "csrf", token, "key", w.keys[state.RoleAdmin])
		if a.StatusCode != http.StatusForbidden || cookieNamed(a.Cookies(), "millwright") != nil {
			t.Errorf("%s: %d %v", name, a.StatusCode, a.Cookies())
		}
	}
}

// TestRoles refuses forbidden actions of each role, independent of its pages.
func TestRoles(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	w.furnish()
	w.ciDelivery(`{"status":"failed"}`)
	paths := w.changes()
	for _, c := range []struct {
		role    state.Role
		allowed []string // endings
	}{
		{state.RoleViewer, []string{"/logout", "/filter"}},
		{state.RoleRunner, []string{"/logout", "/filter", "/replay", "/followups", "/cancel", "/retry", "/runs/new", "/drop", "/answers", "/reject", "/test"}},
	} {
		b := w.signedIn(c.role)
		for _, path := range paths {
			allowed := false
			for _, ending := range c.allowed {
				allowed = allowed || strings.HasSuffix(path, ending)
			}
			if path == "/logout" {
				continue
			}
			a := b.post(path, "name", "SPARE", "value", "v", "role", "viewer", "message", "hello", "path", "webhooks/x.yaml", "content", "x", "prompt", "p", "webhook", "x", "enabled", "no")
			held := strings.Contains(path, "/files/") || strings.Contains(path, "/restore") || strings.HasSuffix(path, "/automations/new") || strings.HasSuffix(path, "/edit")
			switch {
			case allowed && a.StatusCode == http.StatusForbidden:
				t.Errorf("%s may not %s: %s", c.role, path, plain(a.Text))
			case held && a.StatusCode == http.StatusNotFound: // this factory's definition is not held here
			case !allowed && a.StatusCode != http.StatusForbidden:
				t.Errorf("%s may %s: %d %s", c.role, path, a.StatusCode, plain(a.Text))
			}
		}
		// The same on a factory whose definition is held here.
		for _, path := range []string{"/webhooks/new", "/files/edit", "/files/delete", "/files/import", "/automations/new"} {
			a := b.post("/factories/"+w.held+path, "name", "x", "auth_mode", "token", "path", "webhooks/x.yaml", "content", "x", "prompt", "p", "webhook", w.webhook(w.repo, "ci").UID)
			if path == "/files/import" && a.StatusCode == http.StatusUnprocessableEntity {
				continue // it has no file
			}
			if a.StatusCode != http.StatusForbidden {
				t.Errorf("%s may %s of a held factory: %d %s", c.role, path, a.StatusCode, plain(a.Text))
			}
		}
		if a := b.get("/keys"); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s sees the API keys: %d", c.role, a.StatusCode)
		}
		if strings.Contains(b.page("/"), `href="/keys"`) {
			t.Errorf("%s is offered the API keys", c.role)
		}
	}
	infos, err := w.store.Secrets(t.Context())
	if err != nil || infos["SPARE"].Version != 1 {
		t.Errorf("secrets %+v, %v", infos, err)
	}
	if files, err := w.store.ManagedHead(t.Context(), w.held); err != nil || files.Number != 0 {
		t.Errorf("the held definition changed: %+v, %v", files, err)
	}
}

func TestLiveStream(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.furnish()
		b := w.signedIn(state.RoleViewer)
		ci := w.webhook(w.repo, "ci")
		resp, err := b.client.Do(b.request(http.MethodGet, "/live?on=delivery."+ci.UID+"&on=run", nil))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("stream: %d %v", resp.StatusCode, resp.Header)
		}
		lines := make(chan string)
		go func() {
			defer close(lines)
			for scanner := bufio.NewScanner(resp.Body); scanner.Scan(); {
				lines <- scanner.Text()
			}
		}()
		wait := func(text string) {
			t.Helper()
			for {
				line, ok := statetest.Receive(t, fmt.Sprintf("%q", text), lines)
				if !ok {
					t.Fatalf("the stream ended before %q", text)
				}
				if strings.Contains(line, text) {
					return
				}
			}
		}
		wait("watching")
		w.ciDelivery(`{"n":1}`)
		wait("event: changed")
		wait("still here")
		if err := w.store.RevokeKey(t.Context(), w.uids[state.RoleViewer]); err != nil {
			t.Fatal(err)
		}
		wait("event: ended")
		for more := true; more; {
			_, more = statetest.Receive(t, "the end of the stream", lines)
		}
		if a := b.get("/live?on=run"); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("after that: %d", a.StatusCode)
		}
		b = w.signedIn(state.RoleAdmin)
		for _, query := range []string{"", "?on=routing", "?on=", "?on=nothing.x", "?" + strings.Repeat("on=run&", 40)} {
			if a := b.get("/live" + query); a.StatusCode != http.StatusBadRequest {
				t.Errorf("/live%s: %d", query, a.StatusCode)
			}
		}
	})
}
