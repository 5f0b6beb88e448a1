//go:build unix

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"millwright/runs/wire"
	"millwright/runs/worker/confine"
	"millwright/runs/worker/preset"
	"millwright/runs/worker/workspace"
	"millwright/trace"
)

// Causes for stopping a job before its harness ends.
var (
	errCancelled = errors.New("the run was cancelled")
	errLost      = errors.New("the run was taken away from this worker")
	errHandBack  = errors.New("the worker ends")
)

// timeoutError is the cause when a harness takes too long.
type timeoutError struct{ after time.Duration }

func (e timeoutError) Error() string {
	return fmt.Sprintf("the harness did not end within %s", e.after)
}

// fullError is the cause when a harness fills its directory.
type fullError struct{ max int64 }

func (e fullError) Error() string {
	return fmt.Sprintf("the harness put more than %d bytes into its working directory", e.max)
}

// errScarce is the cause when a harness uses much of a nearly full disk.
var errScarce = errors.New("the worker's disk is nearly full, and this run holds much of it")

// job is one order while it is executed.
type job struct {
	worker *worker
	order  *wire.Order
	held   []confine.Account // until the job knows which one the run needs
	stop   context.CancelCauseFunc
	log    *slog.Logger

	mu      sync.Mutex
	session *session // of the agent; nil: it has none, or it is over
}

// setSession sets the session that messages and answers go to.
func (j *job) setSession(s *session) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.session = s
}

// living returns the session that messages and answers go to, nil when there is none.
func (j *job) living() *session {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.session
}

// run executes the order and reports its result to the server.
func (j *job) run(ctx context.Context) {
	client := j.worker.cfg.Client
	defer func() { j.worker.accounts.Return(j.held...) }()

	var beat sync.WaitGroup
	beating, still := context.WithCancel(context.WithoutCancel(ctx))
	asked := time.Now()
	cancel, err := client.Start(ctx, j.order)
	if err != nil {
		if !errors.Is(err, wire.ErrLost) {
			j.log.Warn("worker: begin a run", "error", err)
			j.worker.release(ctx, j.order)
		}

		still()
		return
	}

	if cancel {
		j.stop(errCancelled)
	}

	beat.Go(func() { j.heartbeats(beating, asked) })
	name, harness := j.worker.harness(j.order)
	rec := newRecorder(j, harness.harness.Env)
	result := j.traced(ctx, rec, name, harness)
	closing, closed := context.WithTimeout(beating, 10*time.Second)
	rec.close(closing)
	closed()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errLost):
		j.log.Warn("worker: the run is lost")
	case errors.Is(cause, errHandBack) && !result.ended:
		rec.flush(beating)
		j.worker.release(ctx, j.order)
		j.log.Info("worker: run handed back")
	default:
		j.finish(beating, rec, result)
	}

	still()
	beat.Wait()
}

// outcome is the result of a harness.
type outcome struct {
	ended   bool // by itself
	state   wire.RunState
	message string
	code    string
	alive   error             // reason why processes of the run are still alive
	kept    error             // reason why the working directory is not as the harness left it
	outputs []json.RawMessage // requests of the agent
}

func failed(code, format string, args ...any) outcome {
	return outcome{ended: true, state: wire.Error, code: code, message: fmt.Sprintf(format, args...)}
}

// traced is execute as a part of the run's trace.
func (j *job) traced(ctx context.Context, rec *recorder, name string, harness configured) outcome {
	ctx, span := j.worker.cfg.Tracer.Start(trace.Continue(ctx, j.order.Traceparent), "harness", time.Time{})
	defer span.End()

	span.Set(trace.Run, j.order.RunID).
		Set(trace.Worker, j.worker.cfg.Client.UID()).
		Count(trace.Execution, j.order.Execution).
		Count(trace.Attempt, j.order.Attempt)
	if harness.Executor != nil { // otherwise the name is text of the run's creator
		span.Set(trace.Harness, name)
	}

	o := j.execute(ctx, rec, name, harness)
	if span.Set(trace.State, string(o.state)); o.code != "" {
		span.Fail(o.code)
	}

	return o
}

// execute runs the harness. When an agent cannot go on with the session that it left, it is started anew with the
// conversation so far.
func (j *job) execute(ctx context.Context, rec *recorder, name string, harness configured) outcome {
	o, resumed := j.try(ctx, rec, name, harness, true)
	if !resumed || o.state != wire.Failed || rec.worked() {
		return o
	}

	rec.Add(preset.Event("session_not_resumed", map[string]string{"harness": name, "reason": o.message}))
	rec.again()
	o, _ = j.try(ctx, rec, name, harness, false)
	return o
}

// try prepares the directories of the run and runs the harness in them, in the session that it left if resume
// is set and there is one.
func (j *job) try(
	ctx context.Context,
	rec *recorder,
	name string,
	harness configured,
	resume bool,
) (o outcome, resumed bool) {
	w := j.worker
	account, err := w.choose(ctx, j.held, harness.pool())
	if j.held = nil; err != nil {
		if o, stopped := stoppedBy(ctx); stopped {
			return o, false
		}
		return failed("environment_setup_failed", "%v", underlying(err)), false
	}

	if account != nil {
		defer func() { w.giveBack(*account, o.alive) }()
	}
	if harness.Executor == nil {
		return failed("environment_setup_failed", "this worker has no harness %q", name), false
	}
	if limited, ok := harness.Executor.(limiter); j.order.Confined && (!ok || !limited.limits()) {
		return failed("environment_setup_failed", "the run starts in the commit of a fork: harness %q needs a sandbox "+
			"that limits its network", name), false
	}

	root, err := os.MkdirTemp(w.dir, "run-")
	if err != nil {
		return failed("environment_setup_failed", "working directory: %v", underlying(err)), false
	}
	defer func() { j.clean(root, o.alive) }()

	dir := filepath.Join(root, confine.Work)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return failed("environment_setup_failed", "working directory: %v", underlying(err)), false
	}

	t := Task{
		Order: j.order, Root: root, Dir: dir, MaxDir: w.cfg.MaxDir, account: account, host: w.host, out: rec,
		enter: w.cfg.Enter, hidden: append([]string{filepath.Dir(w.dir)}, w.cfg.Hidden...),
	}
	if c, ok := harness.Executor.(*command); ok {
		t.boxed = c.box != nil
	}
	watched, done := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { j.watch(watched, root) })
	defer watch.Wait()
	defer done()

	resumed, err = j.furnish(ctx, &t, name, harness, resume)
	if err == nil {
		err = j.prepare(ctx, &t, harness)
	}
	if o, stopped := stoppedBy(ctx); stopped {
		return o, false
	}
	if err != nil {
		return failed("environment_setup_failed", "%v", err), false
	}

	o = harness.Execute(ctx, t)
	done()
	if o.state == wire.Failed && t.unsigned != "" && !rec.worked() {
		o.message += "; " + t.unsigned
	}

	if again := resumed && o.state == wire.Failed && !rec.worked(); o.alive == nil && !again {
		j.keep(ctx, t, harness, &o)
	}

	return o, resumed
}

// limiter is an executor that may limit the network of its processes.
type limiter interface {
	limits() bool
}

// clean removes the directories of a run without living processes. It leaves others to the next worker.
func (j *job) clean(root string, alive error) {
	err := alive
	if err == nil {
		err = workspace.Remove(root)
	}
	if err != nil {
		j.log.Error("worker: the directories of a run are left", "directory", root, "error", err)
	}
}

// watch stops the job when its directory is too large: more than the limit of a run or, while the disk is
// nearly full, more than the reserve of the disk.
func (j *job) watch(ctx context.Context, dir string) {
	tick := time.NewTicker(j.order.Lease / 6)
	defer tick.Stop()

	disk := time.NewTicker(time.Second)
	defer disk.Stop()

	for {
		maximum, cause := j.worker.cfg.MaxDir, error(fullError{j.worker.cfg.MaxDir})
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-disk.C:
			reserve, scarce := workspace.Reserve(dir)
			if !scarce {
				continue
			}
			maximum, cause = min(maximum, reserve), errScarce
		}

		if workspace.Exceeds(dir, maximum) {
			j.stop(cause)
			return
		}
	}
}

// stoppedBy returns the outcome of a run that was stopped by the cause of ctx.
func stoppedBy(ctx context.Context) (outcome, bool) {
	cause := context.Cause(ctx)
	var late timeoutError
	var full fullError
	var slow setUpError
	var over wire.OverBudgetError
	switch {
	case cause == nil:
		return outcome{}, false
	case errors.Is(cause, errCancelled):
		return outcome{ended: true, state: wire.Cancelled}, true
	case errors.As(cause, &over):
		return outcome{ended: true, state: wire.Failed, code: "budget_exceeded", message: over.Budget}, true
	case errors.As(cause, &late):
		return failed("infrastructure_timeout", "%v", late), true
	case errors.As(cause, &full), errors.Is(cause, errScarce), errors.As(cause, &slow):
		return failed("environment_setup_failed", "%v", cause), true
	}

	return outcome{}, true
}

// fill writes the order's files into the working directory, and returns those of our own by their names.
func (j *job) fill(ctx context.Context, t *Task) (own map[string][]byte, err error) {
	own = map[string][]byte{}
	for _, f := range j.order.Files {
		if f.Name == "" || strings.ContainsAny(f.Name, "/\\\x00") || !filepath.IsLocal(f.Name) {
			return nil, fmt.Errorf("attachment %q: not a file name", f.Name)
		}

		body, err := j.worker.cfg.Client.File(ctx, j.order, f)
		if errors.Is(err, wire.ErrNotFound) && f.Attachment {
			continue // retention deleted the payload
		}
		if err != nil {
			return nil, err
		}
		if !f.Attachment {
			own[f.Name] = body
		}

		moved, err := t.put(f, body)
		if err != nil {
			return nil, fmt.Errorf("file %q: %v", f.Name, underlying(err))
		}
		if moved {
			t.moved = append(t.moved, f.Name)
		}
	}

	return own, nil
}

// underlying removes paths of this machine from an error.
func underlying(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var program *exec.Error
	if errors.As(err, &program) {
		return program.Err
	}
	return err
}

// heartbeats renews the lease until ctx ends or the lease is lost. granted is the time of the last renewal.
func (j *job) heartbeats(ctx context.Context, granted time.Time) {
	lease := j.order.Lease
	tick := time.NewTicker(lease / 3)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		asked := time.Now()
		cancel, err := j.worker.cfg.Client.Heartbeat(ctx, j.order)
		switch {
		case err == nil:
			granted = asked
			if cancel {
				j.stop(errCancelled)
			}
		case errors.Is(err, wire.ErrLost), errors.Is(err, wire.ErrRefused): // the key was revoked
			j.stop(errLost)
			return
		case time.Since(granted) > lease*2/3: // end before the server gives the run to another
			j.stop(errLost)
			return
		}
	}
}

// finish reports the outcome to the server, with retries while the lease may still be valid.
func (j *job) finish(ctx context.Context, rec *recorder, o outcome) {
	result := wire.Result{State: o.state, Message: o.message, ErrorCode: o.code, Outputs: o.outputs}
	deadline := time.Now().Add(j.order.Lease)
	for {
		rec.rest(&result)
		now, err := j.worker.cfg.Client.Finish(ctx, j.order, result)
		switch {
		case err == nil:
			j.log.Info("run ended", "outcome", o.state, "state", now)
			return
		case errors.Is(err, wire.ErrLost):
			j.log.Warn("worker: the run was lost before its end could be told")
			return
		case errors.Is(err, wire.ErrRefused) && len(result.Messages) > 0:
			rec.drop() // the run's end matters more than its last messages
			continue
		case errors.Is(err, wire.ErrRefused) || time.Now().After(deadline):
			j.log.Error("worker: tell the end of a run", "error", err)
			return
		}

		select {
		case <-ctx.Done():
			return
		case <-time.After(250 * time.Millisecond):
		}
	}
}
