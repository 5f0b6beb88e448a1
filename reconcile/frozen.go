package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"millwright/schema"
)

const (
	// frozenFile bounds what is kept of one file; more than any file of a valid tree has. The loader sees
	// the true size and says what is too large.
	frozenFile = 512 << 10
	// frozenTotal bounds what is kept of all files of a tree; more than any valid tree has.
	frozenTotal = 64 << 20
	// frozenEntries bounds the entries of the directories that are listed.
	frozenEntries = 200_000
)

// frozen is the part of a directory that a definition consists of, as it was at one moment. While it is
// open, the first look at each file or directory is kept, and every later look sees the same. Nothing
// outside the root can be reached, and no symbolic link is followed.
type frozen struct {
	mu      sync.Mutex
	root    *os.Root // nil once it is closed
	nodes   map[string]*node
	bytes   int
	entries int
}

// node is a file or directory that was looked at.
type node struct {
	info    fs.FileInfo
	data    []byte        // of a regular file
	entries []fs.DirEntry // of a directory, by name
	read    bool          // data or entries were read
}

// freeze opens the tree at root, which it closes.
func freeze(root *os.Root) (f *frozen, revision string, err error) {
	f = &frozen{root: root, nodes: map[string]*node{}}
	loaded := schema.Load(f, nil) // what the loader looks at is what the definition consists of
	f.mu.Lock()
	defer f.mu.Unlock()
	f.root = nil
	root.Close()
	if loaded.Err != nil {
		return nil, "", loaded.Err
	}
	return f, f.hash(loaded.Problems), nil
}

// hash names what the tree says: every file that was read, and what is wrong with the rest.
func (f *frozen) hash(problems []schema.Problem) string {
	h := sha256.New()
	for _, name := range f.names() {
		if n := f.nodes[name]; n.read && n.info.Mode().IsRegular() {
			fmt.Fprintf(h, "%q %x\n", name, sha256.Sum256(n.data))
		}
	}
	for _, p := range problems {
		fmt.Fprintf(h, "%q %s %q\n", p.Path, p.Code, p.Message)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func (f *frozen) names() []string {
	names := make([]string, 0, len(f.nodes))
	for name := range f.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// dirs returns the directories that were listed.
func (f *frozen) dirs() []string {
	var dirs []string
	for _, name := range f.names() {
		if n := f.nodes[name]; n.read && n.info.IsDir() {
			dirs = append(dirs, name)
		}
	}
	return dirs
}

// same reports whether everything that was looked at is still the same in root, byte for byte.
func (f *frozen) same(root *os.Root) bool {
	now := &frozen{root: root, nodes: map[string]*node{}}
	for _, name := range f.names() {
		was := f.nodes[name]
		is, err := now.look(name, was.read)
		if err != nil || is.info.Mode().Type() != was.info.Mode().Type() || is.info.Mode().IsRegular() && is.info.Size() != was.info.Size() || !slices.Equal(is.data, was.data) ||
			!slices.EqualFunc(is.entries, was.entries, func(a, b fs.DirEntry) bool { return a.Name() == b.Name() && a.Type() == b.Type() }) {
			return false
		}
		is.data = nil // one file at a time
	}
	return true
}

// look returns a node, read if asked for.
func (f *frozen) look(name string, read bool) (*node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[name]
	if n == nil {
		if f.root == nil {
			return nil, f.absent(name)
		}
		info, err := f.root.Lstat(filepath.FromSlash(name))
		if err != nil {
			return nil, err
		}
		n = &node{info: info}
		f.nodes[name] = n
	}
	if !read || n.read {
		return n, nil
	}
	if f.root == nil {
		return nil, fmt.Errorf("%s: %w", name, errNotFrozen)
	}
	if err := f.fill(name, n); err != nil {
		return nil, err
	}
	n.read = true
	return n, nil
}

// absent says why a closed snapshot does not have name.
func (f *frozen) absent(name string) error {
	parent := f.nodes[path.Dir(name)]
	if parent == nil || parent.read && !slices.ContainsFunc(parent.entries, func(e fs.DirEntry) bool { return e.Name() == path.Base(name) }) {
		return &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return fmt.Errorf("%s: %w", name, errNotFrozen)
}

var errNotFrozen = fmt.Errorf("not part of this snapshot: %w", fs.ErrInvalid)

func (f *frozen) fill(name string, n *node) error {
	if !n.info.IsDir() && !n.info.Mode().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a directory", name)
	}
	file, err := f.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(info, n.info) {
		return fmt.Errorf("%s changed while it was read", name)
	}
	if info.IsDir() {
		entries, err := file.ReadDir(frozenEntries - f.entries + 1)
		if err != nil && err != io.EOF {
			return err
		}
		if f.entries += len(entries); f.entries > frozenEntries {
			return fmt.Errorf("more than %d directory entries", frozenEntries)
		}
		for _, e := range entries {
			n.entries = append(n.entries, entry{f, path.Join(name, e.Name()), e.Type()})
		}
		slices.SortFunc(n.entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		return nil
	}
	n.info = info
	if n.data, err = io.ReadAll(io.LimitReader(file, frozenFile)); err != nil {
		return err
	}
	if f.bytes += len(n.data); f.bytes > frozenTotal {
		return fmt.Errorf("more than %d MiB of definition files", frozenTotal>>20)
	}
	return nil
}

// Open opens a file or directory of the tree.
func (f *frozen) Open(name string) (fs.File, error) {
	n, err := f.at("open", name, true)
	if err != nil {
		return nil, err
	}
	return &handle{node: n}, nil
}

// Stat describes a file or directory without following a symbolic link.
func (f *frozen) Stat(name string) (fs.FileInfo, error) {
	n, err := f.at("stat", name, false)
	if err != nil {
		return nil, err
	}
	return n.info, nil
}

// ReadDir lists a directory of the tree.
func (f *frozen) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := f.at("readdir", name, true)
	if err != nil {
		return nil, err
	}
	if !n.info.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
	}
	return slices.Clone(n.entries), nil
}

// ReadFile returns the content of a file of the tree.
func (f *frozen) ReadFile(name string) ([]byte, error) {
	n, err := f.at("read", name, true)
	if err != nil {
		return nil, err
	}
	if n.info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR}
	}
	return slices.Clone(n.data), nil
}

func (f *frozen) at(op, name string, read bool) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return f.look(name, read)
}

// entry is an entry of a directory of a snapshot.
type entry struct {
	f    *frozen
	path string
	mode fs.FileMode
}

func (e entry) Name() string               { return path.Base(e.path) }
func (e entry) IsDir() bool                { return e.mode.IsDir() }
func (e entry) Type() fs.FileMode          { return e.mode }
func (e entry) Info() (fs.FileInfo, error) { return e.f.Stat(e.path) }

// handle is an open file or directory of a snapshot.
type handle struct {
	node *node
	at   int
}

func (h *handle) Stat() (fs.FileInfo, error) { return h.node.info, nil }
func (h *handle) Close() error               { return nil }

func (h *handle) Read(p []byte) (int, error) {
	if h.node.info.IsDir() {
		return 0, &fs.PathError{Op: "read", Path: path.Base(h.node.info.Name()), Err: syscall.EISDIR}
	}
	if h.at >= len(h.node.data) {
		return 0, io.EOF
	}
	n := copy(p, h.node.data[h.at:])
	h.at += n
	return n, nil
}

// ReadDir is fs.ReadDirFile.
func (h *handle) ReadDir(n int) ([]fs.DirEntry, error) {
	rest := h.node.entries[min(h.at, len(h.node.entries)):]
	if n > 0 {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		rest = rest[:min(n, len(rest))]
	}
	h.at += len(rest)
	return slices.Clone(rest), nil
}
