package dispatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"millwright/bounds"
	"millwright/forge"
	"millwright/runs/wire"
	"millwright/state"
)

// RelayPath is the path below which workers elsewhere read the repositories of their runs.
const RelayPath = "/git/"

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
// not get the credential of the forge. A transfer ends with its claim.
//
// Requests that no claim allows are charged to their sender, as wrong API keys are.
func (d *Dispatcher) Relay(b *bounds.Bounds, senderOf func(*http.Request) string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(RelayPath+"{run}/{position}/{path...}", func(w http.ResponseWriter, r *http.Request) {
		d.relay(w, r, b, senderOf(r))
	})
	return mux
}

func (d *Dispatcher) relay(w http.ResponseWriter, r *http.Request, b *bounds.Bounds, sender string) {
	worker, token, ok := r.BasicAuth()
	if !ok {
		w.Header().Set("WWW-Authenticate", `Basic realm="millwright"`)
		http.Error(w, "send the worker's UID and the token of its claim", http.StatusUnauthorized)
		return
	}

	c := state.Claim{RunID: r.PathValue("run"), Worker: worker, Token: token}
	wait := b.WrongKeys.Spent(sender, time.Now())
	leave := func() {}
	if wait > 0 {
		if leave, ok = b.Suspects.Enter(r.Context(), sender); !ok {
			tryLater(w, wait, http.StatusServiceUnavailable)
			return
		}
	}

	host, repo, err := d.relayed(r.Context(), c, r.PathValue("position"))
	leave()
	if lost(err) && wait == 0 {
		wait = b.WrongKeys.Charge(sender, time.Now())
	}
	switch {
	case lost(err) && wait > 0:
		tryLater(w, wait, http.StatusTooManyRequests)
		return
	case err != nil:
		d.refuseRelay(w, err)
		return
	}

	d.transfer(w, r, c, func(r *http.Request) error {
		return d.relayer.Serve(w, r, host, repo, r.PathValue("path"))
	})
}

// transfer serves a request in the worker's turn, and until its claim ends.
func (d *Dispatcher) transfer(
	w http.ResponseWriter,
	r *http.Request,
	c state.Claim,
	serve func(*http.Request) error,
) {
	ctx, end := d.whileHeld(r.Context(), c)
	defer end()

	leave, err := d.relays.enter(ctx, c.Worker)
	if errors.Is(err, errManyTransfers) {
		tryLater(w, time.Second, http.StatusServiceUnavailable)
		return
	}
	if err != nil {
		d.refuseRelay(w, context.Cause(ctx))
		return
	}
	defer leave()

	if err := serve(r.WithContext(ctx)); err != nil && r.Context().Err() == nil {
		d.cfg.Log.Warn("dispatch: read a repository for a worker", "run_id", c.RunID, "error", err)
	}
}

// whileHeld returns a context that ends when the claim does, or when the key of its worker is revoked.
func (d *Dispatcher) whileHeld(ctx context.Context, c state.Claim) (held context.Context, end func()) {
	held, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(d.cfg.Poll)
		defer tick.Stop()

		for {
			select {
			case <-held.Done():
				return
			case <-tick.C:
			}

			if _, err := d.holder(held, c); lost(err) {
				cancel(fmt.Errorf("the transfer ended: %w", err))
			}
		}
	}()

	return held, func() {
		cancel(nil)
		<-done
	}
}

// holder returns the run that a claim holds, if the key of its worker is valid.
func (d *Dispatcher) holder(ctx context.Context, c state.Claim) (state.Run, error) {
	if !state.ValidID(state.PrefixKey, c.Worker) {
		return state.Run{}, wire.ErrRefused
	}

	_, err := d.admitted(ctx, c.Worker)
	if errors.Is(err, state.ErrNotFound) {
		err = fmt.Errorf("the server has no key %s: %w", c.Worker, wire.ErrRefused)
	}
	if err != nil {
		return state.Run{}, err
	}

	return d.cfg.Store.HeldRun(ctx, c)
}

// lost reports whether an error means that no claim allows a request.
func lost(err error) bool { return errors.Is(err, state.ErrLost) || errors.Is(err, wire.ErrRefused) }

// tryLater refuses a request for its time only.
func tryLater(w http.ResponseWriter, wait time.Duration, status int) {
	w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
	http.Error(w, "too many requests: try again later", status)
}

// errForbidden reports that the settings do not let a factory use a repository any more.
var errForbidden = errors.New("the settings do not allow it")

// relayed returns a repository of the run that a claim holds, after checking that its factory may use it.
func (d *Dispatcher) relayed(
	ctx context.Context,
	c state.Claim,
	position string,
) (forge.Forge, forge.Repository, error) {
	var repo forge.Repository
	run, err := d.holder(ctx, c)
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
		return nil, repo, errForbidden
	}
	host, err := d.cfg.Forges.Of(repo)
	if err != nil {
		return nil, repo, fmt.Errorf("%w: %w", err, errForbidden)
	}
	return host, repo, nil
}

// refuseRelay answers a request for a repository that the sender may not read.
func (d *Dispatcher) refuseRelay(w http.ResponseWriter, err error) {
	switch {
	case lost(err), errors.Is(err, errForbidden):
		http.Error(w, "no claim allows this", http.StatusForbidden)
	case errors.Is(err, state.ErrNotFound):
		http.Error(w, "there is no such repository", http.StatusNotFound)
	default:
		d.cfg.Log.Warn("dispatch: check the claim of a worker", "error", err)
		http.Error(w, "try again", http.StatusServiceUnavailable)
	}
}
