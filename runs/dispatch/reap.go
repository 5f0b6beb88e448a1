package dispatch

import (
	"context"
	"time"

	"millwright/state"
)

// reapLoop requeues runs of workers that were silent for too long.
func (d *Dispatcher) reapLoop() {
	slack := d.cfg.Lease / 6 // for servers whose clocks differ
	tick := time.NewTicker(slack)
	defer tick.Stop()

	for {
		select {
		case <-d.ctx.Done():
			return
		case <-tick.C:
		}

		runs, err := d.cfg.Store.ReapRuns(d.ctx, time.Now().Add(-slack), 1000)
		if err != nil && d.ctx.Err() == nil {
			d.cfg.Log.Warn("dispatch: take back lost runs", "error", err)
		}

		d.noteReaped(runs)
		d.reviewParked()
	}
}

// reviewParked has the runs that waited for their budget handed out or ended.
func (d *Dispatcher) reviewParked() {
	ended, err := d.cfg.Store.ReviewParked(d.ctx, time.Now())
	if err != nil && d.ctx.Err() == nil {
		d.cfg.Log.Warn("dispatch: review the runs that wait for a budget", "error", err)
	}

	for _, r := range ended {
		d.cfg.Log.Warn("run waited too long for its budget", "run_id", r.ID, "factory_uid", r.FactoryUID)
		d.metrics.finished(r)
		d.ended(r, time.Now())
	}
}

// reapOwn requeues the runs that the worker of this state's only server held when it ended.
func (d *Dispatcher) reapOwn(ctx context.Context) error {
	runs, err := d.cfg.Store.ReapWorker(ctx, LocalWorker)
	d.noteReaped(runs)
	return err
}

func (d *Dispatcher) noteReaped(runs []state.Run) {
	for _, r := range runs {
		d.cfg.Log.Warn(
			"run lost by its worker",
			"run_id",
			r.ID,
			"worker",
			r.Worker,
			"state",
			r.State,
			"attempt",
			r.Attempt,
		)
		if r.Ended() {
			d.metrics.finished(r)
			d.ended(r, time.Now())
		}
	}
}

// How long the loop sleeps: at most, which is no longer than the shortest window, and at least.
const (
	dueWait  = time.Second
	dueAgain = 20 * time.Millisecond
)

// dueLoop lets runs start whose window or pause has ended. Each server does; the state lets each run start once.
func (d *Dispatcher) dueLoop() {
	for {
		next, err := d.cfg.Store.ReleaseDue(d.ctx)
		if err != nil && d.ctx.Err() == nil {
			d.cfg.Log.Warn("dispatch: start runs that waited", "error", err)
		}

		wait := dueWait
		if !next.IsZero() && err == nil {
			wait = max(dueAgain, min(wait, time.Until(next)))
		}

		timer := time.NewTimer(wait)
		select {
		case <-d.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}
