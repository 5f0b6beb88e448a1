package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"millwright/reconcile/plan"
	"millwright/schema"
)

// Heads plans commits other than the source's current revision, as the heads of pull requests. It fetches their
// objects into a clone of its own, with the limits of the source, and executes nothing. Calls take turns.
type Heads struct {
	loop   *Loop
	source *gitSource
	parsed schema.Cache
}

// NewHeads returns the Heads of a factory's git repository. Only cfg.CloneDir must be another one than that of the
// source.
func NewHeads(cfg GitConfig, loop *Loop) (*Heads, error) {
	cfg.Tag, cfg.Commit = "", ""
	source, err := Git(cfg)
	if err != nil {
		return nil, err
	}
	return &Heads{loop: loop, source: source.(*gitSource)}, nil
}

// Close releases the clone.
func (h *Heads) Close() error { return h.source.Close() }

// Path returns the root of the definition inside the repository; "." is the repository's.
func (h *Heads) Path() string { return h.source.cfg.Path }

// ErrHead is the kind of error of a head that cannot be read as a definition. Retries do not help.
var ErrHead = errors.New("this commit cannot be read")

// Plan fetches a commit and returns the changes that an apply of it would make now. With public it leaves out all
// that only holders of keys may learn.
func (h *Heads) Plan(ctx context.Context, commit string, public bool) (plan.Plan, error) {
	loaded, snap, err := h.load(ctx, commit)
	if err != nil {
		return plan.Plan{}, err
	}

	cur, err := h.loop.cfg.Store.Current(ctx, h.loop.cfg.Factory.UID)
	if err != nil {
		return plan.Plan{}, err
	}

	opts := h.loop.options(snap, Request{}, time.Now())
	opts.OpenSecrets = !public
	if public {
		opts.Public, opts.HarnessTypes, opts.ForgeKinds, opts.Reserved = true, nil, nil, nil
		opts.MaxDeliveries = 0
	}

	p, app := plan.Compare(cur, loaded, opts)
	if app != nil && !public {
		p.Backtester = plan.NewBacktester(cur, app)
	}

	return p, p.Err
}

func (h *Heads) load(ctx context.Context, commit string) (*schema.Result, Snapshot, error) {
	h.source.cfg.Commit, h.source.target = commit, plumbing.ZeroHash
	for again := false; ; again = true {
		snap, err := h.fetch(ctx)
		if err != nil {
			return nil, snap, err
		}

		loaded := snap.load(ctx, &h.parsed)
		if loaded.Err == nil || again {
			if snap.release != nil {
				snap.release()
			}
			return loaded, snap, nil
		}
	}
}

func (h *Heads) fetch(ctx context.Context) (Snapshot, error) {
	limited, cancel := context.WithTimeout(ctx, h.source.cfg.Timeout)
	defer cancel()

	before := h.source.remote.received.Load()
	snap, err := h.source.fetch(limited)
	h.loop.cfg.Metrics.polled(h.loop.cfg.Factory.Name, h.source.remote.received.Load()-before)

	var large limitError
	switch {
	case err == nil, ctx.Err() != nil:
		return snap, err
	case errors.As(err, &large):
		return Snapshot{}, fmt.Errorf("%w: %s", ErrHead, large.text)
	case errors.Is(err, errNoPath):
		return Snapshot{}, fmt.Errorf("%w: it has no directory %s", ErrHead, h.source.cfg.Path)
	}

	return Snapshot{}, h.source.remote.explain(limited, err)
}
