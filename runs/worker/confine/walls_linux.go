package confine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// seenAt is the path under which every run sees its directory.
const seenAt = ownDir + "/run"

// shared are the directories that a run's own temporary directory replaces.
var shared = [...]string{"/tmp", "/var/tmp", "/dev/shm"}

// canMount reports whether this process can make mount namespaces.
func canMount() bool {
	if makeOwnDir() != nil || os.Mkdir(seenAt, 0o711) != nil && !isDir(seenAt) {
		return false
	}
	result := make(chan error, 1)
	onOwnThread(func() { result <- ownMounts(0) })
	return <-result == nil
}

// ownMounts gives the calling thread a private mount namespace.
func ownMounts(more int) error {
	if err := unix.Unshare(unix.CLONE_NEWNS | more); err != nil {
		return err
	}
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "")
}

// enclose puts the calling thread into the namespace of a run: its own /tmp and, under an account, no new
// privileges, a read-only home, and a /proc without other users' processes.
func (h *Host) enclose(run Run) error {
	if run.Account != nil {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("give up new privileges: %w", err)
		}
	}

	if !h.private {
		return nil
	}

	more := 0
	if run.Account != nil {
		more = unix.CLONE_NEWIPC
	}
	if err := ownMounts(more); err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	if err := unix.Mount(run.Dir, seenAt, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("show the directory of the run: %w", err)
	}

	for _, place := range shared {
		if !isDir(place) {
			continue
		}
		if err := unix.Mount(seenAt+"/"+Tmp, place, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("make %s private: %w", place, err)
		}
	}

	if run.Account == nil {
		return nil
	}
	if err := closeHome(run.Account.Home); err != nil {
		return fmt.Errorf("protect the home of the account: %w", err)
	}

	return hideProcesses()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// closeHome makes the home of an account read-only, so that no run leaves files there for the next one.
func closeHome(home string) error {
	if !isDir(home) || filepath.Clean(home) == "/" {
		return nil
	}
	if err := unix.Mount(home, home, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}

	var stat unix.Statfs_t
	if err := unix.Statfs(home, &stat); err != nil {
		return err
	}

	const kept = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC // the flags have the same values in both calls
	return unix.Mount("", home, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|uintptr(stat.Flags)&kept, "")
}

// hideProcesses hides other users' processes in /proc, from Linux 5.8 on. Before, the option would change
// /proc for everybody.
func hideProcesses() error {
	err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "hidepid=invisible")
	if err == unix.EINVAL || err == unix.EPERM {
		return nil
	}
	return err
}

// start starts a command in the namespace and account of its run.
func (h *Host) start(cmd *exec.Cmd, run Run) (*group, error) {
	if !h.private && run.Account == nil || run.Sandboxed {
		return start(cmd)
	}

	// A dedicated thread enters the namespace and account, which the process inherits. The thread stays
	// until the process has ended, because the kernel kills a process with Pdeathsig when its starting
	// thread ends.
	g := &group{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	onOwnThread(func() {
		defer close(g.done)

		err := h.enclose(run)
		if err == nil {
			err = cmd.Start()
		}

		started <- err
		if err == nil {
			g.err = exitOf(cmd.Wait())
		}
	})
	if err := <-started; err != nil {
		return nil, err
	}

	return g, nil
}
