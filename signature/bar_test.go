package signature_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/signature"
)

var now = time.Unix(1_750_000_000, 0)

// signed is a request that a scheme's own Sign made, with what verifies it.
type signed struct {
	scheme     *signature.Scheme
	descriptor signature.Descriptor // the way in which it is signed
	verify     string               // the webhook's secret
	sign       string               // what the provider signs with
	message    signature.Message
	sigHeader  string // canonical name
	tsHeader   string // canonical name; empty if there is none of its own
}

// variants are the schemes of the table, once for each kind of secret.
func variants(t testing.TB) (all []signed) {
	t.Helper()
	for _, s := range signature.Schemes() {
		for i, d := range s.Descriptors() {
			if i == 0 || len(d.SecretPrefixes) > 0 && d.Header == s.Descriptors()[0].Header || s.Name() == "gitlab" {
				all = append(all, newSigned(t, s, d))
			}
		}
	}
	return all
}

func newSigned(t testing.TB, s *signature.Scheme, d signature.Descriptor) signed {
	t.Helper()
	c := signed{scheme: s, descriptor: d}
	c.verify, c.sign = secrets(t, d)
	body := []byte(`{"event":"created","text":"Grüße","n":1e400}` + "\n")
	url := "https://hooks.example.com/webhooks/w/wh_01h2xcejqtf2nbrexx3vqjhp41"
	if d.BodyHashInURL {
		sum := sha256.Sum256(body)
		url += "?bodySHA256=" + hex.EncodeToString(sum[:])
	}
	c.message = signature.Message{Method: "POST", URL: url, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
	c.resign(t, c.sign, "delivery-1", now)
	c.sigHeader = http.CanonicalHeaderKey(d.Header)
	if d.Numbered > 0 {
		c.sigHeader += "-1"
	}
	if d.Timestamp != nil && !strings.HasSuffix(d.Timestamp.Header, "=") {
		c.tsHeader = http.CanonicalHeaderKey(d.Timestamp.Header)
	}
	return c
}

// secrets makes a pair of the form that d asks for.
func secrets(t testing.TB, d signature.Descriptor) (verify, sign string) {
	t.Helper()
	raw := sha256.Sum256([]byte(d.Header + d.Alg))
	b64 := base64.StdEncoding.EncodeToString
	private := ed25519.NewKeyFromSeed(raw[:])
	public := private.Public().(ed25519.PublicKey)
	switch {
	case d.Key == signature.KeyWhsec:
		verify = "whsec_" + b64(raw[:])
	case d.Key == signature.KeyWhpk:
		return "whpk_" + b64(public), "whsk_" + b64(private)
	case d.Alg == signature.AlgEd25519:
		return hex.EncodeToString(public), hex.EncodeToString(raw[:])
	case d.Alg == signature.AlgECDSAP256:
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		spki, _ := x509.MarshalPKIXPublicKey(key.Public())
		pkcs8, _ := x509.MarshalPKCS8PrivateKey(key)
		return b64(spki), b64(pkcs8)
	case d.Key == signature.KeyHex:
		verify = hex.EncodeToString(raw[:])
	case d.Key == signature.KeyBase64:
		verify = b64(raw[:])
	default:
		verify = "it's a secret to everybody – naïve"
	}
	return verify, verify
}

// resign signs the message anew, with headers of its own.
func (c *signed) resign(t testing.TB, secret, id string, at time.Time) {
	t.Helper()
	headers, err := c.scheme.Sign([]byte(secret), c.message, id, at)
	if err != nil {
		t.Fatalf("%s: %v", c.scheme.Name(), err)
	}
	h := http.Header{"Content-Type": {"application/json"}}
	for name, value := range headers {
		h.Set(name, value)
	}
	c.message.Header = h
}

// with is the message with one header set to values; none removes it.
func (c *signed) with(name string, values ...string) signature.Message {
	m := c.message
	h := http.Header(m.Header).Clone()
	h[name] = values
	if len(values) == 0 {
		delete(h, name)
	}
	m.Header = h
	return m
}

func (c *signed) withBody(body []byte) signature.Message {
	m := c.message
	m.Body = body
	return m
}

func (c *signed) signature() string { return c.message.Header[c.sigHeader][0] }

// parts takes the signature header apart: what stands before the encoded
// signature, and the signature.
func (c *signed) parts() (before, sig string) {
	value := c.signature()
	i := 0
	if c.descriptor.Prefix != "" {
		i = strings.Index(value, c.descriptor.Prefix) + len(c.descriptor.Prefix)
	}
	return value[:i], value[i:]
}

func (c *signed) token() bool { return c.descriptor.Alg == signature.AlgToken }

// refused asserts that m is refused with one of the codes, and that the reason
// gives nothing away.
func refused(t *testing.T, c signed, v *signature.Verifier, m signature.Message, at time.Time, what string, codes ...string) {
	t.Helper()
	_, err := v.Verify(m, at)
	var r *signature.Refusal
	if !errors.As(err, &r) {
		t.Errorf("%s: accepted (%v)", what, err)
		return
	}
	if len(codes) > 0 && !slices.Contains(codes, r.Code) {
		t.Errorf("%s: refused as %s (%s), want %v", what, r.Code, r.Reason, codes)
	}
	_, sig := c.parts()
	for _, secret := range []string{c.verify, c.sign, sig} {
		if strings.Contains(r.Reason, secret) {
			t.Errorf("%s: the reason gives a secret away: %s", what, r.Reason)
		}
	}
	if len(r.Reason) > 400 || strings.ContainsFunc(r.Reason, func(r rune) bool { return r < ' ' }) {
		t.Errorf("%s: the reason is long or not printable: %q", what, r.Reason)
	}
}

func takes(t *testing.T, v *signature.Verifier, m signature.Message, at time.Time, what string) signature.Proof {
	t.Helper()
	p, err := v.Verify(m, at)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	return p
}

const (
	missing    = signature.CodeMissingHeader
	duplicated = signature.CodeDuplicateHeader
	malformed  = signature.CodeMalformed
	mismatch   = signature.CodeMismatch
)

func TestBar(t *testing.T) {
	for _, c := range variants(t) {
		v := newVerifier(t, c.scheme, c.verify)
		t.Run(c.scheme.Name()+"/"+c.descriptor.Alg, func(t *testing.T) {
			proof := takes(t, v, c.message, now, "as signed")
			if c.descriptor.DeliveryHeader != "" && proof.DeliveryID != "delivery-1" {
				t.Errorf("delivery ID %q", proof.DeliveryID)
			}
			if (c.descriptor.Timestamp != nil) != proof.SignedAt.Equal(now) {
				t.Errorf("signed at %v", proof.SignedAt)
			}
			t.Run("signature", func(t *testing.T) { barSignature(t, c, v) })
			t.Run("message", func(t *testing.T) { barMessage(t, c, v) })
			t.Run("headers", func(t *testing.T) { barHeaders(t, c, v) })
			t.Run("time", func(t *testing.T) { barTime(t, c, v) })
			t.Run("list", func(t *testing.T) { barList(t, c, v) })
			t.Run("secret", func(t *testing.T) { barSecret(t, c) })
		})
	}
}

func barSignature(t *testing.T, c signed, v *signature.Verifier) {
	before, sig := c.parts()
	for i := range sig {
		other := byte('0')
		if sig[i] == '0' || sig[i] == '=' {
			other = '1'
		}
		flipped := []byte(sig)
		flipped[i] = other
		refused(t, c, v, c.with(c.sigHeader, before+string(flipped)), now, "flipped byte", mismatch, malformed)
	}
	for _, wrong := range []string{"", sig[:len(sig)/2], sig[:len(sig)-1], sig[1:], sig + "00", sig + sig, sig + "=", sig + "\n", sig + "\r\n", " ", "garbage", "\x00\xff", strings.Repeat("0", len(sig))} {
		refused(t, c, v, c.with(c.sigHeader, before+wrong), now, "length or form", mismatch, malformed, missing)
	}
	if raw, err := base64.StdEncoding.DecodeString(sig); err == nil && c.descriptor.Encoding == signature.EncodingBase64 {
		refused(t, c, v, c.with(c.sigHeader, before+hex.EncodeToString(raw)), now, "hex for base64", malformed, mismatch)
		refused(t, c, v, c.with(c.sigHeader, before+strings.TrimRight(sig, "=")+"\n"), now, "line end in base64", malformed)
		if strings.HasSuffix(sig, "=") {
			refused(t, c, v, c.with(c.sigHeader, before+strings.TrimRight(sig, "=")), now, "unpadded base64", malformed)
		}
		if url := base64.URLEncoding.EncodeToString(raw); url != sig {
			refused(t, c, v, c.with(c.sigHeader, before+url), now, "base64url", malformed)
		}
	}
	if raw, err := hex.DecodeString(sig); err == nil && c.descriptor.Encoding == signature.EncodingHex {
		refused(t, c, v, c.with(c.sigHeader, before+base64.StdEncoding.EncodeToString(raw)), now, "base64 for hex", malformed, mismatch)
		takes(t, v, c.with(c.sigHeader, before+strings.ToUpper(sig)), now, "upper-case hex")
	}
	if prefix := c.descriptor.Prefix; prefix != "" {
		shouted := strings.Replace(before, prefix, strings.ToUpper(prefix), 1)
		refused(t, c, v, c.with(c.sigHeader, shouted+sig), now, "upper-case prefix", malformed)
		refused(t, c, v, c.with(c.sigHeader, strings.Replace(before, prefix, "", 1)+sig), now, "no prefix", malformed)
	}
}

func barMessage(t *testing.T, c signed, v *signature.Verifier) {
	body := c.message.Body
	if !c.token() {
		for _, changed := range [][]byte{nil, body[1:], body[:len(body)-1], append(bytes.Clone(body), '\n'), bytes.ToUpper(body), bytes.TrimSpace(body)} {
			refused(t, c, v, c.withBody(changed), now, "changed body", mismatch)
		}
	}
	if strings.Contains(c.descriptor.Template, "{url}") {
		for _, url := range []string{"", "https://evil.example.com/", c.message.URL + "x", strings.Replace(c.message.URL, "https", "http", 1)} {
			m := c.message
			m.URL = url
			refused(t, c, v, m, now, "changed URL", mismatch, malformed)
		}
	}
	if strings.Contains(c.descriptor.Template, "{method}") {
		m := c.message
		m.Method = "PUT"
		refused(t, c, v, m, now, "changed method", mismatch)
	}
	if name := c.descriptor.DeliveryHeader; name != "" {
		name = http.CanonicalHeaderKey(name)
		again := c.with(name, "delivery-2")
		if strings.Contains(c.descriptor.Template, "{id}") {
			refused(t, c, v, again, now, "changed signed ID", mismatch)
			refused(t, c, v, c.with(name), now, "no signed ID", missing)
			refused(t, c, v, c.with(name, ""), now, "empty signed ID", missing)
			refused(t, c, v, c.with(name, "delivery-1", "delivery-2"), now, "two signed IDs", duplicated)
			return
		}
		first, second := takes(t, v, c.message, now, "first"), takes(t, v, again, now, "under a new ID")
		if first.Digest != second.Digest || second.DeliveryID != "delivery-2" || second.DeliveryIDSigned {
			t.Errorf("the same signed bytes under a new ID do not show: %+v, %+v", first, second)
		}
		if p := takes(t, v, c.with(name), now, "without an ID"); p.DeliveryID != "" {
			t.Errorf("delivery ID %q out of nothing", p.DeliveryID)
		}
	}
}

func barHeaders(t *testing.T, c signed, v *signature.Verifier) {
	refused(t, c, v, signature.Message{Body: c.message.Body, URL: c.message.URL}, now, "no headers at all", missing)
	names := []string{c.sigHeader}
	if c.tsHeader != "" {
		names = append(names, c.tsHeader)
	}
	for _, name := range names {
		value := c.message.Header[name][0]
		// Without its time header, grafana's request means the form that signs none.
		refused(t, c, v, c.with(name), now, "no "+name, missing, mismatch)
		refused(t, c, v, c.with(name, ""), now, "empty "+name, missing)
		for _, garbage := range []string{" ", ",", ";", "=", ",,,", "t=", "v1=", "%s", "\xff\xfe", strings.Repeat("a", 1<<20), strings.Repeat("t=1,", 1<<18), value + "x"} {
			refused(t, c, v, c.with(name, garbage), now, "garbage in "+name, malformed, mismatch, missing, duplicated)
		}
		refused(t, c, v, c.with(name, value, value+"0"), now, "conflicting "+name, duplicated)
		refused(t, c, v, c.with(name, value+"0", value), now, "conflicting "+name, duplicated)
		takes(t, v, c.with(name, value, value), now, "identical "+name)
	}
}

func barTime(t *testing.T, c signed, v *signature.Verifier) {
	ts := c.descriptor.Timestamp
	if ts == nil {
		takes(t, v, c.message, now.AddDate(10, 0, 0), "ten years later")
		return
	}
	tolerance := time.Duration(ts.Tolerance) * time.Second
	for _, part := range []time.Duration{0, time.Millisecond, 999 * time.Millisecond} {
		takes(t, v, c.message, now.Add(tolerance+part), "as old as may be")
		takes(t, v, c.message, now.Add(-tolerance+part), "as far ahead as may be")
		refused(t, c, v, c.message, now.Add(tolerance+time.Second+part), "stale", signature.CodeStale)
		refused(t, c, v, c.message, now.Add(-tolerance-time.Second+part), "future", signature.CodeFuture)
	}
	if ts.Unit != signature.UnitSeconds && ts.Unit != signature.UnitMillis {
		return
	}
	set := func(text string) signature.Message {
		if c.tsHeader != "" {
			return c.with(c.tsHeader, text)
		}
		old := ts.Header + "1750000000"
		if ts.Unit == signature.UnitMillis {
			old += "000"
		}
		return c.with(c.sigHeader, strings.Replace(c.signature(), old, ts.Header+text, 1))
	}
	for _, text := range []string{"+1750000000", "-1750000000", "1750000000.0", "1.75e9", "0x684ee180", "1_750_000_000", "١٧٥٠٠٠٠٠٠٠", " ", strings.Repeat("1", 21), strings.Repeat("0", 21), "175000000O"} {
		refused(t, c, v, set(text), now, "timestamp "+text, malformed, missing)
	}
	for _, text := range []string{"99999999999999999999", "18446744073709551616", "9223372036854775808"} {
		refused(t, c, v, set(text), now, "timestamp "+text, signature.CodeFuture)
	}
	refused(t, c, v, set("0"), now, "timestamp 0", signature.CodeStale)
	for _, zeroes := range []string{"01750000000", "0001750000000", "00"} {
		if ts.Unit == signature.UnitMillis {
			zeroes += "000"
		}
		refused(t, c, v, set(zeroes), now, "padded with a zero", malformed)
	}
	if c.tsHeader == "" {
		refused(t, c, v, c.with(c.sigHeader, c.signature()+sep(c)+ts.Header+"1750000000"), now, "second time", duplicated)
		refused(t, c, v, c.with(c.sigHeader, ts.Header+"1750000000"+sep(c)+c.signature()), now, "second time", duplicated)
		refused(t, c, v, c.with(c.sigHeader, strings.Replace(c.signature(), ts.Header, "x=", 1)), now, "no time", missing)
	}
}

func sep(c signed) string {
	return map[string]string{signature.ParseSpace: " ", signature.ParseComma: ",", signature.ParseSemicolon: ";"}[c.descriptor.Parse]
}

func barList(t *testing.T, c signed, v *signature.Verifier) {
	before, sig := c.parts()
	wrong := strings.Repeat("0", len(sig))
	if c.descriptor.Encoding != signature.EncodingHex {
		wrong = base64.StdEncoding.EncodeToString(make([]byte, 64))
	}
	if sep(c) == "" {
		refused(t, c, v, c.with(c.sigHeader, c.signature()+","+c.signature()), now, "list where there is none", malformed, mismatch)
		return
	}
	head := strings.TrimSuffix(before, c.descriptor.Prefix)
	element := c.descriptor.Prefix + wrong
	few := strings.Repeat(element+sep(c), 15)
	takes(t, v, c.with(c.sigHeader, head+few+c.descriptor.Prefix+sig), now, "the last of 16")
	takes(t, v, c.with(c.sigHeader, head+c.descriptor.Prefix+sig+sep(c)+few), now, "the first of 16")
	takes(t, v, c.with(c.sigHeader, head+"v9="+sig+sep(c)+"x"+sep(c)+sep(c)+c.descriptor.Prefix+sig+sep(c)), now, "among unknown elements")
	refused(t, c, v, c.with(c.sigHeader, head+"v9="+sig), now, "unknown version only", malformed)
	refused(t, c, v, c.with(c.sigHeader, head+strings.Repeat(element+sep(c), 10_000)), now, "10,000 wrong ones", malformed)
	most := 32
	if c.descriptor.Key == signature.KeyWhpk { // each costs a public key operation
		most = 16
	}
	refused(t, c, v, c.with(c.sigHeader, head+strings.Repeat(element+sep(c), most)+c.descriptor.Prefix+sig), now, "beyond the cap", mismatch, malformed)
}

func barSecret(t *testing.T, c signed) {
	for _, none := range [][]byte{nil, {}} {
		v, err := c.scheme.Verifier(none)
		if err != nil {
			t.Errorf("empty secret: %v", err)
		}
		refused(t, c, v, c.message, now, "empty secret", signature.CodeNoSecret)
	}
	refused(t, c, nil, c.message, now, "no verifier", signature.CodeNoSecret)
	if c.descriptor.Key == signature.KeyUTF8 && !c.token() {
		for _, other := range []string{c.verify + " ", c.verify[1:], "x", "\x00"} {
			refused(t, c, newVerifier(t, c.scheme, other), c.message, now, "another secret", mismatch)
		}
	}
	if _, err := c.scheme.Sign(nil, c.message, "delivery-1", now); err == nil {
		t.Error("Sign signs with an empty secret")
	}
}
