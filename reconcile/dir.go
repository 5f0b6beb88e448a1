package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"millwright/schema"
	"millwright/state"
)

// DirConfig configures a directory source.
type DirConfig struct {
	// Dir is the root of the definition. It may be a symbolic link that is swapped. It may also be a
	// Kubernetes volume: then the tree is the target of its ..data link.
	Dir string
	// Log receives notices; nil discards them.
	Log *slog.Logger
}

// dirSource is a directory on this machine.
type dirSource struct {
	dir     string
	log     *slog.Logger
	scanned chan struct{} // capacity 1: a Fetch ended

	mu       sync.Mutex
	last     *frozen
	loaded   *schema.Result // of last
	revision string
	root     string        // the path that last was read from, links resolved
	took     time.Duration // of the last scan
}

// Dir returns the source that reads a directory. Its revision is a SHA-256 of the definition's content.
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

func (d *dirSource) Close() error { return nil }

// scans is how often the source reads a directory that changes during the read, before it returns an error.
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

// scan reads the directory once. ok is false if that failed or the directory changed meanwhile.
func (d *dirSource) scan() (_ Snapshot, ok bool, err error) {
	root, path, err := openRoot(d.dir)
	if err != nil {
		return Snapshot{}, false, fmt.Errorf("%w: %w", errNoRoot, err)
	}
	defer root.Close()

	if d.last != nil && d.last.same(&dirBacking{root}) {
		d.mu.Lock()
		d.root = path
		d.mu.Unlock()
		return d.snapshot(), true, nil
	}

	fresh, err := root.OpenRoot(".")
	if err != nil {
		return Snapshot{}, false, err
	}

	tree := freeze(&dirBacking{fresh})
	loaded := schema.Load(tree, nil) // the loader reads exactly the files of the definition
	if err := errors.Join(loaded.Err, fresh.Close()); err != nil {
		return Snapshot{}, false, err
	}

	tree.close()
	d.mu.Lock()
	d.last, d.loaded, d.revision, d.root = tree, loaded, tree.hash(loaded.Problems), path
	d.mu.Unlock()
	return d.snapshot(), tree.same(&dirBacking{root}), errors.New("it keeps changing while it is read")
}

func (d *dirSource) snapshot() Snapshot {
	return Snapshot{Revision: state.Revision{ID: d.revision, Tree: d.revision}, FS: d.last, loaded: d.loaded}
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

// withoutPath returns the cause of a path error, for messages that already name the path.
func withoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// dirBacking is a directory that a tree is frozen from.
type dirBacking struct{ root *os.Root }

func (b *dirBacking) stat(name string) (fs.FileInfo, error) {
	return b.root.Lstat(filepath.FromSlash(name))
}

// open opens the file that info describes, and no file that replaced it. It does not block on a pipe.
func (b *dirBacking) open(name string, info fs.FileInfo) (*os.File, error) {
	file, err := b.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if now, err := file.Stat(); err != nil || !os.SameFile(now, info) || now.Size() != info.Size() {
		return nil, errors.Join(err, file.Close(), fmt.Errorf("%s changed while it was read", name))
	}
	return file, nil
}

func (b *dirBacking) list(name string, info fs.FileInfo, max int) ([]entry, error) {
	dir, err := b.open(name, info)
	if err != nil {
		return nil, err
	}
	defer dir.Close()

	var list []entry
	for {
		part, err := dir.ReadDir(1024)
		for _, e := range part {
			list = append(list, entry{e.Name(), e.Type()})
		}

		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		if len(list) > max {
			return nil, malformed("%s: more than %d directory entries", name, max)
		}
	}
}

func (b *dirBacking) read(name string, info fs.FileInfo, max int64) ([]byte, error) {
	file, err := b.open(name, info)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, max))
}
