package server

import (
	"cmp"
	"context"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

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
	"millwright/runs/dispatch"
	"millwright/runs/worker"
)

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
