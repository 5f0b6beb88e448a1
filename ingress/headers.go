package ingress

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"millwright/schema"
	"millwright/signature"
	"millwright/state"
)

// keptHeaders returns the headers of a delivery for its followers, as lines "Name: value". It omits headers
// of the connection and credentials. Signatures are not credentials here, since they fit this body only. A
// header that contains the secret is one, also inside other text, as when a proxy passes on the requested
// URL.
func (w *webhook) keptHeaders(h http.Header, t target) []byte {
	presented := w.presented(h, t)
	leave := map[string]bool{}
	for name, values := range h {
		leave[name] = ofConnection(name) || w.credential(name, values, presented)
	}

	var lines bytes.Buffer
	_ = h.WriteSubset(&lines, leave) // a buffer takes all
	return lines.Bytes()
}

// shownHeaders returns the headers of a request that its row in the log shows, in the form of keptHeaders:
// content type, client, event and delivery ID, of each a preview. The request may be a stranger's.
func (w *webhook) shownHeaders(h http.Header, t target) (lines []byte) {
	presented := w.presented(h, t)
	for _, name := range w.shown {
		value := joined(h[name])
		if value != "" && !w.credential(name, h[name], presented) {
			lines = append(lines, name+": "+state.Preview(value)+"\r\n"...)
		}
	}
	return lines
}

// presented returns what a request brought as the secret of the webhook.
func (w *webhook) presented(h http.Header, t target) []string {
	all := []string{t.token}
	for _, value := range h["Authorization"] {
		value = strings.Trim(value, " ")
		if _, token, ok := strings.Cut(value, " "); ok {
			value = strings.TrimLeft(token, " ")
		}
		all = append(all, value)
	}

	for _, name := range w.secrets {
		all = append(all, h[name]...)
	}
	return all
}

// credential reports whether a header is a credential, or contains one of the secrets that were presented.
func (w *webhook) credential(name string, values, presented []string) bool {
	return slices.Contains(w.secrets, name) ||
		repeats(values, presented) ||
		schema.CredentialHeader(name) && !slices.Contains(w.signatures, name)
}

// ofConnection reports whether a header describes the connection and not the message (RFC 9110, 7.6.1).
func ofConnection(name string) bool {
	switch name {
	case "Connection",
		"Content-Length",
		"Expect",
		"Keep-Alive",
		"Proxy-Connection",
		"Te",
		"Trailer",
		"Transfer-Encoding",
		"Upgrade":
		return true
	}

	return false
}

// repeats reports whether a value contains one of the secrets, plain or percent-encoded.
func repeats(values, secrets []string) bool {
	return slices.ContainsFunc(values, func(value string) bool {
		decoded, _ := url.PathUnescape(value)
		return slices.ContainsFunc(secrets, func(secret string) bool {
			return secret != "" && (strings.Contains(value, secret) || strings.Contains(decoded, secret))
		})
	})
}

// identify returns the delivery's identity from the first source that has one, and whether the provider's
// signature covers it.
func identify(w *webhook, h http.Header, body []byte, proof signature.Proof) (id state.Identity, signed bool) {
	if w.idHeader != "" {
		if value := joined(h[w.idHeader]); value != "" {
			return state.IdentityOf(
					state.IdentityHeader,
					value,
				), proof.DeliveryIDSigned &&
					w.idHeader == proof.DeliveryHeader
		}
	}

	if proof.DeliveryID != "" {
		return state.IdentityOf(state.IdentityProvider, proof.DeliveryID), proof.DeliveryIDSigned
	}
	if value := joined(h[serviceHeader]); value != "" {
		return state.IdentityOf(state.IdentityServiceHeader, value), false
	}

	sum := sha256.Sum256(body)
	return state.IdentityOf(state.IdentityBodyHash, "sha256:"+hex.EncodeToString(sum[:])), true
}

// joined joins the values of a header; the result is empty if all of them are.
func joined(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	for _, v := range values {
		if v != "" {
			return strings.Join(values, ", ")
		}
	}
	return ""
}

// contentType names the content type of a request, if it is one of those that senders of JSON use.
func contentType(h http.Header) string {
	values := h["Content-Type"]
	if len(values) != 1 {
		return ""
	}

	media, _, err := mime.ParseMediaType(values[0])
	if err != nil {
		return ""
	}

	for _, known := range []string{
		"application/json", "text/json", "text/plain", "application/cloudevents+json",
		"application/cloudevents-batch+json", "application/scim+json", "application/ld+json",
		"application/vnd.api+json", "application/x-www-form-urlencoded", "application/octet-stream",
	} {
		if media == known {
			return known
		}
	}

	if strings.HasSuffix(media, "+json") {
		return "another JSON type"
	}
	return "another type"
}

// kindOf reads the headers of a delivery whose scheme found an event in them.
func (w *webhook) kindOf(h http.Header, proof signature.Proof) kind {
	k := kind{content: contentType(h)}
	if w.scheme != nil {
		k.event = w.scheme.KnownEvent(proof.Event)
	}
	return k
}
