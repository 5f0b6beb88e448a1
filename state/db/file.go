package db

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/gofrs/flock"
)

// SQLitePath returns the database file that dsn names, and false when dsn names a PostgreSQL state.
func SQLitePath(dsn string) (string, bool) {
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		return "", false
	}
	return strings.TrimPrefix(dsn, "sqlite:"), true
}

// OpenFile opens a SQLite file by itself. options are those of SQLite's URLs.
func OpenFile(path, options string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+options)
}

// Lock makes the SQLite state at path ours alone until it is unlocked or the process ends, whatever name
// others know it by. What a restore that was killed left beside it is removed.
func Lock(path string) (*flock.Flock, error) {
	path = Resolved(path)
	lock := flock.New(path + ".lock")
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("state %s: lock: %w", path, err)
	}
	if !ok {
		return nil, fmt.Errorf(
			"state %s is in use by another millwright process: stop it, or choose another --state", path)
	}

	if err := removeRests(path); err != nil {
		lock.Unlock()
		return nil, fmt.Errorf("state %s: what a restore left: %w", path, err)
	}

	return lock, nil
}

// removeRests removes copies that were not finished, and second names of the state that were to become
// its only ones: a database must not be known by two.
func removeRests(path string) error {
	err := RemovePartials(path)
	if now, e := os.Stat(path); e == nil {
		err = errors.Join(err, removeBeside(path, ".replaced-", now))
	}
	return err
}

// Resolved follows the symbolic links of a path to the file that SQLite opens, or makes.
func Resolved(path string) string {
	for range 40 { // as many as the kernel follows
		if file, err := filepath.EvalSymlinks(path); err == nil {
			return file
		}

		target, err := os.Readlink(path)
		if err != nil { // no link, and no file yet
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}

		path = target
	}

	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}

	return path
}

// Partial makes an empty file, readable only by its owner, beside the file that it will replace.
func Partial(name string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".partial-*")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// RemovePartials removes what [Partial] made for a name and a process that was killed left.
func RemovePartials(name string) error { return removeBeside(name, ".partial-", nil) }

// removeBeside removes the files whose names continue that of path so: all of them, or those alone that
// are the same file.
func removeBeside(path, suffix string, same fs.FileInfo) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filepath.Base(path)+suffix) {
			continue
		}

		name := filepath.Join(filepath.Dir(path), e.Name())
		if info, e := os.Stat(name); same == nil || e == nil && os.SameFile(same, info) {
			err = errors.Join(err, os.Remove(name))
		}
	}

	return err
}

// MakeDir makes a directory for its owner, and the directories above it, if they do not exist. They survive a power
// failure when it returns, also those that a process made which was killed before they were on disk.
func MakeDir(dir string) error {
	names, err := os.ReadDir(dir)
	switch {
	case err == nil && len(names) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist):
		return isDir(dir)
	case err == nil: // nobody put a file there yet: perhaps it is not on disk
		_ = syncNames(filepath.Dir(dir))
		return nil
	}

	if parent := filepath.Dir(dir); parent != dir {
		if err := MakeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncNames(filepath.Dir(dir))
}

func isDir(name string) error {
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
	}
	return err
}

// WriteNew writes a file, for its owner only, that does not exist yet. It has its name only when its content is
// whole and on disk, and survives a power failure when WriteNew returns. [fs.ErrExist] if it exists.
func WriteNew(name string, content []byte) error {
	part, err := writePartial(name, content)
	if err != nil {
		return err
	}
	defer os.Remove(part)
	return PublishNew(part, name)
}

// Write replaces a file, or makes it for its owner only. After a power failure it has its old content or the new
// one, and the new one when Write returned.
func Write(name string, content []byte) error {
	part, err := writePartial(name, content)
	if err != nil {
		return err
	}
	defer os.Remove(part)
	return Publish(part, name)
}

func writePartial(name string, content []byte) (string, error) {
	part, err := Partial(name)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(part, content, 0o600); err != nil {
		os.Remove(part)
		return "", err
	}
	return part, nil
}

// Publish gives what [Partial] made its name, in place of the file that has it. Its content is on disk before the
// name is, and the name when Publish returns.
func Publish(part, name string) error {
	if err := syncFile(part); err != nil {
		return err
	}
	if err := os.Rename(part, name); err != nil {
		return err
	}
	return syncNames(filepath.Dir(name))
}

// PublishNew is [Publish] for a name that no file has: [fs.ErrExist] if one has it. The caller removes part.
func PublishNew(part, name string) error {
	if err := syncFile(part); err != nil {
		return err
	}

	err := os.Link(part, name) // unlike a rename it replaces nothing
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = renameNew(part, name) // a file system without links
	}
	if err != nil {
		return err
	}
	return syncNames(filepath.Dir(name))
}

func renameNew(part, name string) error {
	if _, err := os.Lstat(name); err == nil {
		return &fs.PathError{Op: "rename", Path: name, Err: fs.ErrExist}
	}
	return os.Rename(part, name)
}

// syncNames brings the names in a directory to disk. Windows does so by itself.
func syncNames(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return syncFile(dir)
}

// syncFile brings a file, or the names in a directory, to disk.
func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
