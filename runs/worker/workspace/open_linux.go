package workspace

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// addMode adds bits to the mode of a directory that cannot be opened for reading. It follows no link.
func addMode(parent int, name string, bits uint32) error {
	fd, err := unix.Openat(parent, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)

	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}

	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), stat.Mode&0o7777|bits)
}
