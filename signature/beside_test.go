package signature_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"millwright/signature"
)

var placeholders = regexp.MustCompile(`\{(\w+)\}`)

// TestOneReading signs a request and moves bytes between neighbours of the template, so that the signed bytes
// stay the same. Nothing else than what was signed is accepted, as far as the body is JSON.
func TestOneReading(t *testing.T) {
	all := variants(t)
	for _, text := range []string{
		`{"template":"{id}0{ts}.{body}"}`, `{"template":"{ts}{body}.{id}"}`, `{"template":"{id}.{body}{ts}"}`,
		`{"template":"{id}-{ts}{body}","timestamp":{"header":"X-T","unit":"rfc3339"}}`,
		`{"template":"{id}:{ts}:{body}","timestamp":{"header":"X-T","unit":"ms"}}`,
	} {
		d := signature.Descriptor{
			Alg: "hmac-sha256", Header: "X-S", Encoding: "hex",
			DeliveryHeader: "X-Id", Timestamp: &signature.Timestamp{Header: "X-T", Tolerance: 300},
		}
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		s, err := signature.Custom(d)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, newSigned(t, s, d))
	}

	tried := 0
	for _, c := range all {
		if c.tsHeader == "" && c.descriptor.Timestamp != nil {
			continue // an element of the signature header, which a separator follows
		}
		v := newVerifier(t, c.scheme, c.verify)
		for _, id := range []string{"delivery-1", "msg_100", "a.0", "1750000000", "0"} {
			c.resign(t, c.sign, id, now)
			takes(t, v, c.message, now, "as signed")
			parts := placeholders.FindAllStringSubmatchIndex(c.descriptor.Template, -1)
			for i := 1; i < len(parts); i++ {
				name := func(p []int) string { return c.descriptor.Template[p[2]:p[3]] }
				between := c.descriptor.Template[parts[i-1][1]:parts[i][0]]
				for _, m := range c.shifted(name(parts[i-1]), between, name(parts[i])) {
					tried++
					if _, err := v.Verify(m, now); err == nil && json.Valid(m.Body) {
						t.Errorf("%s, %s: accepted %v %s", c.scheme.Name(), c.descriptor.Template, m.Header, m.Body)
					}
				}
			}
		}
	}
	if tried < 200 {
		t.Errorf("%d readings tried", tried)
	}
}

// shifted returns the message in every other reading of two neighbours with a text between.
func (c *signed) shifted(left, between, right string) (all []signature.Message) {
	value := func(name string) (string, bool) {
		switch name {
		case "ts":
			return strings.Join(c.message.Header[c.tsHeader], ""), true
		case "id":
			return strings.Join(c.message.Header[http.CanonicalHeaderKey(c.descriptor.DeliveryHeader)], ""), true
		case "body":
			return string(c.message.Body), true
		}
		return "", false
	}
	a, movable := value(left)
	b, too := value(right)
	if !movable || !too {
		return nil
	}

	whole := a + between + b
	for end := range len(whole) {
		if end == len(a) || !strings.HasPrefix(whole[end:], between) {
			continue
		}
		m := c.message
		m.Header = http.Header(m.Header).Clone()
		for name, text := range map[string]string{left: whole[:end], right: whole[end+len(between):]} {
			switch name {
			case "ts":
				m.Header[c.tsHeader] = []string{text}
			case "id":
				m.Header[http.CanonicalHeaderKey(c.descriptor.DeliveryHeader)] = []string{text}
			case "body":
				m.Body = []byte(text)
			}
		}
		all = append(all, m)
	}
	return all
}
