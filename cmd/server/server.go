// Package server connects the parts that serve and worker run, with their background loops.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/admin"
	"millwright/api"
	"millwright/api/identity"
	"millwright/api/mcp"
	"millwright/bounds"
	"millwright/cmd/cli"
	"millwright/cmd/settings"
	"millwright/dashboard"
	"millwright/forge"
	"millwright/ingress"
	"millwright/outbox"
	"millwright/runs"
	"millwright/runs/dispatch"
	"millwright/runs/worker"
	"millwright/schema"
	"millwright/state"
	"millwright/trace"
)

// server has all parts that serve runs.
type server struct {
	cfg         settings.Settings
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error) // nil without TLS
	out         cli.Streams
	log         *slog.Logger
	registry    *prometheus.Registry
	bounds      *bounds.Bounds
	store       *state.Store
	condition   *condition
	ingress     *ingress.Ingress
	dispatch    *dispatch.Dispatcher
	outbox      *outbox.Outbox
	controllers *controllers
	forges      *forge.Set
	tracer      *trace.Tracer // nil: none
	retention   atomic.Pointer[settings.Retention]
	updates     chan worker.Update                // for the worker in this process
	running     atomic.Pointer[settings.Settings] // cfg, with the changes of reloads
	handler     http.Handler
	links       dashboard.Links
	api         *api.API
	tokens      *identity.Tokens
	login       atomic.Pointer[identity.Login] // nil: none
	loginSecret string
	listeners   []net.Listener
	closers     []func() error
}

// newLogin returns the sign-in of people at an issuer; nil if the settings have none.
func (srv *server) newLogin(cfg *settings.Settings) (*identity.Login, error) {
	login, err := cfg.LoginConfig(srv.loginSecret)
	if err != nil || login == nil {
		return nil, err
	}
	login.Log = srv.log
	return identity.NewLogin(*login), nil
}

// forgeSecret returns the current value of a secret of a forge.
func (srv *server) forgeSecret(ctx context.Context, name string) ([]byte, error) {
	value, err := srv.store.SecretValue(ctx, name)
	if errors.Is(err, state.ErrNotFound) {
		return nil, fmt.Errorf("the secret %q does not exist: millwright secret set %s", name, schema.ShellWord(name))
	}
	return value, err
}

// clusterListen is where an embedded server of a cluster takes clients when the settings do not say: it
// must take some to be ready.
func clusterListen(n settings.NATS) string {
	if len(n.Cluster) == 0 {
		return ""
	}
	return "127.0.0.1:0"
}

// notices returns the dashboard's notices for the operator.
func (srv *server) notices() []dashboard.Notice {
	var all []dashboard.Notice
	for _, n := range srv.ingress.Notices() {
		all = append(all, dashboard.Notice{Message: n.Message, Since: n.Since})
	}
	return append(all, srv.condition.Notices()...)
}

func (srv *server) registerAPI() {
	cfg, c := srv.cfg, srv.controllers
	runs.Register(
		srv.api,
		runs.Config{
			Store:      srv.store,
			Dispatcher: srv.dispatch,
			PublicURL:  cfg.PublicURL,
			Harnesses:  cfg.HarnessTypes(),
			Models:     func() (string, []string) { return srv.running.Load().Models() },
			Forges:     srv.forges, Environments: srv.environments,
			Looked: srv.outbox.Looked,
			Log:    srv.log,
			Tracer: srv.tracer,
		},
	)

	admin.Register(srv.api, admin.Config{
		Store:         srv.store,
		PublicURL:     cfg.PublicURL,
		Version:       cli.Version(),
		HarnessTypes:  cfg.HarnessTypes(),
		ForgeKinds:    srv.forges.Kinds,
		Log:           srv.log,
		Sync:          c.sync,
		PlanHead:      c.planHead,
		PushSecret:    c.pushSecret,
		Notice:        c.notice,
		Allowed:       c.allowed,
		SourceSecrets: c.sourceSecrets,
		MaxDeliveries: srv.ingress.MaxDeliveries,
		Replay: func(ctx context.Context, factoryUID, webhookUID, deliveryUID string, _ state.Key) (string, error) {
			r, err := srv.ingress.Replay(ctx, factoryUID, webhookUID, deliveryUID)
			return r.DeliveryUID, err
		},
	})
}

// agents returns how the API serves agents through the Model Context Protocol.
func (srv *server) agents() mcp.HTTPConfig {
	return mcp.HTTPConfig{
		API: srv.api, PublicURL: srv.cfg.PublicURL, CORSOrigins: srv.cfg.CORSOrigins, Version: cli.Version(),
		Issuers: func() []string { return srv.running.Load().Issuers() },
	}
}

// environments returns the environments of the settings.
func (srv *server) environments() map[string]schema.Environment {
	return srv.running.Load().EnvironmentsByName()
}

// outbound returns the addresses that are not public and that events of a factory may be sent to.
func (srv *server) outbound(factory string) []netip.Prefix {
	return srv.running.Load().OutboundOf(factory)
}

func (srv *server) onClose(f func() error) { srv.closers = append(srv.closers, f) }

// close undoes what newServer did, last first.
func (srv *server) close() error {
	var errs []error
	for i := len(srv.closers) - 1; i >= 0; i-- {
		errs = append(errs, srv.closers[i]())
	}
	srv.closers = nil
	return errors.Join(errs...)
}

// cloneDir is where git sources keep their clones.
func (srv *server) cloneDir() string {
	if path, ok := state.SQLitePath(srv.cfg.State); ok {
		return filepath.Join(filepath.Dir(path), "git")
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "millwright", "git")
}
