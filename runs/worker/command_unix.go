//go:build unix

package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"millwright/runs/dispatch"
)

// killAfter is how long a harness has between SIGTERM and SIGKILL (contract.md, section 10).
const killAfter = 5 * time.Second

// workDirVariable names the working directory to a command, and tells its processes from those of others.
const workDirVariable = "MILLWRIGHT_WORK_DIR"

// exitBlocked is the exit status of a harness whose agent waits for input.
const exitBlocked = 10

// command runs a harness as a process group on this machine.
type command struct {
	harness Harness
	adapt   func() adapter
	home    string
	as      *syscall.Credential // nil: as this process's user
}

// lookUp finds the user that the command runs as.
func (c *command) lookUp(name string) error {
	u, err := user.Lookup(name)
	if err != nil {
		return fmt.Errorf("user %q does not exist on this machine", name)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("user %q: %w", name, err)
	}
	if int(uid) == os.Getuid() {
		return fmt.Errorf("user %q is the user of this process: choose another one, or say sameUser: true", name)
	}
	if os.Getuid() != 0 {
		return fmt.Errorf("only root can start commands as user %q: run this process as root, or use a container", name)
	}
	c.home = u.HomeDir
	c.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return nil
}

// Execute runs the command in the task's directory.
func (c *command) Execute(ctx context.Context, t Task) outcome {
	ctx, cancel := context.WithTimeoutCause(ctx, c.harness.Timeout, timeoutError{c.harness.Timeout})
	defer cancel()
	if c.as != nil {
		if err := giveTo(t.Dir, int(c.as.Uid), int(c.as.Gid)); err != nil {
			return failed("environment_setup_failed", "working directory: %v", underlying(err))
		}
	}
	stdin, err := os.Open(filepath.Join(t.Dir, dispatch.PromptFile))
	if err != nil {
		return failed("environment_setup_failed", "prompt: %v", underlying(err))
	}
	defer stdin.Close()
	cmd := exec.Command(c.harness.Command[0], c.harness.Command[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Env = t.Dir, stdin, c.environment(t)
	cmd.SysProcAttr = processGroup(c.as)
	began := time.Now()
	defer func() {
		if p := cmd.Process; p != nil && time.Since(began) < recent {
			killLeft(t.Dir+"\x00", p.Pid)
		} else if p != nil {
			killLeft(t.Dir+"\x00", 0)
		}
	}()
	return judge(ctx, t, execute(ctx, cmd, t, c.adapt(), nil))
}

// recent is less than the time in which the numbers of processes come round.
const recent = 2 * time.Second

// exit is how a process ended.
type exit struct {
	start   error  // it could not be started
	err     error  // of waiting for it
	stderr  string // its last words
	failure string // what its output says went wrong
}

// execute runs cmd as a process group, with its output becoming the conversation. When ctx ends it calls
// stop, or sends SIGTERM where that is nil, and SIGKILL 5 seconds later.
func execute(ctx context.Context, cmd *exec.Cmd, t Task, adapt adapter, stop func()) exit {
	stderr := &tail{}
	readers, err := pipes(cmd, t, adapt, stderr)
	if err != nil {
		return exit{start: err}
	}
	if err := cmd.Start(); err != nil {
		readers.started()
		readers.finish(0)
		return exit{start: fmt.Errorf("%s: %w", filepath.Base(cmd.Path), underlying(err))}
	}
	readers.started()
	err = wait(ctx, cmd, stop)
	readers.finish(3 * time.Second)
	return exit{err: err, failure: cut(adapt.end(t.out), maxTail), stderr: stderr.text(t.out.redact)}
}

// judge says what the end of a harness means (contract.md, section 10).
func judge(ctx context.Context, t Task, e exit) outcome {
	if o, stopped := stoppedBy(ctx); stopped {
		return o
	}
	if e.start != nil {
		return failed("agent_process_failed", "the harness cannot be started: %v", e.start)
	}
	if e.err == nil && e.failure != "" {
		return outcome{ended: true, state: dispatch.Failed, code: "agent_process_failed", message: e.failure}
	}
	return ended(e.err, cmp.Or(e.stderr, e.failure))
}

// wait returns when the command and all of its group have ended, by themselves or, after the end of ctx,
// because they were told to.
func wait(ctx context.Context, cmd *exec.Cmd, stop func()) error {
	group := -cmd.Process.Pid
	defer syscall.Kill(group, syscall.SIGKILL) // whatever the command left running
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if stop != nil {
		stop()
	} else {
		syscall.Kill(group, syscall.SIGTERM)
	}
	timer := time.NewTimer(killAfter)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
	}
	syscall.Kill(group, syscall.SIGKILL)
	return <-done
}

// ended says what the exit of a command means.
func ended(err error, stderr string) outcome {
	var e *exec.ExitError
	if err == nil {
		return endedWith(0, stderr)
	}
	if !errors.As(err, &e) {
		return failed("agent_process_failed", "the harness cannot be waited for: %v", underlying(err))
	}
	if status, ok := e.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return gaveUp(fmt.Sprintf("the harness was ended by signal %d (%s)", status.Signal(), status.Signal()), stderr)
	}
	return endedWith(e.ExitCode(), stderr)
}

// endedWith says what an exit status means.
func endedWith(status int, stderr string) outcome {
	switch status {
	case 0:
		return outcome{ended: true, state: dispatch.Succeeded}
	case exitBlocked:
		return outcome{ended: true, state: dispatch.Blocked, message: stderr}
	}
	return gaveUp(fmt.Sprintf("the harness ended with exit status %d", status), stderr)
}

func gaveUp(how, stderr string) outcome {
	if stderr != "" {
		how += ": " + stderr
	}
	return outcome{ended: true, state: dispatch.Failed, code: "agent_process_failed", message: how}
}

// readers read what a command puts out.
type readers struct {
	theirs []*os.File // the ends that the command writes to
	ours   []*os.File
	wg     sync.WaitGroup
}

// pipes connects the command's output to the conversation, and its errors to stderr.
func pipes(cmd *exec.Cmd, t Task, adapt adapter, stderr io.Writer) (*readers, error) {
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
			if left > 0 { // a secret may be cut in two here
				text = shortened(text[:max(0, len(text)-t.out.redact.longest)], left+t.out.redact.longest)
			}
			adapt.line(t.out, clean(t.out.redact.text(text)))
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

// finish waits until everything is read. What a process that left the group holds open is given up after
// patience.
func (r *readers) finish(patience time.Duration) {
	for _, f := range r.ours {
		f.SetReadDeadline(time.Now().Add(patience))
	}
	r.wg.Wait()
	for _, f := range r.ours {
		f.Close()
	}
}

// environment is a clean one: what the contract names, what the operator lists, the granted secrets.
func (c *command) environment(t Task) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.home, "TMPDIR=" + os.TempDir(), "LANG=C.UTF-8", "PWD=" + t.Dir, workDirVariable + "=" + t.Dir}
	for name, value := range variables(c.harness, t.Order) {
		env = append(env, name+"="+value)
	}
	return env
}

// giveTo makes another user the owner of the working directory and what is in it.
func giveTo(dir string, uid, gid int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := root.Lchown(e.Name(), uid, gid); err != nil {
			return err
		}
	}
	return os.Chown(dir, uid, gid)
}

// ours reports whether a directory belongs to this process's user, so that nobody else can put things into it.
func ours(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid() && info.Mode().Perm()&0o022 == 0
}
