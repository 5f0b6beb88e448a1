package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

// nameArguments makes cmd and the commands below it say which argument is missing or too much, by the names
// in their usage lines.
func nameArguments(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		nameArguments(c)
	}

	check := cmd.Args
	if check == nil || cmd.HasSubCommands() {
		return
	}

	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		var decided *Exit
		if err == nil || errors.As(err, &decided) {
			return err
		}

		names := strings.Fields(cmd.Use)[1:]
		if len(args) < len(names) {
			missing := names[len(args)]
			for _, name := range names[len(args):] {
				if !strings.HasPrefix(name, "[") {
					missing = name
					break
				}
			}

			return Usagef(
				"%s is missing: want %s (see %s --help)",
				missing,
				cmd.UseLine(),
				cmd.CommandPath(),
			)
		}

		return Usagef(
			"unexpected argument %q: want %s (see %s --help)",
			args[len(names)],
			cmd.UseLine(),
			cmd.CommandPath(),
		)
	}
}
