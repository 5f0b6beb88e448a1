package ingress_test

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"millwright/ingress"
	"millwright/ingress/conformance"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// The kit is our own regression suite too.
func TestConformance(t *testing.T) {
	cases, err := conformance.Load(os.DirFS("../testdata/conformance"))
	if err != nil {
		t.Fatal(err)
	}

	requests := 0
	for _, c := range cases {
		for _, s := range c.Steps {
			requests += max(s.Times, 1)
		}
	}
	if requests < 120 {
		t.Errorf("%d requests", requests)
	}

	statetest.Each(t, func(t *testing.T, s *state.Store) {
		w := newWorld(t, s, ingress.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
		w.secret("SW", whsec)
		w.secret("PENDING", "")
		header := enabled("header")
		header.DeliveryIDHeader = "X-Event-Id"
		handshake := signed("slack_handshake", "slack", "KEY")
		handshake.Handshake = true
		for _, spec := range []schema.Webhook{
			enabled("token"), enabled("budget"), header,
			{Name: "disabled"},
			{Name: "pending_token", Enabled: true, SecretName: "PENDING"},
			{Name: "url_token", Enabled: true, AuthMode: schema.AuthURLToken},
			signed("standard_webhooks", "standard_webhooks", "SW"), signed("github", "github", "KEY"), signed("stripe", "stripe", "KEY"),
			signed("slack", "slack", "KEY"), handshake, signed("pending_github", "github", "PENDING"),
		} {
			w.hook(spec)
		}
		targets := map[string]conformance.Target{}
		for name := range w.uids {
			target := conformance.Target{URL: w.url(name), Secret: tokenSecret, Mode: "token"}
			switch {
			case name == "url_token":
				target.Mode = name
			case name == "standard_webhooks":
				target.Mode, target.Scheme, target.Secret = "signature", name, whsec
			case name == "pending_token" || name == "pending_github":
				target.Secret = ""
			case name == "github" || strings.HasPrefix(name, "stripe") || strings.HasPrefix(name, "slack"):
				target.Mode, target.Scheme = "signature", strings.TrimSuffix(name, "_handshake")
			}
			targets[name] = target
		}
		report, err := conformance.Run(t.Context(), conformance.Config{Cases: cases, Targets: targets, Senders: true, Each: func(r conformance.Result) {
			if r.Err != nil || r.Skipped != "" {
				t.Errorf("%s:%d: %s (%s): %v%s", r.Case.File, r.Case.Line, r.Case.ID, r.Case.Why, r.Err, r.Skipped)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if report.Failed == 0 && strings.Contains(w.log.String(), tokenSecret) {
			t.Error("the secret is in the log")
		}
		for name := range w.uids {
			for _, row := range w.rows(name) {
				if strings.Contains(row.Reason+row.Identity, tokenSecret) || !printableASCII(row.Reason+row.Identity+row.Event) {
					t.Errorf("row %+v", row)
				}
			}
		}
	})
}

func printableASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}
