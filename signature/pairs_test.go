package signature_test

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"millwright/signature"
)

// alike are the schemes that no request can tell apart: same header, same
// bytes, same algorithm, and no header of their own that names a delivery or an
// event. Everything else must differ from its neighbours in the table.
var alike = [][]string{
	{"clickup", "modern_treasury"},
}

// Swapping two rows of the table must show: some vector of one of them fails
// under the other, or proves something else.
func TestSwappedRowsShow(t *testing.T) {
	byScheme := map[string][]vector{}
	for _, v := range accepted(t) {
		name := lookup(t, v.Scheme).Name()
		byScheme[name] = append(byScheme[name], v)
	}
	read := func(t *testing.T, s *signature.Scheme, v vector, event string) (signature.Proof, bool) {
		m := v.message()
		if event != "" {
			m.Header[http.CanonicalHeaderKey(event)] = []string{"created"}
		}
		verifier, err := s.Verifier([]byte(v.Secret))
		if err != nil {
			return signature.Proof{}, false
		}
		p, err := verifier.Verify(m, v.clock())
		return p, err == nil
	}
	differs := func(t *testing.T, a, b *signature.Scheme) bool {
		for _, v := range byScheme[a.Name()] {
			right, ok := read(t, a, v, a.EventHeader())
			if !ok {
				t.Fatalf("%s refuses its own vector", a.Name())
			}
			if swapped, ok := read(t, b, v, a.EventHeader()); !ok || swapped != right {
				return true
			}
		}
		return false
	}
	all := signature.Schemes()
	for i, a := range all {
		for _, b := range all[i+1:] {
			known := slices.ContainsFunc(alike, func(group []string) bool {
				return slices.Contains(group, a.Name()) && slices.Contains(group, b.Name())
			})
			if shows := differs(t, a, b) || differs(t, b, a); shows == known {
				t.Errorf("%s and %s swapped: shows %t", a.Name(), b.Name(), shows)
			}
		}
	}
}

// A request of one scheme is refused by every other one that has the same
// secret, unless both are signed alike.
func TestCrossPairs(t *testing.T) {
	sameWire := func(a, b signature.Descriptor) bool {
		headers := func(d signature.Descriptor) []string { return append([]string{d.Header}, d.AlsoHeaders...) }
		shared := slices.ContainsFunc(headers(a), func(name string) bool { return slices.Contains(headers(b), name) })
		return shared && a.Alg == b.Alg && a.Prefix == b.Prefix && a.Encoding == b.Encoding && a.Template == b.Template
	}
	pairs := 0
	for _, c := range variants(t) {
		for _, other := range signature.Schemes() {
			if other == c.scheme || slices.ContainsFunc(other.Descriptors(), func(d signature.Descriptor) bool { return sameWire(c.descriptor, d) }) {
				continue
			}
			v, err := other.Verifier([]byte(c.verify))
			if err != nil {
				continue
			}
			pairs++
			refused(t, c, v, c.message, now, c.scheme.Name()+" on a webhook of "+other.Name())
		}
	}
	if pairs < 3000 {
		t.Errorf("only %d pairs were tried", pairs)
	}
}

// github must not be talked down to SHA-1, nor stripe to v0.
func TestNoDowngrade(t *testing.T) {
	intercom := newSigned(t, lookup(t, "intercom"), lookup(t, "intercom").Descriptors()[0])
	v := newVerifier(t, lookup(t, "github"), intercom.verify)
	refused(t, intercom, v, intercom.message, now, "SHA-1 on github", missing)

	stripe := newSigned(t, lookup(t, "stripe"), lookup(t, "stripe").Descriptors()[0])
	v = newVerifier(t, lookup(t, "stripe"), stripe.verify)
	refused(t, stripe, v, stripe.with("Stripe-Signature", strings.Replace(stripe.signature(), "v1=", "v0=", 1)), now, "v0 on stripe", malformed)
}

// The library of Standard Webhooks itself makes what we accept and accepts what
// we make.
func TestStandardWebhooksOracle(t *testing.T) {
	s := lookup(t, "standard_webhooks")
	for n := range 200 {
		raw := make([]byte, 24+n%41)
		body := make([]byte, n*7)
		for _, b := range [][]byte{raw, body} {
			if _, err := rand.Read(b); err != nil {
				t.Fatal(err)
			}
		}
		secret := "whsec_" + base64.StdEncoding.EncodeToString(raw)
		oracle, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		id := []string{"msg_1", "a.b.c", "1750000000", "ünïcode", "."}[n%5]
		value, err := oracle.Sign(id, now, body)
		if err != nil {
			t.Fatal(err)
		}
		m := signature.Message{Body: body, Header: http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {"1750000000"}, "Webhook-Signature": {"v1,AAAA " + value}}}
		p := takes(t, newVerifier(t, s, secret), m, now, "signed by the library")
		if p.DeliveryID != id || !p.DeliveryIDSigned || p.DeliveryHeader != "Webhook-Id" {
			t.Errorf("proof: %+v", p)
		}

		at := time.Now()
		headers, err := s.Sign([]byte(secret), signature.Message{Body: body}, id, at)
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		for name, value := range headers {
			h.Set(name, value)
		}
		if err := oracle.Verify(body, h); err != nil {
			t.Errorf("the library refuses what Sign made: %v", err)
		}
		// An ID and a time moved across the dot are other bytes to both.
		h.Set("webhook-id", id+".1")
		if ours, _ := newVerifier(t, s, secret).Verify(signature.Message{Body: body, Header: h}, at); ours.DeliveryID != "" || oracle.Verify(body, h) == nil {
			t.Error("accepted under another ID")
		}
	}
}
