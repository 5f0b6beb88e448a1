package language

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// document is an open document. It is replaced, never changed.
type document struct {
	uri     string
	version int32
	serial  uint64 // differs between any two texts of a session
	dir     string // the root of its tree; empty for what is in none
	path    string // in the tree
	*text
}

// overlay is a tree on disk with the texts of open documents in the place of its files. It implements
// schema.Identified.
type overlay struct {
	disk fs.FS
	open map[string]*document // by path in the tree

	// epoch changes with the files on disk; empty where nobody tells of their changes.
	epoch   string
	serials map[string]string // of the open documents below each directory
}

func newOverlay(disk fs.FS, open map[string]*document, epoch string) overlay {
	o := overlay{disk: disk, open: open, epoch: epoch, serials: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(open)) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			o.serials[dir] += fmt.Sprintf(" %d", open[name].serial)
		}
	}
	return o
}

// Open opens a file or directory.
func (o overlay) Open(name string) (fs.File, error) {
	if d := o.open[name]; d != nil {
		return &memoryFile{entry: entry{name: path.Base(name), size: int64(len(d.src))}, rest: d.src}, nil
	}

	file, err := o.disk.Open(name)
	added := o.children(name)
	if len(added) == 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}

	list := &memoryFile{entry: entry{name: path.Base(name), dir: true}}
	if err == nil {
		defer func() { _ = file.Close() }()

		dir, ok := file.(fs.ReadDirFile)
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("is not a directory")}
		}
		if list.entries, err = dir.ReadDir(maxEntries); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	}

	for _, e := range added {
		there := func(x fs.DirEntry) bool { return x.Name() == e.name }
		if !slices.ContainsFunc(list.entries, there) {
			list.entries = append(list.entries, e)
		}
	}

	return list, nil
}

// maxEntries bounds the entries of a directory that is read for a document which is not on disk yet.
const maxEntries = 50_000

// children returns the entries of a directory that open documents have.
func (o overlay) children(dir string) []*entry {
	byName := map[string]*entry{}
	for name := range o.open {
		rest := name
		if dir != "." {
			var below bool
			if rest, below = strings.CutPrefix(name, dir+"/"); !below {
				continue
			}
		}

		first, _, deeper := strings.Cut(rest, "/")
		byName[first] = &entry{name: first, dir: deeper}
	}

	var all []*entry
	for _, e := range byName {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *entry) int { return strings.Compare(a.name, b.name) })
	return all
}

// fresh is how long after its last change a file on disk may change again without a new time.
const fresh = 50 * time.Millisecond

// Identity identifies a file by its size and time, an open document by its serial, and a directory by the
// epoch and the open documents in it.
func (o overlay) Identity(name string) string {
	if d := o.open[name]; d != nil {
		return fmt.Sprintf("open %d", d.serial)
	}

	info, err := fs.Stat(o.disk, name)
	switch {
	case err == nil && info.IsDir() && o.epoch != "":
		return o.epoch + o.serials[name]
	case err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < fresh:
		return ""
	}

	return fmt.Sprintf("disk %d %d", info.Size(), info.ModTime().UnixNano())
}

// entry is an entry of a directory, and its own fs.FileInfo.
type entry struct {
	name string
	size int64
	dir  bool
}

func (e *entry) Name() string               { return e.name }
func (e *entry) Size() int64                { return e.size }
func (e *entry) ModTime() time.Time         { return time.Time{} }
func (e *entry) IsDir() bool                { return e.dir }
func (e *entry) Sys() any                   { return nil }
func (e *entry) Type() fs.FileMode          { return e.Mode().Type() }
func (e *entry) Info() (fs.FileInfo, error) { return e, nil }

func (e *entry) Mode() fs.FileMode {
	if e.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// memoryFile is an open file or directory of an overlay.
type memoryFile struct {
	entry
	rest    []byte
	entries []fs.DirEntry
}

func (f *memoryFile) Stat() (fs.FileInfo, error) { return &f.entry, nil }
func (f *memoryFile) Close() error               { return nil }

func (f *memoryFile) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// ReadDir returns the next entries of a directory.
func (f *memoryFile) ReadDir(n int) ([]fs.DirEntry, error) {
	list := f.entries
	if n > 0 {
		if len(list) == 0 {
			return nil, io.EOF
		}
		list = list[:min(n, len(list))]
	}

	f.entries = f.entries[len(list):]
	return list, nil
}
