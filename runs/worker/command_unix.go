//go:build unix

package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"millwright/runs/wire"
	"millwright/runs/worker/confine"
	"millwright/runs/worker/preset"
	"millwright/runs/worker/sandbox"
	"millwright/runs/worker/workspace"
)

// killAfter is how long a harness has between SIGTERM and SIGKILL (docs/contract.md, section 10).
const killAfter = 5 * time.Second

// workDirVariable names the working directory to a command.
const workDirVariable = "MILLWRIGHT_WORK_DIR"

// exitBlocked is the exit status of a harness whose agent waits for input.
const exitBlocked = 10

// command runs a harness as a process on this machine.
type command struct {
	harness Harness
	pool    []confine.Account // empty: as this process's user
	box     *boxed            // nil: without a sandbox
}

// accounts returns the accounts of the pool; a run needs one of them.
func (c *command) accounts() []confine.Account { return c.pool }

// Execute runs the command in the task's directory.
func (c *command) Execute(ctx context.Context, t Task) outcome {
	ctx, cancel := context.WithTimeoutCause(ctx, c.harness.Timeout, timeoutError{c.harness.Timeout})
	defer cancel()

	stdin, err := t.openPrompt()
	if err != nil {
		return failed("environment_setup_failed", "prompt: %v", underlying(err))
	}
	defer stdin.Close()

	path := cmp.Or(c.harness.Path, confine.DefaultPath)
	program, err := confine.LookUp(t.Command[0], path)
	switch {
	case err != nil:
	case c.box != nil:
		err = c.box.checkShown(t, program)
	default:
		err = t.host.CheckShown(program)
	}
	if err != nil {
		return judge(ctx, exit{start: fmt.Errorf("%s: %w%s", t.Command[0], err, c.harness.installed())})
	}

	cmd := &exec.Cmd{
		Path: program, Args: t.Command, Stdin: stdin,
		Dir: filepath.Join(t.seenRoot(), confine.Work), Env: c.environment(t, path),
	}
	start := func(cmd *exec.Cmd) (confine.Process, error) { return c.start(t, cmd) }
	e := execute(ctx, cmd, start, t, t.adapter, nil)
	o := judge(ctx, e)
	o.alive = e.alive
	return o
}

// installed is a hint for a preset whose program is not there.
func (h Harness) installed() string {
	p, ok := preset.Find(h.Preset)
	if !ok || p.Package == "" {
		return ""
	}
	return fmt.Sprintf(": install it with npm install -g %s, or set program", p.Package)
}

// run describes the commands of a task.
func (c *command) run(t Task) confine.Run {
	return confine.Run{Name: filepath.Base(t.Root), Dir: t.Root, Account: t.account, Sandboxed: t.boxed}
}

// start starts a command of a task.
func (c *command) start(t Task, cmd *exec.Cmd) (confine.Process, error) {
	if c.box != nil {
		return c.box.start(t, cmd, c.run(t))
	}
	return t.host.Start(cmd, c.run(t))
}

// seen returns where the command finds its home and its working directory.
func (c *command) seen(t Task) places {
	root := t.seenRoot()
	return places{filepath.Join(root, confine.Home), filepath.Join(root, confine.Work)}
}

// homeOf returns where the home of a task's agent is.
func (c *command) homeOf(t Task) string { return filepath.Join(t.Root, confine.Home) }

// prepare makes the directories of a run and gives them to its account, after killing the account's
// processes.
func (c *command) prepare(t Task, run confine.Run) error {
	if a := run.Account; a != nil {
		if err := confine.KillUser(a.UID); err != nil {
			return err
		}
		for _, dir := range []string{t.Dir, t.home} {
			if err := workspace.Give(dir, int(a.UID), int(a.GID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return confine.Give(run, t.host.Private())
}

// execute runs cmd, adds its output to the conversation, and ends every process that it started. When ctx
// ends, it calls stop, or sends SIGTERM if stop is nil, and SIGKILL 5 seconds later.
func execute(ctx context.Context, cmd *exec.Cmd, start starter, t Task, adapt preset.Adapter, stop func()) exit {
	if t.session != nil {
		return converse(ctx, cmd, start, t)
	}

	stderr := &tail{}
	readers, err := pipes(cmd, t, adapt, stderr)
	if err != nil {
		return exit{start: err}
	}

	process, err := start(cmd)
	readers.started()
	if err != nil {
		readers.finish(time.Second)
		return exit{
			start:  fmt.Errorf("%s: %w", filepath.Base(cmd.Path), underlying(err)),
			stderr: stderr.text(t.out.redact),
		}
	}

	err = wait(ctx, process, stop)
	alive := process.Kill()
	readers.finish(3 * time.Second)
	return exit{
		err:     err,
		alive:   alive,
		failure: cut(t.out.redact.text(adapt.End(t.out)), maxTail),
		stderr:  stderr.text(t.out.redact),
	}
}

// judge returns the outcome of a harness (docs/contract.md, section 10).
func judge(ctx context.Context, e exit) outcome {
	if e.blocked != "" {
		return outcome{ended: true, state: wire.Blocked, message: e.blocked}
	}
	if o, stopped := stoppedBy(ctx); stopped {
		return o
	}
	if e.start != nil && e.stderr != "" {
		return failed("agent_process_failed", "the harness cannot be started: %v: %s", e.start, e.stderr)
	}
	if e.start != nil {
		return failed("agent_process_failed", "the harness cannot be started: %v", e.start)
	}
	if e.err == nil && e.failure != "" {
		return outcome{ended: true, state: wire.Failed, code: "agent_process_failed", message: e.failure}
	}
	return ended(e.err, cmp.Or(e.stderr, e.failure))
}

// wait returns when the process has ended, by itself or because it was told to after the end of ctx.
func wait(ctx context.Context, p confine.Process, stop func()) error {
	done := make(chan error, 1)
	go func() { done <- p.Wait() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}

	if stop != nil {
		stop()
	} else {
		p.Terminate()
	}

	timer := time.NewTimer(killAfter)
	defer timer.Stop()

	select {
	case err := <-done:
		return err
	case <-timer.C:
	}

	p.Kill()
	return <-done
}

// ended returns the outcome for the exit of a command.
func ended(err error, stderr string) outcome {
	var e *confine.ExitError
	if err == nil {
		return endedWith(0, stderr)
	}
	if errors.Is(err, sandbox.ErrMemory) {
		return gaveUp(err.Error(), stderr)
	}
	if !errors.As(err, &e) {
		return failed("agent_process_failed", "the harness cannot be waited for: %v", underlying(err))
	}
	if s := e.Status; s.Signaled() {
		return gaveUp(fmt.Sprintf("the harness was ended by signal %d (%s)", s.Signal(), s.Signal()), stderr)
	}

	return endedWith(e.Status.ExitStatus(), stderr)
}

// endedWith returns the outcome for an exit status.
func endedWith(status int, stderr string) outcome {
	switch status {
	case 0:
		return outcome{ended: true, state: wire.Succeeded}
	case exitBlocked:
		return outcome{ended: true, state: wire.Blocked, message: stderr}
	}
	return gaveUp(fmt.Sprintf("the harness ended with exit status %d", status), stderr)
}

func gaveUp(how, stderr string) outcome {
	if stderr != "" {
		how += ": " + stderr
	}
	return outcome{ended: true, state: wire.Failed, code: "agent_process_failed", message: how}
}

// readers read the output of a command.
type readers struct {
	theirs []*os.File // the ends that the command writes to
	ours   []*os.File
	wg     sync.WaitGroup
}

// pipes connects the command's output to the conversation, and its errors to stderr.
func pipes(cmd *exec.Cmd, t Task, adapt preset.Adapter, stderr io.Writer) (*readers, error) {
	r := &readers{}
	for range 2 {
		ours, theirs, err := os.Pipe()
		if err != nil {
			r.started()
			r.finish(0)
			return nil, err
		}

		r.ours, r.theirs = append(r.ours, ours), append(r.theirs, theirs)
	}

	cmd.Stdout, cmd.Stderr = r.theirs[0], r.theirs[1]
	r.wg.Go(func() {
		readLines(r.ours[0], func(line []byte, left int) {
			text := string(line)
			if left > 0 { // a secret may be cut in two here, with each byte written as six
				most := 6 * t.out.redact.longest
				text = shortened(text[:max(0, len(text)-most)], left+most)
			}

			adapt.Line(t.out, clean(text))
		})
	})

	r.wg.Go(func() { io.Copy(stderr, r.ours[1]) })
	return r, nil
}

// started closes the command's ends in this process.
func (r *readers) started() {
	for _, f := range r.theirs {
		f.Close()
	}
}

// finish waits until everything is read, or patience is over: a process that left the group may hold the
// pipe open.
func (r *readers) finish(patience time.Duration) {
	for _, f := range r.ours {
		f.SetReadDeadline(time.Now().Add(patience))
	}
	r.wg.Wait()
	for _, f := range r.ours {
		f.Close()
	}
}

// environment returns the environment of the command: the variables of the contract, those that the
// operator lists, and the granted secrets.
func (c *command) environment(t Task, path string) []string {
	root := t.seenRoot()
	work, tmp, home := filepath.Join(root, confine.Work), filepath.Join(root, confine.Tmp), os.Getenv("HOME")
	if t.host.Private() || t.boxed {
		tmp = "/tmp"
	}
	if t.account != nil || t.boxed {
		home = c.seen(t).home
	}

	env := []string{
		"PATH=" + path, "HOME=" + home, "LANG=C.UTF-8", "PWD=" + work, workDirVariable + "=" + work,
		"TMPDIR=" + tmp, "TMP=" + tmp, "TEMP=" + tmp,
	}
	for name, value := range variables(c.harness, t, work) {
		env = append(env, name+"="+value)
	}

	return env
}

// ours reports whether only this process's user can write to a directory.
func ours(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid() && info.Mode().Perm()&0o022 == 0
}

// limits reports whether the harness is in a sandbox that does not reach all that the machine does.
func (c *command) limits() bool { return c.box != nil && c.box.spec.Network != sandbox.Shared }
