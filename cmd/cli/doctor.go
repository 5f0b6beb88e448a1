package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"millwright/api"
)

func newDoctor(s Streams) *cobra.Command {
	var c Client
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a server: its factories, webhooks and workers",
		Long: `Checks that the server answers, that each factory is applied, that each webhook has its
secret, and that a worker takes runs. Prints a line for each check.

Exit status 0: all is well; 1: something needs attention, such as a server that does not
answer.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := doctor{Streams: s, Client: &c}
			err := d.check(cmd.Context())
			if errors.Is(err, context.Canceled) {
				return err
			}

			var e *Exit
			if errors.As(err, &e) && e.Status == ExitUsage {
				return err
			}
			if err != nil {
				d.bad("%s", err)
			}

			if d.found > 0 {
				return &Exit{ExitProblem, nil}
			}
			return nil
		},
	}

	addClientFlags(cmd, &c, true)
	return cmd
}

// doctor prints what it finds.
type doctor struct {
	Streams
	*Client
	found int // what needs attention
}

func (d *doctor) ok(format string, args ...any) {
	fmt.Fprintf(d.Out, "ok   %s\n", clean(fmt.Sprintf(format, args...)))
}

func (d *doctor) bad(format string, args ...any) {
	d.found++
	fmt.Fprintf(d.Out, "bad  %s\n", clean(fmt.Sprintf(format, args...)))
}

func (d *doctor) check(ctx context.Context) error {
	resp, err := d.send(ctx, http.MethodGet, "/factory?limit=1", nil)
	if err != nil {
		return err
	}

	resp.Body.Close()
	d.ok("server %s answers", d.Server)
	if notice := versionNotice(resp.Header.Get(api.VersionHeader), nil); notice != "" {
		d.bad("%s", notice)
	}

	_, items, err := d.status(ctx)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		d.bad("the server has no factory")
	}

	for _, f := range items {
		if err := d.factoryOf(ctx, f); err != nil {
			return err
		}
	}

	return d.workers(ctx)
}

func (d *doctor) factoryOf(ctx context.Context, f FactoryItem) error {
	switch {
	case f.Suspended:
		d.bad("factory %s is suspended: resume it in the settings", f.Name)
	case f.Sync.State != "applied":
		d.bad("factory %s is %s: %s", f.Name, f.Sync.State, f.Sync.Message)
	default:
		d.ok("factory %s serves %s", f.Name, ShortRevision(f.Sync.AppliedRevision))
	}

	hooks, err := d.webhooks(ctx, factoryRef{f.UID, f.Name}, false)
	for _, w := range hooks {
		switch {
		case w.SecretPending:
			d.bad("webhook %s of %s answers 401: run millwright secret set %s", w.Name, f.Name, w.SecretName)
		case w.SecretStale:
			d.bad("webhook %s of %s uses an old value of %s: run millwright sync", w.Name, f.Name, w.SecretName)
		}
	}

	return err
}

func (d *doctor) workers(ctx context.Context) error {
	var list struct{ Workers []workerItem }
	if err := d.Get(ctx, "/workers?limit=500", &list); err != nil {
		return err
	}

	live, slots := 0, 0
	for _, w := range list.Workers {
		if w.Live {
			live++
			slots += w.Slots
		}
	}

	if live == 0 {
		d.bad("no worker takes runs: start one with millwright worker, or the server with --workers")
		return nil
	}

	d.ok("%d worker(s) take runs, %d at once", live, slots)
	return nil
}
