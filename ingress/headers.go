package ingress

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"millwright/schema"
)

// keptHeaders returns the headers of a delivery for its followers, as lines "Name: value". It omits headers
// of the connection and credentials. Signatures are not credentials here, since they fit this body only. A
// header that contains the secret is one, also inside other text, as when a proxy passes on the requested
// URL.
func (w *webhook) keptHeaders(h http.Header, t target) []byte {
	var signed, secret []string
	if w.scheme != nil {
		signed, secret = w.scheme.SignatureHeaders(), w.scheme.SecretHeaders()
	}

	token, _ := bearer(h["Authorization"])
	presented := []string{t.token, token}
	for _, name := range secret {
		presented = append(presented, h[name]...)
	}

	leave := map[string]bool{}
	for name, values := range h {
		leave[name] = ofConnection(name) || slices.Contains(secret, name) ||
			schema.CredentialHeader(name) && !slices.Contains(signed, name) ||
			repeats(values, presented)
	}

	var lines bytes.Buffer
	_ = h.WriteSubset(&lines, leave) // a buffer takes all
	return lines.Bytes()
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
