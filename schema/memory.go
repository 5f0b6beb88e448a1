package schema

import "slices"

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
