//go:build unix

// Package worker executes claimed runs through harnesses. It needs a connection to dispatch and nothing
// else: no database, no master key.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/runs/wire"
	"millwright/runs/worker/checkout"
	"millwright/runs/worker/confine"
	"millwright/runs/worker/workspace"
	"millwright/trace"
)

// Config says how to work. Client is required; with the rest zero, one run at a time is executed by the
// built-in harness named echo.
type Config struct {
	Client *wire.Client
	// Slots is how many runs are executed at once; 1 when zero.
	Slots int
	// Harnesses are the configured ones by name. echo is built in.
	Harnesses map[string]Harness
	// Default is the harness of runs that name none, or "oz"; echo when empty.
	Default string
	// Updates brings other harnesses while it works, for the runs that begin afterwards; nil: never.
	Updates <-chan Update
	// Dir is where working directories are made; one in the system's temporary directory when empty.
	Dir string
	// Grace is how long runs may go on after the worker is told to end; 10 seconds when zero. Half of it
	// they may use to finish, then they are stopped and handed back.
	Grace time.Duration
	// MaxRefused is how long every request for work may be refused before the worker gives up: its key was
	// revoked or has expired; a minute when zero.
	MaxRefused time.Duration
	// MaxDir is how many bytes a working directory may hold; 10 GiB when zero. The run that fills it ends
	// as ERROR.
	MaxDir int64
	// NoCgroup does without control groups, as on a machine that has none.
	NoCgroup bool
	// Keeper is the command line with which this program calls confine.Keep, for machines without control
	// groups. nil: there only the process group of a harness ends with its run.
	Keeper []string
	// Enter are the arguments with which this program calls sandbox.Enter.
	Enter []string
	// Hidden are files and directories that no sandbox shows, such as those of the server.
	Hidden []string
	// Name is shown as the runs' executor; the host's name when empty.
	Name string
	// Version is the program's version, for people.
	Version string
	// Log receives notices; nil discards them.
	Log *slog.Logger
	// Registerer receives the metrics; nil: none.
	Registerer prometheus.Registerer
	// Tracer continues the traces of runs; nil: none.
	Tracer *trace.Tracer
}

// claimWait is how long one request for work waits.
const claimWait = 5 * time.Second

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

// ErrKeyRefused says that the server takes the worker's key no more.
var ErrKeyRefused = errors.New("the server refuses this worker's key: it was revoked or has expired; " +
	"make another with millwright key create NAME --role worker")

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

type worker struct {
	cfg       Config
	dir       string // of the working directories
	label     string // marks what belongs to this process
	host      *confine.Host
	mirrors   *checkout.Mirrors
	accounts  confine.Accounts
	mu        sync.Mutex
	harnesses map[string]configured
	fallback  string // the harness of runs that name none
	jobs      map[string]*job
	giveUp    context.CancelCauseFunc
	refused   time.Time     // since when servers refuse every request for work
	changed   chan struct{} // capacity 1: the next report
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

// cancel ends the run of the given ID if this worker executes it.
func (w *worker) cancel(runID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[runID]; j != nil {
		j.stop(errCancelled)
	}
}
