package language

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"millwright/schema"
)

// named returns the open document that parameters name, or nil.
func (s *session) named(params json.RawMessage) *document {
	var p textDocument
	if json.Unmarshal(params, &p) != nil {
		return nil
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	return s.docs[p.TextDocument.URI]
}

func (s *session) didOpen(params json.RawMessage) error {
	var p didOpenParams
	if err := decode(params, &p); err != nil {
		return err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.put(p.TextDocument.URI, p.TextDocument.Version, []byte(p.TextDocument.Text))
	return nil
}

func (s *session) didChange(params json.RawMessage) error {
	var p didChangeParams
	if err := decode(params, &p); err != nil {
		return err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	doc := s.docs[p.TextDocument.URI]
	if doc == nil {
		return nil
	}

	src := doc.src
	for i, c := range p.ContentChanges {
		t := doc.text
		if i > 0 {
			t = newText(src)
		}
		if src = t.change(c); len(src) > maxMessage {
			s.drop(p.TextDocument.URI)
			return nil
		}
	}

	s.put(p.TextDocument.URI, p.TextDocument.Version, src)
	return nil
}

func (s *session) didClose(params json.RawMessage) error {
	var p textDocument
	if err := decode(params, &p); err != nil {
		return err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.drop(p.TextDocument.URI)
	return nil
}

// put takes the text of a document. Beyond the bounds of a session it takes none: then the file on disk
// counts. s.mu is held.
func (s *session) put(uri string, version int32, src []byte) {
	s.drop(uri)
	name, ok := pathOf(uri)
	if !ok || len(s.docs) >= maxDocuments || s.bytes+len(src) > maxDocumentBytes {
		return
	}

	s.serial++
	doc := &document{uri: uri, version: version, serial: s.serial, text: newText(src)}
	if dir, file, ok := s.treeOf(name); ok {
		doc.dir, doc.path = dir, file
	}

	s.docs[uri] = doc
	s.bytes += len(src)
	s.changed()
}

// drop forgets a document. s.mu is held.
func (s *session) drop(uri string) {
	if doc := s.docs[uri]; doc != nil {
		delete(s.docs, uri)
		s.bytes -= len(doc.src)
		s.changed()
	}
}

// changed has the trees checked again. s.mu is held.
func (s *session) changed() {
	s.generation++
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// touch is changed for what changed on disk. The server of the program is asked again, too.
func (s *session) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.looked = false
	s.touched++
	s.changed()
	s.askAgain()
}

// treeOf returns the tree that a file belongs to, and its path there. Directories of other software have
// names like skills/ too: files in them alone make no tree. s.mu is held.
func (s *session) treeOf(name string) (dir, file string, ok bool) {
	for known := range s.trees {
		if rel, err := filepath.Rel(known, name); err == nil && filepath.IsLocal(rel) && len(known) > len(dir) {
			dir, file, ok = known, filepath.ToSlash(rel), true
		}
	}

	root, rel, found := schema.RootOf(name)
	if !found || ok && len(root) <= len(dir) {
		return dir, file, ok
	}

	first, _, _ := strings.Cut(rel, "/")
	others := first == "skills" || first == "environments" || first == "notifications" || first == "secrets"
	if !others || schema.LooksLikeRoot(diskFS(root)) {
		s.tree(root)
		return root, rel, true
	}

	return dir, file, ok
}

// begun notes the folders of the client. s.mu is held.
func (s *session) begun() {
	uris := []string{}
	for _, f := range s.client.WorkspaceFolders {
		uris = append(uris, f.URI)
	}
	if len(uris) == 0 && s.client.RootURI != nil {
		uris = append(uris, *s.client.RootURI)
	}

	for _, uri := range uris {
		if name, ok := pathOf(uri); ok && len(s.folders) < maxFolders {
			s.folders = append(s.folders, name)
		}
	}

	s.changed()
	s.askAgain()
}

func (s *session) didChangeFolders(params json.RawMessage) error {
	var p didChangeFoldersParams
	if err := decode(params, &p); err != nil {
		return err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	for _, f := range p.Event.Removed {
		if name, ok := pathOf(f.URI); ok {
			s.folders = slices.DeleteFunc(s.folders, func(other string) bool { return other == name })
		}
	}
	for _, f := range p.Event.Added {
		if name, ok := pathOf(f.URI); ok && len(s.folders) < maxFolders {
			s.folders = append(s.folders, name)
		}
	}

	s.looked = false
	s.changed()
	return nil
}

// Bounds of what is watched.
const (
	maxFolders = 100
)

// watchFiles asks the client to tell of changes on disk.
func (s *session) watchFiles() {
	s.mu.Lock()
	can := s.client.Capabilities.Workspace.DidChangeWatchedFiles.DynamicRegistration
	s.mu.Unlock()

	if !can {
		return
	}

	var watchers []map[string]string
	for _, pattern := range []string{
		"**/factory.yaml", "**/{webhooks,runners,environments,notifications,secrets}/**",
		"**/{automations,agents,skills}/**",
	} {
		watchers = append(watchers, map[string]string{"globPattern": pattern})
	}

	s.beside(func() {
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		defer cancel()

		err := s.conn.Call(ctx, "client/registerCapability", map[string]any{"registrations": []any{map[string]any{
			"id": "files", "method": "workspace/didChangeWatchedFiles",
			"registerOptions": map[string]any{"watchers": watchers},
		}}}, nil)

		s.mu.Lock()
		defer s.mu.Unlock()

		s.watched = err == nil
	})
}

// answerTime bounds the time that a client has to answer.
const answerTime = 10 * time.Second
