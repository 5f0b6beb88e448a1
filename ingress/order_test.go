package ingress_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/ingress"
	"millwright/schema"
	"millwright/signature"
	"millwright/state"
)

// headersOf signs body as scheme does, for the webhook's URL.
func headersOf(t testing.TB, scheme, secret, url, body, id string, at time.Time) []string {
	t.Helper()
	s, ok := signature.Lookup(scheme)
	if !ok {
		t.Fatalf("no scheme %q", scheme)
	}
	m := signature.Message{Method: "POST", URL: url, Body: []byte(body), Header: map[string][]string{}}
	made, err := s.Sign([]byte(secret), m, id, at)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for k, v := range made {
		all = append(all, k, v)
	}
	return all
}

const whsec = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

func TestURLToken(t *testing.T) {
	w := onSQLite(t, ingress.Config{FailedAuthPerMinute: 100})
	w.hook(schema.Webhook{Name: "u", Enabled: true, AuthMode: schema.AuthURLToken})
	w.hook(enabled("t"))
	base := w.url("u")
	for _, c := range []struct {
		url  string
		want int
	}{
		{base + "/" + tokenSecret, 202},
		{base + "/" + tokenSecret + "?a=b", 202},
		{base + "/" + strings.Replace(tokenSecret, "t", "%74", 1), 202}, // decoded once
		{base + "/" + strings.Replace(tokenSecret, "t", "%2574", 1), 401},
		{base + "/wrong", 401},
		{base, 401},
		{base + "?token=" + tokenSecret, 401},
		{base + "/" + tokenSecret + "%2F", 401},
		{base + "/" + tokenSecret + "%00", 401},
		{base + "/" + tokenSecret + ";x=1", 401},
		{base + "/" + tokenSecret + "/", 404},
		{base + "/" + tokenSecret + "/x", 404},
		{base + "/", 404},
		{base + "//" + tokenSecret, 404},
		{w.url("t") + "/" + tokenSecret, 404}, // a token where the mode has none
	} {
		r := w.post(c.url, `{"u":"`+c.url+`"}`, "Authorization", "Bearer "+tokenSecret)
		if r.StatusCode != c.want {
			t.Errorf("%s: %d, want %d", c.url, r.StatusCode, c.want)
		}
		if r.Header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s asks for a bearer token", c.url)
		}
	}
	for _, row := range w.rows("u") {
		if strings.Contains(fmt.Sprint(row), tokenSecret) {
			t.Errorf("the token is in the log: %+v", row)
		}
	}
	if strings.Contains(w.log.String(), tokenSecret) {
		t.Error("the token is in the program's log")
	}
}

func TestUnknownDisabledAndDeletedAnswerTheSame(t *testing.T) {
	each(t, ingress.Config{}, func(t *testing.T, w *world) {
		w.hook(enabled("live"))
		w.hook(schema.Webhook{Name: "off"})
		w.hook(enabled("gone"))
		want(t, w.deliver("gone", `1`), 202)
		w.apply(state.ChangeSet{DeleteWebhooks: []string{w.uids["gone"]}})
		unknown := "http://" + w.addr + "/webhooks/w/" + state.NewID(state.PrefixWebhook)
		first := w.post(unknown, `{}`, "Authorization", "Bearer "+tokenSecret)
		want(t, first, 404)
		first.Header.Del("Date")
		for name, url := range map[string]string{"disabled": w.url("off"), "deleted": w.url("gone"), "extra segment": w.url("live") + "/x", "not a UID": "http://" + w.addr + "/webhooks/w/x"} {
			r := w.post(url, `{}`, "Authorization", "Bearer "+tokenSecret)
			r.Header.Del("Date")
			if r.StatusCode != 404 || r.body != first.body || fmt.Sprint(r.Header) != fmt.Sprint(first.Header) {
				t.Errorf("%s answers %d %q %v, unknown answers %q %v", name, r.StatusCode, r.body, r.Header, first.body, first.Header)
			}
		}
		if n := len(w.rows("off")) + len(w.rows("live")); n != 0 {
			t.Errorf("404s are in the log: %d rows", n)
		}
		// Disabling, enabling and rotating take effect before the call returns.
		w.hook(schema.Webhook{Name: "live"})
		want(t, w.deliver("live", `2`), 404)
		w.hook(enabled("live"))
		want(t, w.deliver("live", `3`), 202)
		w.secret("KEY", "an0ther")
		want(t, w.deliver("live", `4`), 202) // a new value waits for the next apply
		w.hook(enabled("live"))
		want(t, w.deliver("live", `5`), 401)
		want(t, w.post(w.url("live"), `6`, "Authorization", "Bearer an0ther"), 202)
	})
}

func TestOtherMethodsAre405BeforeExistence(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	urls := []string{w.url("live"), "http://" + w.addr + "/webhooks/w/nothing"}
	for _, method := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "post", "PROPFIND"} {
		var answers []string
		for _, url := range urls {
			req, err := http.NewRequest(method, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Origin", "https://evil.example")
			req.Header.Set("Access-Control-Request-Method", "POST")
			r := w.do(req)
			if r.StatusCode != 405 || r.Header.Get("Allow") != "POST" || r.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s: %d %v", method, url, r.StatusCode, r.Header)
			}
			r.Header.Del("Date")
			answers = append(answers, fmt.Sprint(r.Header, r.body))
		}
		if answers[0] != answers[1] {
			t.Errorf("%s tells known from unknown: %q", method, answers)
		}
	}
	if n := len(w.rows("live")); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func TestPathsAreNeverCleaned(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	uid := w.hook(enabled("live"))
	for _, path := range []string{
		"//webhooks/w/" + uid, "/webhooks//w/" + uid, "/webhooks/w//" + uid, "/webhooks/./w/" + uid, "/x/../webhooks/w/" + uid,
		"/webhooks/w/../w/" + uid, "/Webhooks/w/" + uid, "/webhooks/W/" + uid, "/webhooks/w/" + strings.ToUpper(uid), "/webhooks/w", "/webhooks/w/", "/webhooks/", "/webhooks",
		"/%77ebhooks/w/" + uid, "/webhooks/%77/" + uid, "/webhooks%2Fw/" + uid, "/webhooks/w/%77" + uid[1:], "/webhooks/w/" + uid + "%2F", "/webhooks/w/" + uid + ";a", "/webhooks/w/" + uid + "%00",
		"/webhooks/w/" + strings.Repeat("a", 8000),
	} {
		c, r := w.raw("POST " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + tokenSecret + "\r\nContent-Length: 2\r\n\r\n{}")
		a := w.answer(r)
		c.Close()
		if a.StatusCode != 404 || a.Header.Get("Location") != "" {
			t.Errorf("%.60s: %d %v", path, a.StatusCode, a.Header)
		}
	}
	for _, target := range []string{"/webhooks/w/" + uid + "?x=1", "/webhooks/w/" + uid + "?", "http://elsewhere.example/webhooks/w/" + uid} {
		_, r := w.raw("POST " + target + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + tokenSecret + "\r\nContent-Length: 2\r\n\r\n{}")
		want(t, w.answer(r), 202)
	}

	// Nor by another handler, wherever the path would lead if it were cleaned: this one redirects.
	srv := httptest.NewServer(ingress.NewServer(ingress.ServerConfig{Ingress: w.in, Fallback: http.NewServeMux()}).Handler)
	defer srv.Close()
	for _, path := range []string{"//x/webhooks/w/" + uid + "/token", "/api/v1/../webhooks/w/" + uid + "/token", "/x//y/%77ebhooks/w/" + uid} {
		resp, err := srv.Client().Post(srv.URL+path, "", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 404 || resp.Request.URL.String() != srv.URL+path {
			t.Errorf("%s: %d from %s", path, resp.StatusCode, resp.Request.URL)
		}
	}
}

func TestBodies(t *testing.T) {
	w := onSQLite(t, ingress.Config{DeliveriesPerMinute: -1})
	w.hook(enabled("live"))
	for _, c := range []struct {
		name, body string
		want       int
	}{
		{"object", `{"a":1}`, 202},
		{"scalar", ` 17 `, 202},
		{"null", `null`, 202},
		{"string", `"x"`, 202},
		{"large number", `1e400`, 202},
		{"lone surrogate", `"\ud800"`, 202},
		{"deep", strings.Repeat("[", 10000) + strings.Repeat("]", 10000), 202},
		{"too deep", strings.Repeat("[", 10001) + strings.Repeat("]", 10001), 400},
		{"much too deep", strings.Repeat("[", 131072) + strings.Repeat("]", 131072), 400},
		{"empty", ``, 400},
		{"byte-order mark", "\xef\xbb\xbf{}", 400},
		{"UTF-16", "\xff\xfe{\x00}\x00", 400},
		{"invalid UTF-8", "\"\xff\"", 400},
		{"two values", `{}{}`, 400},
		{"rest", `{} x`, 400},
		{"NUL", "{}\x00", 400},
		{"form", `a=b`, 400},
		{"gzip", "\x1f\x8b\x08\x00", 400},
		{"at the limit", `"` + strings.Repeat("x", ingress.MaxBody-2) + `"`, 202},
		{"over the limit", `"` + strings.Repeat("x", ingress.MaxBody-1) + `"`, 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, kind := range []string{"length", "chunked"} {
				req, err := http.NewRequest("POST", w.url("live"), strings.NewReader(c.body))
				if err != nil {
					t.Fatal(err)
				}
				if kind == "chunked" {
					req.ContentLength = -1
				}
				req.Header.Set("Authorization", "Bearer "+tokenSecret)
				req.Header.Set("Content-Encoding", "gzip")
				req.Header.Set("Content-Type", "multipart/form-data")
				req.Header.Set("X-Service-Delivery-Id", kind+c.name)
				if r := w.do(req); r.StatusCode != c.want {
					t.Errorf("%s: %d, want %d", kind, r.StatusCode, c.want)
				}
			}
		})
	}
	rows := w.rows("live")
	for _, r := range rows {
		if r.Outcome == state.DeliveryTooLarge && (r.Size == nil || *r.Size != ingress.MaxBody+1) {
			t.Errorf("size of a body that is too large: %+v", r)
		}
		if r.Outcome == state.DeliveryAccepted && r.Identity == "chunkedlone surrogate" {
			if body, err := w.store.Payload(t.Context(), w.factory, r.UID); err != nil || string(body) != `"\ud800"` {
				t.Errorf("stored %q, %v", body, err)
			}
		}
	}
}

func TestIdentityTiers(t *testing.T) {
	w := onSQLite(t, ingress.Config{DeliveriesPerMinute: -1})
	spec := signed("gh", "github", "GH")
	w.secret("GH", "gh-secret")
	spec.DeliveryIDHeader = "x-event"
	w.hook(spec)
	w.hook(enabled("plain"))
	sign := func(body string, headers ...string) reply {
		return w.post(w.url("gh"), body, append(headersOf(t, "github", "gh-secret", w.url("gh"), body, "", time.Now()), headers...)...)
	}
	for _, c := range []struct {
		name    string
		headers []string
		source  state.IdentitySource
		preview string
	}{
		{"configured header", []string{"X-Event", "1", "X-GitHub-Delivery", "2", "X-Service-Delivery-Id", "3"}, state.IdentityHeader, "1"},
		{"configured header twice", []string{"X-Event", "1", "X-Event", "9"}, state.IdentityHeader, "1, 9"},
		{"configured header empty", []string{"X-Event", "", "X-GitHub-Delivery", "2"}, state.IdentityProvider, "2"},
		{"provider", []string{"X-GitHub-Delivery", "4"}, state.IdentityProvider, "4"},
		{"service header", []string{"X-Service-Delivery-Id", "5"}, state.IdentityServiceHeader, "5"},
		{"service header empty", []string{"X-Service-Delivery-Id", ""}, state.IdentityBodyHash, "sha256:"},
		{"tab and bytes", []string{"X-Service-Delivery-Id", "a\tb\xff<script>"}, state.IdentityServiceHeader, `a\tb\xff<script>`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := sign(`{"c":"`+c.name+`"}`, c.headers...)
			want(t, r, 202)
			row := w.rows("gh")[0]
			if row.UID != r.deliveryID() || row.IdentitySource != c.source || !strings.HasPrefix(row.Identity, c.preview) {
				t.Errorf("identity %s %q, want %s %q", row.IdentitySource, row.Identity, c.source, c.preview)
			}
		})
	}
	// The tier is part of the key; the webhook is too.
	first := sign(`{"x":1}`, "X-Event", "same")
	second := sign(`{"x":2}`, "X-GitHub-Delivery", "same")
	third := sign(`{"x":3}`, "X-Service-Delivery-Id", "same")
	other := w.deliver("plain", `{"x":3}`, "X-Service-Delivery-Id", "same")
	for i, r := range []reply{first, second, third, other} {
		if r.duplicate() {
			t.Errorf("%d counts as a duplicate across tiers or webhooks", i)
		}
	}
	if r := sign(`{"x":99}`, "X-Event", "same"); !r.duplicate() || r.deliveryID() != first.deliveryID() {
		t.Errorf("same identity: %q", r.body)
	}
	// Only accepted deliveries store an identity.
	want(t, w.deliver("plain", `{`, "X-Service-Delivery-Id", "burnt"), 400)
	want(t, w.post(w.url("plain"), `{}`, "X-Service-Delivery-Id", "burnt"), 401)
	if r := w.deliver("plain", `{}`, "X-Service-Delivery-Id", "burnt"); r.StatusCode != 202 || r.duplicate() {
		t.Errorf("a rejected delivery stored its identity: %d %q", r.StatusCode, r.body)
	}
}

func TestSignedBytesUnderANewIDAreFlagged(t *testing.T) {
	each(t, ingress.Config{}, func(t *testing.T, w *world) {
		w.secret("GH", "gh-secret")
		w.secret("SW", whsec)
		w.hook(signed("gh", "github", "GH"))
		w.hook(signed("sw", "standard_webhooks", "SW"))
		for i, id := range []string{"one", "two"} {
			want(t, w.post(w.url("gh"), `{}`, headersOf(t, "github", "gh-secret", "", `{}`, id, time.Now())...), 202)
			want(t, w.post(w.url("sw"), `{}`, headersOf(t, "standard_webhooks", whsec, "", `{}`, id, time.Now())...), 202)
			if flagged := strings.Contains(w.rows("gh")[0].Reason, "same signed bytes"); flagged != (i == 1) {
				t.Errorf("github %s: flagged %t", id, flagged)
			}
			if w.rows("sw")[0].Reason != "" {
				t.Errorf("an ID that is signed is flagged: %q", w.rows("sw")[0].Reason)
			}
		}
	})
}

func TestSignatures(t *testing.T) {
	w := onSQLite(t, ingress.Config{FailedAuthPerMinute: 1000, DeliveriesPerMinute: 1000})
	secrets := map[string]string{"standard_webhooks": whsec, "github": "s-github", "stripe": "whsec_stripe", "slack": "s-slack", "square": "s-square"}
	var names []string
	for scheme, value := range secrets {
		name := "SECRET_" + scheme
		w.secret(name, value)
		w.hook(signed(scheme, scheme, name))
		names = append(names, scheme)
	}
	w.secret("PENDING", "")
	w.hook(signed("pending", "github", "PENDING"))
	urlOf := func(hook string) string { return "https://hooks.example.com/webhooks/w/" + w.uids[hook] }
	n := 0
	body := func() string { n++; return `{"n":` + strconv.Itoa(n) + `}` }
	id := func() string { return "id-" + strconv.Itoa(n) }
	for _, hook := range names {
		for _, scheme := range names {
			b := body()
			r := w.post(w.url(hook), b, headersOf(t, scheme, secrets[scheme], urlOf(hook), b, id(), time.Now())...)
			if status := map[bool]int{true: 202, false: 401}[hook == scheme]; r.StatusCode != status {
				t.Errorf("%s on a %s webhook: %d, want %d", scheme, hook, r.StatusCode, status)
			}
		}
		b := body()
		headers := headersOf(t, hook, secrets[hook], urlOf(hook), b, id(), time.Now())
		want(t, w.post(w.url(hook), b+" ", headers...), 401)
		want(t, w.post(w.url(hook), b), 401)
		want(t, w.post(w.url(hook), b, "Authorization", "Bearer "+secrets[hook]), 401)
		other := strings.Replace(secrets[hook], "MDEy", "MDEz", 1)
		if hook != "standard_webhooks" {
			other += "x"
		}
		want(t, w.post(w.url(hook), b, headersOf(t, hook, other, urlOf(hook), b, id(), time.Now())...), 401)
	}
	for _, scheme := range []string{"standard_webhooks", "stripe", "slack"} {
		for _, c := range []struct {
			age  time.Duration
			want int
		}{{4 * time.Minute, 202}, {6 * time.Minute, 401}, {-4 * time.Minute, 202}, {-6 * time.Minute, 401}} {
			b := body()
			r := w.post(w.url(scheme), b, headersOf(t, scheme, secrets[scheme], urlOf(scheme), b, id(), time.Now().Add(-c.age))...)
			if r.StatusCode != c.want {
				t.Errorf("%s signed %s ago: %d, want %d", scheme, c.age, r.StatusCode, c.want)
			}
		}
	}
	// A URL that the request claims by its Host is not the one that is verified.
	b := body()
	want(t, w.post(w.url("square"), b, headersOf(t, "square", secrets["square"], w.url("square"), b, id(), time.Now())...), 401)
	want(t, w.post(w.url("pending"), `{}`, headersOf(t, "github", "x", "", `{}`, "", time.Now())...), 401)
	if row := w.rows("pending")[0]; !strings.Contains(row.Reason, "pending") {
		t.Errorf("reason %q", row.Reason)
	}
}

// TestOfferedSecrets: what asana and notion send before they sign is refused, and kept for the owner.
func TestOfferedSecrets(t *testing.T) {
	each(t, ingress.Config{FailedAuthPerMinute: 100}, func(t *testing.T, w *world) {
		w.secret("PENDING", "")
		for _, name := range []string{"asana", "notion", "github"} {
			w.hook(signed(name, name, "PENDING"))
		}
		offered := func(hook string) state.OfferedSecret {
			t.Helper()
			o, err := w.store.OfferedSecret(t.Context(), w.factory, w.uids[hook])
			if err != nil && !errors.Is(err, state.ErrNotFound) {
				t.Fatal(err)
			}
			return o
		}
		for _, body := range []string{`{}`, `[1]`, `{"verification_token": 7}`, `{"verification_token": ""}`, `{"verification_token": "` + strings.Repeat("x", 5000) + `"}`} {
			want(t, w.post(w.url("notion"), body), 401)
		}
		want(t, w.post(w.url("asana"), `{}`, "X-Hook-Secret", ""), 401)
		want(t, w.post(w.url("github"), `{"verification_token": "t"}`, "X-Hook-Secret", "t"), 401)
		for _, hook := range []string{"asana", "notion", "github"} {
			if o := offered(hook); o.Count != 0 {
				t.Errorf("%s: %+v", hook, o)
			}
		}
		want(t, w.post(w.url("notion"), `{"verification_token": "first-token"}`), 401)
		want(t, w.post(w.url("notion"), `{"verification_token": "second-token"}`), 401)
		if o := offered("notion"); o.Value != "second-token" || o.Count != 2 || o.Sender != "127.0.0.1" || time.Since(o.Received) > 10*time.Minute {
			t.Errorf("notion: %+v", o)
		}
		want(t, w.post(w.url("asana"), `{}`, "X-Hook-Secret", "asana-token"), 401)
		if o := offered("asana"); o.Value != "asana-token" || o.Count != 1 {
			t.Errorf("asana: %+v", o)
		}
		row := w.rows("asana")[0]
		if !strings.Contains(row.Reason, "brought one") || strings.Contains(row.Reason, "asana-token") || strings.Contains(w.log.String(), "-token") {
			t.Errorf("reason %q, log %s", row.Reason, w.log)
		}
		// With a secret of its own a webhook takes no offer.
		w.secret("PENDING", "the-secret")
		w.hook(signed("asana", "asana", "PENDING"))
		want(t, w.post(w.url("asana"), `{}`, "X-Hook-Secret", "late-token"), 401)
		if o := offered("asana"); o.Value != "asana-token" {
			t.Errorf("asana: %+v", o)
		}
		// Old offers are forgotten with old rows.
		if _, err := w.store.ExpireDeliveries(t.Context(), 1000, -time.Minute); err != nil {
			t.Fatal(err)
		}
		if o := offered("notion"); o.Count != 0 {
			t.Errorf("after a trim: %+v", o)
		}
	})
}

func TestBudgets(t *testing.T) {
	each(t, ingress.Config{DeliveriesPerMinute: 5, FailedAuthPerMinute: 3}, func(t *testing.T, w *world) {
		w.hook(enabled("live"))
		w.hook(enabled("other"))
		w.secret("GH", "gh")
		w.hook(signed("gh", "github", "GH"))
		for i := range 5 { // duplicates and bodies that are not JSON count too
			want(t, w.deliver("live", []string{`1`, `1`, `{`, `2`, `3`}[i]), []int{202, 202, 400, 202, 202}[i])
		}
		for range 3 {
			r := w.deliver("live", `4`, "X-Service-Delivery-Id", "later")
			want(t, r, 429)
			if after, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || after < 1 || after > 60 || r.Header.Get("WWW-Authenticate") != "" {
				t.Errorf("%v", r.Header)
			}
		}
		if n := len(w.rows("live")); n != 5 {
			t.Errorf("%d rows; 429s are not logged", n)
		}
		want(t, w.deliver("other", `1`), 202)
		for range 3 {
			want(t, w.post(w.url("other"), `1`, "Authorization", "Bearer wrong"), 401)
		}
		want(t, w.post(w.url("other"), `1`, "Authorization", "Bearer wrong"), 429)
		want(t, w.deliver("other", `2`), 429) // nothing else is looked at
		if n := len(w.rows("other")); n != 4 {
			t.Errorf("%d rows, want 4", n)
		}
		// On a signature webhook, unsigned requests leave the delivery budget alone, and so does a 413.
		big := strings.Repeat("x", ingress.MaxBody+1)
		want(t, w.post(w.url("gh"), big), 413)
		want(t, w.post(w.url("gh"), `1`), 401)
		for i := range 5 {
			b := strconv.Itoa(i)
			want(t, w.post(w.url("gh"), b, headersOf(t, "github", "gh", "", b, "", time.Now())...), 202)
		}
		b := `9`
		want(t, w.post(w.url("gh"), b, headersOf(t, "github", "gh", "", b, "", time.Now())...), 429)
		want(t, w.post(w.url("gh"), `1`), 401)
		want(t, w.post(w.url("gh"), `1`), 429)
	})
}

func TestBudgetIsExactUnderConcurrency(t *testing.T) {
	w := onSQLite(t, ingress.Config{DeliveriesPerMinute: 40, FailedAuthPerMinute: 15})
	w.hook(enabled("live"))
	var mu sync.Mutex
	got := map[int]int{}
	flood := func(n int, token string) {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				req, _ := http.NewRequest("POST", w.url("live"), strings.NewReader(strconv.Itoa(i)))
				req.Header.Set("Authorization", "Bearer "+token)
				resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
				mu.Lock()
				defer mu.Unlock()
				got[resp.StatusCode]++
			})
		}
		wg.Wait()
	}
	flood(100, tokenSecret)
	if got[202] != 40 || got[429] != 60 {
		t.Errorf("deliveries: %v", got)
	}
	clear(got)
	flood(100, "wrong")
	if got[401] != 15 || got[429] != 85 {
		t.Errorf("failures: %v", got)
	}
}

func TestHandshake(t *testing.T) {
	w := onSQLite(t, ingress.Config{DeliveriesPerMinute: 3})
	w.secret("SLACK", "slack-secret")
	spec := signed("on", "slack", "SLACK")
	spec.Handshake = true
	w.hook(spec)
	w.hook(signed("off", "slack", "SLACK"))
	w.automation("a", "on", "")
	probe := `{"type":"url_verification","challenge":"ch4llenge"}`
	send := func(hook, body string) reply {
		return w.post(w.url(hook), body, headersOf(t, "slack", "slack-secret", "", body, "", time.Now())...)
	}
	for range 2 {
		r := send("on", probe)
		if r.StatusCode != 200 || r.body != "ch4llenge" || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/plain") {
			t.Errorf("%d %q %v", r.StatusCode, r.body, r.Header)
		}
	}
	if rows := w.rows("on"); len(rows) != 2 || rows[0].Outcome != state.DeliveryHandshake || rows[0].Identity != "" {
		t.Errorf("%+v", rows)
	}
	want(t, w.post(w.url("on"), probe), 401)
	want(t, send("on", `{}`), 202)
	want(t, send("on", probe), 429) // it charges the delivery budget
	r := send("off", probe)
	want(t, r, 202)
	if row := w.rows("off")[0]; row.Outcome != state.DeliveryAccepted || !strings.Contains(row.Reason, "handshake: true") {
		t.Errorf("%+v", row)
	}
}

func TestReplay(t *testing.T) {
	each(t, ingress.Config{DeliveriesPerMinute: 2}, func(t *testing.T, w *world) {
		w.hook(enabled("live"))
		w.automation("first", "live", `{"go":[true]}`)
		first := w.deliver("live", `{"go":true}`)
		dup := w.deliver("live", `{"go":true}`)
		want(t, first, 202)
		w.automation("second", "live", "")
		for range 3 { // neither charges a budget nor counts as a duplicate
			again, err := w.in.Replay(t.Context(), w.factory, w.uids["live"], first.deliveryID())
			if err != nil || len(again.Runs) != 2 || len(w.runs(again.DeliveryUID)) != 2 {
				t.Fatalf("%+v, %v", again, err)
			}
			row := w.rows("live")[0]
			if row.UID != again.DeliveryUID || row.ReplayOf != first.deliveryID() || row.Outcome != state.DeliveryAccepted {
				t.Errorf("%+v", row)
			}
		}
		if !dup.duplicate() {
			t.Fatal("not a duplicate")
		}
		if _, err := w.in.Replay(t.Context(), w.factory, w.uids["live"], w.rows("live")[3].UID); !errors.Is(err, state.ErrConflict) {
			t.Errorf("replay of a duplicate: %v", err)
		}
		if _, err := w.in.Replay(t.Context(), w.factory, w.uids["live"], "dlv_none"); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("replay of nothing: %v", err)
		}
		w.apply(state.ChangeSet{DeleteWebhooks: []string{w.uids["live"]}})
		if _, err := w.in.Replay(t.Context(), w.factory, w.uids["live"], first.deliveryID()); !errors.Is(err, state.ErrConflict) {
			t.Errorf("replay on a deleted webhook: %v", err)
		}
	})
}

func TestForwardedForIsNotBelievedUnlessTrusted(t *testing.T) {
	w := onSQLite(t, ingress.Config{DeliveriesPerMinute: 2})
	w.hook(enabled("live"))
	if len(w.in.Notices()) != 0 {
		t.Error("a notice before any request")
	}
	for i := range 2 {
		want(t, w.deliver("live", strconv.Itoa(i), "X-Forwarded-For", "198.51.100."+strconv.Itoa(i), "X-Real-IP", "198.51.100.9"), 202)
	}
	want(t, w.deliver("live", `3`, "X-Forwarded-For", "198.51.100.77", "Forwarded", "for=198.51.100.78", "True-Client-IP", "198.51.100.79"), 429)
	if n := strings.Count(w.log.String(), "trustedProxies"); n != 1 {
		t.Errorf("%d warnings, want 1", n)
	}
	if n := w.in.Notices(); len(n) != 1 || !strings.Contains(n[0].Message, "trustedProxies") {
		t.Errorf("notices %+v", n)
	}
	if strings.Contains(w.log.String(), "198.51.100") {
		t.Error("the header's value is in the log")
	}
}

func TestAutomationWithABadFilterDoesNotFire(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	w.automationOf(schema.Automation{Name: "bad", Enabled: true, Prompt: "p", Triggers: []schema.Trigger{
		{Provider: "webhook", Event: "received", WebhookIDs: []string{w.uids["live"]}, Payload: json.RawMessage(`{"a":[]}`)},
	}})
	w.automation("good", "live", "")
	r := w.deliver("live", `{}`)
	want(t, r, 202)
	if runs := w.runs(r.deliveryID()); len(runs) != 1 || runs[0].Title != "good from live" {
		t.Errorf("%+v", runs)
	}
}

// TestAcceptedLogLineIsBounded starts more runs than a line of the log names.
func TestAcceptedLogLineIsBounded(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("many"))
	trigger := schema.Trigger{Provider: "webhook", Event: "received", WebhookIDs: []string{w.uids["many"]}}
	var all []state.ResourceChange
	for i := range 150 {
		name := fmt.Sprintf("a%03d", i)
		all = append(all, state.ResourceChange{Kind: "automation", Name: name, Spec: schema.Automation{
			Name: name, Path: "automations/" + name + "/automation.md", Enabled: true, Triggers: []schema.Trigger{trigger}, Prompt: "look",
		}})
	}
	w.apply(state.ChangeSet{Resources: all})
	if r := w.post(w.url("many"), `{}`, "Authorization", "Bearer "+tokenSecret); r.StatusCode != http.StatusAccepted {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, "delivery accepted") {
			if !strings.Contains(line, "runs=150") || len(line) > 5000 {
				t.Errorf("%d bytes: %.300s", len(line), line)
			}
			return
		}
	}
	t.Error("nothing was logged")
}
