//go:build unix

// Package workspace measures, gives away and removes directories of harnesses. A harness may be hostile and
// may still be running. Every walk goes from one open directory to the next, follows no links, stays on one
// file system, holds a bounded number of descriptors, and works at any depth.
package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// batch is how many names of a directory are read at once.
const batch = 512

// openDir opens a directory below another one, or at a path with unix.AT_FDCWD. It follows no link in the
// last element.
func openDir(at int, name string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	for {
		fd, err := unix.Openat(at, name, flags, 0)
		if err == nil {
			return os.NewFile(uintptr(fd), "directory"), nil
		}
		if err != unix.EINTR {
			return nil, err
		}
	}
}

// place identifies a directory.
type place struct{ dev, ino uint64 }

// placeOf returns the identity of an open directory.
func placeOf(dir *os.File) (place, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &stat); err != nil {
		return place{}, err
	}
	return place{uint64(stat.Dev), uint64(stat.Ino)}, nil
}

// entry is one name in a directory.
type entry struct {
	name string
	stat unix.Stat_t
}

func (e entry) isDir() bool { return e.stat.Mode&unix.S_IFMT == unix.S_IFDIR }

func (e entry) isFile() bool { return e.stat.Mode&unix.S_IFMT == unix.S_IFREG }

// each calls f with the entries of a directory until it returns false. It skips entries that vanish
// meanwhile.
func each(dir *os.File, f func(entry) (more bool)) error {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return err
	}

	for {
		names, err := dir.Readdirnames(batch)
		for _, name := range names {
			e := entry{name: name}
			if unix.Fstatat(int(dir.Fd()), name, &e.stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			if !f(e) {
				return nil
			}
		}

		if errors.Is(err, io.EOF) || err == nil && len(names) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Give makes a user the owner of a directory and of all that it holds. Links are given, not followed. Nobody
// else may write to the directory yet.
func Give(path string, uid, gid int) error {
	dir, err := openDir(unix.AT_FDCWD, path)
	if err != nil {
		return err
	}
	defer dir.Close()

	return give(dir, uid, gid)
}

func give(dir *os.File, uid, gid int) error {
	var failed error
	err := each(dir, func(e entry) bool {
		if !e.isDir() {
			failed = unix.Fchownat(int(dir.Fd()), e.name, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
			return failed == nil
		}

		child, err := openDir(int(dir.Fd()), e.name)
		if failed = err; err == nil {
			failed = give(child, uid, gid)
			child.Close()
		}
		return failed == nil
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}

	return dir.Chown(uid, gid)
}

// Remove removes a directory with everything in it, if it exists. It skips entries that it cannot remove,
// such as mount points, and returns the first error. The processes of the run must have ended.
func Remove(path string) error {
	parent, err := openDir(unix.AT_FDCWD, filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()

	name := filepath.Base(path)
	top, err := openOwn(parent, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer top.Close()

	r := remover{top: top}
	if r.place, err = placeOf(top); err != nil {
		return err
	}
	if err := r.run(); err != nil {
		return err
	}

	return unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR)
}

// remover empties a directory. It moves each non-empty directory up to the top before it reads it. So depth
// costs no descriptors, recursion or long paths.
type remover struct {
	top   *os.File
	place place
	moved int   // directories that were moved to the top
	left  error // the first error
}

func (r *remover) run() error {
	kept := map[string]bool{} // entries that stay at the top

	for {
		var dirs []string
		removed := false
		err := each(r.top, func(e entry) bool {
			switch {
			case kept[e.name]:
			case e.isDir():
				dirs = append(dirs, e.name)
			case r.unlink(r.top, e):
				removed = true
			default:
				kept[e.name] = true
			}

			return len(dirs) < batch
		})
		if err != nil {
			return err
		}
		if len(dirs) == 0 && !removed {
			return r.left
		}

		for _, name := range dirs {
			if !r.empty(name) {
				kept[name] = true
			}
		}
	}
}

// empty removes a directory at the top. Its non-empty sub-directories are at the top afterwards.
func (r *remover) empty(name string) (gone bool) {
	dir, err := openOwn(r.top, name)
	if err != nil {
		return r.fail(err)
	}
	defer dir.Close()

	if at, err := placeOf(dir); err != nil || at.dev != r.place.dev {
		return r.fail(fmt.Errorf("another file system is mounted in it: %w", errors.Join(err, unix.EXDEV)))
	}

	for {
		left, removed := 0, false
		err := each(dir, func(e entry) bool {
			if e.isDir() && r.lift(dir, e) || !e.isDir() && r.unlink(dir, e) {
				removed = true
			} else {
				left++
			}

			return true
		})
		if err != nil {
			return r.fail(err)
		}
		if left > 0 && !removed {
			return false
		}
		if !removed {
			break
		}
	}

	return r.fail(unix.Unlinkat(int(r.top.Fd()), name, unix.AT_REMOVEDIR))
}

// lift removes an empty directory, and moves another one to the top.
func (r *remover) lift(dir *os.File, e entry) bool {
	if unix.Unlinkat(int(dir.Fd()), e.name, unix.AT_REMOVEDIR) == nil {
		return true
	}

	// Moving a directory writes to it, so it may have to be made writable first.
	if child, err := openOwn(dir, e.name); err == nil {
		child.Close()
	}

	const tries = 1000 // the harness may have chosen the same names
	var err error
	for range tries {
		r.moved++
		err = unix.Renameat(int(dir.Fd()), e.name, int(r.top.Fd()), fmt.Sprintf(".millwright-removed-%d", r.moved))
		if err == nil || err != unix.ENOTEMPTY && err != unix.EEXIST && err != unix.ENOTDIR {
			break
		}
	}

	return r.fail(err)
}

// unlink removes an entry that is not a directory.
func (r *remover) unlink(dir *os.File, e entry) bool {
	return r.fail(unix.Unlinkat(int(dir.Fd()), e.name, 0))
}

// fail records the first error, and reports whether err is nil.
func (r *remover) fail(err error) bool {
	if err != nil && r.left == nil {
		r.left = err
	}
	return err == nil
}

// openOwn opens a directory for removal. If its mode denies access to its owner, it changes the mode first.
func openOwn(parent *os.File, name string) (*os.File, error) {
	const all = 0o700
	dir, err := openClosed(parent, name, all)
	if err != nil || os.Geteuid() == 0 {
		return dir, err
	}

	var stat unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &stat); err == nil && stat.Mode&all != all {
		dir.Chmod(all)
	}

	return dir, nil
}

// openClosed opens a directory. If its mode denies access, it adds these bits first.
func openClosed(parent *os.File, name string, bits uint32) (*os.File, error) {
	dir, err := openDir(int(parent.Fd()), name)
	if !errors.Is(err, fs.ErrPermission) {
		return dir, err
	}
	if err := addMode(int(parent.Fd()), name, bits); err != nil {
		return nil, err
	}
	return openDir(int(parent.Fd()), name)
}
