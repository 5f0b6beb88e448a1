//go:build unix

package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"millwright/runs/worker/confine"
	"millwright/runs/worker/workspace"
)

// cgroupFile has the name of a worker's control group, for the next worker in case this one is killed.
const cgroupFile = "cgroup"

// stale is the directory of a worker that was killed.
type stale struct {
	path string
	lock *flock.Flock
}

// label returns the label of that worker.
func (s stale) label() string { return filepath.Base(s.path) }

// remove kills the remaining processes of that worker and removes its directory.
func (s stale) remove() error {
	defer s.lock.Close()
	mark, err := os.ReadFile(filepath.Join(s.path, cgroupFile))
	if err == nil {
		err = confine.SweepWorker(string(mark))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return workspace.Remove(s.path)
}

// ownDir makes a directory for the working directories of this process, and returns those of killed
// workers.
func ownDir(parent string, log *slog.Logger) (dir string, left []stale, done func(), err error) {
	if parent == "" {
		parent = filepath.Join(os.TempDir(), fmt.Sprintf("millwright-runs-%d", os.Getuid()))
	}
	if err := os.MkdirAll(parent, 0o711); err != nil {
		return "", nil, nil, fmt.Errorf("working directories: %w", err)
	}
	if !ours(parent) {
		return "", nil, nil, fmt.Errorf(
			"working directories: %s must belong to this user, and nobody else may write to it", parent)
	}

	// No other worker takes a directory that is not locked yet for one of a killed worker.
	starting := flock.New(filepath.Join(parent, ".lock"))
	if err := starting.Lock(); err != nil {
		return "", nil, nil, fmt.Errorf("working directories: lock: %w", err)
	}
	defer starting.Close()

	old, err := filepath.Glob(filepath.Join(parent, "worker-*"))
	if err != nil {
		return "", nil, nil, fmt.Errorf("working directories: %w", err)
	}

	for _, path := range old {
		lock := flock.New(filepath.Join(path, "lock"))
		if ok, err := lock.TryLock(); err == nil && ok {
			left = append(left, stale{path, lock})
		}
	}

	if dir, err = os.MkdirTemp(parent, "worker-"); err != nil {
		return "", nil, nil, fmt.Errorf("working directories: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // a harness of another user may traverse but not list it
		return "", nil, nil, fmt.Errorf("working directories: %w", err)
	}

	lock := flock.New(filepath.Join(dir, "lock"))
	if ok, err := lock.TryLock(); err != nil || !ok {
		return "", nil, nil, fmt.Errorf("working directory %s cannot be locked: %v", dir, err)
	}

	done = func() {
		if err := workspace.Remove(dir); err != nil {
			log.Error("worker: remove the working directories", "error", err)
		}
		lock.Close()
	}

	return dir, left, done, nil
}
