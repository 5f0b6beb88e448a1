// Package cli has the client commands of the program, and what all commands share: streams, exit statuses,
// errors of usage.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"millwright/schema"
	"millwright/state/audit"
)

// Usagef returns an error of wrong usage, which ends the program with ExitUsage.
func Usagef(format string, args ...any) error { return &Exit{ExitUsage, fmt.Errorf(format, args...)} }

// Streams are where a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Exclusive has a command refuse more than one of the flags.
func Exclusive(cmd *cobra.Command, names ...string) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !cmd.Flags().Changed(name) })
		if len(given) > 1 {
			return Usagef("--%s exclude one another: give one of them", strings.Join(given, " and --"))
		}
		return run(cmd, args)
	}
}

// Elsewhere returns a command that only Linux and macOS have. Here it refuses, whatever its arguments.
func Elsewhere(name string) func(Streams) *cobra.Command {
	return func(Streams) *cobra.Command {
		return &cobra.Command{
			Use:                name,
			Short:              "Runs on Linux and macOS only",
			DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error {
				return &Exit{ExitUnreachable, fmt.Errorf("millwright %s runs on Linux and macOS: use a container "+
					"or the Windows Subsystem for Linux, and the other commands here with --server", name)}
			},
		}
	}
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
		near := slices.MaxFunc(
			all,
			func(a, b string) int { return cmp.Compare(commonPrefix(a, args[0]), commonPrefix(b, args[0])) },
		)
		for _, c := range cmd.Commands() {
			if slices.Contains(c.SuggestFor, args[0]) {
				near = c.Name()
			}
		}

		return Usagef("unknown command %q for %q: did you mean %q?", args[0], cmd.CommandPath(), near)
	}

	return Usagef("unknown command %q for %q (see %s --help)", args[0], cmd.CommandPath(), cmd.CommandPath())
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
	"file":     {"files"},
	"revision": {"revisions", "history"},
	"rollback": {"undo", "revert"},
	"doctor":   {"health", "diagnose"},
	"audit":    {"log", "who"},
	"lsp":      {"language-server", "langserver"},
	"mcp":      {"agent-tools"},
	"key":      {"keys", "apikey", "token"},
	"backup":   {"dump", "snapshot"},
	"login":    {"signin", "auth"},
	"logout":   {"signout"},
}

// flagError names the flag that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		name := unknown.GetSpecifiedName()
		if near := nearestFlag(cmd, name); near != "" {
			return Usagef("unknown flag --%s: did you mean --%s? (see %s --help)", name, near, cmd.CommandPath())
		}
		return Usagef("unknown flag --%s (see %s --help)", name, cmd.CommandPath())
	}
	return Usagef("%w (see %s --help)", err, cmd.CommandPath())
}

func nearestFlag(cmd *cobra.Command, name string) string {
	var known []string
	shown := func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	}

	cmd.Flags().VisitAll(shown)
	cmd.InheritedFlags().VisitAll(shown)
	return schema.Nearest(strings.SplitN(name, "=", 2)[0], known)
}

// StartError gives the reasons why a server cannot start the status of "could not".
func StartError(err error) error {
	if errors.As(err, new(*Exit)) {
		return err
	}
	return &Exit{ExitUnreachable, err}
}

// EnvOr returns the environment variable, or fallback where it is unset or empty.
func EnvOr(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}

// atConsole returns a context of changes that a command on the machine of the state makes.
func atConsole(ctx context.Context) context.Context {
	by := audit.Actor{Kind: audit.KindConsole, Name: cmp.Or(os.Getenv("USER"), "console")}
	return audit.WithActor(ctx, by)
}
