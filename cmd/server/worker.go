package server

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"millwright/cmd/cli"
	"millwright/cmd/settings"
	"millwright/runs/wire"
	"millwright/runs/worker"
)

// NewWorker returns the command that runs workers alone.
func NewWorker(s cli.Streams) *cobra.Command {
	var config, natsURL, credentials, harness, name, logFormat, logLevel string
	var slots int
	var grace time.Duration
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run only workers, on any machine; or list the workers of a server",
		Long: `Executes runs for a server elsewhere. The worker needs the NATS address of the server and the
credentials of a worker. It needs neither the database nor the master key. SIGHUP reloads the
harnesses of its settings file.`,
		Example: `  millwright key create build-host --role worker > worker.key        on the server
  millwright worker --nats-url tls://factory.example.com:4222 --nats-credentials worker.key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			read := func() (settings.Settings, error) {
				cfg := settings.Settings{Workers: &slots, Harness: harness, Grace: settings.Duration(grace)}
				if config == "" {
					return cfg, nil
				}

				cfg, err := settings.Read(config)
				cfg.Workers = &slots // the workers of the file are those of a server
				cfg.Harness = cmp.Or(harness, cfg.Harness)
				cfg.Grace = cmp.Or(cfg.Grace, settings.Duration(grace))
				return cfg, err
			}

			cfg, err := read()
			if err != nil {
				return cli.Usagef("%w", err)
			}

			natsURL, credentials = cmp.Or(natsURL, cfg.NATS.URL), cmp.Or(credentials, cfg.NATS.Credentials)
			if natsURL == "" {
				return cli.Usagef("no server: give --nats-url URL")
			}
			if slots < 1 || slots > 1000 {
				return cli.Usagef("--slots: want 1 to 1000")
			}

			log, err := newLog(s, logFormat, logLevel)
			if err != nil {
				return err
			}

			hideMemory(log)
			client, err := wire.Connect(cmd.Context(), natsURL, credentials, name, log)
			if err != nil {
				return cli.StartError(err)
			}
			defer client.Close()

			w := workerConfig(&cfg)
			if w.Tracer, err = newTracer(cmd.Context(), &cfg, log); err != nil {
				return err
			}
			defer closeTracer(w.Tracer)

			updates := make(chan worker.Update, 1)
			w.Client, w.Log, w.Updates = client, log, updates
			go reloadHarnesses(cmd.Context(), read, updates, log)
			fmt.Fprintf(s.Out, "worker %s takes runs, %d at once\n", client.UID(), *cfg.Workers)
			return worker.Run(cmd.Context(), w)
		},
	}

	f := cmd.Flags()
	f.StringVar(
		&config,
		"config",
		os.Getenv("MILLWRIGHT_CONFIG"),
		"read harnesses from the settings `FILE` (MILLWRIGHT_CONFIG)",
	)

	f.StringVar(
		&natsURL,
		"nats-url",
		os.Getenv("MILLWRIGHT_NATS_URL"),
		"`URL` of the server's NATS (MILLWRIGHT_NATS_URL)",
	)

	f.StringVar(
		&credentials,
		"nats-credentials",
		os.Getenv("MILLWRIGHT_NATS_CREDENTIALS"),
		"credentials `FILE` (MILLWRIGHT_NATS_CREDENTIALS)",
	)

	cli.AddAlias(cmd, "nats-url", "nats", "")
	cli.AddAlias(cmd, "nats-credentials", "credentials", "")
	f.StringVar(&name, "name", "", "`UID` of this worker, if the credentials have none")
	f.StringVar(&harness, "harness", "", "the default harness, by `NAME` (default echo)")
	f.IntVar(&slots, "slots", 2, "execute at most `N` runs at once")
	f.DurationVar(
		&grace,
		"grace",
		10*time.Second,
		"return running runs to the server within this `DURATION` at the end",
	)
	f.StringVar(&logFormat, "log-format", "", "log as `text|json` (default text on a terminal, json elsewhere)")
	f.StringVar(&logLevel, "log-level", "info", "log from this level on: `debug|info|warn|error`")
	cmd.AddCommand(cli.NewWorkerList(s))
	return cmd
}
