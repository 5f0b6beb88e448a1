package dispatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"millwright/forge"
	"millwright/runs/wire"
	"millwright/state"
)

// RelayPath is the path below which workers elsewhere read the repositories of their runs.
const RelayPath = "/git/"

// maxRelays bounds the repositories that are read at once.
const maxRelays = 16

// relayAddress returns the address at which the worker of a claim reads a repository of its run; empty if the
// claim's token cannot be sent there.
func (d *Dispatcher) relayAddress(c state.Claim, position int) string {
	u, err := url.Parse(d.cfg.PublicURL)
	if err != nil || u.Host == "" || u.Scheme != "https" && !forge.IsLoopback(u.Hostname()) {
		return ""
	}
	return u.JoinPath(RelayPath, c.RunID, strconv.Itoa(position)).String()
}

// Relay returns the handler of RelayPath: git's smart HTTP protocol, to read the repositories of a run, for
// the worker that holds the run. The worker authenticates with its UID and the token of its claim. It does
// not get the credential of the forge.
func (d *Dispatcher) Relay() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(RelayPath+"{run}/{position}/{path...}", d.relay)
	return mux
}

func (d *Dispatcher) relay(w http.ResponseWriter, r *http.Request) {
	worker, token, ok := r.BasicAuth()
	if !ok {
		w.Header().Set("WWW-Authenticate", `Basic realm="millwright"`)
		http.Error(w, "send the worker's UID and the token of its claim", http.StatusUnauthorized)
		return
	}

	ctx := r.Context()
	host, repo, err := d.relayed(ctx, state.Claim{RunID: r.PathValue("run"), Worker: worker, Token: token},
		r.PathValue("position"))
	if err != nil {
		d.refuseRelay(w, err)
		return
	}

	select {
	case d.relays <- struct{}{}:
		defer func() { <-d.relays }()
	case <-ctx.Done():
		return
	}

	if err := d.relayer.Serve(w, r, host, repo, r.PathValue("path")); err != nil && ctx.Err() == nil {
		d.cfg.Log.Warn("dispatch: read a repository for a worker", "run_id", r.PathValue("run"), "error", err)
	}
}

// relayed returns a repository of the run that a claim holds, after checking that its factory may use it.
func (d *Dispatcher) relayed(
	ctx context.Context,
	c state.Claim,
	position string,
) (forge.Forge, forge.Repository, error) {
	var repo forge.Repository
	if !state.ValidID(state.PrefixKey, c.Worker) {
		return nil, repo, wire.ErrRefused
	}
	if err := d.admitted(ctx, c.Worker); err != nil {
		return nil, repo, err
	}

	run, err := d.cfg.Store.HeldRun(ctx, c)
	if err != nil {
		return nil, repo, err
	}
	all, err := d.cfg.Store.Repositories(ctx, run.ID)
	if err != nil {
		return nil, repo, err
	}
	at, err := strconv.Atoi(position)
	if err != nil || at < 0 || at >= len(all) || d.cfg.Forges == nil {
		return nil, repo, state.ErrNotFound
	}

	factory, err := d.cfg.Store.Factory(ctx, run.FactoryUID)
	if err != nil {
		return nil, repo, err
	}

	repo = forge.Repository{Forge: all[at].Forge, Owner: all[at].Owner, Name: all[at].Name}
	if !d.cfg.Forges.Allowed(factory.Name, repo) {
		return nil, repo, fmt.Errorf("the settings do not allow it: %w", wire.ErrRefused)
	}
	host, err := d.cfg.Forges.Of(repo)
	if err != nil {
		return nil, repo, fmt.Errorf("%w: %w", err, wire.ErrRefused)
	}
	return host, repo, nil
}

// refuseRelay answers a request for a repository that the sender may not read.
func (d *Dispatcher) refuseRelay(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, state.ErrLost), errors.Is(err, wire.ErrRefused):
		http.Error(w, "no claim allows this", http.StatusForbidden)
	case errors.Is(err, state.ErrNotFound):
		http.Error(w, "there is no such repository", http.StatusNotFound)
	default:
		d.cfg.Log.Warn("dispatch: check the claim of a worker", "error", err)
		http.Error(w, "try again", http.StatusServiceUnavailable)
	}
}
