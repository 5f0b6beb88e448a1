// Package server wires what serve and worker run, with their background loops.
package server

import (
	"bytes"
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
	"golang.org/x/term"

	"millwright/admin"
	"millwright/api"
	"millwright/bounds"
	"millwright/cmd/cli"
	"millwright/cmd/settings"
	"millwright/dashboard"
	"millwright/ingress"
	"millwright/reconcile"
	"millwright/runs"
	"millwright/runs/dispatch"
	"millwright/runs/worker"
	"millwright/runs/worker/confine"
	"millwright/state"
	"millwright/trace"
)

// server is everything that serve runs, wired together.
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
	controllers *controllers
	tracer      *trace.Tracer // nil: none
	retention   atomic.Pointer[settings.Retention]
	updates     chan worker.Update // for the worker in this process
	running     settings.Settings  // cfg, and what a reload changed of it since
	handler     http.Handler
	api         *api.API
	listeners   []net.Listener
	closers     []func() error
}

// newServer opens the state and everything on it, and listens. Nothing is served yet. What it opened is
// closed again when it fails.
func newServer(ctx context.Context, s cli.Streams, cfg settings.Settings, log *slog.Logger) (_ *server, err error) {
	srv := &server{
		cfg:      cfg,
		out:      s,
		log:      log,
		registry: prometheus.NewRegistry(),
		updates:  make(chan worker.Update, 1),
		running:  cfg,
	}

	srv.retention.Store(&cfg.Retention)
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

	srv.condition = newCondition(srv.store)
	if err := srv.registry.Register(srv.condition); err != nil {
		return nil, err
	}
	if srv.tracer, err = newTracer(ctx, &cfg, log); err != nil {
		return nil, err
	}

	srv.onClose(func() error { return closeTracer(srv.tracer) })
	if srv.ingress, err = ingress.New(ctx, ingress.Config{
		Store: srv.store, PublicURL: cfg.PublicURL, TrustedProxies: proxies,
		DeliveriesPerMinute: cfg.Limits.DeliveriesPerMinute, FailedAuthPerMinute: cfg.Limits.FailedAuthPerMinute,
		Bounds: srv.bounds, InFlightBytes: int64(cfg.Limits.InFlightBytes), Log: log, Registerer: srv.registry, Tracer: srv.tracer,
	}); err != nil {
		return nil, err
	}

	srv.onClose(func() error { return srv.ingress.Close(context.WithoutCancel(ctx)) })
	if srv.dispatch, err = dispatch.Start(ctx, dispatch.Config{
		Store: srv.store, Listen: cmp.Or(cfg.NATS.Listen, clusterListen(cfg.NATS)), Cluster: cfg.NATS.Cluster, URL: cfg.NATS.URL, Credentials: cfg.NATS.Credentials,
		Certificate: srv.certificate, Log: log, Registerer: srv.registry, Tracer: srv.tracer,
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
		Store: srv.store, API: srv.api, PublicURL: cfg.PublicURL, TrustedProxies: proxies, Notices: srv.notices,
		Done: ctx.Done(), Version: cli.Version(), Log: log,
	})
	if err != nil {
		return nil, err
	}

	srv.handler = srv.routes(pages)
	return srv, nil
}

// clusterListen is where an embedded server of a cluster takes clients when the settings do not say: it
// must take some to be ready.
func clusterListen(n settings.NATS) string {
	if len(n.Cluster) == 0 {
		return ""
	}
	return "127.0.0.1:0"
}

// notices are what the dashboard tells the operator.
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
			Log:        srv.log,
			Tracer:     srv.tracer,
		},
	)

	admin.Register(srv.api, admin.Config{
		Store: srv.store, PublicURL: cfg.PublicURL, Version: cli.Version(), HarnessTypes: cfg.HarnessTypes(), Log: srv.log,
		Sync: c.sync, PlanHead: c.planHead, PushSecret: c.pushSecret, Notice: c.notice, Allowed: c.allowed, SourceSecrets: c.sourceSecrets,
		Replay: func(ctx context.Context, factoryUID, webhookUID, deliveryUID string, _ state.Key) (string, error) {
			r, err := srv.ingress.Replay(ctx, factoryUID, webhookUID, deliveryUID)
			return r.DeliveryUID, err
		},
	})
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
				"cannot listen on %s: the port is in use: stop what listens there, or choose another with --listen",
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

func (srv *server) openState(ctx context.Context) error {
	cfg := srv.cfg
	key, err := state.LoadMasterKey(cfg.State, os.Getenv("MILLWRIGHT_MASTER_KEY"), cfg.MasterKeyFile)
	if err != nil {
		return err
	}
	if srv.store, err = state.Open(ctx, state.Config{DSN: cfg.State, MasterKey: key, Log: srv.log}); err != nil {
		return err
	}

	srv.onClose(srv.store.Close)
	hideMemory(srv.log)
	given := os.Getenv("MILLWRIGHT_BOOTSTRAP_KEY")
	for _, name := range []string{"MILLWRIGHT_MASTER_KEY", "MILLWRIGHT_BOOTSTRAP_KEY"} {
		os.Unsetenv(name) // a harness of this process tree must not find them
	}

	return bootstrap(ctx, srv.out, srv.store, cfg.State, given, srv.log)
}

// hideMemory closes the memory of this process to harnesses of its own user.
func hideMemory(log *slog.Logger) {
	if err := confine.HideMemory(); err != nil {
		log.Warn("harnesses with sameUser can read the secrets in the memory of this process", "error", err)
	}
}

// bootstrap makes the first API key: the given one, or a random one that is written beside a SQLite
// state and shown on a terminal. The file comes first, so that no key is made that nobody has.
func bootstrap(ctx context.Context, s cli.Streams, store *state.Store, dsn, given string, log *slog.Logger) error {
	if given != "" {
		if len(given) < 32 {
			return errors.New("MILLWRIGHT_BOOTSTRAP_KEY is too short: want at least 32 characters")
		}

		made, err := store.Bootstrap(ctx, given)
		if err != nil || made {
			return err
		}
		if _, err = store.KeyBySecret(ctx, given); !errors.Is(err, state.ErrNotFound) {
			return err
		}

		log.Warn("MILLWRIGHT_BOOTSTRAP_KEY is ignored: the state has API keys already, and this is none of them; " +
			"make one with millwright key create NAME --role admin --local")
		return nil
	}

	keys, err := store.Keys(ctx)
	if err != nil || len(keys) > 0 {
		return err
	}

	f, terminal := s.Out.(*os.File)
	terminal = terminal && term.IsTerminal(int(f.Fd()))
	key := state.NewToken(state.KeyPrefix)
	if path, ok := state.SQLitePath(dsn); ok {
		if key, err = adminKey(settings.AdminKeyFile(path), key); err != nil {
			return fmt.Errorf("admin key: %w", err)
		}
	} else if !terminal {
		return errors.New("the state has no API key yet: set MILLWRIGHT_BOOTSTRAP_KEY for the first start")
	}

	made, err := store.Bootstrap(ctx, key)
	if err == nil && made && terminal {
		fmt.Fprintf(s.Out, "admin key, shown once: %s\n", key)
	}

	return err
}

// adminKey writes a new key to file and returns it, or the one that is there: that of another state in
// the same directory, or of a start that was cut short.
func adminKey(file, key string) (string, error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		have, err := os.ReadFile(file)
		if err == nil && len(bytes.TrimSpace(have)) < 32 {
			err = fmt.Errorf("%s holds no key: remove it", file)
		}

		return string(bytes.TrimSpace(have)), err
	}

	if err != nil {
		return "", err
	}

	_, err = f.WriteString(key + "\n")
	return key, errors.Join(err, f.Sync(), f.Close())
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

// routes says which handler answers what is not the ingress's.
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

// run serves until ctx ends, then takes nothing new, finishes what is in flight, and hands running runs
// back, within the grace period.
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
			Handler:     promhttp.HandlerFor(srv.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}),
			ReadTimeout: bounds.BodyTime, WriteTimeout: time.Minute, IdleTimeout: bounds.IdleTime, MaxHeaderBytes: bounds.MaxHeader,
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

	fmt.Fprintf(srv.out.Out, "millwright %s listens on %s\n", cli.Version(), srv.listeners[0].Addr())
	if err = srv.controllers.configure(ctx, srv.cfg.Factories, srv.cfg.SharedSecrets); err == nil {
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

func (srv *server) work(ctx context.Context) error {
	client, err := srv.dispatch.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	cfg := workerConfig(&srv.cfg)
	cfg.Client, cfg.Log, cfg.Registerer, cfg.Tracer, cfg.Updates = client, srv.log, srv.registry, srv.tracer, srv.updates
	return worker.Run(ctx, cfg)
}

// workerGrace is how long runs may go on at the end, so that a harness which has to be killed, five
// seconds after it was asked to stop, is gone when the program's own grace is over.
func workerGrace(grace time.Duration) time.Duration {
	return max(time.Millisecond, min(grace, 2*(grace-5500*time.Millisecond)))
}

// worker says how this process executes runs.
func workerConfig(cfg *settings.Settings) worker.Config {
	u := cfg.HarnessUpdate()
	return worker.Config{
		Slots: *cfg.Workers, Default: u.Default, Grace: workerGrace(time.Duration(cfg.Grace)), Harnesses: u.Harnesses,
		Keeper: []string{os.Args[0], KeepRun},
	}
}

// tracer makes what sends traces, nil when the settings and the environment name no receiver.
func newTracer(ctx context.Context, cfg *settings.Settings, log *slog.Logger) (*trace.Tracer, error) {
	return trace.New(ctx, trace.Config{Endpoint: cfg.OTLPEndpoint, Version: cli.Version(), Log: log})
}

// closeTracer sends the last spans. A receiver that is not there holds up the end for two seconds.
func closeTracer(t *trace.Tracer) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	t.Close(ctx) // why it cannot was logged
	return nil
}

// warn says at start what an operator should not have to find out.
func (srv *server) warn() {
	host, _, _ := net.SplitHostPort(srv.cfg.Listen)
	if srv.cfg.TLS.Cert == "" && !cli.IsLoopback(host) {
		srv.log.Warn(
			"listening off loopback without TLS: credentials travel in clear unless a proxy in front has a certificate",
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
