// Command millwright is GitOps for software factories: it watches definition files, applies them, and
// serves the webhooks, runs and dashboard that they describe. See millwright help.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"millwright/runs/worker/confine"
)

// keepRun is the command by which this program calls itself to keep the processes of a run together. Nobody
// types it.
const keepRun = "keep-run"

func main() {
	if len(os.Args) > 1 && os.Args[1] == keepRun {
		os.Exit(confine.Keep(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// The exit statuses of every command (docs/cli.md).
const (
	exitGood        = 0
	exitProblem     = 1 // at least one error, or a refused request
	exitUsage       = 2
	exitUnreachable = 3 // could not check, or could not reach
)

// exit is an error with the status that the program ends with. A nil err prints nothing more.
type exit struct {
	status int
	err    error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

func usage(format string, args ...any) error { return &exit{exitUsage, fmt.Errorf(format, args...)} }

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run is the whole program: it runs the command that args name and returns its exit status.
func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	root := newRoot(streams{in, out, errw})
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitGood
	}
	if _, set, ok := strings.Cut(err.Error(), " none of the others can be; ["); ok {
		names, _, _ := strings.Cut(set, "]")
		err = usage("--%s exclude one another: give one of them", strings.Join(strings.Fields(names), " and --"))
	}
	var e *exit
	if !errors.As(err, &e) {
		e = &exit{exitProblem, err}
		if isUsage(err) {
			e.status = exitUsage
		}
	}
	if e.err != nil {
		fmt.Fprintf(errw, "millwright: %s\n", e.err)
	}
	return e.status
}

// isUsage recognises the errors that cobra itself makes of wrong arguments.
func isUsage(err error) bool {
	for _, prefix := range []string{"unknown command", "accepts ", "requires ", "required flag", "at least one of the flags"} {
		if strings.HasPrefix(err.Error(), prefix) {
			return true
		}
	}
	return false
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "millwright",
		Short: "GitOps for software factories",
		Long: `millwright watches the definition files of a software factory (webhooks/*.yaml,
automations/*/automation.md), validates and applies them, and serves the webhook
ingress, the runs API and the dashboard that they describe.`,
		Example: `  millwright init --demo .millwright/demo      make a factory to try
  millwright serve --dir ./factory             serve a directory
  millwright validate                          check the definition files here
  millwright run list                          what ran`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE:          help,
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		newServe(s), newWorker(s), newValidate(s), newPlan(s), newSync(s), newStatus(s), newSecret(s), newWebhook(s),
		newRun(s), newFilter(s), newKey(s), newBackup(s), newRestore(s), newSchema(s), newExplain(s), newConformance(s), newInit(s), newVersion(s),
	)
	nameArguments(root)
	for _, c := range root.Commands() {
		c.SuggestFor = append(c.SuggestFor, suggestions[c.Name()]...)
	}
	return root
}

// help is what a command does that only has commands of its own.
func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// noCommand refuses what is not a command of cmd, and names the one that was probably meant.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if all := cmd.SuggestionsFor(args[0]); len(all) > 0 {
		near := slices.MaxFunc(all, func(a, b string) int { return cmp.Compare(commonPrefix(a, args[0]), commonPrefix(b, args[0])) })
		for _, c := range cmd.Commands() {
			if slices.Contains(c.SuggestFor, args[0]) {
				near = c.Name()
			}
		}
		return usage("unknown command %q for %q: did you mean %q?", args[0], cmd.CommandPath(), near)
	}
	return usage("unknown command %q for %q (see %s --help)", args[0], cmd.CommandPath(), cmd.CommandPath())
}

// commonPrefix returns how many bytes a and b have in common at their beginning.
func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// suggestions are what people of other tools type.
var suggestions = map[string][]string{
	"serve":    {"server", "start", "up", "controller"},
	"validate": {"check", "lint", "test", "verify"},
	"plan":     {"diff"},
	"sync":     {"apply", "reconcile"},
	"webhook":  {"webhooks", "hook", "hooks"},
	"run":      {"runs", "job"},
	"secret":   {"secrets"},
	"key":      {"keys", "apikey", "token"},
	"backup":   {"dump", "snapshot"},
}

// flagError names the flag that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	if name, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
		if near := nearestFlag(cmd, name); near != "" {
			return usage("unknown flag --%s: did you mean --%s? (see %s --help)", name, near, cmd.CommandPath())
		}
		return usage("unknown flag --%s (see %s --help)", name, cmd.CommandPath())
	}
	return usage("%w (see %s --help)", err, cmd.CommandPath())
}
