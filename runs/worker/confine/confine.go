//go:build unix

// Package confine starts the processes of runs so that they end with their run and cannot reach other runs.
//
// On Linux every run has its own control group, which is killed as a whole. Without a writable cgroup v2
// hierarchy, a keeper, which is a process of this program, adopts and kills orphans of the run. A run under
// an account also ends by killing all processes of the account. If mount namespaces are available, each run
// has its own /tmp. On other systems only the process group is killed.
package confine

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// DefaultPath is the PATH of a harness that names none.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// endWithin is how long the processes of a run may take to die from SIGKILL.
const endWithin = 15 * time.Second

// The directories of a run. The harness starts in Work. Tmp replaces the machine's temporary directories,
// and Home the home of an account.
const (
	Work = "work"
	Tmp  = "tmp"
	Home = "home"
)

// Config is the settings of a Host.
type Config struct {
	// Label names the control groups of this worker.
	Label string
	// NoCgroup disables control groups.
	NoCgroup bool
	// Keeper is the command line with which this program calls Keep; nil: none.
	Keeper []string
}

// Account is a user of this machine under whom one run executes at a time.
type Account struct {
	Name     string // the name in the settings
	UID, GID uint32
	Home     string // empty: none
}

// Run describes the command of a run.
type Run struct {
	// Name is unique among the runs of this worker.
	Name string
	// Dir holds the directories of the run.
	Dir string
	// Account is the account to run as; nil: the user of this process.
	Account *Account
	// Shared: others use the account at the same time, so its processes outside of the run live on.
	Shared bool
	// Sandboxed: the command makes a sandbox for the run itself, and becomes the account in it.
	Sandboxed bool
}

// Process is a started process with its descendants.
type Process interface {
	// Terminate asks the process to end.
	Terminate()
	// Wait returns when the started process has ended, with an ExitError unless its status is 0.
	Wait() error
	// Kill kills the process and its descendants, and returns when all are dead.
	Kill() error
}

// ExitError is the status of a process that did not succeed.
type ExitError struct{ Status syscall.WaitStatus }

func (e *ExitError) Error() string {
	if e.Status.Signaled() {
		return "signal: " + e.Status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", e.Status.ExitStatus())
}

// exitOf is the end of a process as Wait returns it.
func exitOf(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok {
		return &ExitError{status}
	}
	return err
}

// group is a process that leads a process group, and nothing more.
type group struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// start starts a command from a thread that no other goroutine uses, and so no other one ends, until the
// command has ended.
func start(cmd *exec.Cmd) (*group, error) {
	g := &group{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(g.done)

		err := cmd.Start()
		started <- err
		if err == nil {
			g.err = exitOf(cmd.Wait())
		}
	}()

	if err := <-started; err != nil {
		return nil, err
	}
	return g, nil
}

func (g *group) Terminate() { syscall.Kill(-g.cmd.Process.Pid, syscall.SIGTERM) }

func (g *group) Wait() error {
	<-g.done
	return g.err
}

func (g *group) Kill() error {
	syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL)
	<-g.done
	return nil
}

// LookUp finds a program in the directories of a PATH. It returns names with a slash unchanged.
func LookUp(program, path string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}

	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, program)
		if found, err := exec.LookPath(file); err == nil {
			return found, nil
		}
	}

	return "", fmt.Errorf(
		"its PATH, %s, has no such program: give the program with its directory, or set path", path)
}
