package schema

import (
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"millwright/signature"
)

// webhook reads the document as a webhook and checks the rules that tie its
// keys together.
func (d *document) webhook(name string) Webhook {
	d.checkStructure("webhook")
	w := Webhook{
		Name: name, Path: d.path, Line: d.line(),
		AuthMode:         AuthMode(text(d.data, "authMode")),
		SecretName:       text(d.data, "secretName"),
		DeliveryIDHeader: text(d.data, "deliveryIdHeader"),
		Enabled:          boolean(d.data, "enabled", true),
		Handshake:        boolean(d.data, "handshake", false),
		DuplicateWindow:  text(d.data, "duplicateWindow"),

		DeliveriesPerMinute: int(number(d.data, "deliveriesPerMinute")),
	}
	if _, given := d.data["authMode"]; !given {
		w.AuthMode = AuthToken
	}

	if n := d.value("secretName"); n != nil && looksLikeSecret(w.SecretName) {
		d.secretValue(n)
	} else if n != nil && w.SecretName != "" && !d.bad[n] {
		d.fact(factSecret, n, w.SecretName)
		if n := len(d.facts); n > 0 {
			d.facts[n-1].urlToken, d.facts[n-1].token = w.AuthMode == AuthURLToken, w.AuthMode == AuthToken
			_, d.facts[n-1].registered = d.data["register"]
		}
	}

	d.webhookScheme(&w)
	d.webhookDeliveryHeader(&w)
	d.webhookRegister(&w)
	return w
}

func (d *document) webhookScheme(w *Webhook) {
	modeKey, mode := find(d.root, "authMode")
	schemeKey, scheme := find(d.root, "signatureScheme")
	customKey, custom := find(d.root, "customScheme")
	_, handshake := find(d.root, "handshake")
	if d.bad[mode] && mode != nil {
		return // the mode is wrong: what depends on it says nothing
	}

	written := text(d.data, "signatureScheme")
	if w.AuthMode != AuthSignature {
		if schemeKey != nil {
			d.errorAt(
				schemeKey,
				ruleSignatureScheme,
				fmt.Sprintf("signatureScheme belongs to authMode: signature; this webhook's is %s", w.AuthMode),
				"write authMode: signature, or delete this key",
			)
		}

		if customKey != nil {
			d.errorAt(
				customKey,
				ruleCustomScheme,
				"customScheme belongs to authMode: signature with signatureScheme: custom",
				"delete this key, or write those two",
			)
		}

		if w.Handshake {
			d.errorAt(
				handshake,
				ruleHandshake,
				fmt.Sprintf("there is no handshake with authMode: %s", w.AuthMode),
				"delete this key",
			)
		}

		return
	}

	if schemeKey == nil {
		d.errorAt(
			modeKey,
			ruleSignatureScheme,
			"authMode: signature needs signatureScheme",
			"name the provider's scheme, for example: signatureScheme: standard_webhooks",
		)
	}

	switch {
	case written == signature.CustomName && customKey == nil:
		d.errorAt(
			scheme,
			ruleCustomScheme,
			"signatureScheme: custom needs customScheme",
			"describe how the provider signs: alg, header, encoding, template",
		)

	case written == signature.CustomName:
		w.SignatureScheme = written
		if w.Handshake {
			d.errorAt(handshake, ruleHandshake, "a custom scheme has no handshake", "delete this key")
		}

		d.customScheme(w, custom)
		return

	case customKey != nil && !d.bad[scheme]:
		d.errorAt(
			customKey,
			ruleCustomScheme,
			"customScheme belongs to signatureScheme: custom",
			"write signatureScheme: custom, or delete this key",
		)
	}

	s, ok := signature.Lookup(written)
	if !ok {
		return // the schema has said so
	}

	w.SignatureScheme = s.Name()
	if written != s.Name() {
		w.SignatureSchemeAlias = written
	}

	if w.Handshake && !s.HasHandshake() {
		d.errorAt(
			handshake,
			ruleHandshake,
			fmt.Sprintf("the scheme %s has no handshake", written),
			"delete this key; schemes that have one: "+listed(handshakeSchemes()),
		)
	}
}

func (d *document) customScheme(w *Webhook, n *yaml.Node) {
	m, ok := d.data["customScheme"].(map[string]any)
	if !ok || d.anyBad(n) {
		return
	}

	desc := &signature.Descriptor{
		Alg: text(m, "alg"), Key: text(m, "key"), Header: text(m, "header"), Parse: text(m, "parse"),
		Encoding: text(m, "encoding"), Prefix: text(m, "prefix"), Template: text(m, "template"),
		DeliveryHeader: text(m, "deliveryHeader"),
	}
	if t, ok := m["timestamp"].(map[string]any); ok {
		desc.Timestamp = &signature.Timestamp{
			Header:    text(t, "header"),
			Unit:      text(t, "unit"),
			Tolerance: int(number(t, "tolerance")),
		}
	}

	w.CustomScheme = desc
	if missing, _ := find(n, "alg"); missing == nil {
		return
	}
	if missing, _ := find(n, "header"); missing == nil {
		return
	}

	_, err := signature.Custom(*desc)
	var problems signature.DescriptorErrors
	if !errors.As(err, &problems) {
		return
	}

	for _, p := range problems {
		at := n
		for _, step := range strings.Split(p.Field, ".") {
			_, v := find(at, step)
			if v == nil {
				break
			}

			at = v
		}

		if at == n { // the key is not there: show the key of the whole
			at, _ = find(d.root, "customScheme")
		}

		d.report(
			d.spanOf(at),
			ruleCustomScheme,
			fmt.Sprintf("customScheme.%s: %s", clip(p.Field), p.Message),
			p.Hint,
		)
	}
}

// forbiddenDeliveryHeaders can hold credentials, and what names a delivery is
// logged.
var forbiddenDeliveryHeaders = []string{"Authorization", "Cookie", "Proxy-Authorization"}

func (d *document) webhookDeliveryHeader(w *Webhook) {
	n := d.value("deliveryIdHeader")
	if n == nil || w.DeliveryIDHeader == "" {
		return
	}

	canonical := textproto.CanonicalMIMEHeaderKey(w.DeliveryIDHeader)
	hint := "name the header in which the sender puts its own event ID"
	switch {
	case slices.Contains(forbiddenDeliveryHeaders, canonical):
		d.errorAt(
			n,
			ruleDeliveryIDHeader,
			fmt.Sprintf("%s carries credentials and cannot name a delivery", w.DeliveryIDHeader),
			hint,
		)

	case signature.Reserved(w.DeliveryIDHeader),
		w.CustomScheme != nil && w.CustomScheme.Signs(w.DeliveryIDHeader):
		d.errorAt(
			n,
			ruleDeliveryIDHeader,
			fmt.Sprintf("%s carries a signature and cannot name a delivery", w.DeliveryIDHeader),
			hint,
		)

	case sharedHeader(canonical):
		d.report(
			d.spanOf(n),
			ruleDeliveryIDShared,
			fmt.Sprintf(
				"%s is the same for many deliveries: all but the first of each value count as duplicates",
				w.DeliveryIDHeader,
			),
			hint,
		)
	}
}

// sharedHeader reports whether a header, by its canonical name, says something
// of the sender, the connection or the kind of event, and not which delivery
// it is.
func sharedHeader(name string) bool {
	switch name {
	case "Accept",
		"Accept-Charset",
		"Accept-Encoding",
		"Accept-Language",
		"Cache-Control",
		"Connection",
		"Content-Encoding",
		"Content-Language",
		"Content-Length",
		"Content-Type",
		"Date",
		"Expect",
		"Forwarded",
		"From",
		"Host",
		"Keep-Alive",
		"Origin",
		"Pragma",
		"Referer",
		"Te",
		"Trailer",
		"Transfer-Encoding",
		"Upgrade",
		"User-Agent",
		"Via",
		"X-Forwarded-For",
		"X-Forwarded-Host",
		"X-Forwarded-Port",
		"X-Forwarded-Prefix",
		"X-Forwarded-Proto",
		"X-Forwarded-Server",
		"X-Forwarded-Ssl",
		"X-Real-Ip":
		return true
	}

	return slices.ContainsFunc(
		signature.Schemes(),
		func(s *signature.Scheme) bool { return strings.EqualFold(s.EventHeader(), name) },
	)
}
