package worker

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// processGroup makes a command the leader of a group of its own, and has it killed should this process die.
func processGroup(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: as}
}

// killLeft kills what harnesses started that left their process group, or outlived the worker: the processes in
// whose environment the working directory begins so. One that changed its environment gets away. first is the
// process that was started less than recent ago; 0 when it is not known.
func killLeft(dir string, first int) {
	variable := []byte("\x00" + workDirVariable + "=" + dir)
	for again, rounds := true, 0; again && rounds < 5; rounds++ { // one may start another meanwhile
		again = false
		for _, pid := range processes(first) {
			process, err := os.FindProcess(pid) // held, so that no later process of this number is meant
			if err != nil {
				continue
			}
			if bytes.Contains(environment(pid), variable) && process.Kill() == nil {
				again = true
			}
			process.Release()
		}
	}
}

// processes returns the numbers of the processes that may have been made since the first one. Numbers are
// given in order: of a command that began just now there are few, and to look at every process after each run
// costs more than most runs.
func processes(first int) (all []int) {
	const few = 1000
	if text, err := os.ReadFile("/proc/loadavg"); err == nil && first > 0 {
		fields := strings.Fields(string(text))
		if last, err := strconv.Atoi(fields[len(fields)-1]); err == nil && first <= last && last-first < few {
			for pid := first; pid <= last; pid++ {
				all = append(all, pid)
			}
			return all
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// environment returns the variables of a process, each between NULs; nothing of one that is not ours to read.
func environment(pid int) []byte {
	const most = 1 << 20
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil
	}
	return append([]byte{0}, text...)
}
