//go:build unix

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"millwright/runs/wire"
	"millwright/runs/worker/confine"
	"millwright/runs/worker/preset"
)

// Execute runs the harness as a Job.
func (k *kubernetes) Execute(ctx context.Context, t Task) outcome {
	ctx, cancel := context.WithTimeoutCause(ctx, k.harness.Timeout, timeoutError{k.harness.Timeout})
	defer cancel()

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	setUp, ready := withSetUp(&t, k.harness.Timeout, stop)
	defer ready()

	name := containerName(t.Order)
	image, _, _ := k.container.limits(t.Order.Runner)
	if image == "" {
		return failed(
			"environment_setup_failed",
			"container: neither the harness nor the run's runner names an image",
		)
	}

	if err := k.supersede(ctx, t.Order); err != nil {
		return k.unless(ctx, "the job cannot be made: %v", err)
	}

	release := guard(k.program, k.arguments(removal(name, false)...)...)
	defer func() { release(k.remove(name, ctx.Err() != nil) == nil) }()

	if err := k.create(ctx, name, t); err != nil {
		return k.unless(ctx, "the job cannot be made: %v", err)
	}

	pod, err := k.deliver(ctx, name, t.Dir)
	if err != nil {
		return k.unless(ctx, "the job's pod does not start: %v", err)
	}

	end, failure, err := k.follow(ctx, name, pod, t)
	o := k.ended(ctx, t, setUp, end, failure, err)
	if !taken(ctx) {
		o.kept = k.bringBack(context.WithoutCancel(ctx), name, pod, t)
	}
	return o
}

// stop ends the harness of a pod, and leaves the pod, whose files are still to be read. If that fails or
// nobody needs them, it removes the job.
func (k *kubernetes) stop(ctx context.Context, name, pod string) {
	if taken(ctx) || k.halt(context.WithoutCancel(ctx), name, pod) != nil {
		k.remove(name, true)
	}
}

// ended returns the outcome of a harness that was started.
func (k *kubernetes) ended(
	ctx context.Context,
	t Task,
	setUp *containerSetUp,
	end terminated,
	failure string,
	err error,
) outcome {
	if o, stopped := stoppedBy(ctx); stopped {
		return o
	}
	if err != nil {
		return failed("agent_process_failed", "the job's pod was lost: %v", err)
	}

	if o, ended := setUp.failed(end.ExitCode); ended {
		return o
	}

	stderr := lastWords(end.Message, t.out.redact)
	if o, unusable := notRun(end.ExitCode, stderr); unusable {
		return o
	}

	switch {
	case end.Reason == "StartError":
		return failed("environment_setup_failed", "the container cannot be set up: %s", stderr)
	case end.Reason == "OOMKilled":
		return gaveUp("the harness was killed: its container may not have more memory", stderr)
	case end.ExitCode == 0 && failure != "":
		return gaveUp("the harness failed", failure)
	}

	return endedWith(end.ExitCode, stderr)
}

// lastWords returns the end of standard error, of which the kubelet keeps 4096 bytes. It removes a partial
// secret at the beginning.
func lastWords(message string, redact *redactor) string {
	text := clean(redact.text(message))
	if len(message) >= maxTail {
		text = clean(text[min(len(text), redact.longest):])
	}
	return strings.TrimSpace(text)
}

// unless is a set-up that failed, unless it was stopped.
func (k *kubernetes) unless(ctx context.Context, format string, err error) outcome {
	if late := (timeoutError{}); errors.As(err, &late) {
		return failed("infrastructure_timeout", format, err)
	}
	if o, stopped := stoppedBy(ctx); stopped {
		return o
	}
	return failed("environment_setup_failed", format, err)
}

// remove deletes the job, and waits until its pod is gone if asked to.
func (k *kubernetes) remove(name string, wait bool) error {
	_, err := k.kubectl(context.Background(), nil, removal(name, wait)...)
	return err
}

// removal returns the command that deletes a job with its dependents. The pod's grace period bounds the end
// of the harness.
func removal(name string, wait bool) []string {
	return []string{
		"delete", "job", name, "--ignore-not-found", "--cascade=foreground",
		"--wait=" + strconv.FormatBool(wait), "--timeout=" + endPatience.String(),
	}
}

// supersede removes the jobs of earlier attempts and executions of the run, and waits until their pods are
// gone, so that a run never has two pods. A job of a later attempt means that this worker has lost the run.
func (k *kubernetes) supersede(ctx context.Context, o *wire.Order) error {
	var jobs []string
	err := insist(ctx, podPatience, func() (bool, error) {
		out, err := k.kubectl(ctx, nil, "get", "jobs", "--selector", "millwright/run="+o.RunID, "--output", "name")
		jobs = strings.Fields(string(out))
		return true, err
	})
	if err != nil {
		return err
	}

	for _, job := range jobs {
		_, name, _ := strings.Cut(job, "/")
		var execution, attempt int
		if _, err := fmt.Sscanf(name, "millwright-"+o.RunID+"-%d-%d", &execution, &attempt); err != nil {
			continue
		}
		if execution > o.Execution || execution == o.Execution && attempt > o.Attempt {
			return fmt.Errorf("%s of a later attempt is there", name)
		}
		if err := k.remove(name, true); err != nil {
			return err
		}
	}

	return nil
}

// create makes the job and the secret with its variables. The job owns the secret, which is made after it:
// the pod waits for it.
func (k *kubernetes) create(ctx context.Context, name string, t Task) error {
	job, err := json.Marshal(k.job(name, t))
	if err != nil {
		return err
	}

	out, err := k.kubectl(ctx, job, "create", "--output", "json", "--filename", "-")
	if err != nil {
		return err
	}

	var made struct {
		Metadata struct{ UID string }
	}
	if err := json.Unmarshal(out, &made); err != nil || made.Metadata.UID == "" {
		return errors.New("kubectl does not tell the job's UID")
	}

	secret, err := json.Marshal(k.secret(name, made.Metadata.UID, t))
	if err != nil {
		return err
	}

	_, err = k.kubectl(ctx, secret, "create", "--filename", "-")
	return err
}

// deliver waits for the job's pod, copies the files of the directory into it, and returns its name when the
// harness has started.
func (k *kubernetes) deliver(ctx context.Context, name, dir string) (pod string, err error) {
	archive, err := archiveOf(dir)
	if err != nil {
		return "", underlying(err)
	}

	sent := false
	var waits string
	err = insist(ctx, podPatience, func() (bool, error) {
		p, err := k.look(ctx, name)
		if err != nil {
			return false, err
		}

		pod, waits = p.name, p.waits
		switch files := p.files; {
		case files.Running != nil && !sent:
			_, err = k.kubectl(ctx, archive, "attach", "--stdin", "--quiet", "--container", filesContainer, pod)
			sent = err == nil
			return false, err
		case files.Terminated != nil && files.Terminated.ExitCode != 0:
			return false, fmt.Errorf("its files cannot be unpacked: %s", files.Terminated)
		}

		return p.harness.Running != nil || p.harness.Terminated != nil, nil
	})
	if late := (timeoutError{}); waits != "" && (errors.Is(err, errPatience) || errors.As(err, &late)) {
		err = fmt.Errorf("%w: it waits: %s", err, waits)
	}

	return pod, err
}

// follow adds the harness's output to the conversation, and returns the end of its container. failure is
// the failure that the output reports. It resumes a log that breaks off.
func (k *kubernetes) follow(
	ctx context.Context,
	name, pod string,
	t Task,
) (end terminated, failure string, err error) {
	lines := &dated{Adapter: t.adapter}
	ended := false
	err = insist(ctx, k.harness.Timeout, func() (bool, error) {
		args := []string{"logs", "--follow", "--timestamps", "--container", harnessContainer}
		if lines.seen = lines.last; !lines.seen.IsZero() {
			args = append(args, "--since-time", lines.seen.UTC().Format(time.RFC3339))
		}

		cmd := exec.Command(k.program, k.arguments(append(args, pod)...)...)
		began := time.Now()
		e := execute(ctx, cmd, confine.StartGroup, t, lines, func() { k.stop(ctx, name, pod) })
		switch {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case e.start != nil:
			return false, e.start
		case e.err != nil && time.Since(began) < apiPatience:
			return false, apiError{fmt.Errorf("%w: %s", e.err, e.stderr)}
		case e.err == nil && ended: // it ended before this read of the log, so the log is complete
			return true, nil
		}

		p, err := k.look(ctx, name)
		if err == nil && p.harness.Terminated != nil {
			ended, end = true, *p.harness.Terminated
		}

		return false, err
	})

	return end, t.out.redact.text(lines.Adapter.End(t.out)), err
}

// dated is an adapter for lines with a leading timestamp. It skips lines that it has seen.
type dated struct {
	preset.Adapter
	seen, last time.Time
}

// Line takes one line of the log.
func (d *dated) Line(out preset.Out, line string) {
	at, text, _ := strings.Cut(line, " ")
	when, err := time.Parse(time.RFC3339Nano, at)
	if err != nil || !when.After(d.seen) {
		return
	}
	d.last = when
	d.Adapter.Line(out, text)
}

// End comes after each reading of the log; the adapter's own once.
func (d *dated) End(preset.Out) string { return "" }

// seen returns where the agent finds its home and its working directory.
func (k *kubernetes) seen(Task) places { return places{path.Join(workDir, containerHome), workDir} }

// homeOf returns where the home of a task's agent is.
func (k *kubernetes) homeOf(t Task) string { return filepath.Join(t.Dir, containerHome) }

// sweep removes the jobs of a process that was killed.
func (k *kubernetes) sweep(label string) {
	k.kubectl(
		context.Background(),
		nil,
		"delete",
		"jobs",
		"--selector",
		"millwright/worker="+label,
		"--ignore-not-found",
		"--wait=false",
	)
}
