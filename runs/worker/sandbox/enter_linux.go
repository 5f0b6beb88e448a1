package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Enter is the main function of this program inside of a sandbox. The result is its exit status. When it
// ends, the kernel kills everything in the sandbox.
func Enter() int {
	if _, err := unix.FcntlInt(reportsFD, unix.F_GETFD, 0); err != nil {
		fmt.Fprintln(os.Stderr, "this command is for the worker's own use")
		return 2
	}
	if err := unix.CloseRange(ordersFD, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		closeOnExec()
	}

	orders, reports := os.NewFile(ordersFD, "orders"), os.NewFile(reportsFD, "reports")
	p, err := readPlan()
	if err == nil {
		err = p.surrender()
	}
	if err == nil && p.Proxied {
		err = p.forward()
	}
	if err == nil {
		err = p.limit()
	}

	var command *os.Process
	if err == nil {
		command, err = os.StartProcess(p.Path, p.Args, &os.ProcAttr{
			Dir:   p.Dir,
			Env:   p.Env,
			Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
			Sys:   &syscall.SysProcAttr{Setsid: true},
		})
	}
	if err != nil {
		errno := syscall.EINVAL
		errors.As(err, &errno)
		fmt.Fprintln(os.Stderr, err)
		fmt.Fprintln(reports, reportRefused, int(errno))
		return 1
	}

	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		f.Close()
	}

	r := &reporter{to: reports}
	r.say(reportStarted, command.Pid)
	go obey(orders, command.Pid)
	if p.Memory > 0 {
		go watchMemory(p.Memory, func() { r.last(reportMemory, 0) })
	}

	state, err := command.Wait()
	if err != nil {
		return 1
	}
	status, _ := state.Sys().(syscall.WaitStatus)
	r.last(reportEnded, int(status))
	return 0
}

// closeOnExec closes the inherited descriptors when a program starts, on kernels without close_range for
// that.
func closeOnExec() {
	for fd := ordersFD; fd <= ownFD; fd++ {
		syscall.CloseOnExec(fd)
	}
}

// reporter tells the worker what happens.
type reporter struct {
	mu sync.Mutex
	to io.Writer
}

func (r *reporter) say(word string, number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(r.to, word, number)
}

// last tells how it ended, and ends the sandbox.
func (r *reporter) last(word string, number int) {
	r.mu.Lock() // never unlocked: there is nothing to add
	fmt.Fprintln(r.to, word, number)
	os.Exit(0)
}

// obey ends the command when the worker says so, and the sandbox when the worker is gone.
func obey(orders io.Reader, pid int) {
	order := make([]byte, 1)
	for {
		if _, err := io.ReadFull(orders, order); err != nil {
			os.Exit(1)
		}
		syscall.Kill(-pid, syscall.SIGTERM)
	}
}

// readPlan reads what the worker wants.
func readPlan() (p plan, err error) {
	file := os.NewFile(planFD, "plan")
	defer file.Close()
	return p, json.NewDecoder(file).Decode(&p)
}

// surrender becomes the account of the run, and closes the memory of this process to it.
func (p plan) surrender() error {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT)
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return fmt.Errorf("make the kernel end this run first when memory is short: %w", err)
	}

	if p.UID >= 0 {
		if err := syscall.Setgroups(nil); err != nil {
			return fmt.Errorf("give up groups: %w", err)
		}
		if err := syscall.Setgid(p.GID); err != nil {
			return fmt.Errorf("become group %d: %w", p.GID, err)
		}
		if err := syscall.Setuid(p.UID); err != nil {
			return fmt.Errorf("become user %d: %w", p.UID, err)
		}
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// threads are enough for this process. It starts them before the bound of processes counts.
const threads = 12

// limit bounds what this process and the command may use.
func (p plan) limit() error {
	var ready sync.WaitGroup
	for range threads {
		ready.Go(func() {
			pause := unix.NsecToTimespec(int64(2 * time.Millisecond))
			unix.Nanosleep(&pause, nil)
		})
	}
	ready.Wait()

	processes := uint64(p.Processes)
	if processes == 0 {
		processes = DefaultProcesses
	}
	for kind, most := range map[int]uint64{
		unix.RLIMIT_NPROC: processes + threads,
		unix.RLIMIT_CORE:  1, // 0 does not stop the programs that kernels hand a core to
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(kind, &now); err == nil {
			most = min(most, now.Max)
		}
		if err := unix.Setrlimit(kind, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit the resources of the run: %w", err)
		}
	}
	return nil
}
