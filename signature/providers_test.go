package signature_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"millwright/signature"
)

// Twilio's form posts are verified, so that the answer is "not JSON" and not
// "wrong secret"; but no JSON body is ever covered by a form's signature.
func TestTwilioForms(t *testing.T) {
	sign := func(text string) http.Header {
		mac := hmac.New(sha1.New, []byte("12345"))
		mac.Write([]byte(text))
		return http.Header{"X-Twilio-Signature": {base64.StdEncoding.EncodeToString(mac.Sum(nil))}}
	}
	const url = "https://mycompany.com/myapp.php?foo=1&bar=2"
	const fields = "CallSidCA1234567890ABCDECaller+14158675309Digits1234From+14158675309To+18005551212"
	const form = "CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212"
	v := newVerifier(t, lookup(t, "twilio"), "12345")
	for _, c := range []struct {
		name, body, signed string
		ok                 bool
	}{
		{"published example", form, url + fields, true},
		{"with the default port", form, strings.Replace(url, ".com/", ".com:443/", 1) + fields, true},
		{"with another port", form, strings.Replace(url, ".com/", ".com:8443/", 1) + fields, false},
		{"another value", strings.Replace(form, "1234&", "1235&", 1), url + fields, false},
		{"JSON without bodySHA256", `{"a":1}`, url, false},
		{"JSON that reads as a form", `{"a":1}`, url + `{"a":1}`, false},
		{"empty body", "", url, false},
		{"broken form", "A=%zz", url + "A", false},
	} {
		_, err := v.Verify(signature.Message{URL: url, Header: sign(c.signed), Body: []byte(c.body)}, now)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil && json.Valid([]byte(c.body)) {
			t.Errorf("%s: JSON accepted under a form's signature", c.name)
		}
	}
}

// Where a provider signs in two ways, the request's headers bind.
func TestTwoWays(t *testing.T) {
	sign := func(d signature.Descriptor) signed {
		s, err := signature.Custom(d)
		if err != nil {
			t.Fatal(err)
		}
		return newSigned(t, s, s.Descriptors()[0])
	}
	grafana := lookup(t, "grafana")
	timed := newSigned(t, grafana, grafana.Descriptors()[0])
	v := newVerifier(t, grafana, timed.verify)
	refused(t, timed, v, timed.with("X-Grafana-Alerting-Timestamp"), now, "time taken away", mismatch)
	plain := sign(grafana.Descriptors()[1])
	takes(t, v, plain.message, now, "body alone")
	refused(t, plain, v, plain.with("X-Grafana-Alerting-Timestamp", "1750000000"), now, "time added", mismatch)

	buildkite := lookup(t, "buildkite")
	hashed := newSigned(t, buildkite, buildkite.Descriptors()[0])
	v = newVerifier(t, buildkite, hashed.verify)
	takes(t, v, signature.Message{Header: http.Header{"X-Buildkite-Token": {hashed.verify}}}, now, "token alone")
	m := hashed.with("X-Buildkite-Token", hashed.verify)
	m.Body = []byte("{}")
	refused(t, hashed, v, m, now, "token beside a wrong signature", mismatch)
	refused(t, hashed, v, signature.Message{Header: http.Header{"X-Buildkite-Token": {"wrong"}}}, now, "wrong token", mismatch)

	cdp := lookup(t, "coinbase_cdp")
	v1 := newSigned(t, cdp, cdp.Descriptors()[0])
	v = newVerifier(t, cdp, v1.verify)
	refused(t, v1, v, v1.with("Content-Type", "text/plain"), now, "signed header changed", mismatch)
	refused(t, v1, v, v1.with("Content-Type"), now, "signed header missing", mismatch)
	refused(t, v1, v, v1.with("X-Hook0-Signature", strings.Replace(v1.signature(), "h=content-type", "h=", 1)), now, "no signed headers", mismatch)
	refused(t, v1, v, v1.with("X-Hook0-Signature", strings.Replace(v1.signature(), "h=content-type,", "", 1)), now, "no h element", malformed)
	refused(t, v1, v, v1.with("X-Hook0-Signature", strings.Replace(v1.signature(), "h=content-type", "h=content-type,h=", 1)), now, "two h elements", duplicated)
	for _, names := range []string{strings.Repeat("a ", 33), "content-type a:b", "content-type é", strings.Repeat("a", 200)} {
		refused(t, v1, v, v1.with("X-Hook0-Signature", strings.Replace(v1.signature(), "h=content-type", "h="+names, 1)), now, "h element "+names, malformed)
	}
	v0 := sign(cdp.Descriptors()[1])
	takes(t, v, v0.message, now, "v0 alone")
	refused(t, v0, v, v0.with("X-Hook0-Signature", v0.signature()+",h=,v1="+strings.Repeat("0", 64)), now, "v0 beside a wrong v1", mismatch)

	standard := lookup(t, "standard_webhooks")
	svix := newSigned(t, lookup(t, "svix"), lookup(t, "svix").Descriptors()[0])
	v = newVerifier(t, standard, svix.verify)
	takes(t, v, svix.message, now, "svix-* alone")
	refused(t, svix, v, svix.with("Webhook-Id", "delivery-1"), now, "svix-* beside webhook-*", missing)

	gitea := lookup(t, "gitea")
	c := newSigned(t, gitea, gitea.Descriptors()[0])
	v = newVerifier(t, gitea, c.verify)
	bare := c.signature()
	for _, name := range []string{"Gitea", "Forgejo", "Gogs"} {
		p := takes(t, v, signature.Message{Body: c.message.Body, Header: http.Header{"X-" + name + "-Signature": {bare}, "X-" + name + "-Delivery": {"d"}}}, now, name)
		if p.DeliveryHeader != "X-"+name+"-Delivery" || p.DeliveryID != "d" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	takes(t, v, c.with("X-Gogs-Signature", bare), now, "both headers")
	refused(t, c, v, c.with("X-Gitea-Signature", "sha256="+bare), now, "prefix", malformed)

	docusign := lookup(t, "docusign")
	c = newSigned(t, docusign, docusign.Descriptors()[0])
	v = newVerifier(t, docusign, c.verify)
	for name, ok := range map[string]bool{"X-Docusign-Signature-1": true, "X-Docusign-Signature-100": true, "X-Docusign-Signature-101": false, "X-Docusign-Signature": false, "X-Docusign-Signature-01": false} {
		_, err := v.Verify(signature.Message{Body: c.message.Body, Header: http.Header{name: {c.signature()}}}, now)
		if (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	many := http.Header{}
	for n := range 100 {
		many.Set("X-DocuSign-Signature-"+strconv.Itoa(n), base64.StdEncoding.EncodeToString(make([]byte, 32)))
	}
	many.Set("X-DocuSign-Signature-99", c.signature())
	takes(t, v, signature.Message{Body: c.message.Body, Header: many}, now, "the last of 99 keys")
}

// What a refusal tells the owner.
func TestReasons(t *testing.T) {
	github := lookup(t, "github")
	for _, c := range []struct {
		header http.Header
		code   string
		parts  []string
	}{
		{nil, missing, []string{"X-Hub-Signature-256 is missing"}},
		{http.Header{"X-Hub-Signature": {"sha1=00"}}, missing, []string{"X-Hub-Signature-256 is missing", "has X-Hub-Signature,"}},
		{http.Header{"X-Hub-Signature-256": {"hunter2"}}, malformed, []string{`nothing that begins with "sha256="`, "7 bytes"}},
		{http.Header{"X-Hub-Signature-256": {"sha256=00"}}, malformed, []string{"right length"}},
		{http.Header{"X-Hub-Signature-256": {"a", "b", "b"}}, duplicated, []string{"X-Hub-Signature-256 is there 3 times"}},
		{http.Header{"X-Hub-Signature-256": {"sha256=" + strings.Repeat("0", 64)}}, mismatch, []string{`hmac-sha256 of "{body}"`, "body of 2 bytes"}},
	} {
		_, err := newVerifier(t, github, "hunter2").Verify(signature.Message{Header: c.header, Body: []byte("{}")}, now)
		r, ok := err.(*signature.Refusal)
		if !ok || r.Code != c.code {
			t.Errorf("%v: %v", c.header, err)
			continue
		}
		for _, part := range c.parts {
			if !strings.Contains(r.Reason, part) {
				t.Errorf("%q does not say %q", r.Reason, part)
			}
		}
		if strings.Contains(r.Reason, "hunter2") {
			t.Errorf("%q gives the secret away", r.Reason)
		}
	}
	slack := newSigned(t, lookup(t, "slack"), lookup(t, "slack").Descriptors()[0])
	_, err := newVerifier(t, slack.scheme, slack.verify).Verify(slack.with("X-Slack-Request-Timestamp", "\x1b[31m+1\u202e"+strings.Repeat("9", 99)), now)
	if err == nil || !strings.Contains(err.Error(), `"\x1b[31m+1\u202e99`) || len(err.Error()) > 200 {
		t.Errorf("foreign text is not escaped and cut: %v", err)
	}
}

// Attio writes its signature into two headers, of which one may be lost on the way, and names the delivery.
func TestAttio(t *testing.T) {
	attio := lookup(t, "attio")
	c := newSigned(t, attio, attio.Descriptors()[0])
	v := newVerifier(t, attio, c.verify)
	value := c.message.Header["X-Attio-Signature"][0]
	for what, m := range map[string]signature.Message{
		"legacy header": c.message,
		"own header":    {Header: http.Header{"Attio-Signature": {value}, "Idempotency-Key": {"delivery-1"}}, Body: c.message.Body},
		"both":          c.with("Attio-Signature", value),
	} {
		if p := takes(t, v, m, now, what); p.DeliveryID != "delivery-1" || p.DeliveryIDSigned {
			t.Errorf("%s: delivery %q, signed %t", what, p.DeliveryID, p.DeliveryIDSigned)
		}
	}
	refused(t, c, v, signature.Message{Header: http.Header{"Attio-Signature": {value}}, Body: []byte("{}")}, now, "another body", mismatch)
}
