package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"millwright/cmd/cli"
	"millwright/cmd/settings"
)

// serveFlags are the flags of serve. They configure one factory without a settings file.
type serveFlags struct {
	config, state, listen, publicURL, masterKeyFile, metricsListen string
	dir, git, branch, path, factory, harness                       string
	natsListen, natsURL, natsCredentials, tlsCert, tlsKey          string
	logFormat, logLevel                                            string
	natsCluster                                                    []string
	interval, grace                                                time.Duration
	workers                                                        int
}

// NewServe returns the command that runs the server.
func NewServe(s cli.Streams) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the controller, ingress, API, dashboard and workers",
		Long: `Watches definition files, applies them, and serves their webhooks, runs and dashboard. Use
--dir or --git for one factory, or a settings file for several. Ctrl-C stops the server: it
finishes the requests in progress, and returns running runs to the queue.`,
		Example: `  millwright serve --dir ./factory
  millwright serve --git https://git.example.com/acme/factory.git --branch main --path .
  millwright serve --config millwright.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.settings(cmd)
			if err != nil {
				return err
			}

			log, err := newLog(s, f.logFormat, f.logLevel)
			if err != nil {
				return err
			}

			cli.CollectLate(cmd.Context())
			return serve(cmd.Context(), s, cfg, f.reload(cmd), log)
		},
	}

	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", os.Getenv("MILLWRIGHT_CONFIG"), "settings `FILE` (MILLWRIGHT_CONFIG)")
	fl.StringVar(
		&f.state,
		"state",
		cli.EnvOr("MILLWRIGHT_STATE", settings.DefaultState),
		"`DSN` of the state: a path, sqlite:PATH or postgres://… (MILLWRIGHT_STATE)",
	)

	fl.StringVar(
		&f.listen,
		"listen",
		cli.EnvOr("MILLWRIGHT_LISTEN", "127.0.0.1:8080"),
		"`ADDRESS` to listen on (MILLWRIGHT_LISTEN)",
	)

	fl.StringVar(
		&f.publicURL,
		"public-url",
		os.Getenv("MILLWRIGHT_PUBLIC_URL"),
		"`URL` of the server for senders (MILLWRIGHT_PUBLIC_URL, default http:// and the listen address)",
	)

	fl.StringVar(
		&f.masterKeyFile,
		"master-key-file",
		"",
		"`FILE` with the master key; default MILLWRIGHT_MASTER_KEY, then the file beside a SQLite state",
	)

	fl.StringVar(&f.dir, "dir", "", "watch this `DIRECTORY`")
	fl.StringVar(&f.git, "git", "", "watch a branch of this git repository: https, ssh or file `URL`")
	fl.StringVar(&f.branch, "branch", "", "with --git: the `BRANCH` (default main)")
	fl.StringVar(&f.path, "path", ".", "with --git: the definition's `DIRECTORY` in the repository")
	fl.StringVar(&f.factory, "factory", "default", "`NAME` of the factory, which identifies it")
	fl.DurationVar(
		&f.interval,
		"interval",
		0,
		"look at the source every `DURATION` (default 30s for git, 10s for a directory)",
	)

	fl.IntVar(&f.workers, "workers", 2, "execute at most `N` runs at once in this process; 0 with workers elsewhere")
	fl.StringVar(
		&f.natsListen,
		"nats-listen",
		os.Getenv("MILLWRIGHT_NATS_LISTEN"),
		"`ADDRESS` for workers on other machines (MILLWRIGHT_NATS_LISTEN)",
	)

	fl.StringSliceVar(
		&f.natsCluster,
		"nats-cluster",
		envList("MILLWRIGHT_NATS_CLUSTER"),
		"`ADDRESSES` of a cluster of embedded NATS servers, this one's first (MILLWRIGHT_NATS_CLUSTER)",
	)

	fl.StringVar(
		&f.natsURL,
		"nats-url",
		os.Getenv("MILLWRIGHT_NATS_URL"),
		"use the NATS servers at this `URL` (MILLWRIGHT_NATS_URL)",
	)

	fl.StringVar(
		&f.natsCredentials,
		"nats-credentials",
		os.Getenv("MILLWRIGHT_NATS_CREDENTIALS"),
		"with --nats-url: credentials `FILE` (MILLWRIGHT_NATS_CREDENTIALS)",
	)

	fl.StringVar(&f.harness, "harness", "", "the default harness, by `NAME` (default echo)")
	fl.StringVar(&f.logFormat, "log-format", "", "log as `text|json` (default text on a terminal, json elsewhere)")
	fl.StringVar(&f.logLevel, "log-level", "info", "log from this level on: `debug|info|warn|error`")
	fl.StringVar(&f.tlsCert, "tls-cert", "", "certificate `FILE`; serves https")
	fl.StringVar(&f.tlsKey, "tls-key", "", "key `FILE` of the certificate")
	fl.StringVar(
		&f.metricsListen,
		"metrics-listen",
		"",
		"serve /metrics without a key at this `ADDRESS` (default with a key at the main address)",
	)

	fl.DurationVar(&f.grace, "grace", 10*time.Second, "`DURATION` for requests and runs in progress at shutdown")
	cli.Exclusive(cmd, "dir", "git", "config")
	return cmd
}

// reload returns a function that reads the settings again, including flags, or nil without a settings file.
func (f *serveFlags) reload(cmd *cobra.Command) func() (settings.Settings, error) {
	if f.config == "" || f.dir != "" || f.git != "" {
		return nil
	}
	return func() (settings.Settings, error) {
		cfg, err := settings.Read(f.config)
		if err != nil {
			return cfg, err
		}

		if len(cfg.Factories) == 0 {
			return cfg, cli.Usagef(
				"%s: factories is missing or empty, which would end every factory: name at least one",
				f.config,
			)
		}

		return f.settings(cmd)
	}
}

func envList(name string) []string {
	if v := os.Getenv(name); v != "" {
		return strings.Split(v, ",")
	}
	return nil
}

// settings merges the settings file with the flags, which override it.
func (f *serveFlags) settings(cmd *cobra.Command) (settings.Settings, error) {
	var cfg settings.Settings
	if f.config != "" && f.dir == "" && f.git == "" {
		var err error
		if cfg, err = settings.Read(f.config); err != nil {
			return cfg, cli.Usagef("%w", err)
		}
	}

	given := cmd.Flags().Changed
	text := func(to *string, flag, value string) {
		if given(flag) || *to == "" {
			*to = value
		}
	}
	text(&cfg.State, "state", f.state)
	text(&cfg.Listen, "listen", f.listen)
	text(&cfg.PublicURL, "public-url", f.publicURL)
	text(&cfg.MasterKeyFile, "master-key-file", f.masterKeyFile)
	text(&cfg.MetricsListen, "metrics-listen", f.metricsListen)
	text(&cfg.Harness, "harness", f.harness)
	text(&cfg.NATS.Listen, "nats-listen", f.natsListen)
	text(&cfg.NATS.URL, "nats-url", f.natsURL)
	text(&cfg.NATS.Credentials, "nats-credentials", f.natsCredentials)
	text(&cfg.TLS.Cert, "tls-cert", f.tlsCert)
	text(&cfg.TLS.Key, "tls-key", f.tlsKey)
	if given("nats-cluster") || cfg.NATS.Cluster == nil {
		cfg.NATS.Cluster = f.natsCluster
	}
	if given("workers") || cfg.Workers == nil {
		cfg.Workers = &f.workers
	}
	if given("grace") || cfg.Grace == 0 {
		cfg.Grace = settings.Duration(f.grace)
	}
	if *cfg.Workers < 0 || *cfg.Workers > 1000 {
		return cfg, cli.Usagef("workers: want 0 to 1000")
	}

	switch {
	case f.dir != "":
		cfg.Factories = []settings.Factory{
			{Name: f.factory, Source: settings.Source{Dir: f.dir, Interval: settings.Duration(f.interval)}},
		}
	case f.git != "":
		cfg.Factories = []settings.Factory{
			{
				Name: f.factory,
				Source: settings.Source{
					Git: &settings.Git{
						URL:      f.git,
						Branch:   f.branch,
						Path:     f.path,
						Interval: settings.Duration(f.interval),
					},
				},
			},
		}
	}

	if len(cfg.Factories) == 0 {
		return cfg, cli.Usagef("nothing to serve: give --dir DIRECTORY, --git URL, or --config FILE with factories")
	}

	if cfg.PublicURL == "" {
		scheme := "http://"
		if cfg.TLS.Cert != "" {
			scheme = "https://"
		}

		cfg.PublicURL = scheme + cfg.Listen
	}

	if err := cfg.Check(); err != nil {
		return cfg, cli.Usagef("settings: %w", err)
	}

	return cfg, nil
}

func newLog(s cli.Streams, format, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, cli.Usagef("--log-level %q: want debug, info, warn or error", level)
	}

	opts := &slog.HandlerOptions{Level: l}
	if format == "" {
		format = "json"
		if f, ok := s.Err.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			format = "text"
		}
	}

	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(s.Err, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(s.Err, opts)), nil
	}

	return nil, cli.Usagef("--log-format %q: want text or json", format)
}

// serve runs the server until ctx ends.
func serve(
	ctx context.Context,
	s cli.Streams,
	cfg settings.Settings,
	reload func() (settings.Settings, error),
	log *slog.Logger,
) (err error) {
	srv, err := newServer(ctx, s, cfg, log)
	if ctx.Err() != nil {
		return nil // told to end while starting
	}
	if err != nil {
		return cli.StartError(err)
	}
	defer func() { err = errors.Join(err, srv.close()) }()
	return srv.run(ctx, reload)
}
