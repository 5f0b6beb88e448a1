package schema

import (
	"context"
	"io/fs"
	"sync"
)

// Cache keeps the results of the files and directories of the last tree that it loaded, so that the next one
// of the same source costs only what changed in it. What has a problem is not kept, nor are trees that are
// not [Identified]. It is bounded as a tree is. What it returns is shared with later results: read it only.
// The zero value is ready, and safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	last  map[string]kept       // by path; never changed once it is here
	parts map[string]keptFolder // likewise
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
