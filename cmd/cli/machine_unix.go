//go:build unix

package cli

import (
	"cmp"

	"golang.org/x/sys/unix"

	"millwright/runs/worker/confine"
)

// lookUp finds the program of a harness with this PATH.
func lookUp(program, path string) (string, error) {
	return confine.LookUp(program, cmp.Or(path, confine.DefaultPath))
}

// freeSpace returns the bytes that a user may still write below dir.
func freeSpace(dir string) (free uint64, known bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true
}
