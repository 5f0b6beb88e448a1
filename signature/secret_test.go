package signature_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"millwright/signature"
)

func TestSecretForms(t *testing.T) {
	b64 := func(n int) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", n))) }
	for _, c := range []struct {
		scheme, secret string
		ok             bool
	}{
		{"standard_webhooks", "whsec_" + b64(24), true},
		{"standard_webhooks", "whsec_" + b64(64), true},
		{"standard_webhooks", b64(32), true},
		{"standard_webhooks", strings.TrimRight(b64(32), "="), true},
		{"standard_webhooks", "whsec_" + b64(23), false},
		{"standard_webhooks", "whsec_" + b64(65), false},
		{"standard_webhooks", "whsec_", false},
		{"standard_webhooks", "whsec_" + b64(32) + "\n", false},
		{"standard_webhooks", "whsec_" + b64(24) + "\n", false},
		{"standard_webhooks", "whsec_not base64 at all, not at all!", false},
		{"standard_webhooks", "WHSEC_" + b64(32), false},
		{"standard_webhooks", "whpk_" + b64(32), true},
		{"standard_webhooks", "whpk_" + b64(31), false},
		{"standard_webhooks", "whpk_", false},
		{"standard_webhooks", "whsk_" + b64(32), false}, // the private half
		{"openai", "whsec_" + b64(32), true},
		{"gitlab", "whsec_" + b64(32), true},
		{"gitlab", "whsec_short", false},
		{"gitlab", "anything else", true},
		{"stripe", "whsec_not base64!", true},
		{"zendesk", "looks+like/base64==", true},
		{"github", "\xff\x00", true},
		{"adyen", "00FFaa", true},
		{"adyen", "00FFa", false},
		{"adyen", "xyz0", false},
		{"airtable", b64(20), true},
		{"airtable", "$$$", false},
		{"airtable", "==", false},
		{"discord", strings.Repeat("ab", 32), true},
		{"discord", strings.Repeat("ab", 31), false},
		{"discord", "qqqqqqqqqq", false},
		{"sendgrid", "not a key", false},
		{"sendgrid", b64(91), false},
	} {
		v, err := lookup(t, c.scheme).Verifier([]byte(c.secret))
		if (err == nil) != c.ok || (v == nil) == c.ok {
			t.Errorf("%s with %q: %v", c.scheme, c.secret, err)
		}
		if err != nil && len(c.secret) > 6 && strings.Contains(err.Error(), strings.TrimSpace(c.secret)) {
			t.Errorf("%s: the error contains the secret: %v", c.scheme, err)
		}
	}
}

// A webhook's owner may reuse the buffer that the secret came in.
func TestVerifierKeepsItsOwnSecret(t *testing.T) {
	for _, name := range []string{"github", "gitlab"} {
		c := newSigned(t, lookup(t, name), lookup(t, name).Descriptors()[0])
		secret := []byte(c.verify)
		v, err := c.scheme.Verifier(secret)
		if err != nil {
			t.Fatal(err)
		}
		clear(secret)
		takes(t, v, c.message, now, name)
	}
}

func TestNewSecret(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		secret, ok := signature.NewSecret("standard_webhooks")
		if !ok || !strings.HasPrefix(secret, "whsec_") || seen[secret] {
			t.Fatalf("NewSecret = %q, %t", secret, ok)
		}
		seen[secret] = true
		if raw, err := base64.StdEncoding.DecodeString(secret[6:]); err != nil || len(raw) != 32 {
			t.Errorf("%d bytes, %v", len(raw), err)
		}
		newVerifier(t, lookup(t, "standard_webhooks"), secret)
	}
	for _, name := range append(signature.Names(), "") {
		if secret, ok := signature.NewSecret(name); ok != (name == "standard_webhooks" || name == "svix") || ok != (secret != "") {
			t.Errorf("NewSecret(%q) = %t", name, ok)
		}
	}
}
