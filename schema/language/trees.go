package language

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"millwright/schema"
)

func diskFS(dir string) fs.FS { return os.DirFS(dir) }

const maxTrees = 100

// under reports whether a path is that of dir, or below it.
func under(dir, name string) bool {
	separator := string(filepath.Separator)
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, separator)+separator)
}

// tree notes a tree, and returns nil beyond the bound. s.mu is held.
func (s *session) tree(dir string) *tree {
	if t := s.trees[dir]; t != nil || len(s.trees) >= maxTrees {
		return t
	}

	t := &tree{dir: dir, published: map[string]string{}}
	s.trees[dir] = t
	for uri, doc := range s.docs { // which may belong to it, too
		if name, ok := pathOf(uri); ok && doc.dir == "" && under(dir, name) {
			if rel, err := filepath.Rel(dir, name); err == nil {
				moved := *doc
				moved.dir, moved.path = dir, filepath.ToSlash(rel)
				s.docs[uri] = &moved
			}
		}
	}

	s.askAgain()
	return t
}

// search finds the definitions in the folders of the client, once after each change on disk.
func (s *session) search() {
	s.mu.Lock()
	folders := slices.Clone(s.folders)
	done := s.looked
	s.looked = true
	s.mu.Unlock()

	if done {
		return
	}

	for _, folder := range folders {
		dir := "."
		if fsys := diskFS(folder); !schema.LooksLikeRoot(fsys) {
			if dir = schema.FindDefinition(fsys); dir == "" {
				continue
			}
		}

		s.mu.Lock()
		s.tree(filepath.Join(folder, filepath.FromSlash(dir)))
		s.mu.Unlock()
	}
}

// load loads a tree as it is now, with the texts of open documents. The result is shared: read it only.
func (s *session) load(ctx context.Context, t *tree) (*loaded, error) {
	t.mu.Lock()
	defer t.mu.Unlock()

	s.mu.Lock()
	now := &loaded{dir: t.dir, open: s.documentsOf(t.dir), generation: s.generation}
	known, epoch := s.facts.known(t.dir), s.epoch()
	s.mu.Unlock()

	if t.last != nil && t.last.generation == now.generation {
		return t.last, nil
	}

	now.Result = t.cache.LoadContext(ctx, newOverlay(diskFS(t.dir), now.open, epoch), known)
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	t.last = now
	return now, nil
}

// epochTime bounds how long a directory counts as unchanged although the client tells of no change in it.
const epochTime = 5 * time.Second

// epoch names the state of the files on disk, for clients that tell of changes; empty for others. s.mu is
// held.
func (s *session) epoch() string {
	if !s.watched {
		return ""
	}
	return fmt.Sprintf("epoch %d %d", s.touched, time.Now().UnixNano()/int64(epochTime))
}

// documentsOf returns the open documents of a tree by path. s.mu is held.
func (s *session) documentsOf(dir string) map[string]*document {
	open := map[string]*document{}
	for _, doc := range s.docs {
		if doc.dir == dir {
			open[doc.path] = doc
		}
	}
	return open
}

// around returns the loaded tree of a document, nil if it is in none.
func (s *session) around(ctx context.Context, doc *document) (*loaded, error) {
	if doc == nil || doc.dir == "" {
		return nil, nil
	}

	s.mu.Lock()
	t := s.trees[doc.dir]
	s.mu.Unlock()

	if t == nil {
		return nil, nil
	}
	return s.load(ctx, t)
}

// diagnose tells the client of the problems of all trees, again after each change, until ctx ends.
func (s *session) diagnose(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.dirty:
		}

		_, _ = protected(func() (any, error) { s.search(); return nil, nil })

		for _, t := range s.unused() {
			s.clear(ctx, t.published, nil)
		}
		for _, t := range s.all() {
			_, _ = protected(func() (any, error) {
				now, err := s.load(ctx, t)
				if err == nil {
					s.publish(ctx, t, now)
				}
				return nil, err
			})
		}
	}
}

// publish tells the client of the problems of a tree: of each file whose problems are others than before, and
// of each open document that has changed.
func (s *session) publish(ctx context.Context, t *tree, now *loaded) {
	byPath := map[string][]Diagnostic{}
	texts := map[string]*text{}
	for _, p := range now.Problems {
		if _, known := texts[p.Path]; !known {
			texts[p.Path] = now.text(p.Path)
		}
		byPath[p.Path] = append(byPath[p.Path], diagnostic(texts[p.Path], p))
	}

	for path := range now.open {
		if _, bad := byPath[path]; !bad {
			byPath[path] = []Diagnostic{}
		}
	}

	next := map[string]string{}
	for path, found := range byPath {
		told := publishParams{URI: now.uri(path), Diagnostics: found}
		if doc := now.open[path]; doc != nil {
			told.Version = &doc.version
		}

		content, err := json.Marshal(told)
		if err != nil {
			continue
		}

		next[told.URI] = string(content)
		if t.published[told.URI] != string(content) {
			_ = s.conn.Notify(ctx, "textDocument/publishDiagnostics", json.RawMessage(content))
		}
	}

	s.clear(ctx, t.published, next)
	t.published = next
}

// clear tells the client that files have no problems any more, all that are in old and not in still.
func (s *session) clear(ctx context.Context, old, still map[string]string) {
	for uri := range old {
		if _, bad := still[uri]; !bad {
			gone := publishParams{URI: uri, Diagnostics: []Diagnostic{}}
			_ = s.conn.Notify(ctx, "textDocument/publishDiagnostics", gone)
		}
	}
}

// all returns the trees of the session, in the order of their paths.
func (s *session) all() []*tree {
	s.mu.Lock()
	defer s.mu.Unlock()

	trees := make([]*tree, 0, len(s.trees))
	for _, t := range s.trees {
		trees = append(trees, t)
	}
	slices.SortFunc(trees, func(a, b *tree) int { return strings.Compare(a.dir, b.dir) })
	return trees
}

// unused takes the trees out of the session that are in no folder and have no open document.
func (s *session) unused() (out []*tree) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for dir, t := range s.trees {
		inFolder := slices.ContainsFunc(s.folders, func(folder string) bool { return under(folder, dir) })
		if !inFolder && len(s.documentsOf(dir)) == 0 {
			delete(s.trees, dir)
			out = append(out, t)
		}
	}

	return out
}

// diagnostic is a problem of a file with this text, which is nil for a directory.
func diagnostic(t *text, p schema.Problem) Diagnostic {
	severities := map[schema.Severity]int{
		schema.SeverityError: 1, schema.SeverityWarning: 2, schema.SeverityInfo: 3,
	}

	d := Diagnostic{Severity: severities[p.Severity], Code: p.Code, Source: "millwright", Message: p.Message}
	if p.Hint != "" {
		d.Message += "\n" + p.Hint
	}
	if t != nil {
		d.Range = t.span(t.place(p.Line, p.Column), t.place(p.EndLine, p.EndColumn))
	}

	return d
}
