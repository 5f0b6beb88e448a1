package cli

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"

	"github.com/spf13/cobra"

	"millwright/cmd/settings"
	"millwright/state"
)

func newDoctor(s Streams) *cobra.Command {
	var c Client
	var f stateFlags
	var out output
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check an installation and its server, and show what to do",
		Long: `Checks the installation on this machine: settings, keys, database, clock, git, the programs
of harnesses, the tokens of forges, disk. It reads the state that serve would use, also
while a server uses it, and changes nothing. Without a state here it leaves these out.

Then it checks the server: factories, webhooks, workers, and that the public URL reaches
it. For this it sends one delivery without credentials to a webhook, which refuses and
logs it. Run it on another machine, with --server, to test the way from outside.

Prints ok, warn or bad for each check, and what to do.

Exit status 0: nothing is bad; 1: something is, such as a server that does not answer.`,
		Example: `  millwright doctor
  millwright doctor --config /etc/millwright/millwright.yaml
  millwright doctor --server https://hooks.example.com -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := doctor{Streams: s, Client: &c, out: out}
			if err := d.installation(cmd.Context(), &f); err != nil {
				return err
			}

			err := d.server(cmd.Context())
			if errors.Is(err, context.Canceled) {
				return err
			}

			if e, ok := errors.AsType[*Exit](err); ok && e.Status == ExitUsage {
				return err
			}
			if err != nil {
				d.bad("server", "", "%s", err)
			}

			return d.end()
		},
	}

	addClientFlags(cmd, &c, true)
	addOutputFlag(cmd, &out)
	f.add(cmd)
	return cmd
}

// installation checks what is on this machine, if flags, environment or the working directory name a state.
func (d *doctor) installation(ctx context.Context, f *stateFlags) error {
	if f.config == "" && f.state == "" && os.Getenv("MILLWRIGHT_STATE") == "" {
		if _, err := os.Stat(settings.DefaultState); err != nil {
			return nil
		}
	}

	var cfg settings.Settings
	if f.config != "" {
		var err error
		if cfg, err = settings.Read(f.config); err != nil {
			d.bad("settings", "correct the file; docs/operating/settings.md describes its keys", "%s", err)
			return nil
		}
		d.ok("settings", "settings %s have no errors", f.config)
	}

	cfg.State = cmp.Or(f.state, cfg.State, os.Getenv("MILLWRIGHT_STATE"), settings.DefaultState)
	cfg.MasterKeyFile = cmp.Or(f.masterKeyFile, cfg.MasterKeyFile)
	store := d.database(ctx, &cfg)
	if store != nil {
		defer store.Close()
		d.adminKey(ctx, store, &cfg)
	}

	d.clock()
	d.git(ctx)
	d.agents(&cfg)
	if store != nil {
		d.forges(ctx, store, &cfg)
	}
	d.disk(&cfg)
	d.ownServer(&cfg)
	return ctx.Err()
}

// ownServer has the checks of the server ask the one of the settings, if neither flags nor environment name
// one and this machine has its key.
func (d *doctor) ownServer(cfg *settings.Settings) {
	if d.Server != "" {
		return
	}

	if path, sqlite := state.SQLitePath(cfg.State); sqlite && d.Key == "" {
		d.keyFile = settings.AdminKeyFile(path)
		d.Key = cmp.Or(os.Getenv("MILLWRIGHT_API_KEY"), d.localKey(cfg.State))
	}
	if cfg.TLS.Cert != "" {
		d.Server = cfg.PublicURL
		return
	}
	d.Server = "http://" + dialable(cmp.Or(cfg.Listen, EnvOr("MILLWRIGHT_LISTEN", "127.0.0.1:8080")))
}

// dialable returns the address by which this machine reaches what listens on an address.
func dialable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
