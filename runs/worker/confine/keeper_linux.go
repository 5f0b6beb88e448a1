package confine

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The keeper is a process of this program between the worker and the harness. As a subreaper it adopts all
// orphaned descendants of the harness, also those that left the session and the environment. It lives until
// all of them are dead. It reads orders from the worker, and kills everything when the input ends, so a run
// also ends with its worker.
const (
	keeperOrders  = 3 // descriptors of the keeper
	keeperReports = 4

	orderTerminate = 'T'
	reportStarted  = "started"
	reportRefused  = "refused" // with the errno
	reportEnded    = "ended"   // with the wait status
)

// kept is a run under a keeper.
type kept struct {
	keeper  *group
	orders  *os.File
	reports *bufio.Scanner
	done    chan struct{}
	err     error
}

// startKept starts a command under a keeper.
func (h *Host) startKept(cmd *exec.Cmd, run Run) (Process, error) {
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

	keeper := *cmd
	keeper.Path = "/proc/self/exe"
	keeper.Args = slices.Concat(h.cfg.Keeper, []string{strconv.Itoa(len(cmd.ExtraFiles)), cmd.Path}, cmd.Args)
	keeper.ExtraFiles = append([]*os.File{theirOrders, theirReports}, cmd.ExtraFiles...)
	keeper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	g, err := h.start(&keeper, run)
	if err != nil {
		orders.Close()
		reports.Close()
		return nil, err
	}

	theirReports.Close()

	k := &kept{keeper: g, orders: orders, reports: bufio.NewScanner(reports), done: make(chan struct{})}
	word, number := k.report()
	if word != reportStarted {
		defer reports.Close()

		k.orders.Close()
		g.Wait()
		if word == reportRefused {
			return nil, syscall.Errno(number)
		}

		return nil, errors.New("its keeper ended")
	}

	go func() {
		defer close(k.done)
		defer reports.Close()

		k.err = k.wait()
	}()
	return k, nil
}

// report reads a line of the keeper.
func (k *kept) report() (word string, number int) {
	if !k.reports.Scan() {
		return "", 0
	}
	word, text, _ := strings.Cut(k.reports.Text(), " ")
	number, err := strconv.Atoi(text)
	if err != nil {
		return "", 0
	}
	return word, number
}

// errKeeper is the end of a keeper that did not report the end of its run's processes.
var errKeeper = errors.New("the keeper of the run was killed")

func (k *kept) wait() error {
	word, number := k.report()
	k.keeper.Wait()
	switch status := syscall.WaitStatus(number); {
	case word != reportEnded:
		return errKeeper
	case status != 0:
		return &ExitError{status}
	}
	return nil
}

func (k *kept) Terminate() { k.orders.Write([]byte{orderTerminate}) }

func (k *kept) Wait() error {
	<-k.done
	return k.err
}

func (k *kept) Kill() error {
	k.orders.Close()
	patience := time.NewTimer(endWithin)
	defer patience.Stop()

	select {
	case <-k.done:
	case <-patience.C:
		return errors.New("processes of the run do not end")
	}

	if errors.Is(k.err, errKeeper) {
		return k.err
	}

	return nil
}

// Keep is the main function of a keeper: args are the number of files that a program inherits beside the
// usual ones, its path and its arguments, the name included. The result is its exit status.
func Keep(args []string) int {
	runtime.LockOSThread() // Pdeathsig depends on the thread
	syscall.CloseOnExec(keeperOrders)
	syscall.CloseOnExec(keeperReports)
	orders, reports := os.NewFile(keeperOrders, "orders"), os.NewFile(keeperReports, "reports")
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil || len(args) < 3 {
		return 1
	}

	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	inherited, err := strconv.Atoi(args[0])
	for i := range inherited {
		fd := keeperReports + 1 + i
		syscall.CloseOnExec(fd)
		files = append(files, os.NewFile(uintptr(fd), "inherited"))
	}

	var harness *os.Process
	if err == nil {
		harness, err = os.StartProcess(args[1], args[2:], &os.ProcAttr{
			Files: files,
			Sys:   GroupAttributes(),
		})
	}
	if err != nil {
		errno := syscall.EINVAL
		errors.As(err, &errno)
		fmt.Fprintln(reports, reportRefused, int(errno))
		return 1
	}

	for _, f := range files {
		f.Close()
	}

	fmt.Fprintln(reports, reportStarted, harness.Pid)

	var ended atomic.Bool
	go func() {
		for in := bufio.NewReader(orders); ; {
			if _, err := in.ReadByte(); err != nil {
				killDescendants()
				return
			}
			if !ended.Load() {
				syscall.Kill(-harness.Pid, syscall.SIGTERM)
			}
		}
	}()

	// No other code waits for children here.
	var result syscall.WaitStatus
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // none is left
			fmt.Fprintln(reports, reportEnded, int(result))
			return 0
		case pid == harness.Pid:
			ended.Store(true)
			result = status
			go killDescendants()
		}
	}
}

// killDescendants kills the descendants of this process repeatedly, since one may fork meanwhile.
func killDescendants() {
	for {
		family := map[int]bool{os.Getpid(): true}
		found := 0
		for _, pid := range processes() {
			if family[parentOf(pid)] {
				family[pid] = true
				found++
				killChild(pid, family)
			}
		}

		if found == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// killChild kills a process, unless its ID now belongs to a stranger.
func killChild(pid int, family map[int]bool) {
	p, err := os.FindProcess(pid) // the ID is held from here on
	if err != nil {
		return
	}
	defer p.Release()
	if family[parentOf(pid)] {
		p.Kill()
	}
}

// processes returns the IDs of all processes, in order.
func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()

	var all []int
	for {
		names, err := dir.Readdirnames(512)
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil {
				all = append(all, pid)
			}
		}

		if err == io.EOF || len(names) == 0 {
			return all
		}
	}
}

// parentOf returns the ID of a process's parent; 0 if the process is dead.
func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}

	// The name, in parentheses, may contain any text.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
		return 0
	}

	parent, _ := strconv.Atoi(fields[1])
	return parent
}
