// Package dashboard serves the web pages: factories, webhooks, deliveries, automations, runs, secrets, keys.
//
// The server renders pages from templates. Without JavaScript everything works except live updates. Pages
// read the state. They make changes through the endpoints of the API, with the API key of the browser's
// session, so a page never may do more than its key.
//
// Outsiders wrote most of what a page shows. Templates escape it, the functions in text.go bound it, and
// visible replaces characters that cannot be seen.
package dashboard

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/yuin/goldmark"

	"millwright/api"
	"millwright/api/identity"
	"millwright/bounds"
	"millwright/state"
)

// Config configures the pages. Store and API are required.
type Config struct {
	Store *state.Store
	// API makes every change.
	API *api.API
	// PublicURL is the origin under which browsers and senders reach the server. With https, cookies are
	// Secure.
	PublicURL string
	// TrustedProxies may name the sender of a request.
	TrustedProxies []netip.Prefix
	// Links signs in the browser that opens one of its links. It may be nil.
	Links *Links
	// Login returns the sign-in of people at an issuer. It, and what it returns, may be nil.
	Login func() *identity.Login
	// Notices returns the notices at the top of the start page. It may be nil.
	Notices func() []Notice
	// Done ends live streams when it is closed.
	Done <-chan struct{}
	// LiveCheck is how often a live stream checks that its session is alive; 0 means every 15 seconds.
	LiveCheck time.Duration
	// Looked is told of what a run left when its page is shown. It does not block. nil: nobody is told.
	Looked func(left []state.Artifact)
	// Version is the program's version.
	Version string
	// Log receives internal errors; nil discards them.
	Log *slog.Logger
}

// Notice is a fact that the operator should know and can change.
type Notice struct {
	Message string
	Since   time.Time
}

//go:embed assets templates
var files embed.FS

// figures are the latest counts, by what was counted. The zero value is ready.
type figures struct {
	mu       sync.Mutex
	all      map[string]*figure
	counting int // that go on
}

type figure struct {
	value   any
	at      time.Time     // when value was counted; zero: never
	cost    time.Duration // of counting it
	running chan struct{} // closed when the count under way ends; nil if there is none
}

// dashboard is shared by the handlers.
type dashboard struct {
	Config
	views   map[string]func() (*template.Template, error)
	prose   goldmark.Markdown // what agents write
	assets  map[string]asset
	origins *http.CrossOriginProtection
	csrfKey []byte
	secure  bool
	figures figures
	scans   chan struct{} // searches through payloads that go on
}

// policy is the Content-Security-Policy of every answer: only this server's own files, nothing inline,
// nothing framed.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// whole is the context key of a request's unbounded body. Before the sender is known, less of it is read.
type whole struct{}

// guard sets the headers of every answer, bounds the bodies of unknown senders, and turns a panic into an
// error page.
func (d *dashboard) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		r = r.WithContext(context.WithValue(r.Context(), whole{}, r.Body))
		r.Body = http.MaxBytesReader(w, r.Body, bounds.MaxSignIn)
		defer func() {
			if v := recover(); v != nil {
				if v == http.ErrAbortHandler {
					panic(v)
				}

				d.Log.Error("dashboard page failed", "method", r.Method, "path", r.URL.Path, "panic", panicKind(v))
				http.Error(w, "internal error", http.StatusInternalServerError)
			}
		}()

		next.ServeHTTP(w, r)
	})
}

// asset is a file of assets/.
type asset struct {
	body        []byte
	contentType string
	version     string // of its content
}

func readAssets() (map[string]asset, error) {
	all := map[string]asset{}
	dir, err := fs.Sub(files, "assets")
	if err != nil {
		return nil, err
	}

	err = fs.WalkDir(dir, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		body, err := fs.ReadFile(dir, name)
		kind := "text/plain; charset=utf-8"
		switch {
		case strings.HasSuffix(name, ".css"):
			kind = "text/css; charset=utf-8"
		case strings.HasSuffix(name, ".js"):
			kind = "text/javascript; charset=utf-8"
		case strings.HasSuffix(name, ".svg"):
			kind = "image/svg+xml"
		}

		all[name] = asset{body, kind, contentHash(body)}
		return err
	})

	return all, err
}

// serveAsset serves a file of assets/. Browsers cache it under the address that pages use, which has its
// version.
func (d *dashboard) serveAsset(w http.ResponseWriter, r *http.Request) {
	a, ok := d.assets[chi.URLParam(r, "name")]
	if !ok {
		http.NotFound(w, r)
		return
	}

	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == a.version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}

	tag := `"` + a.version + `"`
	h.Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}

	h.Set("Content-Type", a.contentType)
	w.Write(a.body)
}

// proof is the token that forms carry: it can be made only with the server's key, for one cookie alone.
func (d *dashboard) proof(cookie string) string {
	mac := hmac.New(sha256.New, d.csrfKey)
	mac.Write([]byte(cookie))
	return hex.EncodeToString(mac.Sum(nil))
}
