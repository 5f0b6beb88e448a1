package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
)

// settle handles a revision that needs no plan: an applied one, one that would be refused again, and one
// with the same content as the applied one, for which only the revisions change. A new revision with the same
// content needs a plan if new values of secrets wait.
func (l *Loop) settle(ctx context.Context, snap Snapshot, started time.Time) (Result, bool) {
	f, err := l.cfg.Store.Factory(ctx, l.cfg.Factory.UID)
	if err != nil {
		return l.fail(ctx, started, snap.Revision, err), true
	}

	switch {
	case snap.untrusted && (f.SyncState != state.SyncRefused || !same(f.Attempted, snap.Revision)):
		return Result{}, false
	case f.Pin != nil && f.SyncState == state.SyncApplied && same(f.Attempted, snap.Revision):
		return l.settled(f, state.OutcomeSuspended), true
	case f.Pin == nil && f.SyncState == state.SyncApplied && same(f.Applied, snap.Revision) &&
		f.Applied.Signer == snap.Revision.Signer:
		return l.settled(f, state.OutcomeUnchanged), true
	case f.SyncState == state.SyncRefused && same(f.Attempted, snap.Revision):
		secrets, err := l.cfg.Store.Secrets(ctx)
		if err != nil || versions(secrets) != l.refusedWith {
			return Result{}, false
		}

		return l.settled(f, state.OutcomeRefused), true

	case f.Pin != nil:
		return Result{}, false
	case same(f.Applied, snap.Revision) || f.Applied.Tree != "" && f.Applied.Tree == snap.Revision.Tree:
		problems, ok := l.standing(ctx, f)
		if !ok {
			return Result{}, false
		}

		if f.Applied.ID != snap.Revision.ID {
			waiting, err := l.secretsWait(ctx)
			if err != nil {
				return l.fail(ctx, started, snap.Revision, err), true
			}
			if waiting {
				return Result{}, false // a new revision uses the new values, whatever it changes
			}
		}

		app := state.ChangeSet{
			FactoryUID:   f.UID,
			Base:         f.Generation,
			BaseRevision: f.Applied.ID,
			Started:      started,
			Revision:     snap.Revision,
			Problems:     problems,
			CheckURL:     l.checkURL(),
		}

		if err := l.cfg.Store.Apply(ctx, app); errors.Is(err, state.ErrMoved) {
			return Result{}, false
		} else if err != nil {
			return l.fail(ctx, started, snap.Revision, fmt.Errorf("apply: %w", err)), true
		}

		return l.applied(app), true
	}

	return Result{}, false
}

// suspend records a valid revision of a factory that was rolled back, once. It does not apply it.
func (l *Loop) suspend(
	ctx context.Context,
	started time.Time,
	snap Snapshot,
	f state.Factory,
	p plan.Plan,
) (Result, error) {
	clear(l.failures)
	result := Result{
		Outcome:  state.OutcomeSuspended,
		Revision: snap.Revision,
		Problems: p.Problems,
		Message:  "valid, and not applied: the factory is suspended at revision " + f.Applied.ID,
	}
	if f.SyncState == state.SyncApplied && same(f.Attempted, snap.Revision) {
		return result, nil
	}

	if failed, err := l.recordRefused(ctx, started, result); err != nil {
		return failed, err
	}

	l.cfg.Log.Info("suspended: the revision is valid and not applied",
		"revision", snap.Revision.ID, "applied", f.Applied.ID)
	result.Recorded = true
	return result, nil
}

// secretsWait reports whether a webhook's secret has a newer value than the one it uses.
func (l *Loop) secretsWait(ctx context.Context) (bool, error) {
	webhooks, err := l.cfg.Store.Webhooks(ctx, l.cfg.Factory.UID, false)
	return slices.ContainsFunc(webhooks, func(w state.Webhook) bool { return w.SecretStale }), err
}

// standing returns the problems of the applied revision, if only failures to read the source followed it.
// If the source then has unchanged content, the loop does not apply it again, which would use new values of
// secrets.
func (l *Loop) standing(ctx context.Context, f state.Factory) ([]schema.Problem, bool) {
	if f.SyncState == state.SyncApplied {
		return f.Problems, true
	}
	if f.SyncState != state.SyncFailed || !same(f.Attempted, f.Applied) {
		return nil, false
	}

	attempts, err := l.cfg.Store.Attempts(ctx, f.UID, 0, 50)
	last := slices.IndexFunc(attempts, func(a state.Attempt) bool { return a.Outcome != state.OutcomeFailed })
	if err != nil || last < 0 || attempts[last].Outcome == state.OutcomeRefused {
		return nil, false
	}

	return attempts[last].Problems, true
}

func same(a, b state.Revision) bool { return a.ID == b.ID && a.Tree == b.Tree }

// versions names the latest version of every secret of the team.
func versions(secrets map[string]state.SecretInfo) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		if secrets[name].FactoryUID == "" {
			fmt.Fprintf(&b, "%s %d\n", name, secrets[name].Version)
		}
	}
	return b.String()
}

// settled returns the result of an attempt without changes.
func (l *Loop) settled(f state.Factory, outcome state.Outcome) Result {
	clear(l.failures)
	return Result{Outcome: outcome, Revision: f.Attempted, Problems: f.Problems, Message: f.Message}
}

// recordRefused records an attempt that applied nothing. With an error it returns the result of the failure.
func (l *Loop) recordRefused(ctx context.Context, started time.Time, r Result) (Result, error) {
	err := l.cfg.Store.Refuse(ctx, state.Attempt{
		FactoryUID: l.cfg.Factory.UID,
		Started:    started,
		Revision:   r.Revision,
		Outcome:    r.Outcome,
		Problems:   r.Problems,
		Message:    r.Message,
		CheckURL:   l.checkURL(),
	})
	if err == nil || errors.Is(err, state.ErrSuperseded) {
		return Result{}, err
	}

	return l.fail(ctx, started, r.Revision, err), err
}
