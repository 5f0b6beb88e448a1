package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"millwright/cmd/cli"
	"millwright/cmd/settings"
	"millwright/runs/worker/confine"
	"millwright/state"
	"millwright/state/seal"
)

func (srv *server) openState(ctx context.Context) error {
	cfg := srv.cfg
	key, err := seal.LoadKey(cfg.State, os.Getenv("MILLWRIGHT_MASTER_KEY"), cfg.MasterKeyFile)
	if err != nil {
		return err
	}
	if srv.store, err = state.Open(ctx, state.Config{DSN: cfg.State, MasterKey: key, Log: srv.log}); err != nil {
		return err
	}

	srv.onClose(srv.store.Close)
	srv.onClose(func() error { return srv.store.Audit().Flush(context.WithoutCancel(ctx), true) })
	hideMemory(srv.log)
	given := os.Getenv("MILLWRIGHT_BOOTSTRAP_KEY")
	for _, name := range []string{"MILLWRIGHT_MASTER_KEY", "MILLWRIGHT_BOOTSTRAP_KEY"} {
		os.Unsetenv(name) // a harness of this process tree must not find them
	}

	return bootstrap(ctx, srv.out, srv.store, cfg.State, given, srv.log)
}

// hideMemory closes the memory of this process to harnesses of its own user.
func hideMemory(log *slog.Logger) {
	if err := confine.HideMemory(); err != nil {
		log.Warn("harnesses with sameUser can read the secrets in the memory of this process", "error", err)
	}
}

// bootstrap makes the first API key: the given one, or a random one, which it writes beside a SQLite state
// and prints on a terminal. It writes the file first, so that nobody loses the key.
func bootstrap(ctx context.Context, s cli.Streams, store *state.Store, dsn, given string, log *slog.Logger) error {
	if given != "" {
		if len(given) < 32 {
			return errors.New("MILLWRIGHT_BOOTSTRAP_KEY is too short: want at least 32 characters")
		}

		made, err := store.Bootstrap(ctx, given)
		if err != nil || made {
			return err
		}
		if _, err = store.KeyBySecret(ctx, given); !errors.Is(err, state.ErrNotFound) {
			return err
		}

		log.Warn("MILLWRIGHT_BOOTSTRAP_KEY is ignored: the state has API keys already, and this is none of them; " +
			"make one with millwright key create NAME --role admin --local")
		return nil
	}

	keys, err := store.Keys(ctx)
	if err != nil || len(keys) > 0 {
		return err
	}

	terminal := isTerminal(s.Out)
	key := state.NewToken(state.KeyPrefix)
	if path, ok := state.SQLitePath(dsn); ok {
		if key, err = adminKey(settings.AdminKeyFile(path), key); err != nil {
			return fmt.Errorf("admin key: %w", err)
		}
	} else if !terminal {
		return errors.New("the state has no API key yet: set MILLWRIGHT_BOOTSTRAP_KEY for the first start")
	}

	made, err := store.Bootstrap(ctx, key)
	if err == nil && made && terminal {
		fmt.Fprintf(s.Out, "admin key, shown once: %s\n", key)
	}

	return err
}

// adminKey writes a new key to file and returns it. If the file exists, from another state in the same
// directory or an interrupted start, it returns its key.
func adminKey(file, key string) (string, error) {
	err := state.WriteNewFile(file, []byte(key+"\n"))
	if !errors.Is(err, os.ErrExist) {
		return key, err
	}

	have, err := os.ReadFile(file)
	if err == nil && len(bytes.TrimSpace(have)) < 32 {
		err = fmt.Errorf("%s holds no key: remove it", file)
	}
	return string(bytes.TrimSpace(have)), err
}
