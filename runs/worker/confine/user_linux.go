package confine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// KillUser kills every process of a user, and returns when none lives.
func KillUser(uid uint32) error {
	if uid == 0 || int(uid) == os.Getuid() {
		return fmt.Errorf("the processes of user %d are not those of a run", uid)
	}

	pause := time.Millisecond
	for deadline := time.Now().Add(endWithin); ; pause = min(2*pause, 50*time.Millisecond) {
		result := make(chan error, 1)
		onOwnThread(func() { result <- killAs(int(uid)) })
		err := <-result
		if err == unix.ESRCH {
			return nil
		}
		if err != nil {
			return fmt.Errorf("kill the processes of user %d: %w", uid, err)
		}
		if !lives(uid) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes of user %d do not end", uid)
		}

		time.Sleep(pause)
	}
}

// killAs switches the calling thread to a user and kills everything that this user may kill. The kernel
// does this atomically: no fork escapes.
func killAs(uid int) error {
	// The functions of the syscall package would change every thread.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
		return errno
	}

	// A thread that kept a right of root would kill everything on the machine.
	real, effective, saved := unix.Getresuid()
	var caps [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return err
	}
	if real != uid || effective != uid || saved != uid || caps[0].Effective != 0 || caps[1].Effective != 0 {
		return errors.New("the thread did not become that user")
	}

	return unix.Kill(-1, unix.SIGKILL)
}

// lives reports whether a user has a living process.
func lives(uid uint32) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}

	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}

		text, err := os.ReadFile("/proc/" + e.Name() + "/status")
		if err != nil {
			continue
		}
		if owner, dead := ownerOf(string(text)); !dead && owner == strconv.Itoa(int(uid)) {
			return true
		}
	}

	return false
}

// ownerOf reads the user and the state of a process from its status file.
func ownerOf(status string) (uid string, dead bool) {
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		switch {
		case len(fields) == 0:
		case name == "State":
			dead = fields[0] == "Z" || fields[0] == "X"
		case name == "Uid":
			uid = fields[0]
		}
	}

	return uid, dead
}
