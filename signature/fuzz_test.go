package signature_test

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/signature"
)

// FuzzVerify sends anything at all to every scheme: nothing panics, nothing is
// accepted under a key that nobody knows, and under a vector's own key nothing
// but the vector's body is. The answer to a probe never panics either.
func FuzzVerify(f *testing.F) {
	seeds := accepted(f)
	for i, v := range seeds {
		var headers []string
		for name, value := range v.Headers {
			headers = append(headers, name+": "+value)
		}
		f.Add(strings.Join(headers, "\n"), []byte(v.Body), v.URL, uint16(i))
	}
	f.Add("webhook-id: a\nwebhook-id: b\nwebhook-signature: v1,\xff v1a, v1", []byte("{}"), "http://[::1]:80", uint16(0))

	var unknown []*signature.Verifier
	for _, s := range signature.Schemes() {
		raw := make([]byte, 32)
		if _, err := rand.Read(raw); err != nil {
			f.Fatal(err)
		}
		key := base64.StdEncoding.EncodeToString(raw)
		for _, secret := range []string{key, "whpk_" + key} {
			if v, err := s.Verifier([]byte(secret)); err == nil {
				unknown = append(unknown, v)
			}
		}
	}
	f.Fuzz(func(t *testing.T, headers string, body []byte, url string, seed uint16) {
		h := http.Header{}
		for line := range strings.SplitSeq(headers, "\n") {
			name, value, _ := strings.Cut(line, ":")
			h.Add(name, strings.TrimSpace(value))
		}
		m := signature.Message{Method: "POST", URL: url, Header: h, Body: body}
		v := seeds[int(seed)%len(seeds)]
		at := v.clock()
		for _, verifier := range unknown {
			_, err := verifier.Verify(m, at)
			var r *signature.Refusal
			if !errors.As(err, &r) {
				t.Fatalf("%s accepted without the key", verifier.Scheme().Name())
			}
			if len(r.Reason) > 400 || r.Code == "" {
				t.Fatalf("refusal: %+v", r)
			}
			verifier.Handshake(m)
			verifier.Scheme().PendingToken(m)
		}
		own := newVerifier(t, lookup(t, v.Scheme), v.Secret)
		_, err := own.Verify(m, at)
		own.Handshake(m)
		// A token covers no body; grafana and hook0 sign two forms, of which one
		// is the other with a time, which is no JSON, before the body.
		covers := !slices.ContainsFunc(own.Scheme().Descriptors(), func(d signature.Descriptor) bool { return d.Alg == signature.AlgToken })
		if err == nil && covers && string(body) != v.Body && !strings.HasSuffix(string(body), v.Body) {
			t.Fatalf("%s accepted a body that was never signed: %q", v, body)
		}
	})
}

// FuzzCustom makes whatever a file may say into a scheme: it is refused, or it
// verifies what it signs.
func FuzzCustom(f *testing.F) {
	f.Add("hmac-sha256", "utf8", "X-Sig", "whole", "hex", "sha256=", "X-Ts", "s", 300, "{ts}.{body}", "X-Id")
	f.Add("hmac-sha512", "base64", "X-Sig", "comma", "base64", "v1=", "t=", "ms", 0, "{id}:{ts}:{body}{url}{method}", "X-Id")
	f.Add("token", "", "Authorization", "", "", "Bearer ", "", "", 0, "", "")
	f.Fuzz(func(t *testing.T, alg, key, header, parse, encoding, prefix, ts, unit string, tolerance int, template, delivery string) {
		d := signature.Descriptor{Alg: alg, Key: key, Header: header, Parse: parse, Encoding: encoding, Prefix: prefix, Template: template, DeliveryHeader: delivery}
		if ts != "" || unit != "" {
			d.Timestamp = &signature.Timestamp{Header: ts, Unit: unit, Tolerance: tolerance}
		}
		s, err := signature.Custom(d)
		if err != nil {
			var problems signature.DescriptorErrors
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("not DescriptorErrors: %v", err)
			}
			return
		}
		secret := []byte("c2VjcmV0") // base64, and with "63" hexadecimal
		m := signature.Message{Method: "POST", URL: "https://example.com/", Body: []byte(`{"a":1}`), Header: http.Header{}}
		headers, err := s.Sign(secret, m, "id-1", now)
		if err != nil {
			return
		}
		for name, value := range headers {
			http.Header(m.Header).Set(name, value)
		}
		v, err := s.Verifier(secret)
		if err != nil {
			return
		}
		if _, err := v.Verify(m, now.Add(time.Second/2)); err != nil {
			t.Fatalf("%+v refuses what it signed: %v", d, err)
		}
		m.Body = []byte(`{"a":2}`)
		if _, err := v.Verify(m, now); err == nil && alg != signature.AlgToken {
			t.Fatalf("%+v does not cover the body", d)
		}
	})
}
