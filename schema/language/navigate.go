package language

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"millwright/schema"
)

// target is a resource or a secret that a place of a tree means: the file that defines it, or a value that
// names it.
type target struct {
	kind, name string
	reference  *schema.Reference // the value at the place; nil where the place is the file itself
}

// targetAt returns what a place of a document means. A place that names nothing means the document's own
// resource.
func (c nearby) targetAt(doc *document, offset int) (target, bool) {
	for _, r := range c.References() {
		if r.Path == doc.path && r.Start <= offset && offset <= r.End {
			return target{r.Kind, c.webhookName(r), &r}, true
		}
	}
	for _, r := range c.Resources() {
		if r.Path == doc.path && r.Agent == "" {
			return target{kind: r.Kind, name: r.Name}, true
		}
	}
	return target{}, false
}

// nearby is a tree with what a server knows of it.
type nearby struct {
	*loaded
	facts      *facts
	deliveries func(uid string, filter *schema.Node) string // of a webhook, for people
}

// webhookName returns the name of what a reference names. A UID of a webhook becomes the webhook's name, if
// it is known.
func (c nearby) webhookName(r schema.Reference) string {
	if r.Kind != "webhook" {
		return r.Name
	}
	if name := c.facts.webhookName(c.dir, r.Name); name != "" {
		return name
	}
	if name, ok := c.WebhookFile(r.Name); ok {
		return name
	}
	return r.Name
}

// file returns the path of the file that defines a target, "" if the tree has none.
func (c nearby) file(t target) string {
	for _, r := range c.Resources() {
		if r.Kind == t.kind && r.Name == t.name && r.Agent == "" {
			return r.Path
		}
	}
	return ""
}

// users returns the places that name a target.
func (c nearby) users(t target) (all []schema.Reference) {
	for _, r := range c.References() {
		if r.Kind == t.kind && c.webhookName(r) == t.name {
			all = append(all, r)
		}
	}
	return all
}

// at loads the tree of a document, and returns the offset of a place in it.
func (s *session) at(
	ctx context.Context,
	doc *document,
	params json.RawMessage,
) (nearby, *document, int, error) {
	var p textDocument
	if err := decode(params, &p); err != nil {
		return nearby{}, nil, 0, err
	}

	now, err := s.around(ctx, doc)
	if err != nil || now == nil || now.open[doc.path] == nil {
		return nearby{}, nil, 0, err
	}

	doc = now.open[doc.path]
	return nearby{loaded: now, facts: s.facts}, doc, doc.offset(p.Position), nil
}

// definition leads from a name to the file that defines it.
func (s *session) definition(ctx context.Context, doc *document, params json.RawMessage) (any, error) {
	near, doc, offset, err := s.at(ctx, doc, params)
	if doc == nil {
		return nil, err
	}

	t, ok := near.targetAt(doc, offset)
	if !ok || t.reference == nil {
		return nil, nil
	}
	if file := near.file(t); file != "" {
		return Location{URI: near.uri(file)}, nil
	}
	return nil, nil
}

// references lists the places that name what a place means.
func (s *session) references(ctx context.Context, doc *document, params json.RawMessage) (any, error) {
	near, doc, offset, err := s.at(ctx, doc, params)
	all := []Location{}
	if doc == nil {
		return all, err
	}

	t, ok := near.targetAt(doc, offset)
	if !ok {
		return all, nil
	}

	for _, r := range near.users(t) {
		if text := near.text(r.Path); text != nil {
			all = append(all, Location{near.uri(r.Path), text.span(r.Start, r.End)})
		}
	}

	return all, nil
}

// renameTarget returns the agent or runner that a place means.
func (near nearby) renameTarget(doc *document, offset int) (target, bool) {
	t, ok := near.targetAt(doc, offset)
	ok = ok && (t.kind == "agent" || t.kind == "runner") && near.file(t) != ""
	return t, ok
}

// prepareRename returns what a rename at a place would rename.
func (s *session) prepareRename(ctx context.Context, doc *document, params json.RawMessage) (any, error) {
	near, doc, offset, err := s.at(ctx, doc, params)
	if doc == nil {
		return nil, err
	}

	t, ok := near.renameTarget(doc, offset)
	if !ok {
		return nil, nil
	}

	placed := Range{doc.position(offset), doc.position(offset)}
	if r := t.reference; r != nil {
		placed = doc.span(r.Start, r.End)
	}
	return map[string]any{"range": placed, "placeholder": t.name}, nil
}

// rename renames an agent or a runner: its file, and every place that names it.
func (s *session) rename(ctx context.Context, doc *document, params json.RawMessage) (any, error) {
	var p struct {
		NewName string `json:"newName"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}

	near, doc, offset, err := s.at(ctx, doc, params)
	if doc == nil {
		return nil, err
	}

	t, ok := near.renameTarget(doc, offset)
	switch {
	case !ok:
		return nil, failed("no agent and no runner is here")
	case !schema.ValidName(p.NewName):
		return nil, failed("a name consists of 1 to 64 of a-z A-Z 0-9 . _ - and does not begin with a dot")
	case p.NewName == t.name:
		return &WorkspaceEdit{}, nil
	case slices.ContainsFunc(near.Resources(), func(r schema.Resource) bool {
		return r.Kind == t.kind && r.Agent == "" && strings.EqualFold(r.Name, p.NewName) && r.Name != t.name
	}):
		return nil, failed("the tree has another " + t.kind + " of this name")
	case !s.canRenameFiles():
		return nil, failed("the editor cannot rename files: rename " + near.file(t) + " by hand")
	}

	fixes := map[string][]schema.Fix{}
	for _, r := range near.users(t) {
		text := yamlText(p.NewName)
		if r.Quote != 0 {
			text = string(r.Quote) + p.NewName + string(r.Quote)
		}
		fixes[r.Path] = append(fixes[r.Path], schema.Fix{Start: r.Start, End: r.End, Text: text})
	}

	edit := s.edit(near.loaded, fixes)
	from, to := near.file(t), p.NewName+".yaml"
	if t.kind == "agent" { // the directory, with what else is in it
		from, to = path.Dir(from), p.NewName
	}

	edit.DocumentChanges = append(edit.DocumentChanges, RenameFile{
		Kind: "rename", OldURI: near.uri(from), NewURI: near.uri(path.Join(path.Dir(from), to)),
	})
	return edit, nil
}

// canRenameFiles reports whether the client takes edits that rename files.
func (s *session) canRenameFiles() bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	can := s.client.Capabilities.Workspace.WorkspaceEdit
	return can.DocumentChanges && slices.Contains(can.ResourceOperations, "rename")
}
