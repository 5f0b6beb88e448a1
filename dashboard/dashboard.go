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
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
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

// dashboard is shared by the handlers.
type dashboard struct {
	Config
	views   map[string]*template.Template
	prose   goldmark.Markdown // what agents write
	assets  map[string]asset
	origins *http.CrossOriginProtection
	csrfKey []byte
	secure  bool
	figures figures
	scans   chan struct{} // searches through payloads that go on
}

// New returns the handler of every page: "/", "/login", "/assets/", "/factories/…", "/runs/…" and others.
func New(cfg Config) (http.Handler, error) {
	if cfg.Store == nil || cfg.API == nil {
		return nil, errors.New("dashboard: Store and API are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Notices == nil {
		cfg.Notices = func() []Notice { return nil }
	}
	if cfg.LiveCheck == 0 {
		cfg.LiveCheck = 15 * time.Second
	}

	cfg.PublicURL = strings.TrimSuffix(cfg.PublicURL, "/")
	d := &dashboard{
		Config: cfg, origins: http.NewCrossOriginProtection(), prose: newMarkdown(),
		scans:   make(chan struct{}, maxScans),
		csrfKey: cfg.Store.DeriveKey("dashboard csrf"), secure: strings.HasPrefix(cfg.PublicURL, "https://"),
	}
	if cfg.PublicURL != "" {
		if err := d.origins.AddTrustedOrigin(cfg.PublicURL); err != nil {
			return nil, err
		}
	}

	var err error
	if d.assets, err = readAssets(); err != nil {
		return nil, err
	}
	if d.views, err = d.parseTemplates(); err != nil {
		return nil, err
	}

	return d.routes(), nil
}

func (d *dashboard) routes() http.Handler {
	r := chi.NewRouter()
	r.Use(d.guard, middleware.GetHead)
	r.Get("/assets/{name}", d.serveAsset)
	r.Get("/favicon.ico", http.RedirectHandler("/assets/favicon.svg", http.StatusMovedPermanently).ServeHTTP)
	r.Get("/login", d.showLogin)
	r.Post("/login", d.signIn)
	r.Get("/login/start", d.startLogin)
	r.Get("/login/callback", d.finishLogin)

	show := func(path string, f func(*request) error) { r.Get(path, d.signedIn(f)) }
	change := func(path string, f func(*request) error) { r.Post(path, d.signedIn(f)) }
	change("/logout", (*request).signOut)
	show("/live", (*request).stream)
	show("/", (*request).overview)
	show("/factories", (*request).factories)
	r.Route("/factories/{factory}", func(r chi.Router) {
		show := func(path string, f func(*request) error) { r.Get(path, d.signedIn(f)) }
		change := func(path string, f func(*request) error) { r.Post(path, d.signedIn(f)) }
		show("/", (*request).factory)
		change("/sync", (*request).sync)
		show("/plan", (*request).plan)
		show("/rollback", (*request).rollback)
		change("/rollback", (*request).rollBack)
		change("/resume", (*request).resume)
		show("/history", (*request).history)
		show("/history/{attempt}", (*request).attempt)
		show("/deliveries", (*request).deliveries)
		show("/compare", (*request).compare)
		show("/replay", (*request).confirmReplay)
		change("/replay", (*request).replayAll)
		show("/webhooks", (*request).webhooks)
		show("/webhooks/new", (*request).newWebhook)
		change("/webhooks/new", (*request).createWebhook)
		show("/webhooks/{webhook}", (*request).webhook)
		change("/webhooks/{webhook}/enabled", (*request).enableWebhook)
		change("/webhooks/{webhook}/rename", (*request).renameWebhook)
		change("/webhooks/{webhook}/settings", (*request).changeWebhook)
		change("/webhooks/{webhook}/rotate", (*request).rotateSecret)
		change("/webhooks/{webhook}/delete", (*request).deleteWebhook)
		show("/webhooks/{webhook}/deliveries/{delivery}", (*request).delivery)
		show("/webhooks/{webhook}/deliveries/{delivery}/payload", (*request).payload)
		change("/webhooks/{webhook}/deliveries/{delivery}/replay", (*request).replay)
		show("/automations", (*request).automations)
		show("/automations/{automation}", (*request).automation)
		change("/automations/{automation}/drop", (*request).dropWaiting)
		show("/automations/new", (*request).newAutomation)
		change("/automations/new", (*request).createAutomation)
		show("/notifications", (*request).notifications)
		change("/notifications/{notification}/test", (*request).testNotification)
		change("/notifications/{notification}/replay", (*request).replayDead)
		show("/notifications/events/{event}", (*request).event)
		change("/notifications/events/{event}/replay", (*request).replayEvent)
		show("/files", (*request).files)
		show("/files.tar", (*request).exportFiles)
		change("/files/import", (*request).importFiles)
		show("/files/edit", (*request).file)
		change("/files/edit", (*request).saveFile)
		change("/files/delete", (*request).deleteFile)
		show("/revisions/{revision}", (*request).revision)
		change("/revisions/{revision}/restore", (*request).restore)
		show("/filter", (*request).showFilter)
		change("/filter", (*request).testFilter)
	})

	show("/search", (*request).search)
	show("/deliveries", (*request).allDeliveries)
	show("/runs", (*request).runs)
	show("/runs/new", (*request).newRun)
	change("/runs/new", (*request).startRun)
	show("/runs/{run}", (*request).run)
	change("/runs/{run}/followups", (*request).followup)
	change("/runs/{run}/cancel", (*request).cancel)
	change("/runs/{run}/answers", (*request).answer)
	change("/runs/{run}/retry", (*request).retry)
	change("/runs/{run}/outputs", (*request).openPull)
	change("/runs/{run}/outputs/{output}/approve", (*request).approveOutput)
	change("/runs/{run}/outputs/{output}/reject", (*request).rejectOutput)
	change("/runs/{run}/outputs/{output}/retry", (*request).retryOutput)
	show("/runs/{run}/log", (*request).runLog)
	show("/runs/{run}/attachments/{name}", (*request).attachment)
	show("/runs/{run}/artifacts/{artifact}", (*request).artifact)
	show("/workers", (*request).workers)
	show("/secrets", (*request).secrets)
	change("/secrets", (*request).setSecret)
	change("/secrets/{name}/delete", (*request).deleteSecret)
	show("/keys", (*request).keys)
	change("/keys", (*request).createKey)
	change("/keys/{key}/revoke", (*request).revokeKey)
	show("/audit", (*request).audit)
	missing := func(q *request) error {
		return api.Problem("resource_not_found", "there is no page %s", q.URL.Path)
	}
	r.NotFound(d.unlessPosted(http.StatusNotFound, missing))
	// Some pages exist only as the answer to a form.
	r.MethodNotAllowed(d.unlessPosted(http.StatusMethodNotAllowed, missing))

	return r
}

// unlessPosted answers requests for unknown addresses. A browser signs in first, and then gets the page of f.
// A program that posts, or takes this for the ingress, gets the status at once: it would take a redirect to
// the sign-in page for success.
func (d *dashboard) unlessPosted(status int, f func(*request) error) http.HandlerFunc {
	page := d.signedIn(f)
	return func(w http.ResponseWriter, r *http.Request) {
		looks := r.Method == http.MethodGet || r.Method == http.MethodHead
		if looks && !strings.HasPrefix(strings.ToLower(r.URL.Path), "/webhooks") {
			page(w, r)
			return
		}
		http.Error(w, http.StatusText(status), status)
	}
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
