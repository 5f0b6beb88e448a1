package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"millwright/state"
)

// DirConfig says which directory to watch.
type DirConfig struct {
	// Dir is the root of the definition. It may be a symbolic link that is swapped, and it may be a
	// Kubernetes volume: then the tree is what its ..data link points to.
	Dir string
	// Log receives notices; nil discards them.
	Log *slog.Logger
}

// dirSource is a directory on this machine.
type dirSource struct {
	dir     string
	log     *slog.Logger
	scanned chan struct{} // cap 1: a Fetch ended

	mu       sync.Mutex
	last     *frozen
	revision string
	root     string        // the path that last was read from, links resolved
	took     time.Duration // of the last scan
}

// Dir returns the source that reads a directory. Its revision is a SHA-256 of what the definition says.
func Dir(cfg DirConfig) (Source, error) {
	if cfg.Dir == "" {
		return nil, errors.New("the directory of the source is not set")
	}
	abs, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("directory %s: %w", cfg.Dir, err)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &dirSource{dir: abs, log: cfg.Log, scanned: make(chan struct{}, 1)}, nil
}

func (d *dirSource) Describe() state.Source { return state.Source{Kind: "dir", Path: d.dir} }

// scans is how often a directory that changes while it is read is read again before that is an error.
const scans = 5

func (d *dirSource) Fetch(ctx context.Context) (Snapshot, error) {
	began := time.Now()
	defer func() {
		d.mu.Lock()
		d.took = time.Since(began)
		d.mu.Unlock()
		select {
		case d.scanned <- struct{}{}:
		default:
		}
	}()
	err := errors.New("it keeps changing while it is read")
	for range scans {
		if ctx.Err() != nil {
			return Snapshot{}, ctx.Err()
		}
		var snap Snapshot
		var ok bool
		if snap, ok, err = d.scan(); ok {
			return snap, nil
		}
		if errors.Is(err, errNoRoot) {
			break
		}
	}
	return Snapshot{}, fmt.Errorf("directory %s: %w", d.dir, err)
}

var errNoRoot = errors.New("cannot be opened")

// scan reads the directory once. It is not ok when that failed, or the directory changed meanwhile.
func (d *dirSource) scan() (_ Snapshot, ok bool, err error) {
	root, path, err := openRoot(d.dir)
	if err != nil {
		return Snapshot{}, false, fmt.Errorf("%w: %w", errNoRoot, err)
	}
	defer root.Close()
	if d.last != nil && d.last.same(root) {
		d.mu.Lock()
		d.root = path
		d.mu.Unlock()
		return d.snapshot(), true, nil
	}
	fresh, err := root.OpenRoot(".")
	if err != nil {
		return Snapshot{}, false, err
	}
	tree, revision, err := freeze(fresh)
	if err != nil {
		return Snapshot{}, false, err
	}
	d.mu.Lock()
	d.last, d.revision, d.root = tree, revision, path
	d.mu.Unlock()
	return d.snapshot(), tree.same(root), errors.New("it keeps changing while it is read")
}

func (d *dirSource) snapshot() Snapshot {
	return Snapshot{Revision: state.Revision{ID: d.revision, Tree: d.revision}, FS: d.last}
}

// kubernetesData is the link in a Kubernetes volume that is swapped when its content changes.
const kubernetesData = "..data"

// openRoot opens the root of a definition and returns its path with links resolved. The links of dir
// itself are followed, and so is the ..data link of a Kubernetes volume if it stays inside the volume.
func openRoot(dir string) (*os.Root, string, error) {
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, "", withoutPath(err)
	}
	root, err := os.OpenRoot(resolved)
	if err != nil {
		return nil, "", withoutPath(err)
	}
	info, err := root.Lstat(kubernetesData)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return root, resolved, nil
	}
	defer root.Close()
	target, err := root.Readlink(kubernetesData)
	if err != nil {
		return nil, "", withoutPath(err)
	}
	data, err := root.OpenRoot(target)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", kubernetesData, withoutPath(err))
	}
	return data, filepath.Join(resolved, target), nil
}

// withoutPath returns the cause of a path error, for messages that name the path already.
func withoutPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
