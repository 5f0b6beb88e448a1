package schema

import (
	"context"
	"io/fs"
	"sync"
)

// Identified is a tree that knows what a file says without reading it, as git does.
type Identified interface {
	fs.FS
	// Identity names the content and the kind of a file: two files of one path and one identity, in trees
	// of one source, are the same. It is empty when there is no such name, or no such file.
	Identity(name string) string
}

// Cache keeps what came of the files of the last tree that it loaded, so that the next one of the same
// source costs only what changed in it. A file with a problem is not kept, nor are trees that are not
// [Identified]. What it returns is shared with later results: read it only. The zero value is ready, and
// safe for concurrent use.
type Cache struct {
	mu   sync.Mutex
	last map[string]kept // by path; never changed once it is here
}

// kept is a file without a problem.
type kept struct {
	identity string
	kind     fileKind
	loaded
}

// LoadContext is the function of that name, with the same result, but neither reads nor parses a file
// that is as it was in the last tree.
func (c *Cache) LoadContext(ctx context.Context, fsys fs.FS, known *Known) *Result {
	tree, ok := fsys.(Identified)
	if !ok {
		return LoadContext(ctx, fsys, known)
	}
	c.mu.Lock()
	m := memory{tree: tree, last: c.last, next: make(map[string]kept, len(c.last))}
	c.mu.Unlock()
	r := load(ctx, fsys, known, &m)
	if r.Err == nil {
		c.mu.Lock()
		c.last = m.next
		c.mu.Unlock()
	}
	return r
}

// memory is what one load has of a cache. A nil *memory remembers nothing.
type memory struct {
	tree Identified
	last map[string]kept

	mu   sync.Mutex
	next map[string]kept
}

// recall returns what came of a file that has not changed, and the identity of one that has.
func (m *memory) recall(e entry) (hit loaded, ok bool, identity string) {
	if m == nil {
		return loaded{}, false, ""
	}
	identity = m.tree.Identity(e.path)
	if was, known := m.last[e.path]; known && identity != "" && was.identity == identity && was.kind == e.kind {
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
