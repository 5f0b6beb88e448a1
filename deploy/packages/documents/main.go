// Command documents writes the manual pages and shell completions of the packages into a directory.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"millwright/cmd/cli"
	"millwright/cmd/server"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: documents DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes DIR/man and DIR/completions. The environment of the build is in no default of a flag.
func write(dir string) error {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "MILLWRIGHT_") {
			os.Unsetenv(name)
		}
	}

	man, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	if err := errors.Join(os.MkdirAll(man, 0o755), os.MkdirAll(completions, 0o755)); err != nil {
		return err
	}

	root := cli.Root(cli.Streams{}, server.NewServe, server.NewWorker, server.NewDemo)
	disableDates(root)
	header := &doc.GenManHeader{Title: "MILLWRIGHT", Section: "1", Source: "millwright", Manual: "millwright"}
	return errors.Join(
		doc.GenManTree(root, header, man), // dated by SOURCE_DATE_EPOCH
		root.GenBashCompletionFileV2(filepath.Join(completions, "millwright.bash"), true),
		root.GenZshCompletionFile(filepath.Join(completions, "_millwright")),
		root.GenFishCompletionFile(filepath.Join(completions, "millwright.fish"), true),
		root.GenPowerShellCompletionFileWithDesc(filepath.Join(completions, "millwright.ps1")),
	)
}

// disableDates leaves the day of the build out of the pages.
func disableDates(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	for _, sub := range cmd.Commands() {
		disableDates(sub)
	}
}
