package cli

import (
	"bytes"
	"context"
	"fmt"
	"time"

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

// validation is one run of validate.
type validation struct {
	Streams
	checker
	targets    []target
	secrets    string // a file; none when empty
	fix, watch bool
}

// once checks, prints, and returns the report with an error that holds the exit status.
func (v *validation) once(ctx context.Context) (*report.Report, error) {
	began := time.Now()
	rep, err := v.judge(ctx)
	if err != nil {
		return nil, err
	}
	return rep, v.print(rep, time.Since(began))
}

// judge checks, after it has mended what it may.
func (v *validation) judge(ctx context.Context) (*report.Report, error) {
	v.known = nil
	if v.secrets != "" {
		var err error
		if v.known, err = readSecrets(v.secrets); err != nil {
			return nil, err
		}
	}

	v.noting = v.watch
	fixed := 0
	for range maxFixes {
		rep, err := v.check(ctx)
		if err != nil || !v.fix {
			return rep, err
		}

		n, err := v.mend()
		if err != nil {
			return nil, err
		}

		fixed += n
		if rep.Fixed = fixed; n == 0 {
			return rep, nil
		}
	}

	rep, err := v.check(ctx)
	if err == nil {
		rep.Fixed = fixed
	}

	return rep, err
}

// print writes the report to every target, and to standard error how long it took, with the summary where
// standard output has no text.
func (v *validation) print(rep *report.Report, took time.Duration) error {
	err := v.write(v.targets, func(format string, color bool) ([]byte, error) {
		rep.Color = color
		var b bytes.Buffer
		err := report.Write(&b, format, rep)
		return b.Bytes(), err
	})
	if err != nil {
		return err
	}

	line := ""
	if !v.speaks() {
		line = rep.Summary() + "; "
		for _, n := range rep.Notices {
			fmt.Fprintf(v.Err, "note: %s\n", clean(n))
		}
	}

	fmt.Fprintf(v.Err, "%stook %s\n", line, took.Round(100*time.Microsecond))
	switch rep.Outcome() {
	case report.Good:
		return nil
	case report.Bad:
		return &Exit{ExitProblem, nil}
	}

	return &Exit{ExitUnreachable, nil}
}

// speaks reports whether standard output gets text for people.
func (v *validation) speaks() bool {
	for _, t := range v.targets {
		if t.stdout() && t.format == "text" {
			return true
		}
	}
	return false
}
