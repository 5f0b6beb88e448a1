//go:build unix

package worker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"millwright/runs/wire"
	"millwright/runs/worker/workspace"
)

// living returns the session that messages and answers go to, nil when there is none.
func (j *job) living() *session {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.session
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
	result := wire.Result{
		State: o.state, Message: o.message, ErrorCode: o.code, Later: o.later,
		Outputs: o.outputs, OutputLines: o.outputLines,
	}
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

func newRecorder(j *job, env []string) *recorder {
	r := &recorder{
		client: j.worker.cfg.Client, order: j.order, redact: newRedactor(j.order, env), stop: j.stop,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	r.room = sync.NewCond(&r.mu)
	go r.loop()
	return r
}
