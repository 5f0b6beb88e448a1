package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"millwright/runs/worker/confine"
)

// Sandbox starts commands in sandboxes of this machine.
type Sandbox struct {
	bwrap string   // path of the program
	own   *os.File // this program
}

// Reports of the part inside of the sandbox, each with a number.
const (
	reportStarted = "started"
	reportRefused = "refused" // with the errno
	reportMemory  = "memory"
	reportEnded   = "ended" // with the wait status
)

// Open finds bwrap, and tries whether this machine lets it work.
func Open() (*Sandbox, error) {
	bwrap, err := confine.LookUp("bwrap", confine.DefaultPath)
	if err != nil {
		return nil, errors.New("bwrap is not installed: install bubblewrap, " +
			"as with apt-get install bubblewrap")
	}

	own, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}

	s := &Sandbox{bwrap: bwrap, own: own}
	if err := s.try(); err != nil {
		own.Close()
		return nil, err
	}
	return s, nil
}

// try reports why bwrap cannot make a sandbox.
func (s *Sandbox) try() error {
	args := append(namespaces(None), "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev")
	args = append(args, "--", s.bwrap, "--version")

	cmd := exec.Command(s.bwrap, args...)
	cmd.Env = []string{"PATH=" + confine.DefaultPath}

	runtime.LockOSThread() // bwrap dies with the thread that started it
	defer runtime.UnlockOSThread()

	said, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}

	text := strings.TrimSpace(string(said))
	hint := ""
	switch {
	case strings.Contains(text, "namespace") || strings.Contains(text, "uid map"):
		hint = ": this machine forbids user namespaces: allow them (sysctl user.max_user_namespaces, " +
			"kernel.unprivileged_userns_clone or kernel.apparmor_restrict_unprivileged_userns; RestrictNamespaces " +
			"of a systemd unit), or run this process as root with uidRange"
	case strings.Contains(text, "proc"):
		hint = ": parts of /proc are hidden from this process, as by ProtectKernelTunables or ProtectProc of a " +
			"systemd unit, or by a container"
	}
	if text == "" {
		text = err.Error()
	}
	return fmt.Errorf("bwrap makes no sandbox here: %s%s", text, hint)
}

// Start starts a command in a sandbox. Its path, directory and environment are those inside.
func (s *Sandbox) Start(
	host *confine.Host,
	cmd *exec.Cmd,
	run confine.Run,
	spec Spec,
) (confine.Process, error) {
	theirOrders, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirOrders.Close()

	reports, theirReports, err := os.Pipe()
	if err != nil {
		orders.Close()
		return nil, err
	}
	defer theirReports.Close()

	p := &process{orders: orders, reports: bufio.NewScanner(reports), done: make(chan struct{})}
	wrapped, files, err := s.wrap(cmd, spec, theirOrders, theirReports)
	defer closeAll(files)
	if err == nil {
		run.Sandboxed = true
		p.outer, err = host.Start(wrapped, run)
	}
	if err != nil {
		orders.Close()
		reports.Close()
		return nil, err
	}

	theirReports.Close()
	if err := p.started(); err != nil {
		p.outer.Kill()
		orders.Close()
		reports.Close()
		return nil, err
	}

	go func() {
		defer close(p.done)
		defer reports.Close()

		p.err = p.wait()
	}()
	return p, nil
}

// wrap returns the command that starts another one in a sandbox, and its files.
func (s *Sandbox) wrap(cmd *exec.Cmd, spec Spec, orders, reports *os.File) (*exec.Cmd, []*os.File, error) {
	arguments, err := layout(spec)
	shown := arguments.files
	if err != nil {
		return nil, shown, err
	}
	filter, err := filter()
	if err != nil {
		return nil, shown, err
	}

	text, err := json.Marshal(plan{
		Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, UID: spec.UID, GID: spec.GID,
		Proxied: spec.Network == Proxied, Memory: spec.Memory, Processes: spec.Processes,
	})
	if err != nil {
		return nil, shown, err
	}

	var files []*os.File
	for _, content := range [][]byte{text, []byte(strings.Join(arguments.list, "\x00") + "\x00"), filter} {
		f, err := inMemory(content)
		if err != nil {
			return nil, append(files, shown...), err
		}
		files = append(files, f)
	}

	wrapped := &exec.Cmd{
		Path:       s.bwrap,
		Args:       append([]string{"bwrap", "--args", strconv.Itoa(argumentsFD), "--", ownPath}, spec.Enter...),
		Env:        []string{"PATH=" + confine.DefaultPath},
		Dir:        "/",
		Stdin:      cmd.Stdin,
		Stdout:     cmd.Stdout,
		Stderr:     cmd.Stderr,
		WaitDelay:  cmd.WaitDelay,
		ExtraFiles: slices.Concat([]*os.File{orders, reports}, files, []*os.File{s.own}, shown),
	}
	return wrapped, append(files, shown...), nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// process is a command in its sandbox.
type process struct {
	outer   confine.Process // bwrap
	orders  *os.File
	reports *bufio.Scanner

	done chan struct{}
	err  error
}

// report reads a line of the part inside.
func (p *process) report() (word string, number int) {
	if !p.reports.Scan() {
		return "", 0
	}

	word, text, _ := strings.Cut(p.reports.Text(), " ")
	number, err := strconv.Atoi(text)
	if err != nil {
		return "", 0
	}
	return word, number
}

// started waits until the command is started, and returns the reason if it cannot be.
func (p *process) started() error {
	switch word, number := p.report(); word {
	case reportStarted:
		return nil
	case reportRefused:
		return syscall.Errno(number)
	}

	return fmt.Errorf("the sandbox cannot be made: %w", p.outer.Wait())
}

func (p *process) wait() error {
	word, number := p.report()
	outer := p.outer.Wait()
	switch status := syscall.WaitStatus(number); {
	case word == reportMemory:
		return ErrMemory
	case word != reportEnded && outer != nil:
		return outer
	case word != reportEnded:
		return errors.New("the sandbox ended before its command")
	case status != 0:
		return &confine.ExitError{Status: status}
	}
	return nil
}

// Terminate asks the command to end.
func (p *process) Terminate() { p.orders.Write([]byte{'T'}) }

// Wait returns when the command has ended.
func (p *process) Wait() error {
	<-p.done
	return p.err
}

// Kill kills everything in the sandbox.
func (p *process) Kill() error {
	p.orders.Close()
	err := p.outer.Kill()
	<-p.done
	return err
}
