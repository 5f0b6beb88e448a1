package ingress_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"millwright/ingress"
	"millwright/schema"
	"millwright/state/statetest"
)

// FuzzRequest reads foreign bytes as a request and hands it to the ingress. Whatever they are: no panic, no
// redirect, one of the contract's statuses, and 202 only with a right credential.
func FuzzRequest(f *testing.F) {
	w := makeWorld(f, statetest.Open(f, statetest.SQLite(f)), ingress.Config{DeliveriesPerMinute: -1, FailedAuthPerMinute: -1})
	f.Cleanup(func() { _ = w.in.Close(f.Context()) })
	w.secret("SW", whsec)
	w.secret("GH", "gh-secret")
	// Names are of one length, so that the corpus can name a webhook by its place.
	w.uids = map[string]string{"token": uidOf('0'), "url": uidOf('1'), "sw": uidOf('2'), "gh": uidOf('3'), "off": uidOf('4')}
	w.hook(enabled("token"))
	w.hook(schema.Webhook{Name: "url", Enabled: true, AuthMode: schema.AuthURLToken})
	w.hook(signed("sw", "standard_webhooks", "SW"))
	gh := signed("gh", "github", "GH")
	gh.DeliveryIDHeader = "X-Id"
	w.hook(gh)
	w.hook(schema.Webhook{Name: "off"})
	w.automation("all", "token", "")
	w.automation("some", "gh", `{"action":{"in":["opened"]}}`)

	start := "POST /webhooks/w/" + uidOf('0')
	ghBody := `{"action":"opened"}`
	for _, seed := range []string{
		start + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + tokenSecret + "\r\nContent-Length: 2\r\n\r\n{}",
		start + " HTTP/1.1\r\nHost: x\r\nAuthorization: bearer  " + tokenSecret + "\r\nX-Service-Delivery-Id: a\tb\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n",
		start + " HTTP/1.1\r\nHost: x\r\nContent-Length: 262145\r\n\r\n",
		start + "/x HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /webhooks/w/" + uidOf('4') + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /webhooks/w/" + uidOf('1') + "/" + tokenSecret + "?a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1",
		"POST http://h/webhooks/w/" + uidOf('1') + "/%74 HTTP/1.0\r\n\r\n",
		"POST //webhooks/../w/%00 HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 1.2.3.4, ::1\r\n\r\n",
		"POST /webhooks/w/" + uidOf('3') + " HTTP/1.1\r\nHost: x\r\n" + lines(headersOf(f, "github", "gh-secret", "", ghBody, "id", time.Now())) + "X-Id: \r\nContent-Length: 19\r\n\r\n" + ghBody,
		"POST /webhooks/w/" + uidOf('2') + " HTTP/1.1\r\nHost: x\r\n" + lines(headersOf(f, "standard_webhooks", whsec, "", "1", "id", time.Now())) + "Content-Length: 1\r\n\r\n1",
		"POST /webhooks/w/" + uidOf('2') + " HTTP/1.1\r\nHost: x\r\nwebhook-id: a\r\nwebhook-timestamp: 9\r\nwebhook-signature: v1,\r\nContent-Length: 1\r\n\r\n1",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(raw))))
		if err != nil {
			return
		}
		r.RemoteAddr = "192.0.2.1:1"
		if !w.in.Handles(r) {
			return
		}
		rec := httptest.NewRecorder()
		w.in.ServeHTTP(rec, r)
		answer := rec.Result()
		switch answer.StatusCode {
		case 202:
			signedBySeed := strings.Contains(r.URL.Path, uidOf('2')) || strings.Contains(r.URL.Path, uidOf('3'))
			if !signedBySeed && !strings.Contains(strings.Join(r.Header["Authorization"], ""), tokenSecret) && !strings.Contains(r.URL.Path, tokenSecret) {
				t.Errorf("202 without the credential: %q", raw)
			}
			if signedBySeed && len(r.Header["X-Hub-Signature-256"])+len(r.Header["Webhook-Signature"])+len(r.Header["Svix-Signature"]) == 0 {
				t.Errorf("202 without a signature: %q", raw)
			}
		case 400, 401, 404, 405, 413, 431:
		default:
			t.Errorf("status %d for %q", answer.StatusCode, raw)
		}
		if answer.Header.Get("Location") != "" {
			t.Errorf("a redirect for %q", raw)
		}
		if body, _ := io.ReadAll(answer.Body); answer.StatusCode != 202 && strings.Contains(string(body), tokenSecret) {
			t.Errorf("answer %q", body)
		}
	})
}

// uidOf is a webhook UID that is easy to mutate into another one's.
func uidOf(c byte) string { return "wh_" + strings.Repeat("0", 25) + string(c) }

func lines(headers []string) string {
	text := ""
	for i := 0; i < len(headers); i += 2 {
		text += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	return text
}
