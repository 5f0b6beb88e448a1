package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
)

// Once makes one attempt to make the state equal to the source: it fetches, loads, plans, and applies in
// one transaction or records the refusal.
func (l *Loop) Once(ctx context.Context, req Request) Result {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return Result{Outcome: state.OutcomeFailed, Message: ctx.Err().Error(), Err: ctx.Err()}
	}

	started := time.Now()
	result := l.once(ctx, req, started)
	l.cfg.Metrics.observe(l.cfg.Factory.Name, result, time.Since(started))
	if m := l.cfg.Metrics; m != nil {
		if f, err := l.cfg.Store.Factory(ctx, l.cfg.Factory.UID); err == nil {
			m.suspend(l.cfg.Factory.Name, f.Suspended || f.Pin != nil)
		}
		if webhooks, err := l.cfg.Store.Webhooks(ctx, l.cfg.Factory.UID, false); err == nil {
			m.waiting(l.cfg.Factory.Name, webhooks)
		}
	}

	if l.cfg.Store.Shared() && !l.leads.Load() {
		l.cfg.Metrics.yield(l.cfg.Factory.Name)
	}

	return result
}

func (l *Loop) once(ctx context.Context, req Request, started time.Time) Result {
	snap, err := l.fetch(ctx)
	if err != nil {
		return l.fail(ctx, started, state.Revision{}, err)
	}

	if !req.Force {
		if result, done := l.settle(ctx, snap, started); done {
			return result
		}
	}

	l.beginCheck(ctx, snap)
	snap, loaded, err := l.load(ctx, snap)
	if err != nil {
		return l.fail(ctx, started, state.Revision{}, err)
	}

	err = state.ErrMoved
	for try := 0; try < moves && errors.Is(err, state.ErrMoved); try++ {
		if errors.Is(err, state.ErrSuperseded) {
			if snap, err = l.fetch(ctx); err == nil {
				snap, loaded, err = l.load(ctx, snap)
			}
			if err != nil {
				return l.fail(ctx, started, state.Revision{}, err)
			}
		}

		if err := req.means(snap.Revision); err != nil {
			return Result{Err: err}
		}

		var cur state.Current
		if cur, err = l.cfg.Store.Current(ctx, l.cfg.Factory.UID); err != nil {
			break
		}

		empty := !loaded.Checked()
		opts := l.options(snap, req, started)
		opts.OpenSecrets = true
		p, app := plan.Compare(cur, loaded, opts)
		if app != nil && empty && !snap.Revision.Managed { // a managed factory begins without files
			app.Problems = append(app.Problems, l.noDefinition(snap))
		}
		if p.Err != nil {
			return l.fail(ctx, started, snap.Revision, p.Err)
		}

		if app == nil || cur.Factory.Pin != nil {
			var result Result
			if app == nil {
				result, err = l.refuse(ctx, started, snap, cur, p)
			} else {
				result, err = l.suspend(ctx, started, snap, cur.Factory, p)
			}
			if errors.Is(err, state.ErrSuperseded) {
				continue
			}

			return result
		}

		app.CheckURL = l.checkURL()
		app.Files = snap.files
		if err = l.cfg.Store.Apply(ctx, *app); err == nil {
			return l.applied(*app)
		}
	}

	return l.fail(ctx, started, snap.Revision, fmt.Errorf("apply: %w", err))
}

// beginCheck records that the forge is owed a status of the revision.
func (l *Loop) beginCheck(ctx context.Context, snap Snapshot) {
	url := l.checkURL()
	if url == "" {
		return
	}

	err := l.cfg.Store.Checks().Begin(ctx, l.cfg.Factory.UID, url, snap.Revision.ID)
	if err != nil && ctx.Err() == nil {
		l.cfg.Log.Debug("record that a revision is checked", "error", err)
	}
}

// noDefinition logs and returns the warning about a source without definitions, such as one with a wrong path.
func (l *Loop) noDefinition(snap Snapshot) schema.Problem {
	hint := "check the path of the source"
	if dir := snap.elsewhere; dir != "" {
		hint = "there is one in " + dir + ": set the path of the source to it"
	}

	p := schema.NoDefinition(hint)
	l.cfg.Log.Warn("the source holds no definition", "revision", snap.Revision.ID, "hint", hint)
	return p
}

// refuse records a revision with errors once, and again if its problems change.
func (l *Loop) refuse(
	ctx context.Context,
	started time.Time,
	snap Snapshot,
	cur state.Current,
	p plan.Plan,
) (Result, error) {
	clear(l.failures)
	l.refusedWith = versions(cur.Secrets)
	result := Result{
		Outcome:  state.OutcomeRefused,
		Revision: snap.Revision,
		Problems: p.Problems,
		Message:  refusal(p.Problems),
	}

	f := cur.Factory
	if f.SyncState == state.SyncRefused && same(f.Attempted, snap.Revision) &&
		slices.EqualFunc(f.Problems, p.Problems, sameProblem) {
		return result, nil
	}
	if failed, err := l.recordRefused(ctx, started, result); err != nil {
		return failed, err
	}

	l.cfg.Log.Warn(
		"refused; "+serves(f.Applied),
		"revision",
		snap.Revision.ID,
		"applied",
		f.Applied.ID,
		"problem",
		result.Message,
	)

	result.Recorded = true
	return result, nil
}
