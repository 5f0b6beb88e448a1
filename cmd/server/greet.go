package server

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"millwright/cmd/cli"
	"millwright/cmd/settings"
	"millwright/dashboard"
	"millwright/runs/worker/preset"
	"millwright/runs/worker/sandbox"
	"millwright/schema"
	"millwright/state"
)

// greet prints where the server listens, where its dashboard is, and where the key to it lies. A terminal also
// gets a link that signs a browser in once.
func (srv *server) greet(ctx context.Context) {
	out := srv.out.Out
	fmt.Fprintf(out, "millwright %s listens on %s\n", cli.Version(), srv.listeners[0].Addr())
	fmt.Fprintf(out, "dashboard: %s/\n", srv.cfg.PublicURL)
	srv.offerAgents()
	srv.offerSandbox()

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

// offerAgents prints how to have a coding agent of this machine execute runs, where the settings name none.
func (srv *server) offerAgents() {
	if len(srv.cfg.Harnesses) > 0 || srv.cfg.Workers == nil || *srv.cfg.Workers == 0 {
		return
	}

	found := preset.OnPath(func(program string) bool {
		_, err := exec.LookPath(program)
		return err == nil
	})
	if len(found) == 0 {
		return
	}

	dir := "DIR"
	if len(srv.cfg.Factories) > 0 && srv.cfg.Factories[0].Source.Dir != "" {
		dir = schema.ShellWord(srv.cfg.Factories[0].Source.Dir)
	}
	fmt.Fprintf(srv.out.Out, "runs show what an agent would receive; to execute them with %s: "+
		"millwright init --agent %s %s, then serve --config millwright.yaml\n", found[0], found[0], dir)
}

// offerSandbox proposes a sandbox for agents that run as the user of the server, where this machine has
// sandboxes.
func (srv *server) offerSandbox() {
	var open []string
	for _, name := range slices.Sorted(maps.Keys(srv.cfg.Harnesses)) {
		if h := srv.cfg.Harnesses[name]; h.Preset != "" && h.SameUser {
			open = append(open, name)
		}
	}
	if len(open) == 0 || srv.cfg.Workers == nil || *srv.cfg.Workers == 0 {
		return
	}
	if _, err := sandbox.Open(); err != nil {
		return
	}

	with := "sandbox: bubblewrap"
	if os.Getuid() == 0 {
		with += " and uidRange: 70000-70063"
	}
	fmt.Fprintf(srv.out.Out, "agents of %s can read what this server can; to run them in a sandbox, replace sameUser "+
		"with %s\n", strings.Join(open, ", "), with)
}
