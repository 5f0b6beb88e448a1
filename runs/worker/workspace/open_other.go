//go:build unix && !linux

package workspace

import "golang.org/x/sys/unix"

// addMode adds bits to the mode of a directory that cannot be opened for reading. It follows no link.
func addMode(parent int, name string, bits uint32) error {
	var stat unix.Stat_t
	if err := unix.Fstatat(parent, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	return unix.Fchmodat(parent, name, uint32(stat.Mode)&0o7777|bits, unix.AT_SYMLINK_NOFOLLOW)
}
