package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"

	"millwright/schema/report"
)

func newValidate(s Streams) *cobra.Command {
	var v validation
	var secrets string
	c := &Client{}
	cmd := &cobra.Command{
		Use:        "validate [PATH…]",
		SuggestFor: []string{"check", "fix", "lint"},
		Short:      "Check definition files; needs no server",
		Long: `Checks the definition trees at PATH (default .) and prints every problem with its place.
If PATH is a file of a tree, the command reads the whole tree and prints the problems of
that file.

Some rules need the state. They run with --secrets FILE, which has one secret a line, NAME
or NAME=value; or with --server URL, which tells whether a secret exists, never its value.
The summary names the rules that did not run.

Exit status 0: no errors; 1: errors, or warnings with --strict; 2: wrong usage; 3: could
not check everything.`,
		Example: `  millwright validate
  millwright validate factory --strict
  millwright validate --server https://hooks.example.com --factory payments
  millwright validate --format github                          in GitHub Actions
  millwright validate --format sarif=out.sarif --format text   a file for a tool, text for people
  millwright validate --watch --fix                            while editing`,
		RunE: func(cmd *cobra.Command, args []string) error {
			v.Streams, v.secrets = s, secrets
			if cmd.Flags().Changed("server") {
				if err := c.prepare(); err != nil {
					return err
				}
				v.server = c
			} else if c.factory != "" {
				return Usagef("--factory goes with --server")
			}

			if len(args) == 0 {
				args = []string{"."}
			}

			var err error
			if v.targets, err = targets(cmd, report.Formats()); err != nil {
				return err
			}
			if v.roots, err = roots(args); err != nil {
				return couldNotCheck(err)
			}
			if v.server != nil && len(v.roots) > 1 {
				return Usagef("--server judges one tree at a time: give one PATH")
			}
			if v.watch {
				return v.watching(cmd.Context())
			}

			_, err = v.once(cmd.Context())
			return err
		},
	}

	f := cmd.Flags()
	addFormatFlag(cmd, report.Formats())
	f.StringVar(&secrets, "secrets", "", "`FILE` that names the team secrets: a NAME a line, or NAME=value")
	f.StringVar(&c.Server, "server", "", "run the rules that need the state on the server at `URL`")
	f.StringVar(
		&c.factory,
		"factory",
		"",
		"with --server: name or UID of the `FACTORY`; needed if there are several",
	)

	f.BoolVar(&v.strict, "strict", false, "fail on warnings, too")
	f.BoolVar(&v.hosted, "hosted", false, "warn of keys that definitions of the hosted service do not have")
	f.BoolVar(
		&v.fix,
		"fix",
		false,
		"first repair what has one safe repair, such as a misspelt word or a file name instead of a UID",
	)

	f.BoolVarP(&v.watch, "watch", "w", false, "continue, and check again when a file changes")
	Exclusive(cmd, "secrets", "server")
	return cmd
}

// watching checks, and again whenever what it looked at changes, until ctx ends. It ends with the status
// of the last check.
func (v *validation) watching(ctx context.Context) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return couldNotCheck(fmt.Errorf("watching for changes: %w", err))
	}
	defer w.Close()

	fmt.Fprintln(v.Err, "watching for changes; Ctrl-C ends it")
	var last [sha256.Size]byte
	var status error
	first := true
	for {
		began := time.Now()
		rep, err := v.judge(ctx)
		if ctx.Err() != nil {
			return status
		}

		var e *Exit
		switch {
		case err != nil && (first || !errors.As(err, &e)):
			return err
		case err != nil: // such as a file of secrets that is being edited
			if status = err; e.err != nil {
				fmt.Fprintf(v.Err, "%s\n", e.err)
			}
			last = [sha256.Size]byte{}
		default:
			if mark := v.mark(); first || mark != last {
				if last = mark; !first {
					fmt.Fprintf(v.Err, "--- %s\n", began.Format(time.TimeOnly))
				}

				status = v.print(rep, time.Since(began))
				first = false
			}
		}

		if v.follow(w) {
			continue // something may have changed before its directory was watched
		}
		if !v.changed(ctx, w) {
			return status
		}
	}
}
