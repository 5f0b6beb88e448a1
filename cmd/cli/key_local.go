package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"millwright/cmd/settings"
	"millwright/state"
	"millwright/state/seal"
)

// localKey makes a key in the state, without a server.
func localKey(
	ctx context.Context,
	s Streams,
	f *stateFlags,
	name string,
	role state.Role,
	expires string,
) (state.Key, string, error) {
	if !role.Valid() {
		return state.Key{}, "", Usagef("--role %q: want planner, viewer, runner, admin or worker", role)
	}

	var end *time.Time
	if expires != "" {
		life, err := time.ParseDuration(expires)
		if err != nil || life <= 0 {
			return state.Key{}, "", Usagef("--expires-in %q: want a duration like 720h", expires)
		}

		at := time.Now().Add(life)
		end = &at
	}

	store, err := f.open(ctx)
	if err != nil {
		return state.Key{}, "", err
	}
	defer store.Close()

	key, secret, err := store.CreateKey(atConsole(ctx), name, role, end)
	if err != nil {
		return state.Key{}, "", err
	}
	if path, sqlite := state.SQLitePath(f.state); sqlite && role == state.RoleAdmin {
		err = replaceAdminKey(ctx, s, store, settings.AdminKeyFile(path), secret)
	}

	return key, secret, err
}

// open opens the state that the flags name, which must be there already.
func (f *stateFlags) open(ctx context.Context) (*state.Store, error) {
	if err := f.resolve(); err != nil {
		return nil, err
	}

	if path, sqlite := state.SQLitePath(f.state); sqlite {
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			return nil, &Exit{ExitProblem, fmt.Errorf("state %s does not exist", path)}
		}
	}

	key, err := seal.LoadKey(f.state, os.Getenv("MILLWRIGHT_MASTER_KEY"), f.masterKeyFile)
	if err != nil {
		return nil, StartError(err)
	}

	store, err := state.Open(ctx, state.Config{DSN: f.state, MasterKey: key, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, StartError(err)
	}

	return store, nil
}

// replaceAdminKey writes an admin key to the file from which commands on this machine take it, unless the one
// that is there works.
func replaceAdminKey(ctx context.Context, s Streams, store *state.Store, file, secret string) error {
	have, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := store.KeyBySecret(ctx, strings.TrimSpace(string(have))); !errors.Is(err, state.ErrNotFound) {
		return err
	}

	if err := state.WriteFile(file, []byte(secret+"\n")); err != nil {
		return err
	}

	fmt.Fprintf(s.Err, "Commands on this machine take it from %s.\n", file)
	return nil
}
