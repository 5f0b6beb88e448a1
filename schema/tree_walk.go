package schema

import (
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
)

// walk finds the files at resource paths and reports those that are nearly at
// one. It reads directories in parts and stops at the limit of files, so that
// its memory is bounded whatever the tree holds.
func walk(fsys fs.FS, m *memory) (*tree, error) {
	t := &tree{fsys: fsys, count: new(atomic.Int64), dirs: new(atomic.Int64), memory: m}
	root, err := t.list(".", func(fs.DirEntry) bool { return true })
	if err != nil {
		return t, err
	}

	for _, e := range root {
		if err := t.top(e, root); err != nil {
			return t, err
		}
	}

	slices.SortFunc(t.entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return t, t.err
}

// top looks at one entry of the root.
func (t *tree) top(e fs.DirEntry, root []fs.DirEntry) error {
	name := e.Name()
	switch {
	case name == "factory.yaml":
		return t.take(e, entry{path: name, kind: kindFactory, name: name})
	case !e.IsDir() && (strings.EqualFold(name, "factory.yaml") || strings.EqualFold(name, "factory.yml")):
		return t.misplaced(name, "factory.yaml")
	case name == "scorers" || name == "benchmarks" || strings.HasPrefix(name, "."):
		return nil
	}

	if slices.Contains(directories, name) {
		if e.Type()&fs.ModeSymlink != 0 {
			t.symlink(name)
			return nil
		}
		if !e.IsDir() { // a link that was checked out as text, for example
			t.report(name, ruleUnsupportedPath, "this is a file; a directory belongs here", "")
			return nil
		}

		part := t.part()
		err := t.memory.walk(part, name, func() error { return part.resources(name) })
		t.add(part)
		return err
	}

	if right := nearDirectory(name); right != "" && e.IsDir() {
		return t.nearly(name, right)
	}
	if right := t.nearRoot(name, root); right != "" && !e.IsDir() {
		return t.misplaced(name, right)
	}

	return nil
}
