//go:build unix

package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"

	"millwright/runs/worker/confine"
	"millwright/runs/worker/egress"
	"millwright/runs/worker/preset"
	"millwright/runs/worker/sandbox"
)

// boxed starts the commands of a harness in sandboxes.
type boxed struct {
	*sandbox.Sandbox
	spec  sandbox.Spec
	names []string // that its proxy passes
}

// newBoxed tries whether this machine has sandboxes for a harness. accounts reports whether the harness has
// accounts.
func newBoxed(h Harness, accounts bool) (*boxed, error) {
	if os.Getuid() == 0 && !accounts {
		return nil, errors.New("sandbox: a process of root needs accounts to run as: add uidRange, such as " +
			"uidRange: 70000-70063, or user or users")
	}

	s, err := sandbox.Open()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	names, _ := h.hosts()
	return &boxed{s, h.spec(), names}, nil
}

// seenRoot returns where the processes of the run see its directory.
func (t Task) seenRoot() string {
	if t.boxed {
		return sandbox.Dir
	}
	return t.host.Seen(t.Root)
}

// checkShown reports that the sandbox does not show a program.
func (b *boxed) checkShown(t Task, program string) error {
	s := b.spec
	s.Hidden = t.hidden
	if s.Shows(program) {
		return nil
	}

	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return underlying(err)
	}
	return fmt.Errorf(
		"the sandbox does not show %s: list its directory under sandbox.readOnly", filepath.Dir(real))
}

// start starts a command of a task in its sandbox.
func (b *boxed) start(t Task, cmd *exec.Cmd, run confine.Run) (confine.Process, error) {
	spec := b.spec
	spec.Root, spec.Hidden, spec.Enter = t.Root, t.hidden, t.enter
	if a := run.Account; a != nil {
		spec.UID, spec.GID = int(a.UID), int(a.GID)
	}

	if spec.Network != sandbox.Proxied {
		return b.Start(t.host, cmd, run, spec)
	}

	socket, end, err := b.proxy(t, run)
	if err != nil {
		return nil, fmt.Errorf("the proxy of the sandbox: %w", underlying(err))
	}

	spec.Socket = socket
	p, err := b.Start(t.host, cmd, run, spec)
	if err != nil {
		end()
		return nil, err
	}
	return &proxied{p, end}, nil
}

// startPlain starts a program of the worker that acts on what the run left: it sees some directories of
// the run, and no network.
func (b *boxed) startPlain(
	t Task,
	cmd *exec.Cmd,
	run confine.Run,
	parts []sandbox.Part,
) (confine.Process, error) {
	plain := *b
	plain.spec.Network, plain.spec.Parts = sandbox.None, parts
	return plain.start(t, cmd, run)
}

// proxied is a process that has a proxy, which ends with it.
type proxied struct {
	confine.Process
	end func()
}

func (p *proxied) Kill() error {
	err := p.Process.Kill()
	p.end()
	return err
}

// proxy starts a proxy for one command, and returns its socket.
func (b *boxed) proxy(t Task, run confine.Run) (socket string, end func(), err error) {
	dir, err := os.MkdirTemp(t.Root, "proxy-")
	if err != nil {
		return "", nil, err
	}

	// The path of a socket is short, that of the directory may be long.
	open, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	defer open.Close()

	ln, err := net.Listen("unix", filepath.Join("/proc/self/fd", strconv.Itoa(int(open.Fd())), "socket"))
	if err != nil {
		return "", nil, err
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)

	socket = filepath.Join(dir, "socket")
	if a := run.Account; a != nil {
		err = errors.Join(os.Lchown(socket, int(a.UID), int(a.GID)), os.Lchown(dir, int(a.UID), int(a.GID)))
	}
	if err != nil {
		ln.Close()
		return "", nil, err
	}

	proxy := egress.New(egress.Config{Names: b.names, Refused: func(r egress.Refusal) {
		t.out.Add(preset.Event("network_refused", map[string]string{"host": r.Host, "reason": r.Reason}))
	}})
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { proxy.Serve(ctx, ln) })
	return socket, func() { cancel(); serving.Wait() }, nil
}
