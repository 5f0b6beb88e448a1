package reconcile

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"millwright/reconcile/plan"
	"millwright/state"
	"millwright/state/notice"
)

// SyncOptions allow destructive changes of a sync.
type SyncOptions struct {
	AllowPrune  bool
	AllowRename bool
	// Revision is the one to apply, or how its name begins. Empty: the source's current one; what is allowed
	// counts for the revision that was refused last, and for no other.
	Revision string
}

// Sync applies the source's current revision now, also when it is the applied one: this picks up secrets.
// It returns when the revision is applied and served, refused, or has failed, and then also the error. A
// source that has moved on from the options' revision is state.ErrConflict, and no attempt.
func (l *Loop) Sync(ctx context.Context, opts SyncOptions) (Result, error) {
	if l.cfg.Factory.Suspended {
		return Result{}, ErrSuspended
	}

	req := Request{
		Force:       true,
		AllowPrune:  opts.AllowPrune,
		AllowRename: opts.AllowRename,
		Revision:    opts.Revision,
	}
	if (opts.AllowPrune || opts.AllowRename) && opts.Revision == "" {
		f, err := l.cfg.Store.Factory(ctx, l.cfg.Factory.UID)
		if err != nil {
			return Result{}, err
		}

		if req.Revision = f.Attempted.ID; f.SyncState != state.SyncRefused {
			req = Request{Force: true} // nothing was refused that could be meant
		}
	}

	result := l.Once(ctx, req)
	return result, result.Err
}

// Plan returns the changes that an apply of the source's current revision, with what is allowed, would make. It
// changes nothing.
func (l *Loop) Plan(ctx context.Context, allow plan.Allowed) (plan.Plan, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return plan.Plan{}, ctx.Err()
	}

	snap, err := l.fetch(ctx)
	if err != nil {
		return plan.Plan{}, err
	}

	snap, loaded, err := l.load(ctx, snap)
	if err != nil {
		return plan.Plan{}, err
	}

	cur, err := l.cfg.Store.Current(ctx, l.cfg.Factory.UID)
	if err != nil {
		return plan.Plan{}, err
	}

	req := Request{AllowPrune: allow.Prune, AllowRename: allow.Rename}
	opts := l.options(snap, req, time.Now())
	opts.OpenSecrets = true
	p, app := plan.Compare(cur, loaded, opts)
	if app != nil {
		p.Backtester = plan.NewBacktester(cur, app)
	}

	return p, p.Err
}

// Leads reports whether this process reconciles the factory. Of several replicas one at a time does.
func (l *Loop) Leads() bool { return l.leads.Load() }

// Notice says that the source may have a new revision. It returns at once; notices that come faster than
// they can be looked into are one.
func (l *Loop) Notice() {
	select {
	case l.cue <- struct{}{}:
	default:
	}
}

const (
	// leaseTTL is how long a replica that died still counts as the one that reconciles a factory.
	leaseTTL = 6 * time.Second
	// leaseRenewal is how often a live one renews its lease, and the others try to take it.
	leaseRenewal = 2 * time.Second
	// cueGap is the least time between attempts that cues ask for.
	cueGap = 100 * time.Millisecond
	// firstBackoff is the wait after the first failure; it doubles with each further one.
	firstBackoff = time.Second
)

// Run reconciles the factory until ctx ends: at once, when the source says that it changed, at intervals,
// after Notice, and again with growing waits after a failure. Of several replicas that share a
// state, one at a time does so. It returns nil.
func (l *Loop) Run(ctx context.Context) error {
	if l.cfg.Factory.Suspended {
		l.cfg.Metrics.suspend(l.cfg.Factory.Name, true)
		<-ctx.Done()
		return nil
	}

	leading := &l.leads
	leading.Store(!l.cfg.Store.Shared())
	defer leading.Store(false)

	var background sync.WaitGroup
	defer background.Wait()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	if l.cfg.Store.Shared() {
		background.Go(func() { l.lead(ctx, leading) })
	}

	background.Go(func() {
		l.cfg.Source.Watch(ctx, func() {
			if leading.Load() {
				l.Notice()
			}
		})
	})

	notices, unsubscribe := l.cfg.Store.Subscribe(16, notice.Source, notice.Secret)
	defer unsubscribe()

	timer := time.NewTimer(0)
	defer timer.Stop()

	refused := false
	for failures := 0; ; {
		passed := false
		select {
		case <-ctx.Done():
			return nil
		case n := <-notices:
			ours := n.Topic == notice.Source && n.ID == l.cfg.Factory.UID ||
				n.Topic == notice.Secret && (refused || failures > 0)
			if !leading.Load() || !ours {
				continue
			}

		case <-l.cue:
			if passed = !leading.Load(); passed {
				l.cfg.Store.Notify(notice.Source, l.cfg.Factory.UID)
			}
		case <-timer.C:
			passed = !leading.Load()
		}

		if passed {
			timer.Reset(l.cfg.Interval)
			continue
		}

		result := l.Once(ctx, Request{})
		refused = result.Outcome == state.OutcomeRefused
		failures++
		if result.Err == nil {
			failures = 0
		}

		timer.Reset(l.wait(failures))
		pause(ctx, cueGap)
	}
}

// wait returns how long to wait for the next attempt, after so many failures in a row. It is spread by a
// fifth either way, so that many factories do not ask at the same time.
func (l *Loop) wait(failures int) time.Duration {
	d := l.cfg.Interval
	if failures > 0 {
		d = min(firstBackoff<<min(failures-1, 20), l.cfg.MaxBackoff)
	}
	return d - d/5 + rand.N(2*d/5+1)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// lead holds the factory's lease whenever it is free.
func (l *Loop) lead(ctx context.Context, leading *atomic.Bool) {
	name := "reconcile/" + l.cfg.Factory.UID
	tick := time.NewTicker(leaseRenewal)
	defer tick.Stop()

	for until := time.Now(); ; {
		asked := time.Now()
		held, err := l.cfg.Store.Lease(ctx, name, l.holder, leaseTTL)
		if held {
			until = asked.Add(leaseTTL)
		}

		now := held || err != nil && leading.Load() && time.Now().Before(until)
		was := leading.Swap(now)
		switch {
		case now && !was:
			l.cfg.Log.Debug("this replica reconciles the factory")
			l.Notice()
		case was && !now:
			l.cfg.Log.Debug("another replica reconciles the factory")
			l.cfg.Metrics.yield(l.cfg.Factory.Name)
		}

		select {
		case <-ctx.Done():
			release, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()

			if err := l.cfg.Store.Release(release, name, l.holder); err != nil {
				l.cfg.Log.Debug("release the lease", "error", err)
			}

			return
		case <-tick.C:
		}
	}
}
