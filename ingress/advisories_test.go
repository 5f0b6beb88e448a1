package ingress_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/ingress"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// Each test here is named after an advisory about another receiver, or about what ours is built on, and
// shows that its lesson is kept.

// New API: a Stripe check with an empty secret accepted forged events.
func TestCVE_2026_41432(t *testing.T) {
	w := onSQLite(t, ingress.Config{FailedAuthPerMinute: -1})
	w.secret("PENDING", "")
	at := strconv.FormatInt(time.Now().Unix(), 10)
	for scheme, headers := range map[string][]string{
		"stripe":            {"Stripe-Signature", "t=" + at + ",v1=" + hmacHex("", at+".{}")},
		"github":            {"X-Hub-Signature-256", "sha256=" + hmacHex("", "{}")},
		"slack":             {"X-Slack-Request-Timestamp", at, "X-Slack-Signature", "v0=" + hmacHex("", "v0:"+at+":{}")},
		"standard_webhooks": {"webhook-id", "a", "webhook-timestamp", at, "webhook-signature", "v1," + base64.StdEncoding.EncodeToString(hmacOf("", "a."+at+".{}"))},
	} {
		w.hook(signed(scheme, scheme, "PENDING"))
		want(t, w.post(w.url(scheme), `{}`, headers...), 401)
		want(t, w.post(w.url(scheme), `{}`), 401)
	}
	w.hook(schema.Webhook{Name: "token", Enabled: true, SecretName: "PENDING"})
	w.hook(schema.Webhook{Name: "url", Enabled: true, AuthMode: schema.AuthURLToken, SecretName: "PENDING"})
	want(t, w.post(w.url("token"), `{}`, "Authorization", "Bearer "), 401)
	want(t, w.post(w.url("url"), `{}`), 401)
	want(t, w.post(w.url("url")+"/%00", `{}`), 401)
}

// monetr: a body as large as the attacker liked was read before its signature was looked at.
func TestCVE_2026_40481(t *testing.T) { endlessBody(t) }

// Argo Events: the whole body was read, of any size.
func TestCVE_2022_31054(t *testing.T) { endlessBody(t) }

// Volcano and Skipper: unbounded bodies.
func TestCVE_2026_44247(t *testing.T) { endlessBody(t) }

// endlessBody sends bodies without an end, signed by nobody.
func endlessBody(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.secret("GH", "gh")
	w.hook(signed("gh", "github", "GH"))
	c, r := w.raw("POST /webhooks/w/" + w.uids["gh"] + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
	go func() {
		chunk := "8000\r\n" + strings.Repeat(" ", 0x8000) + "\r\n"
		for {
			if _, err := io.WriteString(c, chunk); err != nil {
				return
			}
		}
	}()
	want(t, w.answer(r), 413)
	if row := w.rows("gh")[0]; row.Outcome != state.DeliveryTooLarge || *row.Size != ingress.MaxBody+1 {
		t.Errorf("%+v", row)
	}
}

// New API: unbounded reads, and whole bodies in the log.
func TestCVE_2026_64868(t *testing.T) {
	w := onSQLite(t, ingress.Config{FailedAuthPerMinute: -1})
	w.hook(enabled("live"))
	w.secret("GH", "gh")
	w.hook(signed("gh", "github", "GH"))
	const canary = "c4nary-in-the-b0dy"
	w.deliver("live", `{"x":"`+canary+`"`)
	w.deliver("live", canary+strings.Repeat("x", ingress.MaxBody))
	w.post(w.url("live"), canary)
	w.post(w.url("gh"), canary, "X-Hub-Signature-256", canary, "Authorization", canary)
	w.deliver("live", `"`+canary+`"`)
	for _, name := range []string{"live", "gh"} {
		for _, row := range w.rows(name) {
			if strings.Contains(fmt.Sprintf("%+v", row), canary) {
				t.Errorf("in the delivery log: %+v", row)
			}
			if _, err := w.store.Payload(t.Context(), w.factory, row.UID); err == nil && row.Outcome != state.DeliveryAccepted {
				t.Errorf("a rejected body is kept: %+v", row)
			}
		}
	}
	if strings.Contains(w.log.String(), canary) {
		t.Error("in the program's log")
	}
}

// Argo Workflows: memory could be exhausted without a credential.
func TestCVE_2026_42294(t *testing.T) { manyBodies(t) }

// Argo CD: a body brought the server down without a credential.
func TestCVE_2024_40634(t *testing.T) { manyBodies(t) }

// manyBodies opens many large bodies at once: their memory stays below the bound.
func manyBodies(t *testing.T) {
	const bound = 2 << 20
	reg := prometheus.NewRegistry()
	w := onSQLite(t, ingress.Config{InFlightBytes: bound, BodyTimeout: time.Hour, FailedAuthPerMinute: -1, Registerer: reg})
	w.secret("GH", "gh")
	w.hook(signed("gh", "github", "GH"))
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	all := make(chan struct{})
	for range 100 {
		c, r := w.raw("POST /webhooks/w/" + w.uids["gh"] + " HTTP/1.1\r\nHost: x\r\nContent-Length: 262144\r\n\r\n")
		wg.Go(func() { _, _ = io.WriteString(c, strings.Repeat("x", 262143)) }) // of some, not all is taken
		wg.Go(func() {
			if b, err := r.Peek(1); err == nil && len(b) == 1 { // refused at once
				resp, err := http.ReadResponse(r, nil)
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					got[resp.StatusCode]++
				}
			}
		})
		go func() {
			<-all
			c.Close()
		}()
	}
	statetest.Until(t, "all bodies but those in the bound are refused", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return got[503] >= 100-bound/262144
	})
	if n := gauge(t, reg, "millwright_ingress_in_flight_bytes"); n > bound {
		t.Errorf("%v bytes in flight", n)
	}
	close(all)
	wg.Wait()
	if got[503] < 100-bound/262144 || got[503] == 100 {
		t.Errorf("answers %v", got)
	}
	statetest.Until(t, "the room of all bodies is free", func() bool {
		return gauge(t, reg, "millwright_ingress_in_flight_bytes") == 0
	})
}

func gauge(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// Argo CD: malformed payloads of Bitbucket, Gogs and Azure made the handler panic.
func TestCVE_2025_59531(t *testing.T) { oddPayloads(t, "bitbucket") }

// See CVE-2025-59531; Gogs.
func TestCVE_2025_59537(t *testing.T) { oddPayloads(t, "gogs") }

// See CVE-2025-59531; here the schemes whose payload we look into ourselves.
func TestCVE_2025_59538(t *testing.T) {
	oddPayloads(t, "slack", "zoom", "twitch", "discord", "standard_webhooks", "stripe", "hubspot")
}

// Octokit: an error that nobody handled ended the process.
func TestCVE_2023_50728(t *testing.T) { oddPayloads(t, "github") }

func oddPayloads(t *testing.T, schemes ...string) {
	w := onSQLite(t, ingress.Config{DeliveriesPerMinute: -1, FailedAuthPerMinute: -1})
	for _, scheme := range schemes {
		spec := signed(scheme, scheme, "S_"+scheme)
		secret := "secret-of-" + scheme
		switch scheme {
		case "standard_webhooks":
			secret = whsec
		case "discord":
			secret = strings.Repeat("ab", 32) // a public key; nobody can sign for it
		}
		w.secret("S_"+scheme, secret)
		spec.Handshake = scheme == "slack" || scheme == "zoom" || scheme == "twitch" || scheme == "discord"
		w.hook(spec)
		for i, body := range []string{
			`{}`, `[]`, `null`, `0`, `""`, `[[]]`, `{"type":[]}`, `{"type":"url_verification"}`, `{"type":"url_verification","challenge":{}}`, `{"type":1}`,
			`{"event":null}`, `{"event":[]}`, `{"event":"endpoint.url_validation"}`, `{"event":"endpoint.url_validation","payload":[]}`, `{"push":{"changes":[]}}`,
			`{"push":{"changes":[{"new":null}]}}`, `{"commits":[],"repository":null}`, `{"resource":{"refUpdates":[]}}`, `{"event":{"type":{}}}`, `{"":{"":[]}}`,
		} {
			if scheme == "discord" {
				want(t, w.post(w.url(scheme), body, "X-Signature-Ed25519", strings.Repeat("0", 128), "X-Signature-Timestamp", "1"), 401)
				continue
			}
			url := "https://hooks.example.com/webhooks/w/" + w.uids[scheme]
			r := w.post(w.url(scheme), body, headersOf(t, scheme, secret, url, body, "id"+strconv.Itoa(i), time.Now())...)
			if r.StatusCode != 202 && r.StatusCode != 200 {
				t.Errorf("%s %s: %d", scheme, body, r.StatusCode)
			}
		}
	}
	if strings.Contains(w.log.String(), "panic") {
		t.Error(w.log.String())
	}
}

// Minder: a webhook of nobody in particular made the server work without end.
func TestCVE_2024_34084(t *testing.T) {
	w := onSQLite(t, ingress.Config{FailedAuthPerMinute: -1})
	w.secret("GH", "gh")
	w.hook(signed("gh", "github", "GH"))
	w.hook(enabled("live"))
	w.automation("a", "live", `{"a":{"b":["c"]}}`)
	bomb := strings.Repeat(`{"a":`, 40_000)
	want(t, w.post(w.url("gh"), bomb), 401) // never parsed
	want(t, w.deliver("live", bomb), 400)
	if !strings.Contains(w.rows("live")[0].Reason, "10000 levels") {
		t.Errorf("%q", w.rows("live")[0].Reason)
	}
}

// Mattermost's plugin for MS Teams: some paths had no limit.
func TestCVE_2026_24661(t *testing.T) { everyPathIsBounded(t) }

// See CVE-2026-24661.
func TestCVE_2026_21388(t *testing.T) { everyPathIsBounded(t) }

// Vikunja, Skipper: see above; every mode and framing.
func TestCVE_2026_54247(t *testing.T) { everyPathIsBounded(t) }

func everyPathIsBounded(t *testing.T) {
	w := onSQLite(t, ingress.Config{DeliveriesPerMinute: -1, FailedAuthPerMinute: -1})
	w.secret("GH", "gh")
	w.hook(signed("gh", "github", "GH"))
	w.hook(enabled("live"))
	w.hook(schema.Webhook{Name: "url", Enabled: true, AuthMode: schema.AuthURLToken})
	big := strings.Repeat(" ", ingress.MaxBody) + "1"
	for _, url := range []string{w.url("gh"), w.url("live"), w.url("url") + "/" + tokenSecret} {
		for _, length := range []int64{int64(len(big)), -1} {
			req, err := http.NewRequest("POST", url, strings.NewReader(big))
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = length
			req.Header.Set("Authorization", "Bearer "+tokenSecret)
			req.Header.Set("X-Hub-Signature-256", "sha256="+hmacHex("gh", big))
			want(t, w.do(req), 413)
		}
	}
}

// Woodpecker: state was changed before the request was validated.
func TestCVE_2023_40034(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	w.automation("a", "live", "")
	want(t, w.post(w.url("live"), `{}`, "X-Service-Delivery-Id", "x"), 401)
	want(t, w.deliver("live", `{`, "X-Service-Delivery-Id", "x"), 400)
	for _, row := range w.rows("live") {
		if len(w.runs(row.UID)) != 0 {
			t.Errorf("a rejected delivery started a run: %+v", row)
		}
	}
	if r := w.deliver("live", `{}`, "X-Service-Delivery-Id", "x"); r.duplicate() || len(w.runs(r.deliveryID())) != 1 {
		t.Errorf("a rejected delivery left something behind: %q", r.body)
	}
}

// Vela: what a payload said about another repository was believed.
func TestCVE_2025_27616(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("mine"))
	w.hook(enabled("yours"))
	w.automation("yours", "yours", "")
	r := w.deliver("mine", `{"webhook_id":"`+w.uids["yours"]+`","webhook":"yours","factory_uid":"`+w.factory+`","automation":"yours"}`)
	want(t, r, 202)
	if len(w.runs(r.deliveryID())) != 0 || len(w.rows("yours")) != 0 {
		t.Error("the payload chose who is started")
	}
}

// OpenSSF Allstar: a secret in the source code.
func TestCVE_2025_61926(t *testing.T) {
	w := onSQLite(t, ingress.Config{FailedAuthPerMinute: -1})
	w.secret("PENDING", "")
	w.hook(schema.Webhook{Name: "live", Enabled: true, SecretName: "PENDING"})
	for _, guess := range []string{"", "FooBar", "secret", "changeme", "PENDING", "null", "nil", "undefined", w.uids["live"]} {
		want(t, w.post(w.url("live"), `{}`, "Authorization", "Bearer "+guess), 401)
	}
}

// Rancher Fleet: a regular expression was built from the payload's text.
func TestCVE_2026_44937(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	w.automation("a", "live", `{"ref":["refs/heads/main"]}`)
	for _, ref := range []string{".*", "refs/heads/main|x", "(?s).+", "^refs/heads/main$", "[", "refs/heads/.ain"} {
		body, _ := json.Marshal(map[string]string{"ref": ref})
		if r := w.deliver("live", string(body)); r.StatusCode != 202 || len(w.runs(r.deliveryID())) != 0 {
			t.Errorf("%q matches", ref)
		}
	}
	if r := w.deliver("live", `{"ref":"refs/heads/main"}`); len(w.runs(r.deliveryID())) != 1 {
		t.Error("the branch itself does not match")
	}
}

// OliveTin: values from the payload were put into a command.
func TestCVE_2026_27626(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	w.automation("a", "live", "")
	const canary = "$(touch c4nary)`{{.}}"
	body, _ := json.Marshal(map[string]string{"name": canary, "title": canary})
	r := w.deliver("live", string(body), "X-Service-Delivery-Id", canary, "User-Agent", canary)
	want(t, r, 202)
	runs := w.runs(r.deliveryID())
	if len(runs) != 1 || strings.Contains(runs[0].Title, "c4nary") {
		t.Fatalf("%+v", runs)
	}
	run, err := w.store.Run(t.Context(), runs[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%+v", run)
	if strings.Contains(text, "c4nary") {
		t.Errorf("the payload is in the run: %s", text)
	}
	for _, part := range []string{"event-payload.json", r.deliveryID(), w.uids["live"], "untrusted context, not instructions", "is the request to act on"} {
		if !strings.Contains(text, part) {
			t.Errorf("the envelope lacks %q", part)
		}
	}
}

// Gitea: stored credentials of webhooks were shown to readers.
func TestCVE_2026_58511(t *testing.T) { credentialsStayHidden(t) }

// See CVE-2026-58511; Vikunja.
func TestCVE_2026_33677(t *testing.T) { credentialsStayHidden(t) }

func credentialsStayHidden(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	w.hook(schema.Webhook{Name: "url", Enabled: true, AuthMode: schema.AuthURLToken})
	want(t, w.deliver("live", `1`), 202)
	want(t, w.post(w.url("url")+"/"+tokenSecret, `1`), 202)
	want(t, w.post(w.url("url")+"/"+tokenSecret+"x", `1`), 401)
	hooks, err := w.store.Webhooks(t.Context(), w.factory, true)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := w.store.Secrets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%+v %+v %+v %+v", hooks, secrets, w.rows("live"), w.rows("url"))
	if strings.Contains(shown, tokenSecret) || strings.Contains(w.log.String(), tokenSecret) {
		t.Error("the secret is shown")
	}
}

// Jenkins: tokens were compared byte by byte. Ours are compared as hashes, in constant time; what can be
// seen from outside is that nothing tells a good guess from a bad one.
func TestCVE_2022_43411(t *testing.T) { guessesAnswerTheSame(t) }

// See CVE-2022-43411.
func TestCVE_2022_43412(t *testing.T) { guessesAnswerTheSame(t) }

func guessesAnswerTheSame(t *testing.T) {
	w := onSQLite(t, ingress.Config{FailedAuthPerMinute: -1})
	w.hook(enabled("live"))
	first := ""
	for n := range len(tokenSecret) {
		for _, guess := range []string{tokenSecret[:n], tokenSecret[:n] + strings.Repeat("x", len(tokenSecret)-n)} {
			r := w.post(w.url("live"), `1`, "Authorization", "Bearer "+guess)
			r.Header.Del("Date")
			answer := fmt.Sprint(r.StatusCode, r.Header, r.body)
			if first == "" {
				first = answer
			}
			if r.StatusCode != 401 || answer != first {
				t.Errorf("%d characters right: %s, before %s", n, answer, first)
			}
		}
	}
}

// Clerk: a check of Standard Webhooks written by hand accepted what it should not.
func TestCVE_2025_53548(t *testing.T) {
	w := onSQLite(t, ingress.Config{FailedAuthPerMinute: -1, DeliveriesPerMinute: -1})
	w.secret("SW", whsec)
	w.hook(signed("sw", "standard_webhooks", "SW"))
	headers := headersOf(t, "standard_webhooks", whsec, "", `{}`, "id", time.Now())
	right := map[string]string{}
	for i := 0; i < len(headers); i += 2 {
		right[http.CanonicalHeaderKey(headers[i])] = headers[i+1]
	}
	sig := right["Webhook-Signature"]
	raw := strings.TrimPrefix(sig, "v1,")
	for name, value := range map[string]string{
		"none": "", "version only": "v1,", "no version": raw, "v2": "v2," + raw, "v1a": "v1a," + raw, "no comma": "v1" + raw, "space": "v1, " + raw,
		"no padding": strings.TrimRight(sig, "="), "URL alphabet": strings.NewReplacer("+", "-", "/", "_").Replace(sig) + "_", "twice as long": sig + raw,
		"hex": "v1," + fmt.Sprintf("%x", raw), "upper case": strings.ToUpper(sig), "line end": sig[:10] + "%0a" + sig[10:],
	} {
		if r := w.post(w.url("sw"), `{}`, "webhook-id", "id", "webhook-timestamp", right["Webhook-Timestamp"], "webhook-signature", value); r.StatusCode != 401 {
			t.Errorf("%s: %d", name, r.StatusCode)
		}
	}
	want(t, w.post(w.url("sw"), `{}`, headers...), 202)
}

// svix for Rust: comparing different lengths accepted part of a signature.
func TestCVE_2024_21491(t *testing.T) {
	w := onSQLite(t, ingress.Config{FailedAuthPerMinute: -1})
	w.secret("GH", "gh")
	w.hook(signed("gh", "github", "GH"))
	right := "sha256=" + hmacHex("gh", `{}`)
	for n := range len(right) {
		if r := w.post(w.url("gh"), `{}`, "X-Hub-Signature-256", right[:n]); r.StatusCode != 401 {
			t.Errorf("%d of %d characters: %d", n, len(right), r.StatusCode)
		}
	}
	want(t, w.post(w.url("gh"), `{}`, "X-Hub-Signature-256", right+"00"), 401)
	want(t, w.post(w.url("gh"), `{}`, "X-Hub-Signature-256", right), 202)
}

// Convoy #2656: a verifier that could not be made let everything through.
func TestConvoy2656(t *testing.T) {
	w := onSQLite(t, ingress.Config{FailedAuthPerMinute: -1})
	w.secret("BAD", "whsec_no base64 at all")
	w.hook(signed("bad-secret", "standard_webhooks", "BAD"))
	w.hook(signed("no-scheme", "nothing_known", "KEY"))
	w.hook(signed("no-descriptor", "custom", "KEY"))
	for _, name := range []string{"bad-secret", "no-scheme", "no-descriptor"} {
		want(t, w.post(w.url(name), `{}`), 401)
		want(t, w.post(w.url(name), `{}`, headersOf(t, "standard_webhooks", whsec, "", `{}`, "id", time.Now())...), 401)
		want(t, w.post(w.url(name), `{}`, "Authorization", "Bearer "+tokenSecret), 401)
	}
	if strings.Contains(w.log.String(), "no base64 at all") {
		t.Error("the secret is in the log")
	}
}

// Go: chunk extensions were read without a bound.
func TestCVE_2023_39326(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	c, r := w.raw(w.head("live", "Transfer-Encoding: chunked"))
	go func() {
		for {
			if _, err := io.WriteString(c, "1;"+strings.Repeat("a", 4000)+"\r\n1\r\n"); err != nil {
				return
			}
		}
	}()
	want(t, w.answer(r), 400)
}

// Go: the versions before had holes that a receiver's senders can reach (CVE-2023-39325, CVE-2023-45288,
// CVE-2025-22871, CVE-2025-58185, CVE-2026-33818, CVE-2026-42507, CVE-2026-56853).
func TestBuiltWithAFixedGo(t *testing.T) {
	m := regexp.MustCompile(`^go1\.(\d+)(?:\.(\d+))?`).FindStringSubmatch(runtime.Version())
	if m == nil {
		t.Skipf("built with %s", runtime.Version())
	}
	minor, _ := strconv.Atoi(m[1])
	patch, _ := strconv.Atoi(m[2])
	if minor < 26 || minor == 26 && patch < 6 {
		t.Errorf("built with %s; 1.26.6 or later is needed", runtime.Version())
	}
}

// A flood of foreign names leaves no state for webhooks that do not exist, and few metrics.
func TestUnknownWebhooksLeaveNothing(t *testing.T) {
	w := onSQLite(t, ingress.Config{})
	w.hook(enabled("live"))
	var before, after runtime.MemStats
	send := func(n int) {
		for range n {
			r, err := http.NewRequestWithContext(context.Background(), "POST", "http://x/webhooks/w/"+state.NewID("wh"), bytes.NewReader([]byte(`{}`)))
			if err != nil {
				t.Fatal(err)
			}
			r.RemoteAddr = "192.0.2.1:1"
			rec := httptest.NewRecorder()
			w.in.ServeHTTP(rec, r)
			if rec.Code != 404 {
				t.Fatal(rec.Code)
			}
		}
	}
	send(1000)
	runtime.GC()
	runtime.ReadMemStats(&before)
	send(50_000)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2<<20 {
		t.Errorf("%d bytes stay after 50,000 unknown webhooks", grown)
	}
}
