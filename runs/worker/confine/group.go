//go:build unix

package confine

import "os/exec"

// StartGroup starts a command of our own as the leader of a process group, such as the client of a container
// engine.
func StartGroup(cmd *exec.Cmd) (Process, error) {
	cmd.SysProcAttr = GroupAttributes()
	return start(cmd)
}
