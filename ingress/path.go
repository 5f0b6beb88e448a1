package ingress

import (
	"net/http"
	"net/url"
	"path"
	"strings"
)

const pathPrefix = "/webhooks/w/"

// rawPath returns the path of a request as sent: not decoded, not cleaned, without the query.
func rawPath(r *http.Request) string {
	target := r.RequestURI
	if target == "" { // made by a test or another handler, not by a server
		target = r.URL.EscapedPath()
	}

	if !strings.HasPrefix(target, "/") { // absolute form: scheme://host/path
		_, rest, ok := strings.Cut(target, "://")
		slash := strings.IndexByte(rest, '/')
		if !ok || slash < 0 {
			return ""
		}

		target = rest[slash:]
	}

	target, _, _ = strings.Cut(target, "?")
	return target
}

// rawQuery returns the query of a request as sent, with its question mark, or "".
func rawQuery(r *http.Request) string {
	if at := strings.IndexByte(r.RequestURI, '?'); at >= 0 {
		return r.RequestURI[at:]
	}
	return ""
}

// target is the webhook, and maybe the token, of a path.
type target struct {
	uid      string // raw
	token    string // decoded once
	hasToken bool
}

// parsePath splits a raw path of the form /webhooks/w/{uid} or /webhooks/w/{uid}/{token}. Any other path
// has no target.
func parsePath(raw string) (t target, ok bool) {
	rest, ok := strings.CutPrefix(raw, pathPrefix)
	if !ok {
		return t, false
	}

	uid, token, hasToken := strings.Cut(rest, "/")
	if uid == "" || hasToken && (token == "" || strings.IndexByte(token, '/') >= 0) {
		return t, false
	}

	t = target{uid: uid, hasToken: hasToken}
	if hasToken {
		var err error
		if t.token, err = url.PathUnescape(token); err != nil {
			t.token = "" // equals no secret
		}
	}

	return t, true
}

// Handles reports whether the ingress must answer a request: its path is under /webhooks, or would be after
// decoding and cleaning. The latter get 404 here, so that no other handler redirects a request with a
// credential in its path.
func (in *Ingress) Handles(r *http.Request) bool {
	raw := rawPath(r)
	if below(raw) {
		return true
	}
	decoded, err := url.PathUnescape(raw)
	cleaned := path.Clean("/" + decoded)
	return err == nil && (below(cleaned) || strings.Contains(cleaned, pathPrefix))
}

func below(p string) bool {
	rest, ok := strings.CutPrefix(p, "/webhooks")
	return ok && (rest == "" || rest[0] == '/')
}

func lines(h http.Header) (n int) {
	for _, values := range h {
		n += len(values)
	}
	return n
}
