package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"millwright/api/mcp"
	"millwright/bounds"
	"millwright/cmd/cli"
	"millwright/cmd/settings"
	"millwright/ingress"
	"millwright/runs"
	"millwright/runs/dispatch"
	"millwright/state"
)

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

// routes returns the handler of all requests outside of the ingress.
func (srv *server) routes(pages http.Handler) http.Handler {
	metrics := promhttp.HandlerFor(srv.registry, promhttp.HandlerOpts{})
	mux := http.NewServeMux()
	mux.Handle("/", pages)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", srv.ready)
	mux.Handle(dispatch.RelayPath, srv.dispatch.Relay(srv.bounds, srv.api.SenderOf))
	metadata := mcp.Metadata(srv.agents())
	mux.Handle("GET "+mcp.MetadataPath, metadata)
	mux.Handle("GET "+mcp.MetadataPath+mcp.Path, metadata)
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
func (srv *server) wait(
	ctx context.Context, failed <-chan error, reload func() (settings.Settings, error),
) error {
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
