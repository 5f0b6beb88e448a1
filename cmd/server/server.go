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
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"millwright/admin"
	"millwright/api"
	"millwright/bounds"
	"millwright/cmd/cli"
	"millwright/cmd/settings"
	"millwright/dashboard"
	"millwright/forge"
	"millwright/ingress"
	"millwright/outbox"
	"millwright/reconcile"
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
		Store:      srv.store,
		Forges:     srv.forges,
		PublicURL:  cfg.PublicURL,
		Log:        log,
		Registerer: srv.registry,
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

	srv.controllers = &controllers{
		store:     srv.store,
		cloneDir:  srv.cloneDir(),
		harnesses: cfg.HarnessTypes(),
		most:      srv.ingress.MaxDeliveries,
		metrics:   metrics,
		log:       log,
		turns:     make(chan struct{}, 4),
	}

	srv.onClose(func() error { srv.controllers.close(); return nil })
	if err := srv.controllers.check(cfg.Factories); err != nil {
		return nil, cli.Usagef("%w", err)
	}

	srv.api = api.New(
		api.Config{
			Store:          srv.store,
			Version:        cli.Version(),
			PublicURL:      cfg.PublicURL,
			CORSOrigins:    cfg.CORSOrigins,
			TrustedProxies: proxies,
			Bounds:         srv.bounds,
			Done:           ctx.Done(),
			Log:            log,
		},
	)

	srv.registerAPI()
	pages, err := dashboard.New(dashboard.Config{
		Store:          srv.store,
		API:            srv.api,
		PublicURL:      cfg.PublicURL,
		TrustedProxies: proxies,
		Notices:        srv.notices,
		Links:          &srv.links, Done: ctx.Done(), Version: cli.Version(), Log: log,
	})
	if err != nil {
		return nil, err
	}

	srv.handler = srv.routes(pages)
	return srv, nil
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
			Log:    srv.log,
			Tracer: srv.tracer,
		},
	)

	admin.Register(srv.api, admin.Config{
		Store:         srv.store,
		PublicURL:     cfg.PublicURL,
		Version:       cli.Version(),
		HarnessTypes:  cfg.HarnessTypes(),
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

// environments returns the environments of the settings.
func (srv *server) environments() map[string]schema.Environment {
	return srv.running.Load().EnvironmentsByName()
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

// listen takes the ports first: a port in use is the commonest reason why a server cannot start.
func (srv *server) listen() error {
	for _, addr := range []string{srv.cfg.Listen, srv.cfg.MetricsListen} {
		if addr == "" {
			continue
		}

		l, err := net.Listen("tcp", addr)
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf(
				"cannot listen on %s: the port is in use: stop what listens there, or choose another "+
					"with --listen",
				addr,
			)
		}

		if err != nil {
			return fmt.Errorf("cannot listen on %s: %w", addr, err)
		}

		srv.listeners = append(srv.listeners, l)
		srv.onClose(func() error { l.Close(); return nil })
	}

	return nil
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

// routes returns the handler of all requests outside of the ingress.
func (srv *server) routes(pages http.Handler) http.Handler {
	metrics := promhttp.HandlerFor(srv.registry, promhttp.HandlerOpts{})
	mux := http.NewServeMux()
	mux.Handle("/", pages)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", srv.ready)
	if srv.cfg.MetricsListen == "" {
		mux.Handle("GET /metrics", srv.api.Authorised(state.RoleViewer, metrics))
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api" ||
			strings.HasPrefix(r.URL.Path, "/api/") { // as it is: no cleaning, no redirect, no page
			srv.api.ServeHTTP(w, r)
			return
		}

		mux.ServeHTTP(w, r)
	})
}

func (srv *server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, stop := context.WithTimeout(r.Context(), 2*time.Second)
	defer stop()
	if err := srv.store.Ping(ctx); err != nil || !srv.ingress.Ready() {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the state cannot be reached", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// maxMetricsConnections bounds the connections to metricsListen.
const maxMetricsConnections = 256

// run serves until ctx ends. Then it accepts nothing new, finishes requests in progress, and returns
// running runs to the queue, within the grace period.
func (srv *server) run(ctx context.Context, reload func() (settings.Settings, error)) error {
	proxies, err := srv.cfg.Proxies()
	if err != nil {
		return err
	}

	serverCfg := ingress.ServerConfig{
		Ingress:        srv.ingress,
		Fallback:       srv.handler,
		TrustedProxies: proxies,
		Bounds:         srv.bounds,
		TLS:            srv.certificate != nil,
		Log:            srv.log,
	}

	public := ingress.NewServer(serverCfg)
	listener := ingress.Limit(srv.listeners[0], serverCfg)
	if srv.certificate != nil {
		public.TLSConfig = &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: srv.certificate,
			NextProtos:     []string{"h2", "http/1.1"},
		}
	}

	srv.warn()

	failed := make(chan error, 2)
	go func() {
		if public.TLSConfig != nil {
			failed <- public.ServeTLS(listener, "", "")
		} else {
			failed <- public.Serve(listener)
		}
	}()

	if len(srv.listeners) > 1 {
		private := &http.Server{
			Handler:        promhttp.HandlerFor(srv.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}),
			ReadTimeout:    bounds.BodyTime,
			WriteTimeout:   time.Minute,
			IdleTimeout:    bounds.IdleTime,
			MaxHeaderBytes: bounds.MaxHeader,
		}
		own := ingress.ServerConfig{Bounds: bounds.New(bounds.Config{Connections: maxMetricsConnections})}
		go func() { failed <- private.Serve(ingress.Limit(srv.listeners[1], own)) }()
		defer private.Close()
	}

	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	var tasks sync.WaitGroup
	tasks.Go(func() { srv.announceApplies(background) })
	tasks.Go(func() { srv.housekeeping(background) })
	tasks.Go(func() { srv.outbox.Run(background) })
	tasks.Go(func() { srv.exchangeBudgets(background) })
	tasks.Go(func() { runs.Clock(background, srv.store, srv.tracer, srv.log) })
	workers, stopWorkers := context.WithCancel(background)
	defer stopWorkers()

	var working sync.WaitGroup
	if *srv.cfg.Workers > 0 {
		working.Go(func() {
			if err := srv.work(workers); err != nil {
				srv.log.Error("worker", "error", err)
			}
		})
	}

	srv.greet(ctx)
	if err = srv.controllers.configure(ctx, srv.cfg); err == nil {
		err = srv.wait(ctx, failed, reload)
	} else if ctx.Err() != nil {
		err = nil // told to end while starting
	}

	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(srv.cfg.Grace))
	defer cancel()

	srv.log.Info("stopping", "grace", time.Duration(srv.cfg.Grace).String())
	stopWorkers()
	shutdown := ingress.Shutdown(grace, public)
	srv.controllers.close()
	working.Wait()
	stop()
	tasks.Wait()
	if errors.Is(shutdown, context.DeadlineExceeded) {
		shutdown = nil
	}

	return errors.Join(err, shutdown)
}

// wait returns when ctx ends or a listener fails, and reloads the settings on SIGHUP meanwhile.
func (srv *server) wait(ctx context.Context, failed <-chan error, reload func() (settings.Settings, error)) error {
	hup, stop := hangUps()
	defer stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return fmt.Errorf("serving: %w", err)
		case <-hup:
			if reload == nil {
				srv.log.Warn("no settings file to reload: the server was started with flags")
				continue
			}

			next, err := reload()
			if err == nil {
				err = srv.reload(ctx, next)
			}
			if err != nil {
				srv.log.Error("the settings were not reloaded; the old ones stay", "error", err)
			}
		}
	}
}

// warn logs warnings about the settings at start.
func (srv *server) warn() {
	host, _, _ := net.SplitHostPort(srv.cfg.Listen)
	if srv.cfg.TLS.Cert == "" && !cli.IsLoopback(host) {
		srv.log.Warn(
			"listening off loopback without TLS: credentials travel in clear unless a proxy in front has "+
				"a certificate",
			"listen",
			srv.cfg.Listen,
		)
	}

	public := strings.TrimPrefix(srv.cfg.PublicURL, "http://")
	if public != srv.cfg.PublicURL {
		if host, _, err := net.SplitHostPort(public); err != nil || !cli.IsLoopback(host) {
			srv.log.Warn(
				"the public URL is http: senders are told to send credentials in clear",
				"public_url",
				srv.cfg.PublicURL,
			)
		}
	}
}
