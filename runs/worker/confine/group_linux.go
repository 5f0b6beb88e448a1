package confine

import "syscall"

// GroupAttributes makes a command the leader of a process group. The kernel kills the command when the thread
// that started it ends, and so when this process dies. Other goroutines may end a thread, so the caller locks
// its own to one, from the start of the command until its end.
func GroupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
