package ingress

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
)

// keptHeaders are the headers of a delivery that somebody listens to, as lines "Name: value": all but those
// of the connection, and those that are credentials. A signature is none, since it serves for this body
// alone; a header that is the secret itself is.
func (w *webhook) keptHeaders(h http.Header) []byte {
	var signed, secret []string
	if w.scheme != nil {
		signed, secret = w.scheme.SignatureHeaders(), w.scheme.SecretHeaders()
	}
	leave := map[string]bool{}
	for name := range h {
		leave[name] = ofConnection(name) || slices.Contains(secret, name) || credential(name) && !slices.Contains(signed, name)
	}
	var lines bytes.Buffer
	_ = h.WriteSubset(&lines, leave) // a buffer takes all
	return lines.Bytes()
}

// ofConnection reports whether a header speaks of the connection and not of the message (RFC 9110, 7.6.1).
func ofConnection(name string) bool {
	switch name {
	case "Connection", "Content-Length", "Expect", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// credential reports whether a header is by its name more than the proof of one message.
func credential(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"authorization", "cookie", "token", "secret", "password", "api-key", "apikey"}, func(word string) bool {
		return strings.Contains(name, word)
	})
}
