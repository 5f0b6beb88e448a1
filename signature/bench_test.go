package signature_test

import (
	"bytes"
	"strings"
	"testing"
)

// BenchmarkVerify is one delivery of 2 KB.
func BenchmarkVerify(b *testing.B) {
	for _, name := range []string{"github", "standard_webhooks", "stripe", "discord", "sendgrid"} {
		b.Run(name, func(b *testing.B) {
			s := lookup(b, name)
			c := newSigned(b, s, s.Descriptors()[0])
			c.message.Body = bytes.Repeat([]byte("x"), 2048)
			c.resign(b, c.sign, "delivery-1", now)
			v := newVerifier(b, s, c.verify)
			b.SetBytes(2048)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(c.message, now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRefuse is for the eye: the time of a refusal does not tell where a
// signature differs, and a long list costs little more than a short one.
func BenchmarkRefuse(b *testing.B) {
	s := lookup(b, "stripe")
	c := newSigned(b, s, s.Descriptors()[0])
	v := newVerifier(b, s, c.verify)
	before, sig := c.parts()
	flip := func(i int) string {
		wrong := []byte(sig)
		wrong[i] ^= 1
		return before + string(wrong)
	}
	for name, value := range map[string]string{
		"first byte wrong": flip(0), "last byte wrong": flip(len(sig) - 1),
		"10000 wrong": before + strings.Repeat("0", 64) + strings.Repeat(",v1="+strings.Repeat("0", 64), 10_000),
		"200 wrong":   before + strings.Repeat("0", 64) + strings.Repeat(",v1="+strings.Repeat("0", 64), 200),
	} {
		m := c.with(c.sigHeader, value)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := v.Verify(m, now); err == nil {
					b.Fatal("accepted")
				}
			}
		})
	}
}
