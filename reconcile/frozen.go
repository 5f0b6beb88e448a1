package reconcile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"millwright/schema"
)

const (
	// frozenFile bounds the stored bytes of one file. The loader sees the true size and reports files that
	// are too large.
	frozenFile = schema.MaxFileBytes + 1
	// frozenTotal bounds the stored bytes of all files of a tree. No valid tree has more.
	frozenTotal = 2 * schema.MaxTreeBytes
	// frozenEntries bounds the entries of the directories that are listed.
	frozenEntries = 200_000
)

// backing is the origin of a frozen tree.
type backing interface {
	// stat describes a file or directory without following a symbolic link.
	stat(name string) (fs.FileInfo, error)
	// list returns the entries of a directory, or an error when there are more than max.
	list(name string, info fs.FileInfo, max int) ([]entry, error)
	// read returns the first max bytes of a regular file.
	read(name string, info fs.FileInfo, max int64) ([]byte, error)
}

// frozen is the part of a tree that belongs to a definition, as of one moment. It stores the first read of
// each file and directory; later reads return the same. It follows no symbolic links and reaches nothing
// outside of the root.
type frozen struct {
	mu    sync.Mutex
	from  backing // nil once it is closed
	nodes map[string]*node
	// identities are the requested identities. They outlive close, for callers that cache results by
	// identity.
	identities map[string]string
	bytes      int
	entries    int
}

// node is a file or directory that was read.
type node struct {
	info    fs.FileInfo
	data    []byte  // of a regular file
	entries []entry // of a directory, by name
	read    bool    // data or entries were read
	err     error   // the error of every read
}

func freeze(from backing) *frozen { return &frozen{from: from, nodes: map[string]*node{}} }

// close releases the backing. Later reads return only what was read before.
func (f *frozen) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.from = nil
}

// hash returns a hash of the tree: the files that were read, and the errors of the others.
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

// same reports whether another tree has the same content, byte for byte, wherever this one was read.
func (f *frozen) same(other backing) bool {
	now := freeze(other)
	for _, name := range f.names() {
		was := f.nodes[name]
		is, err := now.look(name, was.read)
		if err != nil || is.info.Mode().Type() != was.info.Mode().Type() ||
			is.info.Mode().IsRegular() && is.info.Size() != was.info.Size() ||
			!bytes.Equal(is.data, was.data) || !slices.Equal(is.entries, was.entries) {
			return false
		}

		is.data = nil // one file at a time
	}

	return true
}

// look returns a node, and reads it on request.
func (f *frozen) look(name string, read bool) (*node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	n := f.nodes[name]
	if n == nil {
		if f.from == nil {
			return nil, f.absent(name)
		}

		info, err := f.from.stat(name)
		if err != nil {
			return nil, err
		}

		n = &node{info: info}
		f.nodes[name] = n
	}

	if read && n.err != nil {
		return nil, n.err
	}
	if !read || n.read {
		return n, nil
	}
	if f.from == nil {
		return nil, fmt.Errorf("%s: %w", name, errNotFrozen)
	}

	if err := f.fill(name, n); err != nil {
		if errors.As(err, new(schema.Malformed)) {
			n.err = err
		}
		return nil, err
	}

	n.read = true
	return n, nil
}

func (f *frozen) fill(name string, n *node) (err error) {
	switch {
	case n.info.IsDir():
		if n.entries, err = f.from.list(name, n.info, frozenEntries-f.entries); err != nil {
			return err
		}

		f.entries += len(n.entries)
		slices.SortFunc(n.entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })

	case n.info.Mode().IsRegular():
		if n.data, err = f.from.read(name, n.info, frozenFile); err != nil {
			return err
		}
		if f.bytes += len(n.data); f.bytes > frozenTotal {
			return malformed("more than %d MiB of definition files", frozenTotal>>20)
		}

	default:
		return fmt.Errorf("%s is neither a file nor a directory", name)
	}

	return nil
}

// malformed is a permanent fault of a commit: git would not write it.
func malformed(format string, args ...any) error {
	return schema.Malformed{Text: fmt.Errorf(format, args...).Error()}
}

// absent returns the reason why a closed snapshot does not have name.
func (f *frozen) absent(name string) error {
	parent := f.nodes[path.Dir(name)]
	if parent == nil ||
		parent.read && !slices.ContainsFunc(parent.entries, func(e entry) bool { return e.name == path.Base(name) }) {
		return &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return fmt.Errorf("%s: %w", name, errNotFrozen)
}

var errNotFrozen = fmt.Errorf("not part of this snapshot: %w", fs.ErrInvalid)

// entry is an entry of a directory.
type entry struct {
	name string
	mode fs.FileMode // its type bits
}

// Open opens a file or directory of the tree.
func (f *frozen) Open(name string) (fs.File, error) {
	n, err := f.at("open", name, true)
	if err != nil {
		return nil, err
	}
	return &handle{f: f, name: name, node: n}, nil
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
	return f.listed(name, n.entries), nil
}

func (f *frozen) listed(dir string, entries []entry) []fs.DirEntry {
	list := make([]fs.DirEntry, len(entries))
	for i, e := range entries {
		list[i] = listed{f, path.Join(dir, e.name), e}
	}
	return list
}

// listed is an entry of a listed directory.
type listed struct {
	f    *frozen
	path string
	entry
}

func (e listed) Name() string               { return e.name }
func (e listed) IsDir() bool                { return e.mode.IsDir() }
func (e listed) Type() fs.FileMode          { return e.mode }
func (e listed) Info() (fs.FileInfo, error) { return e.f.Stat(e.path) }

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

// Identity returns an identifier of a file's content, if known without reading it.
func (f *frozen) Identity(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()

	if known, asked := f.identities[name]; asked || !fs.ValidPath(name) {
		return known
	}

	from, ok := f.from.(interface{ identity(name string) string })
	if !ok {
		return ""
	}
	if f.identities == nil {
		f.identities = map[string]string{}
	}

	f.identities[name] = from.identity(name)
	return f.identities[name]
}

// definitionFiles returns the files of a definition that was loaded from tree. A load with a cache has not read
// the files that it knows, so that a second load reads them.
func definitionFiles(ctx context.Context, tree fs.FS) ([]schema.File, error) {
	f, ok := tree.(*frozen)
	if !ok {
		return allFiles(tree)
	}

	if len(f.identities) > 0 {
		if r := schema.LoadContext(ctx, f, nil); r.Err != nil {
			return nil, r.Err
		}
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	files := []schema.File{}
	for _, name := range f.names() {
		if n := f.nodes[name]; n.read && n.info.Mode().IsRegular() {
			files = append(files, schema.File{Path: name, Content: string(n.data)})
		}
	}

	return files, nil
}

// allFiles returns the files of a tree that holds a definition alone.
func allFiles(tree fs.FS) ([]schema.File, error) {
	files := []schema.File{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}

		text, err := fs.ReadFile(tree, name)
		files = append(files, schema.File{Path: name, Content: string(text)})
		return err
	})
	return files, err
}

// handle is an open file or directory of a snapshot.
type handle struct {
	f    *frozen
	name string
	node *node
	at   int
}

func (h *handle) Stat() (fs.FileInfo, error) { return h.node.info, nil }
func (h *handle) Close() error               { return nil }

func (h *handle) Read(p []byte) (int, error) {
	if h.node.info.IsDir() {
		return 0, &fs.PathError{Op: "read", Path: h.name, Err: syscall.EISDIR}
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
	return h.f.listed(h.name, rest), nil
}
