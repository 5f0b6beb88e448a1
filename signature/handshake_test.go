package signature_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"millwright/signature"
)

func TestHandshake(t *testing.T) {
	mac := hmac.New(sha256.New, []byte("s3cret"))
	mac.Write([]byte("q9ibPhGeRZ6ayx5WTrXjRw"))
	encrypted := hex.EncodeToString(mac.Sum(nil))
	probe := http.Header{"Twitch-Eventsub-Message-Type": {"webhook_callback_verification"}}
	for _, c := range []struct {
		scheme, body string
		header       http.Header
		status       int // 0: no probe
		contentType  string
		answer       string
	}{
		{"slack", `{"token":"x","challenge":"3eZbrw1aB","type":"url_verification"}`, nil, 200, "text/plain; charset=utf-8", "3eZbrw1aB"},
		{"slack", `{"challenge":"<script>alert(1)</script>","type":"url_verification"}`, nil, 200, "text/plain; charset=utf-8", "<script>alert(1)</script>"},
		{"slack", `{"type":"event_callback","challenge":"x"}`, nil, 0, "", ""},
		{"slack", `{"TYPE":"url_verification","challenge":"x"}`, nil, 0, "", ""},
		{"slack", `{"type":"url_verification"}`, nil, 0, "", ""},
		{"slack", `{"type":"url_verification","challenge":7}`, nil, 0, "", ""},
		{"slack", `{"type":"url_verification","challenge":"` + strings.Repeat("x", 5000) + `"}`, nil, 0, "", ""},
		{"slack", `{"type":"x","\u0074ype":"url_verification","challenge":"a","challenge":"\u0062"}`, nil, 200, "text/plain; charset=utf-8", "b"},
		{"slack", `{"type":"url_verification","challenge":"x","challenge":null}`, nil, 0, "", ""},
		{"slack", `{"type":"url_verification","challenge":"` + strings.Repeat(`\n`, 4096) + `"}`, nil, 200, "text/plain; charset=utf-8", strings.Repeat("\n", 4096)},
		{"slack", `{"event":{"type":"url_verification","challenge":"x"}}`, nil, 0, "", ""},
		{"slack", `{"type":"url_verification","challenge":"x"`, nil, 0, "", ""},
		{"slack", `[{"type":"url_verification","challenge":"x"}]`, nil, 0, "", ""},
		{"slack", `[]`, nil, 0, "", ""},
		{"slack", ``, nil, 0, "", ""},
		{
			"zoom", `{"payload":{"plainToken":"q9ibPhGeRZ6ayx5WTrXjRw"},"event_ts":1654503849680,"event":"endpoint.url_validation"}`, nil, 200, "application/json",
			`{"encryptedToken":"` + encrypted + `","plainToken":"q9ibPhGeRZ6ayx5WTrXjRw"}`,
		},
		{"zoom", `{"payload":{"plainToken":"v0:1750000000:{}"},"event":"endpoint.url_validation"}`, nil, 0, "", ""}, // would sign a request
		{"zoom", `{"payload":{},"event":"endpoint.url_validation"}`, nil, 0, "", ""},
		{"zoom", `{"payload":{"plainToken":"x"},"event":"meeting.started"}`, nil, 0, "", ""},
		{"discord", `{"type":1}`, nil, 200, "application/json", `{"type":1}`},
		{"discord", `{"version":1,"type":0}`, nil, 204, "", ""},
		{"discord", `{"type":2}`, nil, 0, "", ""},
		{"discord", `{"version":1,"application_id":"1","type":1,"event":{"type":"APPLICATION_AUTHORIZED"}}`, nil, 0, "", ""},
		{"discord", `{"version":1,"type":0,"event":null}`, nil, 0, "", ""},
		{"discord", `{"type":"1"}`, nil, 0, "", ""},
		{"twitch", `{"challenge":"pogchamp-kappa-360noscope-vohiyo"}`, probe, 200, "text/plain; charset=utf-8", "pogchamp-kappa-360noscope-vohiyo"},
		{"twitch", `{"challenge":"x"}`, http.Header{"Twitch-Eventsub-Message-Type": {"notification"}}, 0, "", ""},
		{"twitch", `{}`, probe, 0, "", ""},
		{"github", `{"type":"url_verification","challenge":"x"}`, probe, 0, "", ""},
	} {
		secret := "s3cret"
		if c.scheme == "discord" {
			secret = strings.Repeat("ab", 32)
		}
		a, ok := newVerifier(t, lookup(t, c.scheme), secret).Handshake(signature.Message{Method: "POST", Header: c.header, Body: []byte(c.body)})
		if ok != (c.status != 0) || a.Status != c.status || a.ContentType != c.contentType || string(a.Body) != c.answer {
			t.Errorf("%s %.80s: %d %s %s (%t)", c.scheme, c.body, a.Status, a.ContentType, a.Body, ok)
		}
	}
	for _, s := range signature.Schemes() {
		want := map[string]bool{"slack": true, "zoom": true, "discord": true, "twitch": true}[s.Name()]
		if s.HasHandshake() != want {
			t.Errorf("%s: HasHandshake() = %t", s.Name(), !want)
		}
	}
	if _, ok := (*signature.Verifier)(nil).Handshake(signature.Message{}); ok {
		t.Error("no verifier has an answer")
	}
	if _, ok := newVerifier(t, lookup(t, "zoom"), "").Handshake(signature.Message{Body: []byte(`{"payload":{"plainToken":"x"},"event":"endpoint.url_validation"}`)}); ok {
		t.Error("a pending secret has an answer")
	}
}

func TestPendingToken(t *testing.T) {
	for _, c := range []struct {
		scheme, body, want string
		header             http.Header
	}{
		{"asana", "", "b537", http.Header{"X-Hook-Secret": {"b537"}}},
		{"asana", "", "", http.Header{"X-Hook-Secret": {"a", "b"}}},
		{"asana", "", "", nil},
		{"notion", `{"verification_token":"secret_tMrlL1qK"}`, "secret_tMrlL1qK", nil},
		{"notion", `{"verification_token":["x"]}`, "", nil},
		{"notion", `not JSON`, "", nil},
		{"github", `{"verification_token":"x"}`, "", http.Header{"X-Hook-Secret": {"b537"}}},
	} {
		token, ok := lookup(t, c.scheme).PendingToken(signature.Message{Header: c.header, Body: []byte(c.body)})
		if token != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %t, want %q", c.scheme, token, ok, c.want)
		}
	}
}

// TestHandshakeDoesNotGrow looks for a probe in bodies of many members.
func TestHandshakeDoesNotGrow(t *testing.T) {
	var many strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&many, `"%x":0,`, i)
	}
	body := []byte(`{` + many.String() + `"payload":{` + many.String() + `"x":{}}}`)
	header := http.Header{"Twitch-Eventsub-Message-Type": {"webhook_callback_verification"}}
	for _, scheme := range []string{"slack", "twitch", "zoom", "discord", "notion"} {
		v := newVerifier(t, lookup(t, scheme), strings.Repeat("ab", 32))
		m := signature.Message{Method: "POST", Header: header, Body: body}

		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, probe := v.Handshake(m)
		_, pending := lookup(t, scheme).PendingToken(m)
		runtime.ReadMemStats(&after)

		if probe || pending {
			t.Errorf("%s: taken for a probe", scheme)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(4*len(body)) {
			t.Errorf("%s: %d bytes allocated for %d", scheme, took, len(body))
		}
	}
}
