package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"millwright/cmd/settings"
	"millwright/state"
	"millwright/state/backup"
	"millwright/state/seal"
)

// stateFlags say which state a command works on that talks to no server.
type stateFlags struct{ config, state, masterKeyFile string }

func (f *stateFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", os.Getenv("MILLWRIGHT_CONFIG"),
		"read state and masterKeyFile from the server's settings `FILE` (MILLWRIGHT_CONFIG)")

	flags.StringVar(&f.state, "state", "",
		"`DSN` of the state: a path, sqlite:PATH or postgres://… (MILLWRIGHT_STATE, default "+
			settings.DefaultState+")")

	flags.StringVar(&f.masterKeyFile, "master-key-file", "",
		"`FILE` with the master key; default MILLWRIGHT_MASTER_KEY, then the file beside a SQLite state")
}

// resolve finds the state as serve does: the flag, the settings file, the environment.
func (f *stateFlags) resolve() error {
	if f.config != "" {
		cfg, err := settings.Read(f.config)
		if err != nil {
			return Usagef("%w", err)
		}
		if f.state == "" {
			f.state = cfg.State
		}
		if f.masterKeyFile == "" {
			f.masterKeyFile = cfg.MasterKeyFile
		}
	}

	if f.state == "" {
		f.state = EnvOr("MILLWRIGHT_STATE", settings.DefaultState)
	}

	return nil
}

// sqlite resolves the path of a SQLite state; for a PostgreSQL state its error names the commands to use
// instead.
func (f *stateFlags) sqlite(instead string) (string, error) {
	if err := f.resolve(); err != nil {
		return "", err
	}

	path, ok := state.SQLitePath(f.state)
	if !ok {
		return "", Usagef(
			"the state is a PostgreSQL database: %s (docs/operating/backups.md has the commands)",
			instead,
		)
	}

	return path, nil
}

func newBackup(s Streams) *cobra.Command {
	var f stateFlags
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy a SQLite state to a file, also while it is served",
		Long: `Writes a consistent copy of a SQLite state to FILE, also while a server uses it, and
checks the copy. It does not replace an existing FILE.

The copy has neither the master key nor the admin key. Store a copy of the master key in
another place: nobody can open the secrets in the backup without it.

Back up a PostgreSQL state with pg_dump: docs/operating/backups.md has the commands.`,
		Example: `  millwright backup /var/backups/millwright-$(date +%F).db
  millwright backup --state /srv/millwright/state.db copy.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := f.sqlite("back it up with pg_dump")
			if err != nil {
				return err
			}

			c, err := backup.Make(cmd.Context(), path, args[0])
			if errors.Is(err, backup.ErrExists) {
				return fmt.Errorf("%w: choose another name", err)
			}
			if err != nil {
				return err
			}

			fmt.Fprintf(
				s.Out,
				"backup of %s in %s: %d bytes, schema version %d, integrity checked\n",
				path,
				args[0],
				c.Bytes,
				c.Version,
			)

			fmt.Fprintf(
				s.Err,
				"The backup does not have the master key. Store a copy of it in another place (%s): "+
					"nobody can open the secrets in the backup without it.\n",
				f.keyPlace(path),
			)
			return nil
		},
	}

	f.add(cmd)
	return cmd
}

// keyPlace names the place of the master key of a SQLite state.
func (f *stateFlags) keyPlace(path string) string {
	switch {
	case os.Getenv("MILLWRIGHT_MASTER_KEY") != "":
		return "MILLWRIGHT_MASTER_KEY"
	case f.masterKeyFile != "":
		return f.masterKeyFile
	}
	return seal.KeyFile(path)
}

func newRestore(s Streams) *cobra.Command {
	var f stateFlags
	var force bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a SQLite state from a backup",
		Long: `Checks a backup and makes it the SQLite state. It refuses to replace a state that a server
uses, and any other without --force. With --force it renames the old state.

Put the master key of the backup in its place before you start the server: the backup does
not have it.`,
		Example: `  millwright restore /var/backups/millwright-2027-01-31.db
  millwright restore --force --state /srv/millwright/state.db copy.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := f.sqlite("restore it with pg_restore")
			if err != nil {
				return err
			}

			c, err := backup.Restore(atConsole(cmd.Context()), args[0], path, force)
			if errors.Is(err, backup.ErrExists) {
				return fmt.Errorf("%w: --force replaces it, and keeps it under another name", err)
			}
			if err != nil {
				return err
			}

			fmt.Fprintf(
				s.Out,
				"restored %s from %s: %d bytes, schema version %d, integrity checked\n",
				path,
				args[0],
				c.Bytes,
				c.Version,
			)
			if c.Replaced != "" {
				fmt.Fprintf(s.Out, "the state that was there is kept as %s\n", c.Replaced)
			}

			fmt.Fprintln(s.Err, f.keyAdvice(cmd.Context(), path))
			return nil
		},
	}

	f.add(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "replace an existing state, and rename the old one")
	return cmd
}

// keyAdvice says whether the master key at hand is that of a restored state.
func (f *stateFlags) keyAdvice(ctx context.Context, path string) string {
	key, err := seal.LoadKey(path, os.Getenv("MILLWRIGHT_MASTER_KEY"), f.masterKeyFile)
	switch {
	case err != nil:
		return fmt.Sprintf(
			"The master key is not there: before you start the server, put that of the backup into %s, "+
				"and the admin key, if you have it, into %s.",
			f.keyPlace(path),
			filepath.Clean(settings.AdminKeyFile(path)),
		)
	case !seal.Fits(ctx, path, key):
		return fmt.Sprintf(
			"The master key in %s is not the one that the backup was made under: serve will refuse it.",
			f.keyPlace(path),
		)
	}

	return "The master key fits."
}
