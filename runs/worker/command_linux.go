package worker

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// processGroup makes a command the leader of a group of its own, and has it killed should this process die.
func processGroup(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: as}
}

// killLeft kills what harnesses started that left their process group, or outlived the worker: the processes in
// whose environment the working directory begins so. One that changed its environment gets away.
func killLeft(dir string) {
	variable := []byte("\x00" + workDirVariable + "=" + dir)
	for again, rounds := true, 0; again && rounds < 5; rounds++ { // one may start another meanwhile
		again = false
		environments, err := filepath.Glob("/proc/[0-9]*/environ")
		if err != nil {
			return
		}
		for _, path := range environments {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				continue
			}
			process, err := os.FindProcess(pid) // held, so that no later process of this number is meant
			if err != nil {
				continue
			}
			if bytes.Contains(environment(path), variable) && process.Kill() == nil {
				again = true
			}
			process.Release()
		}
	}
}

// environment returns the variables of a process, each between NULs; nothing of one that is not ours to read.
func environment(path string) []byte {
	const most = 1 << 20
	f, err := os.Open(path)
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
