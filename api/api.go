// Package api has the parts that all endpoints under /api/v1 share: problem details, API keys and roles,
// cursors, request IDs and limits. Packages runs and admin have the endpoints themselves. openapi.yaml,
// beside this file, is generated from them.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"millwright/api/identity"
	"millwright/bounds"
	"millwright/state"
)

// Base is the path prefix of every endpoint.
const Base = "/api/v1"

// VersionHeader is the header of every answer with the versions of the server and of the definition files
// that it reads: "v1.2.0; definitions=v1alpha1". An older client can warn of it.
const VersionHeader = "Millwright-Version"

// RoleHeader is the header of an answer to a key with the key's role.
const RoleHeader = "Millwright-Role"

// Config configures an API. Store is required.
type Config struct {
	Store *state.Store
	// Version is the version of the program, as answers report it.
	Version string
	// PublicURL is the origin under which clients reach the server, for the document.
	PublicURL string
	// CORSOrigins are the origins whose pages may call the API; none by default.
	CORSOrigins []string
	// TrustedProxies are the networks whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
	// Tokens verifies the ID tokens that callers send in place of keys; nil: none is accepted.
	Tokens *identity.Tokens
	// Bounds are the bounds of the server; nil: the API has its own.
	Bounds *bounds.Bounds
	// Done is closed when the server stops. Event streams end then.
	Done <-chan struct{}
	// Log receives one line for each answer of status 500 and above; nil discards them.
	Log *slog.Logger
}

// API serves /api/v1. Register endpoints on Huma.
type API struct {
	cfg    Config
	router chi.Router
	huma   huma.API
	right  rightKeys
}

// Bounds returns the bounds of the server.
func (a *API) Bounds() *bounds.Bounds { return a.cfg.Bounds }

// SenderOf returns the sender of a request.
func (a *API) SenderOf(r *http.Request) string { return SenderOf(r, a.cfg.TrustedProxies).Key }

// Huma returns the API on which to register endpoints.
func (a *API) Huma() huma.API { return a.huma }

// Router returns the router, for endpoints that huma cannot describe. Wrap them in Authorised.
func (a *API) Router() chi.Router { return a.router }

type contextKey int

const (
	requestIDKey contextKey = iota
	callerKey
	calledByKey // of a Call
)

// RequestID returns the ID of the request of ctx, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey).(string)
	return id
}

// Operation describes an endpoint below Base that needs the given role; the empty role needs no key.
func Operation(method, path, id string, role state.Role, summary string) huma.Operation {
	op := huma.Operation{
		Method: method, Path: Base + path, OperationID: id, Summary: summary,
		MaxBodyBytes: bounds.MaxBody + 1, // the first size that is refused
		Metadata:     map[string]any{"role": role},
		Errors:       []int{http.StatusBadRequest, http.StatusNotFound, http.StatusServiceUnavailable},
	}

	if role != "" {
		op.Security = []map[string][]string{{"apiKey": {}}}
		op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests)
		op.Description = "Needs a key of role " + string(role) + " or above."
	}

	return op
}
