package signature_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"

	"millwright/signature"
)

func base() signature.Descriptor {
	return signature.Descriptor{
		Alg: "hmac-sha256", Header: "X-Sig", Encoding: "hex", Prefix: "sha256=", Template: "{ts}.{body}",
		Timestamp: &signature.Timestamp{Header: "X-Ts"}, DeliveryHeader: "X-Id",
	}
}

func TestCustomRefusesUnsafeDescriptors(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*signature.Descriptor)
		fields []string // in order
	}{
		{"nothing", func(*signature.Descriptor) {}, nil},
		{"empty", func(d *signature.Descriptor) { *d = signature.Descriptor{} }, []string{"alg", "header", "encoding", "template"}},
		{"no body", func(d *signature.Descriptor) { d.Template = "{ts}" }, []string{"template"}},
		{"time not signed", func(d *signature.Descriptor) { d.Template = "{body}" }, []string{"timestamp"}},
		{"time from nowhere", func(d *signature.Descriptor) { d.Timestamp = nil }, []string{"template"}},
		{"ID from nowhere", func(d *signature.Descriptor) { d.Template, d.DeliveryHeader = "{id}.{ts}.{body}", "" }, []string{"template"}},
		{"ID beside body", func(d *signature.Descriptor) { d.Template = "{ts}.{id}{body}" }, []string{"template"}},
		{"ID beside time", func(d *signature.Descriptor) { d.Template = "{id}{ts}.{body}" }, []string{"template"}},
		{"time beside ID", func(d *signature.Descriptor) { d.Template = "{body}.{ts}{id}" }, []string{"template"}},
		{"ID between", func(d *signature.Descriptor) { d.Template = "{ts}{id}{method}.{body}" }, []string{"template", "template"}},
		{"URL beside ID", func(d *signature.Descriptor) { d.Template = "{url}{id}.{ts}.{body}" }, []string{"template"}},
		{"ID after what a URL may hold", func(d *signature.Descriptor) { d.Template = "{ts}.{url}.{id}:{body}" }, []string{"template"}},
		{"URL after what an ID may hold", func(d *signature.Descriptor) { d.Template = "{ts}.{body}.{id}&{url}" }, []string{"template"}},
		{"URL and ID in lines", func(d *signature.Descriptor) { d.Template = "{url}\n{id}\n{ts}{body}" }, nil},
		{"ID between texts", func(d *signature.Descriptor) { d.Template = "v0:{id}:{ts}{body}{url}{method}" }, nil},
		{"body beside ID", func(d *signature.Descriptor) { d.Template = "{ts}.{body}{id}" }, []string{"template"}},
		{"body twice", func(d *signature.Descriptor) { d.Template = "{ts}{body}{body}" }, []string{"template"}},
		{"unknown placeholder", func(d *signature.Descriptor) { d.Template = "{ts}{body}{host}" }, []string{"template"}},
		{"built-in placeholder", func(d *signature.Descriptor) { d.Template = "{ts}{headers}{body}" }, []string{"template"}},
		{"open brace", func(d *signature.Descriptor) { d.Template = "{ts}{body" }, []string{"template"}},
		{"close brace", func(d *signature.Descriptor) { d.Template = "{ts}}{body}" }, []string{"template"}},
		{"long template", func(d *signature.Descriptor) { d.Template += string(make([]byte, 300)) }, []string{"template"}},
		{"alg", func(d *signature.Descriptor) { d.Alg = "md5" }, []string{"alg"}},
		{"alg none", func(d *signature.Descriptor) { d.Alg = "none" }, []string{"alg"}},
		{"key", func(d *signature.Descriptor) { d.Key = "spki" }, []string{"key"}},
		{"key of ed25519", func(d *signature.Descriptor) { d.Alg = "ed25519" }, []string{"key"}},
		{"key of ecdsa", func(d *signature.Descriptor) { d.Alg, d.Key = "ecdsa-p256", "hex" }, []string{"key"}},
		{"header", func(d *signature.Descriptor) { d.Header = "X Sig" }, []string{"header"}},
		{"header with a colon", func(d *signature.Descriptor) { d.Header = "X-Sig:" }, []string{"header"}},
		{"header of the transport", func(d *signature.Descriptor) { d.Header = "host" }, []string{"header"}},
		{"parse", func(d *signature.Descriptor) { d.Parse = "pipe" }, []string{"parse"}},
		{"encoding", func(d *signature.Descriptor) { d.Encoding = "base32" }, []string{"encoding"}},
		{"list without key", func(d *signature.Descriptor) { d.Parse, d.Prefix = "comma", "" }, []string{"prefix"}},
		{"list with separator in key", func(d *signature.Descriptor) { d.Parse, d.Prefix = "comma", "v1," }, []string{"prefix"}},
		{"prefix with a space before it", func(d *signature.Descriptor) { d.Prefix = " sha256=" }, []string{"prefix"}},
		{"prefix with a line end", func(d *signature.Descriptor) { d.Prefix = "a\nb" }, []string{"prefix"}},
		{"time in the signature header", func(d *signature.Descriptor) { d.Timestamp.Header = "x-sig" }, []string{"timestamp.header"}},
		{"time as an element of no list", func(d *signature.Descriptor) { d.Timestamp.Header = "t=" }, []string{"timestamp.header"}},
		{"time as the signature", func(d *signature.Descriptor) { d.Parse, d.Timestamp.Header = "comma", "sha256=" }, []string{"timestamp.header"}},
		{"time without header", func(d *signature.Descriptor) { d.Timestamp.Header = "" }, []string{"timestamp.header"}},
		{"unit", func(d *signature.Descriptor) { d.Timestamp.Unit = "minutes" }, []string{"timestamp.unit"}},
		{"negative tolerance", func(d *signature.Descriptor) { d.Timestamp.Tolerance = -1 }, []string{"timestamp.tolerance"}},
		{"endless tolerance", func(d *signature.Descriptor) { d.Timestamp.Tolerance = 1 << 40 }, []string{"timestamp.tolerance"}},
		{"delivery in Authorization", func(d *signature.Descriptor) { d.DeliveryHeader = "authorization" }, []string{"deliveryHeader"}},
		{"delivery in the signature", func(d *signature.Descriptor) { d.DeliveryHeader = "x-sig" }, []string{"deliveryHeader"}},
		{"delivery in the time", func(d *signature.Descriptor) { d.DeliveryHeader = "x-ts" }, []string{"deliveryHeader"}},
		{"token with a template", func(d *signature.Descriptor) {
			*d = signature.Descriptor{Alg: "token", Header: "X-Token", Template: "{body}"}
		}, []string{"template"}},
		{"token with a time", func(d *signature.Descriptor) {
			*d = signature.Descriptor{Alg: "token", Header: "X-Token", Timestamp: d.Timestamp}
		}, []string{"timestamp"}},
		{"token with an encoding", func(d *signature.Descriptor) {
			*d = signature.Descriptor{Alg: "token", Header: "X-Token", Encoding: "hex"}
		}, []string{"encoding"}},
		{"several", func(d *signature.Descriptor) { d.Alg, d.Encoding, d.Timestamp.Unit = "x", "y", "z" }, []string{"alg", "encoding", "timestamp.unit"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := base()
			c.change(&d)
			_, err := signature.Custom(d)
			var fields []string
			var problems signature.DescriptorErrors
			if errors.As(err, &problems) {
				for _, p := range problems {
					fields = append(fields, p.Field)
				}
				var first signature.DescriptorError
				if !errors.As(err, &first) || first != problems[0] {
					t.Errorf("one problem alone cannot be found in %v", err)
				}
			}
			if !slices.Equal(fields, c.fields) {
				t.Errorf("problems %v, want %v", err, c.fields)
			}
		})
	}
}

// Custom schemes meet the same bar as the built-in ones.
func TestCustomBar(t *testing.T) {
	for name, text := range map[string]string{
		"header time":  `{"alg":"hmac-sha256","header":"X-Acme-Signature","encoding":"hex","prefix":"sha256=","timestamp":{"header":"X-Acme-Time","unit":"ms","tolerance":60},"template":"{method} {url}\n{ts}.{body}","deliveryHeader":"X-Acme-Id"}`,
		"element time": `{"alg":"hmac-sha512","key":"base64","header":"Acme-Signature","parse":"semicolon","encoding":"base64url","prefix":"s=","timestamp":{"header":"at="},"template":"{ts}:{body}"}`,
		"signed ID":    `{"alg":"hmac-sha1","key":"hex","header":"acme-sig","encoding":"base64","template":"{id}.{body}","deliveryHeader":"acme-id"}`,
		"ed25519":      `{"alg":"ed25519","key":"hex","header":"acme-sig","encoding":"base64","template":"{body}"}`,
		"ecdsa":        `{"alg":"ecdsa-p256","key":"spki","header":"acme-sig","encoding":"hex","template":"{body}","timestamp":null}`,
		"token":        `{"alg":"token","header":"Authorization","prefix":"Basic ","deliveryHeader":"acme-id"}`,
	} {
		t.Run(name, func(t *testing.T) {
			var d signature.Descriptor
			if err := json.Unmarshal([]byte(text), &d); err != nil {
				t.Fatal(err)
			}
			s, err := signature.Custom(d)
			if err != nil {
				t.Fatal(err)
			}
			if s.Name() != signature.CustomName {
				t.Errorf("name %q", s.Name())
			}
			c := newSigned(t, s, s.Descriptors()[0])
			v := newVerifier(t, s, c.verify)
			takes(t, v, c.message, now, "as signed")
			barSignature(t, c, v)
			barMessage(t, c, v)
			barHeaders(t, c, v)
			barTime(t, c, v)
			barList(t, c, v)
			barSecret(t, c)
		})
	}
}

func TestNamesAndReservedHeaders(t *testing.T) {
	names := signature.Names()
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("names are not sorted or not unique: %v", names)
	}
	for _, name := range names {
		s, ok := signature.Lookup(name)
		if ok == (name == signature.CustomName) {
			t.Errorf("Lookup(%q) = %v", name, ok)
		}
		if ok && s.Name() != name && !slices.Contains(s.Aliases(), name) {
			t.Errorf("%s leads to %s", name, s.Name())
		}
	}
	for _, name := range []string{"", "GitHub", "github ", "unknown", "custom"} {
		if _, ok := signature.Lookup(name); ok {
			t.Errorf("Lookup(%q) finds something", name)
		}
	}
	reserved := signature.ReservedHeaders()
	for _, s := range signature.Schemes() {
		for _, name := range s.SignatureHeaders() {
			if !slices.Contains(reserved, name) || name != http.CanonicalHeaderKey(name) {
				t.Errorf("%s of %s is not reserved, or not canonical", name, s.Name())
			}
		}
		for _, name := range s.DeliveryHeaders() {
			if signature.Reserved(name) || name != http.CanonicalHeaderKey(name) {
				t.Errorf("%s of %s is reserved, or not canonical", name, s.Name())
			}
		}
	}
	for header, want := range map[string]bool{
		"x-hub-signature-256": true, "X-GITLAB-TOKEN": true, "x-docusign-signature-42": true, "Webhook-Timestamp": true, "Stripe-Signature": true, "X-Hub-Signature": true,
		"webhook-id": false, "X-GitHub-Delivery": false, "X-Anything": false, "": false,
	} {
		if signature.Reserved(header) != want {
			t.Errorf("Reserved(%q) = %t", header, !want)
		}
	}
}
