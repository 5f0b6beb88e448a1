//go:build unix

package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"millwright/runs/worker/confine"
	"millwright/runs/worker/workspace"
)

// Bounds of what is read from a pod.
const (
	maxBroughtBack = 1 << 30 // bytes, with 4096 for each file at least
)

// taken reports whether the run is no longer this worker's, or is handed back.
func taken(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, errLost) || errors.Is(cause, errHandBack)
}

// halt ends the harness of a pod: with SIGTERM, and after killAfter with SIGKILL to all of its container but
// the first process, the shell, which ends with the harness.
func (k *kubernetes) halt(ctx context.Context, name, pod string) error {
	ended := func() (bool, error) {
		p, err := k.look(ctx, name)
		return p.harness.Terminated != nil, err
	}

	for _, kill := range []string{"kill -s TERM 1", "kill -s KILL -1"} {
		_, err := k.kubectl(ctx, nil, "exec", "--container", harnessContainer, pod, "--", "sh", "-c", kill)
		if gone, _ := ended(); gone {
			return nil
		}
		if err != nil {
			return err
		}
		if err := insist(ctx, killAfter, ended); !errors.Is(err, errPatience) {
			return err
		}
	}

	return errPatience
}

// bringBack replaces the working directory by that of a pod whose harness has ended. After an error, the
// directory is as it was sent to the pod.
func (k *kubernetes) bringBack(ctx context.Context, name, pod string, t Task) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bringTime, fmt.Errorf("it took longer than %s", bringTime))
	defer cancel()

	dir := filepath.Join(t.Root, "brought-back")
	err := insist(ctx, bringTime, func() (bool, error) {
		if _, err := k.look(ctx, name); err != nil {
			return false, err
		}
		if err := mkdirNew(dir); err != nil {
			return false, err
		}
		return true, k.receive(ctx, pod, dir)
	})
	if err != nil {
		return fmt.Errorf("the files of the pod cannot be read: %w", err)
	}

	if err := workspace.Remove(t.Dir); err != nil {
		return err
	}
	if err := os.Rename(dir, t.Dir); err != nil {
		return err
	}
	return k.give(t)
}

// receive writes the files of a pod into a new directory.
func (k *kubernetes) receive(ctx context.Context, pod, dir string) error {
	cmd := exec.CommandContext(ctx, k.program, k.arguments("exec", "--container", leftContainer, pod, "--",
		"tar", "-cf", "-", "-C", workDir, ".")...)
	var stderr tail
	cmd.Stderr, cmd.WaitDelay = &stderr, 3*time.Second
	cmd.SysProcAttr = confine.GroupAttributes()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}

	runtime.LockOSThread() // as confine.GroupAttributes asks
	defer runtime.UnlockOSThread()

	if err := cmd.Start(); err != nil {
		return err
	}

	failed := workspace.Receive(out, dir, maxBroughtBack)
	if failed != nil {
		cmd.Process.Kill()
	}
	err = cmd.Wait()
	var refused workspace.RefusedError
	switch {
	case errors.As(failed, &refused):
		return refused
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		return failed
	}

	said := strings.TrimSpace(clean(string(stderr.kept)))
	if strings.Contains(said, "command terminated with exit code") { // tar's, not kubectl's
		return errors.New(said)
	}
	return apiError{fmt.Errorf("%w: %s", err, said)}
}
