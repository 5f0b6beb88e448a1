package dashboard

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"millwright/api"
)

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
	if d.views, err = d.prepareViews(); err != nil {
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
		show("/automations/{automation}/edit", (*request).editAutomation)
		change("/automations/{automation}/edit", (*request).saveAutomation)
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
	show("/deliveries/{page:compare|replay}", (*request).selectedOf)
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
