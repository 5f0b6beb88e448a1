//go:build unix && !linux

package confine

import (
	"os/exec"
	"syscall"
)

// GroupAttributes makes a command the leader of a process group. As on Linux, the caller locks its goroutine
// to a thread, from the start of the command until its end.
func GroupAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// ownDir is the program's directory for the whole machine: locks of accounts.
const ownDir = "/var/run/millwright"

// Host starts the runs of one worker.
type Host struct{}

// Open prepares to start runs.
func Open(Config) *Host { return &Host{} }

// Describe names the way in which runs are ended.
func (*Host) Describe() string { return "process groups" }

// Sweeps reports whether everything of a run can be killed.
func (*Host) Sweeps() bool { return false }

// Private reports whether runs have their own /tmp.
func (*Host) Private() bool { return false }

// CheckShown returns nil: runs see all programs.
func (*Host) CheckShown(string) error { return nil }

// Seen returns the path under which the processes of a run see its directory.
func (*Host) Seen(dir string) string { return dir }

// Mark names what SweepWorker needs to know of this worker.
func (*Host) Mark() string { return "" }

// Close removes the host's own files and groups.
func (*Host) Close() {}

// SweepWorker kills the remaining processes of a worker.
func SweepWorker(string) error { return nil }

// Start starts the command of a run.
func (*Host) Start(cmd *exec.Cmd, run Run) (Process, error) {
	cmd.SysProcAttr = GroupAttributes()
	if a := run.Account; a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.UID, Gid: a.GID}
	}
	return start(cmd)
}

// KillUser does nothing: a user's processes cannot be killed at once here.
func KillUser(uint32) error { return nil }

// HideMemory does nothing here.
func HideMemory() error { return nil }

// Keep is not supported here.
func Keep([]string) int { return 125 }
