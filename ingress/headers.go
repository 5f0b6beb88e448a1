package ingress

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"millwright/schema"
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
		schema.CredentialHeader(name) && !slices.Contains(w.signatures, name) ||
		repeats(values, presented)
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
