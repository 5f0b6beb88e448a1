//go:build unix

package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"millwright/runs/wire"
	"millwright/runs/worker/confine"
	"millwright/runs/worker/workspace"
)

// errNoDisk is the reason why a worker takes no runs.
var errNoDisk = errors.New("the disk of the working directories is nearly full")

// claim requests a run, unless the disk is nearly full. It first waits for a free account of every harness
// with accounts, and holds these, so that any run can begin at once.
func (w *worker) claim(ctx context.Context) (*wire.Order, []confine.Account, error) {
	if _, scarce := workspace.Reserve(w.dir); scarce {
		return nil, nil, errNoDisk
	}

	held, err := w.accounts.Take(ctx, w.pools()...)
	if err != nil {
		return nil, nil, err
	}

	order, err := w.cfg.Client.Claim(ctx, w.cfg.Name, claimWait)
	w.answered(err)
	if err != nil || order == nil {
		w.accounts.Return(held...)
		return nil, nil, err
	}

	return order, held, nil
}

// answered records the result of a request for work, and gives up if all were refused for long.
func (w *worker) answered(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !errors.Is(err, wire.ErrRefused):
		w.refused = time.Time{}
	case w.refused.IsZero():
		w.refused = time.Now()
	case time.Since(w.refused) >= w.cfg.MaxRefused:
		w.giveUp(ErrKeyRefused)
	}
}

// choose keeps the held account that a run of the pool needs, and returns the others. If the harnesses have
// changed since, it waits for an account.
func (w *worker) choose(ctx context.Context, held, pool []confine.Account) (*confine.Account, error) {
	var chosen *confine.Account
	for _, a := range held {
		if chosen == nil && slices.Contains(pool, a) {
			chosen = &a
			continue
		}
		w.accounts.Return(a)
	}

	if len(pool) == 0 {
		return nil, nil
	}

	if chosen == nil {
		taken, err := w.accounts.Take(ctx, pool)
		if err != nil {
			return nil, err
		}

		chosen = &taken[0]
	}

	if err := w.accounts.Use(ctx, *chosen); err != nil {
		w.accounts.Return(*chosen)
		return nil, err
	}

	return chosen, nil
}

// giveBack returns the account of an ended run once its processes are gone.
func (w *worker) giveBack(a confine.Account, alive error) {
	if alive == nil {
		w.accounts.Return(a)
		return
	}

	w.cfg.Log.Error("worker: an account waits for processes that do not end", "account", a.Name, "error", alive)
	go func() {
		for confine.KillUser(a.UID) != nil {
			time.Sleep(time.Second)
		}
		w.accounts.Return(a)
	}()
}

func (w *worker) release(ctx context.Context, o *wire.Order) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := w.cfg.Client.Release(ctx, o); err != nil && !errors.Is(err, wire.ErrLost) {
		w.cfg.Log.Warn("worker: hand back a run", "run_id", o.RunID, "error", err)
	}
}

// wake has the session of a run look for answers.
func (w *worker) wake(runID string) {
	w.mu.Lock()
	j := w.jobs[runID]
	w.mu.Unlock()

	if j == nil {
		return
	}
	if s := j.living(); s != nil {
		s.cue()
	}
}
