//go:build unix

package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/runs/wire"
	"millwright/runs/worker/checkout"
	"millwright/runs/worker/confine"
)

// Run takes runs and executes them until ctx ends; then it takes no more, and returns when every run is
// finished or handed back, within the grace period. It returns an error only when the configuration cannot
// work, and [ErrKeyRefused] if the server keeps refusing the worker's key.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Slots == 0 {
		cfg.Slots = 1
	}
	if cfg.Grace == 0 {
		cfg.Grace = 10 * time.Second
	}
	if cfg.MaxRefused == 0 {
		cfg.MaxRefused = time.Minute
	}
	if cfg.MaxDir == 0 {
		cfg.MaxDir = 10 << 30
	}
	if cfg.Name == "" {
		cfg.Name, _ = os.Hostname()
	}

	dir, left, done, err := ownDir(cfg.Dir, cfg.Log)
	if err != nil {
		return err
	}
	defer done()

	w := &worker{
		cfg:     cfg,
		dir:     dir,
		label:   filepath.Base(dir),
		jobs:    map[string]*job{},
		changed: make(chan struct{}, 1),
		mirrors: checkout.Open(filepath.Join(filepath.Dir(dir), "mirrors"), cfg.MaxDir),
	}
	if err := w.set(Update{cfg.Harnesses, cfg.Default}); err != nil {
		return err
	}

	w.sweep(left)
	w.expireMirrors()
	if err := w.confine(); err != nil {
		return err
	}
	defer w.host.Close()

	unregister, err := w.register()
	if err != nil {
		return err
	}
	defer unregister()

	updating := make(chan struct{})
	defer close(updating)

	go w.update(updating)
	end, err := cfg.Client.OnCancel(w.cancel)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	defer end()

	endWakes, err := cfg.Client.OnWake(w.wake)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	defer endWakes()

	reported := w.reportUntil()
	defer reported()

	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)

	w.giveUp = giveUp

	// Jobs outlive ctx by up to the grace period.
	jobs, handBack := context.WithCancelCause(context.WithoutCancel(ctx))
	defer handBack(nil)

	var slots sync.WaitGroup
	for range cfg.Slots {
		slots.Go(func() { w.slot(ctx, jobs) })
	}

	idle := make(chan struct{})
	go func() { slots.Wait(); close(idle) }()
	select {
	case <-ctx.Done():
	case <-idle:
	}

	w.leave(idle, handBack)
	if cause := context.Cause(ctx); errors.Is(cause, ErrKeyRefused) {
		return cause
	}

	return nil
}

// confine prepares to start harnesses, and notes for the next worker what to kill should this one be killed.
func (w *worker) confine() error {
	w.host = confine.Open(confine.Config{Label: w.label, NoCgroup: w.cfg.NoCgroup, Keeper: w.cfg.Keeper})
	if err := os.WriteFile(filepath.Join(w.dir, cgroupFile), []byte(w.host.Mark()), 0o600); err != nil {
		w.host.Close()
		return fmt.Errorf("working directories: %w", err)
	}

	if !w.host.Sweeps() {
		w.cfg.Log.Warn(
			"processes that leave the process group of a command harness outlive its run",
			"ends_by",
			w.host.Describe(),
		)
	}

	w.cfg.Log.Debug("worker: isolation", "ends_by", w.host.Describe(), "private_tmp", w.host.Private())
	return nil
}

// slot executes one run after another.
func (w *worker) slot(ctx, jobs context.Context) {
	const shortest, longest = 250 * time.Millisecond, 5 * time.Second
	pause := shortest
	for ctx.Err() == nil {
		order, held, err := w.claim(ctx)
		if err != nil {
			if ctx.Err() == nil {
				w.cfg.Log.Warn("worker: ask for work", "error", err)
			}

			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}

			pause = min(2*pause, longest)
			continue
		}

		pause = shortest
		if order == nil {
			continue
		}

		if ctx.Err() != nil {
			w.accounts.Return(held...)
			w.release(jobs, order)
			return
		}

		w.do(jobs, order, held)
	}
}

// do executes one order. The accounts are held for it.
func (w *worker) do(ctx context.Context, o *wire.Order, held []confine.Account) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	j := &job{
		worker: w,
		order:  o,
		held:   held,
		stop:   stop,
		log:    w.cfg.Log.With("run_id", o.RunID, "attempt", o.Attempt),
	}

	w.mu.Lock()
	w.jobs[o.RunID] = j
	w.mu.Unlock()
	w.noteChange()
	defer w.noteChange()
	defer func() {
		w.mu.Lock()
		if w.jobs[o.RunID] == j {
			delete(w.jobs, o.RunID)
		}

		w.mu.Unlock()
	}()

	j.run(ctx)
}

// register adds the metrics of the slots.
func (w *worker) register() (unregister func(), err error) {
	if w.cfg.Registerer == nil {
		return func() {}, nil
	}

	slots := prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "millwright_worker_slots", Help: "How many runs this process executes at once."},
		func() float64 { return float64(w.cfg.Slots) },
	)
	busy := prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{
			Name: "millwright_worker_slots_busy",
			Help: "How many runs this process executes just now.",
		},
		func() float64 {
			w.mu.Lock()
			defer w.mu.Unlock()

			return float64(len(w.jobs))
		},
	)
	if err := errors.Join(w.cfg.Registerer.Register(slots), w.cfg.Registerer.Register(busy)); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}

	return func() { w.cfg.Registerer.Unregister(slots); w.cfg.Registerer.Unregister(busy) }, nil
}

// leave withdraws requests for work, and returns runs that do not end in time.
func (w *worker) leave(idle <-chan struct{}, handBack context.CancelCauseFunc) {
	patience := time.NewTimer(w.cfg.Grace / 2)
	defer patience.Stop()

	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()

	for {
		w.cfg.Client.Leave()
		select {
		case <-idle:
			return
		case <-again.C: // a request for work may have been under way
		case <-patience.C:
			handBack(errHandBack)
		}
	}
}
