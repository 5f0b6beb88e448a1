// Package server connects the parts that serve and worker run, with their background loops.
package server

import (
	"cmp"
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
	"github.com/prometheus/client_golang/prometheus/collectors"

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
	"millwright/reconcile"
	"millwright/reconcile/pulls"
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

// newServer opens the state and all parts on it, and listens. It does not serve yet. If it fails, it closes
// what it opened.
func newServer(ctx context.Context, s cli.Streams, cfg settings.Settings, log *slog.Logger) (_ *server, err error) {
	srv := &server{
		cfg:      cfg,
		out:      s,
		log:      log,
		registry: prometheus.NewRegistry(),
		updates:  make(chan worker.Update, 1),
	}

	srv.retention.Store(&cfg.Retention)
	srv.running.Store(&cfg)
	defer func() {
		if err != nil {
			srv.close()
		}
	}()

	srv.bounds = bounds.New(bounds.Config{Registerer: srv.registry})
	srv.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	proxies, err := cfg.Proxies()
	if err != nil {
		return nil, err
	}

	if cfg.TLS.Cert != "" {
		certs, err := newCertificates(cfg.TLS.Cert, cfg.TLS.Key, log)
		if err != nil {
			return nil, err
		}

		srv.certificate = certs.get
	}

	if *cfg.Workers > 0 {
		if err := cfg.HarnessUpdate().Check(); err != nil {
			return nil, err
		}
	}

	if err := srv.listen(); err != nil {
		return nil, err
	}
	if err := srv.openState(ctx); err != nil {
		return nil, err
	}

	if srv.forges, err = forge.Open(cfg.ForgeConfig(srv.forgeSecret)); err != nil {
		return nil, cli.Usagef("settings: %w", err)
	}

	srv.condition = newCondition(srv.store)
	if err := srv.registry.Register(srv.condition); err != nil {
		return nil, err
	}
	if srv.tracer, err = newTracer(ctx, &cfg, log); err != nil {
		return nil, err
	}

	srv.onClose(func() error { return closeTracer(srv.tracer) })
	if srv.outbox, err = outbox.New(outbox.Config{
		Store:        srv.store,
		Forges:       srv.forges,
		Environments: srv.environments,
		Checks:       func(uid string) bool { return srv.controllers.checked(uid) },
		PublicURL:    cfg.PublicURL,
		Outbound:     srv.outbound,
		Log:          log,
		Registerer:   srv.registry,
	}); err != nil {
		return nil, err
	}

	if srv.ingress, err = ingress.New(ctx, ingress.Config{
		Store: srv.store, PublicURL: cfg.PublicURL, TrustedProxies: proxies,
		DeliveriesPerMinute: int(cfg.Limits.DeliveriesPerMinute),
		FailedAuthPerMinute: int(cfg.Limits.FailedAuthPerMinute),
		Bounds:              srv.bounds,
		InFlightBytes:       int64(cfg.Limits.InFlightBytes),
		Log:                 log,
		Registerer:          srv.registry,
		Own:                 srv.outbox.Own,
		Ask:                 srv.askForge,
		Tracer:              srv.tracer,
	}); err != nil {
		return nil, err
	}

	if err := srv.store.SetBudget(ctx, serverBudget(cfg.Limits.Budget)); err != nil {
		return nil, err
	}

	srv.ingress.SetMaxDeliveries(int(cfg.Limits.MaxDeliveries))
	srv.onClose(func() error { return srv.ingress.Close(context.WithoutCancel(ctx)) })
	if srv.dispatch, err = dispatch.Start(ctx, dispatch.Config{
		Store:       srv.store,
		Listen:      cmp.Or(cfg.NATS.Listen, clusterListen(cfg.NATS)),
		Cluster:     cfg.NATS.Cluster,
		URL:         cfg.NATS.URL,
		Credentials: cfg.NATS.Credentials,
		Forges:      srv.forges, Environments: srv.environments,
		PublicURL:   cfg.PublicURL,
		Certificate: srv.certificate, Prices: prices(cfg.Prices),
		FactoryRuns: cfg.Limits.RunsPerFactory, AutomationRuns: cfg.Limits.RunsPerAutomation,
		Log: log, Registerer: srv.registry, Tracer: srv.tracer,
	}); err != nil {
		return nil, err
	}

	srv.onClose(func() error { srv.dispatch.Close(context.WithoutCancel(ctx)); return nil })
	metrics, err := reconcile.NewMetrics(srv.registry)
	if err != nil {
		return nil, err
	}

	pullMetrics, err := pulls.NewMetrics(srv.registry)
	if err != nil {
		return nil, err
	}

	srv.controllers = &controllers{
		store:     srv.store,
		cloneDir:  srv.cloneDir(),
		harnesses: cfg.HarnessTypes(),
		forges:    srv.forges,
		most:      srv.ingress.MaxDeliveries,
		metrics:   metrics,
		log:       log,

		pullMetrics: pullMetrics,

		turns: make(chan struct{}, 4),
	}

	srv.onClose(func() error { srv.controllers.close(); return nil })
	if err := srv.controllers.check(cfg.Factories); err != nil {
		return nil, cli.Usagef("%w", err)
	}

	if srv.loginSecret = os.Getenv(settings.LoginSecret); srv.loginSecret != "" {
		os.Unsetenv(settings.LoginSecret) // a harness of this process tree must not find it
	}
	login, err := srv.newLogin(&cfg)
	if err != nil {
		return nil, cli.Usagef("settings: %w", err)
	}

	srv.login.Store(login)
	srv.tokens = identity.New(identity.Config{Log: log})
	srv.tokens.Configure(cfg.TokenRules())
	srv.api = api.New(
		api.Config{
			Store:          srv.store,
			Version:        cli.Version(),
			PublicURL:      cfg.PublicURL,
			CORSOrigins:    cfg.CORSOrigins,
			TrustedProxies: proxies,
			Tokens:         srv.tokens,
			Bounds:         srv.bounds,
			Done:           ctx.Done(),
			Log:            log,
		},
	)

	srv.registerAPI()
	if err := mcp.Register(srv.agents()); err != nil {
		return nil, err
	}

	pages, err := dashboard.New(dashboard.Config{
		Store:          srv.store,
		API:            srv.api,
		PublicURL:      cfg.PublicURL,
		TrustedProxies: proxies,
		Notices:        srv.notices,
		Login:          srv.login.Load,
		Looked:         srv.outbox.Looked,
		Links:          &srv.links, Done: ctx.Done(), Version: cli.Version(), Log: log,
	})
	if err != nil {
		return nil, err
	}

	srv.handler = srv.routes(pages)
	return srv, nil
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
