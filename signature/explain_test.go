package signature_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"millwright/signature"
)

func TestExplain(t *testing.T) {
	github := newSigned(t, lookup(t, "github"), lookup(t, "github").Descriptors()[0])
	slack := newSigned(t, lookup(t, "slack"), lookup(t, "slack").Descriptors()[0])
	trimmed := github.withBody([]byte(strings.TrimSpace(string(github.message.Body))))
	shopify := newSigned(t, lookup(t, "shopify"), lookup(t, "shopify").Descriptors()[0])
	meta := lookup(t, "bitbucket")
	for _, c := range []struct {
		name   string
		scheme *signature.Scheme
		secret string
		m      signature.Message
		at     time.Time
		want   []string
	}{
		{"accepted", github.scheme, github.verify, github.message, now, []string{"scheme: github", "header X-Hub-Signature-256: 71 characters", `hmac-sha256 of "{body}"`, "result: accepted", `"delivery-1" from X-Github-Delivery, signed: false`}},
		{"stale", slack.scheme, slack.verify, slack.message, now.Add(20 * time.Minute), []string{`time: "1750000000" is 2025-06-15T15:06:40Z, 1200 s ago; accepted are 300 s`, "result: refused", "1200 s old"}},
		{"line end lost", github.scheme, github.verify, trimmed, now, []string{"result: refused", "hint: the signature fits the body with a line end (LF)"}},
		{"secret with a line end", github.scheme, github.verify + "\n", github.message, now, []string{"hint: the signature fits the secret without white space around it"}},
		{"another scheme", meta, github.verify, github.message, now, []string{"header X-Hub-Signature: missing", "hint: the request is signed as scheme github would"}},
		{"several values", shopify.scheme, shopify.verify, shopify.with("X-Shopify-Hmac-Sha256", "a", "b"), now, []string{"header X-Shopify-Hmac-Sha256: 2 times", "result: refused"}},
		{"list", lookup(t, "stripe"), "s", signature.Message{Header: http.Header{"Stripe-Signature": {"t=1750000000,v1=0,v1=1"}}}, now, []string{`list: 2 elements begin with "v1="`}},
		{"bad time", slack.scheme, slack.verify, slack.with("X-Slack-Request-Timestamp", "soon"), now, []string{`time: "soon" is not 1 to 20 ASCII digits`}},
		{"pending", github.scheme, "", github.message, now, []string{"secret: empty or pending", "result: refused"}},
		{"wrong form", lookup(t, "standard_webhooks"), "tooshort", github.message, now, []string{"not usable", "result: refused"}},
		{"token", lookup(t, "gitlab"), "hunter2!", signature.Message{Header: http.Header{"X-Gitlab-Token": {"nope"}}}, now, []string{"signed: nothing", "result: refused"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Join(c.scheme.Explain([]byte(c.secret), c.m, c.at), "\n")
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("does not say %q:\n%s", want, text)
				}
			}
			for _, hidden := range []string{c.secret, github.signature()[7:], slack.signature()[3:]} {
				if hidden != "" && len(hidden) > 1 && strings.Contains(text, strings.TrimSpace(hidden)) {
					t.Errorf("gives %q away:\n%s", hidden, text)
				}
			}
		})
	}
}

// Explain comes to the verdict of Verify, for every vector.
func TestExplainAgrees(t *testing.T) {
	for _, v := range vectors(t) {
		text := strings.Join(lookup(t, v.Scheme).Explain([]byte(v.Secret), v.message(), v.clock()), "\n")
		if strings.Contains(text, "result: accepted") != (v.Expect == "accept") {
			t.Errorf("%s:\n%s", v, text)
		}
	}
}
