//go:build unix

package workspace

import (
	"os"

	"golang.org/x/sys/unix"
)

// Plain reports whether a directory holds nothing but directories and regular files of the directory's owner, each
// file with one name. Nothing may live that can write to it.
func Plain(path string) bool {
	dir, err := openDir(unix.AT_FDCWD, path)
	if err != nil {
		return false
	}
	defer dir.Close()

	var stat unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &stat); err != nil {
		return false
	}
	return plain(dir, stat, 0)
}

func plain(dir *os.File, owner unix.Stat_t, depth int) bool {
	ok := depth <= maxDepth
	err := each(dir, func(e entry) bool {
		switch {
		case e.stat.Uid != owner.Uid || e.stat.Dev != owner.Dev:
			ok = false
		case e.isFile():
			ok = ok && e.stat.Nlink == 1
		case e.isDir():
			child, err := openDir(int(dir.Fd()), e.name)
			if err != nil {
				ok = false
				break
			}
			ok = ok && plain(child, owner, depth+1)
			child.Close()
		default:
			ok = false
		}

		return ok
	})
	return ok && err == nil
}
