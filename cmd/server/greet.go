package server

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"millwright/cmd/cli"
	"millwright/cmd/settings"
	"millwright/dashboard"
	"millwright/state"
)

// greet prints where the server listens, where its dashboard is, and where the key to it lies. A terminal also
// gets a link that signs a browser in once.
func (srv *server) greet(ctx context.Context) {
	out := srv.out.Out
	fmt.Fprintf(out, "millwright %s listens on %s\n", cli.Version(), srv.listeners[0].Addr())
	fmt.Fprintf(out, "dashboard: %s/\n", srv.cfg.PublicURL)

	file, key := srv.adminKey(ctx)
	if key == "" {
		return
	}

	fmt.Fprintf(out, "admin key: %s\n", file)
	if isTerminal(out) {
		link := srv.links.New(key, dashboard.LinkLife)
		fmt.Fprintf(out, "sign in, once, within %s: %s%s\n", dashboard.LinkLife, srv.cfg.PublicURL, link)
	}
}

// adminKey returns the file beside a SQLite state that holds an admin key, and the key's UID; nothing where
// there is no such key.
func (srv *server) adminKey(ctx context.Context) (file, uid string) {
	path, sqlite := state.SQLitePath(srv.cfg.State)
	if !sqlite {
		return "", ""
	}

	file = settings.AdminKeyFile(path)
	secret, err := os.ReadFile(file)
	if err != nil {
		return "", ""
	}

	key, err := srv.store.KeyBySecret(ctx, strings.TrimSpace(string(secret)))
	if err != nil || !key.Role.Allows(state.RoleAdmin) {
		return "", ""
	}
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}

	return file, key.UID
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
