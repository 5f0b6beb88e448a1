package ingress

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// keptHeaders are the headers of a delivery that somebody listens to, as lines "Name: value": all but those
// of the connection, and those that are credentials. A signature is none, since it serves for this body
// alone; a header that is the secret itself is, and so is any that repeats it, as that of a proxy which
// hands on the URL that it was asked for.
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
			credential(name) && !slices.Contains(signed, name) ||
			repeats(values, presented)
	}

	var lines bytes.Buffer
	_ = h.WriteSubset(&lines, leave) // a buffer takes all
	return lines.Bytes()
}

// ofConnection reports whether a header speaks of the connection and not of the message (RFC 9110, 7.6.1).
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

// repeats reports whether one of the values holds one of the secrets, as it is or percent-encoded.
func repeats(values, secrets []string) bool {
	return slices.ContainsFunc(values, func(value string) bool {
		decoded, _ := url.PathUnescape(value)
		return slices.ContainsFunc(secrets, func(secret string) bool {
			return secret != "" && (strings.Contains(value, secret) || strings.Contains(decoded, secret))
		})
	})
}

// credential reports whether a header is by its name more than the proof of one message.
func credential(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(
		[]string{
			"authorization",
			"cookie",
			"token",
			"secret",
			"password",
			"credential",
			"session",
			"jwt",
			"api-key",
			"apikey",
			"access-key",
			"auth-key",
		},
		func(word string) bool {
			return strings.Contains(name, word)
		},
	)
}
