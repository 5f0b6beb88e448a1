package language

import (
	"path/filepath"
	"sync"

	"millwright/schema"
)

// tree is a definition tree that an editor has open.
type tree struct {
	dir   string
	cache schema.Cache

	mu        sync.Mutex // held while the tree is loaded
	last      *loaded
	published map[string]string // what was told last of each file that has problems, by URI
}

// loaded is a tree as it was at one moment of the session.
type loaded struct {
	*schema.Result
	dir        string
	open       map[string]*document // by path
	generation uint64
}

// text returns the text of a file of the tree, nil if it has none.
func (l *loaded) text(path string) *text {
	if doc := l.open[path]; doc != nil {
		return doc.text
	}
	if src := l.Source(path); src != nil {
		return fileText(src)
	}
	return nil
}

func (l *loaded) uri(path string) string {
	if doc := l.open[path]; doc != nil {
		return doc.uri
	}
	return uriOf(filepath.Join(l.dir, filepath.FromSlash(path)))
}
