package reconcile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"millwright/schema"
)

const (
	// maxTreeObject bounds one directory of a commit; about 100,000 entries.
	maxTreeObject = 4 << 20
	// maxKnownEntries bounds the directory entries that are cached from commit to commit. The largest valid
	// definition, with a directory for each file, has twice its files.
	maxKnownEntries = 3 * schema.MaxFiles
	// maxDirectoryBytes bounds the directories read in one commit. A directory counts for each of its
	// places, since a small pack can have a large directory in thousands of places. The largest valid
	// definition has a fifth of it.
	maxDirectoryBytes = 32 << 20
)

// directory is a tree object: its entries by name.
type directory []object.TreeEntry

func (d directory) entry(name string) (object.TreeEntry, bool) {
	i, found := slices.BinarySearchFunc(
		d,
		name,
		func(e object.TreeEntry, name string) int { return strings.Compare(e.Name, name) },
	)
	if !found {
		return object.TreeEntry{}, false
	}
	return d[i], true
}

// bytes is about the size of the tree object.
func (d directory) bytes() (total int) {
	for _, e := range d {
		total += len("100644 \x00") + len(e.Name) + len(e.Hash)
	}
	return total
}

// objects reads the objects of a clone.
type objects struct {
	from    storer.EncodedObjectStorer
	damaged bool // an expected object is unreadable

	before map[plumbing.Hash]directory // of the commit before; not changed here
	known  map[plumbing.Hash]directory // results of this commit
	kept   int                         // entries of known
}

// after returns the reader for the next commit. It reuses what both commits have in common.
func (o *objects) after(from storer.EncodedObjectStorer) *objects {
	next := &objects{from: from, known: map[plumbing.Hash]directory{}}
	if o != nil && !o.damaged {
		next.before = o.known
	}
	return next
}

// open returns a reader of an object of the given type, and its size.
func (o *objects) open(kind plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	obj, err := o.from.EncodedObject(kind, hash)
	if err != nil {
		if other, err := o.from.EncodedObject(plumbing.AnyObject, hash); err == nil {
			return nil, malformed("a %s where a %s belongs: %s", other.Type(), kind, hash)
		}
		o.damaged = true
		return nil, fmt.Errorf("%s %s cannot be read from the clone: %w", kind, hash, err)
	}
	return obj, nil
}

// tree returns a directory.
func (o *objects) tree(hash plumbing.Hash) (directory, error) {
	if d, known := o.known[hash]; known {
		return d, nil
	}

	d, known := o.before[hash]
	if !known {
		var err error
		if d, err = o.readTree(hash); err != nil {
			return nil, err
		}
	}

	if o.kept += len(d) + 1; o.kept <= maxKnownEntries {
		o.known[hash] = d
	}

	return d, nil
}

func (o *objects) readTree(hash plumbing.Hash) (directory, error) {
	if size, err := o.from.EncodedObjectSize(hash); err == nil && size > maxTreeObject {
		return nil, malformed("a directory of %d bytes, more than %d MiB: tree %s", size, maxTreeObject>>20, hash)
	}

	obj, err := o.open(plumbing.TreeObject, hash)
	if err != nil {
		return nil, err
	}

	var t object.Tree
	if err := t.Decode(obj); err != nil {
		return nil, malformed("%w: tree %s", err, hash)
	}

	d := directory(t.Entries)
	slices.SortFunc(d, func(a, b object.TreeEntry) int { return strings.Compare(a.Name, b.Name) })
	for i, e := range d {
		if e.Name == "." || e.Name == ".." || strings.Contains(e.Name, "/") {
			return nil, malformed("an entry named %q, which no file can be: tree %s", e.Name, hash)
		}
		if i > 0 && d[i-1].Name == e.Name {
			return nil, malformed("two entries named %q: tree %s", e.Name, hash)
		}
	}

	return d, nil
}

// commit returns the commit that a commit or a tag stands for.
func (o *objects) commit(hash plumbing.Hash) (*object.Commit, error) {
	for range 5 {
		obj, err := o.from.EncodedObject(plumbing.AnyObject, hash)
		if err != nil {
			return nil, err
		}

		if obj.Type() != plumbing.TagObject {
			var c object.Commit
			if err := c.Decode(obj); err != nil {
				return nil, fmt.Errorf("%s is not a commit: %w", hash, err)
			}

			return &c, nil
		}

		var t object.Tag
		if err := t.Decode(obj); err != nil {
			return nil, err
		}

		hash = t.Target
	}

	return nil, errors.New("a tag of a tag of a tag")
}

// subtree returns the tree at a path below a tree.
func (o *objects) subtree(hash plumbing.Hash, at string) (plumbing.Hash, error) {
	if _, err := o.tree(hash); err != nil {
		return hash, err
	}
	if at == "." {
		return hash, nil
	}

	for name := range strings.SplitSeq(at, "/") {
		entries, err := o.tree(hash)
		if err != nil {
			return hash, err
		}

		e, found := entries.entry(name)
		if !found || e.Mode != filemode.Dir {
			return hash, fmt.Errorf("%w: %s", errNoPath, at)
		}

		hash = e.Hash
	}

	_, err := o.tree(hash)
	return hash, err
}

var errNoPath = errors.New("the commit has no directory")

// settled reports whether reading a commit would give the same result after every fetch.
func settled(err error) bool { return err == nil || errors.Is(err, errNoPath) }

// treeBacking is a directory of a commit that a tree is frozen from. Calls take turns.
type treeBacking struct {
	objects *objects
	root    plumbing.Hash
	broken  error // why the root cannot be read
	dirs    map[string]directory
	bytes   int // of dirs
}

func (b *treeBacking) dir(name string) (directory, error) {
	if entries, seen := b.dirs[name]; seen {
		return entries, nil
	}

	hash := b.root
	if b.broken != nil {
		return nil, b.broken
	}

	if name != "." {
		e, err := b.entry(name)
		if err != nil {
			return nil, err
		}
		if e.Mode != filemode.Dir {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}

		hash = e.Hash
	}

	if b.bytes > maxDirectoryBytes {
		return nil, malformed("more than %d MiB of directories", maxDirectoryBytes>>20)
	}

	entries, err := b.objects.tree(hash)
	if err != nil {
		return nil, err
	}

	b.dirs[name] = entries
	b.bytes += entries.bytes()
	return entries, nil
}

func (b *treeBacking) entry(name string) (object.TreeEntry, error) {
	entries, err := b.dir(path.Dir(name))
	if err != nil {
		return object.TreeEntry{}, err
	}
	e, found := entries.entry(path.Base(name))
	if !found {
		return e, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return e, nil
}

func (b *treeBacking) stat(name string) (fs.FileInfo, error) {
	if name == "." {
		return treeInfo{name: ".", mode: fs.ModeDir | 0o755}, nil
	}

	e, err := b.entry(name)
	if err != nil {
		return nil, err
	}

	info := treeInfo{name: path.Base(name), mode: modeOf(e.Mode)}
	if info.mode.IsRegular() {
		if info.size, err = b.objects.from.EncodedObjectSize(e.Hash); err != nil {
			b.objects.damaged = true
			return nil, fmt.Errorf("%s: blob %s cannot be read from the clone: %w", name, e.Hash, err)
		}
	}

	return info, nil
}

// identity returns the hash of a file's blob or a directory's tree.
func (b *treeBacking) identity(name string) string {
	e, err := b.entry(name)
	if mode := modeOf(e.Mode); err != nil || !mode.IsRegular() && !mode.IsDir() {
		return ""
	}
	return string(e.Hash[:])
}

func (b *treeBacking) list(name string, _ fs.FileInfo, max int) ([]entry, error) {
	entries, err := b.dir(name)
	if err != nil {
		return nil, err
	}
	if len(entries) > max {
		return nil, malformed("%s: more than %d directory entries", name, max)
	}

	list := make([]entry, 0, len(entries))
	for _, e := range entries {
		list = append(list, entry{e.Name, modeOf(e.Mode).Type()})
	}

	return list, nil
}

func (b *treeBacking) read(name string, _ fs.FileInfo, max int64) ([]byte, error) {
	e, err := b.entry(name)
	if err != nil {
		return nil, err
	}

	obj, err := b.objects.open(plumbing.BlobObject, e.Hash)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}

	r, err := obj.Reader()
	if err == nil {
		defer r.Close()

		var data []byte
		if data, err = io.ReadAll(io.LimitReader(r, max)); err == nil {
			return data, nil
		}
	}

	b.objects.damaged = true
	return nil, fmt.Errorf("%s: blob %s cannot be read from the clone: %w", name, e.Hash, err)
}

// modeOf returns the file type of a tree entry. A submodule counts as a link, since its target is not here.
func modeOf(mode filemode.FileMode) fs.FileMode {
	switch mode {
	case filemode.Dir:
		return fs.ModeDir | 0o755
	case filemode.Regular, filemode.Executable, filemode.Deprecated:
		return 0o644
	default:
		return fs.ModeSymlink | 0o777
	}
}

// treeInfo describes an entry of a tree.
type treeInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func (i treeInfo) Name() string      { return i.name }
func (i treeInfo) Size() int64       { return i.size }
func (i treeInfo) Mode() fs.FileMode { return i.mode }
func (treeInfo) ModTime() time.Time  { return time.Time{} }
func (i treeInfo) IsDir() bool       { return i.mode.IsDir() }
func (treeInfo) Sys() any            { return nil }
