//go:build unix

package worker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"millwright/runs/worker/checkout"
	"millwright/runs/worker/collect"
	"millwright/runs/worker/confine"
	"millwright/runs/worker/sandbox"
	"millwright/runs/worker/workspace"
)

// caller is an executor that can call programs of this machine as the run, before and after its harness.
type caller interface {
	// ready makes the directories of a task ready for its account.
	ready(t Task) error
	// as returns the account of a task, and whether others use it at the same time.
	as(t Task) (a *confine.Account, shared bool)
}

// ready gives the directories to the account of the run.
func (c *command) ready(t Task) error {
	return c.prepare(t, c.run(t))
}

func (c *command) as(t Task) (*confine.Account, bool) { return t.account, false }

// nobody is the user and group inside a container when the worker is root.
const nobody = 65534

// nobodyAccount is the account of containers when the worker is root.
var nobodyAccount = confine.Account{Name: "nobody", UID: nobody, GID: nobody}

// asNobody is the part of executors with containers that works on a run's directories outside of these.
type asNobody struct{}

// keepsDirectories implements keeper.
func (asNobody) keepsDirectories() {}

// ready gives the working directory to the user in the container.
func (n asNobody) ready(t Task) error {
	if err := n.give(t); err != nil {
		return err
	}

	account, _ := n.as(t)
	run := confine.Run{Dir: t.Root, Account: account}
	return errors.Join(confine.Give(run, t.host.Private()), os.Chmod(t.Root, 0o711))
}

// give makes the user in the container the owner of the working directory.
func (n asNobody) give(t Task) error {
	if account, _ := n.as(t); account == nil {
		return nil
	}
	return workspace.Give(t.Dir, nobody, nobody)
}

func (asNobody) as(Task) (*confine.Account, bool) {
	if os.Getuid() != 0 {
		return nil, true
	}
	return &nobodyAccount, true
}

// runGit calls git as a run.
type runGit struct {
	task    Task
	as      caller
	program string
}

func newRunGit(t Task, as caller) (runGit, error) {
	program, err := checkout.Program()
	return runGit{t, as, program}, err
}

// Seen returns where the run sees a place below its directory.
func (g runGit) Seen(place string) string {
	below, err := filepath.Rel(g.task.Root, place)
	if err != nil {
		return place
	}
	return filepath.Join(g.task.seenRoot(), below)
}

// Give gives a directory to the run.
func (g runGit) Give(dir string) error {
	account, _ := g.as.as(g.task)
	if account == nil {
		return nil
	}
	return workspace.Give(dir, int(account.UID), int(account.GID))
}

// Run calls git in the account of the run, with everything that it started dead when Run returns.
func (g runGit) Run(ctx context.Context, c collect.Command) error {
	cmd := &exec.Cmd{
		Path:      g.program,
		Args:      append([]string{"git"}, checkout.Arguments(c.Args...)...),
		Dir:       c.Dir,
		Env:       append(checkout.Environment("file"), c.Env...),
		WaitDelay: 3 * time.Second,
	}

	if c.In != nil {
		cmd.Stdin = bytes.NewReader(c.In)
	}

	stderr := &tail{}
	read := c.Out
	if read == nil {
		read = func(r io.Reader) error {
			_, err := io.Copy(io.Discard, r)
			return err
		}
	}

	start := func(cmd *exec.Cmd) (confine.Process, error) { return g.start(cmd, c) }
	err := call(ctx, cmd, start, read, stderr)
	if status := (*confine.ExitError)(nil); errors.As(err, &status) {
		said := strings.Join(strings.Fields(clean(string(stderr.kept))), " ")
		return fmt.Errorf("git %s: %s", c.Args[0], cmp.Or(said, err.Error()))
	}

	return err
}

// start starts git in the account and sandbox of the run.
func (g runGit) start(cmd *exec.Cmd, of collect.Command) (confine.Process, error) {
	account, shared := g.as.as(g.task)
	run := confine.Run{
		Name:      filepath.Base(g.task.Root) + "-git",
		Dir:       g.task.Root,
		Account:   account,
		Shared:    shared,
		Sandboxed: g.task.boxed,
	}
	if c, ok := g.as.(*command); ok && c.box != nil {
		parts, err := g.parts(of)
		if err != nil {
			return nil, err
		}
		return c.box.startPlain(g.task, cmd, run, parts)
	}
	return g.task.host.Start(cmd, run)
}

// parts returns the directories of the run that a call of git sees. It sees all of the working directory,
// since a checkout may be a link there.
func (g runGit) parts(c collect.Command) (parts []sandbox.Part, err error) {
	for i, dir := range slices.Concat(c.Reads, c.Writes) {
		below, err := filepath.Rel(g.task.Root, dir)
		if err != nil {
			return nil, err
		}
		if top, _, _ := strings.Cut(below, "/"); top == confine.Work {
			below = top
		}
		parts = append(parts, sandbox.Part{Path: below, ReadOnly: i < len(c.Reads)})
	}
	return parts, nil
}

// call runs a command with everything that it started dead when call returns.
func call(
	ctx context.Context,
	cmd *exec.Cmd,
	start starter,
	read func(io.Reader) error,
	stderr io.Writer,
) error {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ours.Close()

	cmd.Stdout, cmd.Stderr = theirs, stderr
	process, err := start(cmd)
	theirs.Close()
	if err != nil {
		return underlying(err)
	}

	stop := context.AfterFunc(ctx, func() { process.Kill() })
	defer stop()

	failed := read(ours)
	if failed != nil {
		process.Kill()
	}
	err = process.Wait()
	if alive := process.Kill(); alive != nil {
		return alive
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return cmp.Or(failed, err)
}

// mkdirNew makes a directory below the run's, anew.
func mkdirNew(dir string) error {
	if err := workspace.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.MkdirAll(dir, 0o711)
}
