package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// target is a form to print in, and the file to print to.
type target struct{ format, file string }

// stdout reports whether the target is standard output.
func (t target) stdout() bool { return t.file == "" || t.file == "-" }

// addFormatFlag gives cmd --format with the forms that it knows, the first of which is the default. --output,
// which lists have, is taken for it.
func addFormatFlag(cmd *cobra.Command, formats []string) {
	cmd.Flags().
		StringArrayP(
			"format",
			"f",
			nil,
			"print as `"+strings.Join(formats, "|")+"`, or FORMAT=FILE to a file; several at once",
		)
	AddAlias(cmd, "format", "output", "o")
}

// targets reads --format. At most one goes to standard output.
func targets(cmd *cobra.Command, formats []string) ([]target, error) {
	given, err := cmd.Flags().GetStringArray("format")
	if err != nil {
		return nil, err
	}
	if len(given) == 0 {
		given = formats[:1]
	}

	var all []target
	taken := map[string]string{}
	for _, g := range given {
		var t target
		var named bool
		t.format, t.file, named = strings.Cut(g, "=")
		if !slices.Contains(formats, t.format) {
			return nil, Usagef(
				"--format %s: want one of %s, or one with =FILE",
				clean(g),
				strings.Join(formats, ", "),
			)
		}

		if named && t.file == "" {
			return nil, Usagef("--format %s: the file's name is missing", clean(g))
		}

		where := t.file
		if t.stdout() {
			where = "standard output"
		}

		if other, twice := taken[where]; twice {
			return nil, Usagef(
				"--format: %s and %s would both go to %s: give one of them a file, like %s=FILE",
				other,
				t.format,
				clean(where),
				t.format,
			)
		}

		taken[where] = t.format
		all = append(all, t)
	}

	return all, nil
}

// write prints to each target what render makes of its form.
func (s Streams) write(all []target, render func(format string, color bool) ([]byte, error)) error {
	for _, t := range all {
		out, err := render(t.format, t.stdout() && colored(s.Out))
		if err == nil && t.stdout() {
			_, err = s.Out.Write(out)
		} else if err == nil {
			err = os.WriteFile(t.file, out, 0o644)
		}

		if err != nil {
			return &Exit{ExitUnreachable, fmt.Errorf("writing %s: %w", t.format, err)}
		}
	}

	return nil
}

// colored reports whether w is a terminal whose user wants colour (https://no-color.org).
func colored(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// couldNotCheck turns an error of any kind into "could not check", as commands do whose statuses 1 and 2
// are taken.
func couldNotCheck(err error) error {
	var e *Exit
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return &Exit{ExitUnreachable, e.err}
	}
	return &Exit{ExitUnreachable, err}
}
