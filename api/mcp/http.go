package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"millwright/api"
	"millwright/bounds"
)

// Path is where the API serves the protocol.
const Path = api.Base + "/mcp"

// MetadataPath is where clients learn how to authenticate (RFC 9728): at the path itself, and with Path
// behind it.
const MetadataPath = "/.well-known/oauth-protected-resource"

// HTTPConfig configures the endpoint. API and PublicURL are required.
type HTTPConfig struct {
	API *api.API
	// PublicURL is the origin under which clients reach the server.
	PublicURL string
	// CORSOrigins are further origins whose pages may call.
	CORSOrigins []string
	// Issuers returns the authorization servers whose tokens the API accepts; nil: none.
	Issuers func() []string
	// Version is the version of the program.
	Version string
}

// endpoint answers POST requests to Path.
type endpoint struct {
	HTTPConfig
	host    string // of PublicURL, with the port that it names
	catalog *catalog
	next    http.Handler
}

// serverKey is the context key of the server that answers a request.
type serverKey struct{}

// Register adds the endpoint to the API. It stores no sessions: each request stands alone.
func Register(cfg HTTPConfig) error {
	catalog, err := newCatalog()
	if err != nil {
		return err
	}
	return register(cfg, catalog)
}

func register(cfg HTTPConfig, catalog *catalog) error {
	public, err := url.Parse(cfg.PublicURL)
	if err != nil {
		return err
	}

	e := &endpoint{HTTPConfig: cfg, host: public.Host, catalog: catalog}
	e.PublicURL = public.Scheme + "://" + public.Host
	e.next = sdk.NewStreamableHTTPHandler(
		func(r *http.Request) *sdk.Server {
			s, _ := r.Context().Value(serverKey{}).(*sdk.Server)
			return s
		},
		&sdk.StreamableHTTPOptions{
			Stateless: true, JSONResponse: true, PropagateRequestCancellation: true,
			MaxRequestBodyBytes:        bounds.MaxBody + 1, // ours is checked before
			DisableLocalhostProtection: true,               // ours knows the public URL
		},
	)

	cfg.API.Router().Method(http.MethodPost, Path, e)
	return nil
}

// Metadata returns a handler of MetadataPath.
func Metadata(cfg HTTPConfig) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		document := map[string]any{
			"resource":                 strings.TrimSuffix(cfg.PublicURL, "/") + Path,
			"resource_name":            "millwright",
			"bearer_methods_supported": []string{"header"},
		}
		if cfg.Issuers != nil && len(cfg.Issuers()) > 0 {
			document["authorization_servers"] = cfg.Issuers()
		}

		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Access-Control-Allow-Origin", "*") // it is public
		json.NewEncoder(w).Encode(document)
	})
}

// ServeHTTP answers a message of a client.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if problem := e.foreign(r); problem != nil {
		e.API.Refuse(w, r, problem)
		return
	}

	challenge := `Bearer resource_metadata="` + e.PublicURL + MetadataPath + Path + `"`
	e.API.Authorised("", http.HandlerFunc(e.answer)).
		ServeHTTP(&challenging{ResponseWriter: w, challenge: challenge}, r)
}

// answer answers a message of a caller whose key is right.
func (e *endpoint) answer(w http.ResponseWriter, r *http.Request) {
	caller := api.CallerOf(r.Context())
	body, release, problem := e.API.ReceiveBody(r)
	if problem != nil {
		e.API.Refuse(w, r, problem)
		return
	}
	defer release()

	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		e.API.Refuse(w, r, api.Problem("invalid_request", "send one message, not a batch"))
		return
	}

	leave, ok := e.API.Bounds().Agents.Enter(r.Context(), caller.UID)
	if !ok {
		e.API.Refuse(w, r, api.Problem("resource_unavailable", "too many MCP requests: try again soon"))
		return
	}
	defer leave()

	server := e.catalog.server(Config{
		Call:    e.call(r.Context(), caller),
		Role:    caller.Role,
		Factory: r.URL.Query().Get("factory"),
		Version: e.Version,
	})
	again := r.WithContext(context.WithValue(r.Context(), serverKey{}, server))
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	e.next.ServeHTTP(w, again)
}

// call calls the API in this process, in the name of its caller, while the request of the client lasts.
func (e *endpoint) call(request context.Context, caller api.Caller) Call {
	return func(ctx context.Context, method, path string, in any, header ...string) ([]byte, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(request, cancel)()

		var out bytes.Buffer
		err := e.API.Call(ctx, caller, method, path, in, &out, header...)
		return out.Bytes(), err
	}
}

// foreign returns a problem for a request that a page of a stranger may have sent: one with the Origin of
// another site or, on a loopback address, a Host that DNS was made to point there.
func (e *endpoint) foreign(r *http.Request) *api.Error {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local != nil && loopback(local.String()) && !loopback(r.Host) && r.Host != e.host {
		return api.Problem("not_authorized", "Host is neither this machine nor the server's public URL")
	}

	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return nil
	}

	from, err := url.Parse(origins[0])
	known := err == nil && len(origins) == 1 &&
		(origins[0] == e.PublicURL || slices.Contains(e.CORSOrigins, origins[0]) ||
			loopback(r.Host) && loopback(from.Host))
	if !known {
		return api.Problem("not_authorized", "this Origin may not call: corsOrigins in the settings allows it")
	}
	return nil
}

// loopback reports whether a host, with or without a port, is this machine.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// challenging tells clients whose key is missing or wrong where to learn how to authenticate.
type challenging struct {
	http.ResponseWriter
	challenge string
}

// WriteHeader adds the challenge to an answer of status 401.
func (w *challenging) WriteHeader(status int) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", w.challenge)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the writer of the connection, for its deadlines.
func (w *challenging) Unwrap() http.ResponseWriter { return w.ResponseWriter }
