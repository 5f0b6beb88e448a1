package worker

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// workspace makes a directory for the working directories of this process, and removes those of processes
// that have ended without doing so: stale names them.
func workspace(parent string) (dir string, stale []string, done func(), err error) {
	if parent == "" {
		parent = filepath.Join(os.TempDir(), fmt.Sprintf("millwright-runs-%d", os.Getuid()))
	}
	if err := os.MkdirAll(parent, 0o711); err != nil {
		return "", nil, nil, fmt.Errorf("working directories: %w", err)
	}
	if !ours(parent) {
		return "", nil, nil, fmt.Errorf("working directories: %s must belong to this user, and nobody else may write to it", parent)
	}
	old, err := filepath.Glob(filepath.Join(parent, "worker-*"))
	if err != nil {
		return "", nil, nil, fmt.Errorf("working directories: %w", err)
	}
	for _, path := range old {
		lock := flock.New(filepath.Join(path, "lock"))
		if ok, err := lock.TryLock(); err == nil && ok {
			killLeft(path+"/", 0)
			removeAll(path)
			lock.Close()
			stale = append(stale, filepath.Base(path))
		}
	}
	if dir, err = os.MkdirTemp(parent, "worker-"); err != nil {
		return "", nil, nil, fmt.Errorf("working directories: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // a harness of another user passes through, and lists nothing
		return "", nil, nil, fmt.Errorf("working directories: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	if ok, err := lock.TryLock(); err != nil || !ok {
		return "", nil, nil, fmt.Errorf("working directory %s cannot be locked: %v", dir, err)
	}
	return dir, stale, func() { removeAll(dir); lock.Close() }, nil
}

// removeAll removes a directory that a harness worked in, also what it made unreadable for its owner.
func removeAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
	os.RemoveAll(dir)
}

// holdsMore reports whether the files in a directory have more than max bytes together, each counted as at
// least one block.
func holdsMore(dir string, max int64) bool {
	const block = 4096
	var size int64
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it went away, or is closed to us
		}
		size += block
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() && info.Size() > block {
			size += info.Size() - block
		}
		if size > max {
			return fs.SkipAll
		}
		return nil
	})
	return size > max
}
