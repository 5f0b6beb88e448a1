package worker

import "syscall"

// processGroup makes a command the leader of a group of its own, and has it killed should this process die.
func processGroup(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: as}
}
