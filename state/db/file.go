package db

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

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

// SyncFile brings a file, or the names in a directory, to disk.
func SyncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
