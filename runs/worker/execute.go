//go:build unix

package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"millwright/runs/wire"
	"millwright/runs/worker/checkout"
	"millwright/runs/worker/confine"
	"millwright/runs/worker/preset"
	"millwright/trace"
)

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
		o = failed("environment_setup_failed", "%v", err)
		o.later = errors.Is(err, checkout.ErrLater)
		return o, false
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
