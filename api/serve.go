package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"millwright/bounds"
	"millwright/schema"
)

var useOurErrors sync.Once

// New returns an API that serves its own document, openapi.yaml, and no other endpoint.
func New(cfg Config) *API {
	useOurErrors.Do(func() {
		huma.NewError = fromHuma
		huma.NewErrorWithContext = func(_ huma.Context, status int, msg string, errs ...error) huma.StatusError {
			return fromHuma(status, msg, errs...)
		}
	})
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Bounds == nil {
		cfg.Bounds = bounds.New(bounds.Config{})
	}

	a := &API{cfg: cfg, router: chi.NewRouter()}
	a.router.Use(middleware.GetHead)
	a.router.NotFound(func(w http.ResponseWriter, r *http.Request) {
		a.write(w, r, Problem("resource_not_found", "no such endpoint: %s", r.URL.Path))
	})
	a.router.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		e := Problem("invalid_request", "%s does not accept %s", r.URL.Path, r.Method)
		e.Status = http.StatusMethodNotAllowed
		e.header.Set("Allow", a.allowed(r.URL.Path))
		a.write(w, r, e)
	})

	a.huma = humachi.New(a.router, a.document())
	a.huma.UseMiddleware(a.authorise)
	a.router.Get(Base+"/openapi.yaml", a.serveDocument)
	return a
}

// allowed lists the methods of an endpoint.
func (a *API) allowed(path string) string {
	var methods []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if a.router.Match(chi.NewRouteContext(), m, path) {
			methods = append(methods, m)
			if m == http.MethodGet {
				methods = append(methods, http.MethodHead)
			}
		}
	}
	return strings.Join(methods, ", ")
}

func (a *API) document() huma.Config {
	cfg := huma.DefaultConfig("millwright", "v1")
	cfg.Info.Description = "Runs of agents, factories and their webhooks, secrets and definition files."
	cfg.OpenAPIPath, cfg.DocsPath, cfg.SchemasPath = "", "", ""
	cfg.CreateHooks = nil
	cfg.AllowAdditionalPropertiesByDefault = true
	cfg.Transformers = []huma.Transformer{place}
	cfg.Formats = map[string]huma.Format{"application/json": jsonFormat(), "json": jsonFormat()}
	cfg.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"apiKey": {
			Type:        "http",
			Scheme:      "bearer",
			Description: "An API key: mw_…, or an ID token of an issuer of auth.oidc",
		},
	}
	if a.cfg.PublicURL != "" {
		cfg.Servers = []*huma.Server{{URL: strings.TrimSuffix(a.cfg.PublicURL, "/") + Base}}
	}

	return cfg
}

// place sets the path and ID of the request in a problem.
func place(ctx huma.Context, _ string, v any) (any, error) {
	if e, ok := v.(*Error); ok {
		u := ctx.URL()
		return e.at(u.Path, RequestID(ctx.Context())), nil
	}
	return v, nil
}

func (a *API) serveDocument(w http.ResponseWriter, r *http.Request) {
	doc, err := a.Document()
	if err != nil {
		a.write(w, r, Problem("internal_error", ""))
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Write(doc)
}

// Document returns the OpenAPI 3.1 document of the endpoints registered so far, as YAML.
func (a *API) Document() ([]byte, error) {
	return a.huma.OpenAPI().YAML()
}

// ServeHTTP answers requests under Base.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var id [16]byte
	rand.Read(id[:])
	requestID := hex.EncodeToString(id[:])
	w.Header().Set("X-Request-Id", requestID)
	w.Header().Set(VersionHeader, a.cfg.Version+"; definitions="+schema.SchemaVersion)
	w.Header().Set("Cache-Control", "no-store") // endpoints may override it
	r = r.WithContext(context.WithValue(r.Context(), requestIDKey, requestID))
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler {
				panic(v)
			}

			a.cfg.Log.Error(
				"API request failed",
				"request_id",
				requestID,
				"method",
				r.Method,
				"path",
				r.URL.Path,
				"panic",
				reflect.TypeOf(v).String(),
			)

			a.write(w, r, Problem("internal_error", ""))
		}
	}()

	if a.cors(w, r) {
		return
	}

	switch kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.ToLower(strings.TrimSpace(kind)) {
	case "application/json",
		"text/json",
		"application/x-www-form-urlencoded",
		"text/plain": // curl -d and fetch send the last two by default
		r.Header.Set("Content-Type", "application/json")
	}

	if !utf8.ValidString(r.URL.Path) || strings.Contains(r.URL.Path, "\x00") {
		a.write(w, r, Problem("resource_not_found", "the path holds a NUL character or invalid UTF-8"))
		return
	}
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil { // a malformed condition must not be ignored
		a.write(w, r, Problem("invalid_request", "the query is not well-formed: %v", err))
		return
	}

	a.router.ServeHTTP(w, r)
}

// cors answers preflight requests and sets the CORS headers, for the configured origins only.
func (a *API) cors(w http.ResponseWriter, r *http.Request) (answered bool) {
	origin := r.Header.Get("Origin")
	if origin == "" || len(a.cfg.CORSOrigins) == 0 {
		return false
	}

	w.Header().Add("Vary", "Origin")
	for _, allowed := range a.cfg.CORSOrigins {
		if origin != allowed {
			continue
		}

		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After, X-Should-Retry")
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			return false
		}

		w.Header().Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
		w.Header().
			Set("Access-Control-Allow-Headers", "Authorization, Content-Type, "+
				"Idempotency-Key, If-None-Match, Last-Event-ID")
		w.Header().Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
		return true
	}

	return false
}
