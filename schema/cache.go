package schema

import (
	"context"
	"io/fs"
	"slices"
	"sync"
)

// Identified is a tree that knows what a file or directory says without reading it, as git does.
type Identified interface {
	fs.FS
	// Identity names the content and the kind of a file, or of all that is in a directory: two of one path
	// and one identity, in trees of one source, are the same. It is empty where that is not known.
	Identity(name string) string
}

// Cache keeps the results of the files and directories of the last tree that it loaded, so that the next one
// of the same source costs only what changed in it. What has a problem is not kept, nor are trees that are
// not [Identified]. It is bounded as a tree is. What it returns is shared with later results: read it only.
// The zero value is ready, and safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	last  map[string]kept       // by path; never changed once it is here
	parts map[string]keptFolder // likewise
}

// kept is a file without a problem.
type kept struct {
	identity string
	kind     fileKind
	loaded
}

// keptFolder is a directory in which the walk found no problem.
type keptFolder struct {
	identity string
	entries  []entry
	listed   int64 // directories
}

// LoadContext is the function of that name, with the same result, but neither reads nor parses a file
// that is as it was in the last tree.
func (c *Cache) LoadContext(ctx context.Context, fsys fs.FS, known *Known) *Result {
	tree, ok := fsys.(Identified)
	if !ok {
		return LoadContext(ctx, fsys, known)
	}

	c.mu.Lock()
	m := memory{
		tree: tree, last: c.last, next: make(map[string]kept, len(c.last)),
		lastParts: c.parts, nextParts: make(map[string]keptFolder, len(c.parts)),
	}
	c.mu.Unlock()
	r := load(ctx, fsys, known, &m)
	if r.Err == nil {
		c.mu.Lock()
		c.last, c.parts = m.next, m.nextParts
		c.mu.Unlock()
	}

	return r
}

// memory is what one load has of a cache. A nil *memory remembers nothing.
type memory struct {
	tree      Identified
	last      map[string]kept
	lastParts map[string]keptFolder

	mu        sync.Mutex
	next      map[string]kept
	nextParts map[string]keptFolder
}

// walk fills t, a part of a tree that has nothing yet, with what is below a directory: by a look at it, or
// as the last tree had it.
func (m *memory) walk(t *tree, dir string, look func() error) error {
	if m == nil {
		return look()
	}

	identity := m.tree.Identity(dir)
	was, known := m.lastParts[dir]
	if known = known && identity != "" && was.identity == identity; known {
		t.entries, t.listed = slices.Clone(was.entries), was.listed
		for i := range t.entries {
			t.entries[i].same = true
		}

		if t.count.Add(int64(len(t.entries))) > MaxFiles || t.dirs.Add(t.listed) > maxDirectories {
			return errTooMany
		}
	} else if err := look(); err != nil || t.err != nil || len(t.problems) > 0 || identity == "" {
		return err
	} else {
		was = keptFolder{identity, slices.Clone(t.entries), t.listed}
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	m.nextParts[dir] = was
	return nil
}

// recall returns the result of a file that has not changed, and the identity of one that has.
func (m *memory) recall(e entry) (hit loaded, ok bool, identity string) {
	if m == nil {
		return loaded{}, false, ""
	}

	was, known := m.last[e.path]
	if known && e.same && was.kind == e.kind {
		m.keep(e, was.identity, was.loaded)
		return was.loaded, true, was.identity
	}

	identity = m.tree.Identity(e.path)
	if known && identity != "" && was.identity == identity && was.kind == e.kind {
		m.keep(e, identity, was.loaded)
		return was.loaded, true, identity
	}

	return loaded{}, false, identity
}

// keep remembers a file that has nothing wrong.
func (m *memory) keep(e entry, identity string, out loaded) {
	if m == nil || identity == "" || out.err != nil || out.doc != nil || len(out.problems) > 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next[e.path] = kept{identity, e.kind, out}
}
