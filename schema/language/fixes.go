package language

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"millwright/schema"
)

// The kinds of code actions.
const (
	kindQuickFix = "quickfix"
	kindFixAll   = "source.fixAll"
)

// codeAction offers the repairs of the problems inside a range, whatever diagnostics the client has of it.
func (s *session) codeAction(ctx context.Context, doc *document, params json.RawMessage) (any, error) {
	var p codeActionParams
	if err := decode(params, &p); err != nil {
		return nil, err
	}

	actions := []CodeAction{}
	now, err := s.around(ctx, doc)
	if err != nil || now == nil || now.open[doc.path] == nil {
		return actions, err
	}

	doc = now.open[doc.path]
	start, end := doc.offset(p.Range.Start), doc.offset(p.Range.End)
	fixable := slices.DeleteFunc(slices.Clone(now.Problems), func(p schema.Problem) bool {
		return p.Path != doc.path || p.Fix == nil
	})

	if wanted(p.Context.Only, kindQuickFix) {
		for _, problem := range fixable {
			at := doc.place(problem.Line, problem.Column)
			to := doc.place(problem.EndLine, problem.EndColumn)
			if at > end || to < start {
				continue
			}

			if _, mended := schema.Mend(doc.path, doc.src, []schema.Problem{problem}); len(mended) == 0 {
				continue
			}

			actions = append(actions, CodeAction{
				Title:       fixTitle(s.facts, now, doc, problem),
				Kind:        kindQuickFix,
				Diagnostics: []Diagnostic{diagnostic(doc.text, problem)},
				IsPreferred: true,
				Edit:        s.edit(now, map[string][]schema.Fix{doc.path: {*problem.Fix}}),
			})
		}
	}

	if wanted(p.Context.Only, kindFixAll) {
		if _, mended := schema.Mend(doc.path, doc.src, fixable); len(mended) > 0 {
			fixes := make([]schema.Fix, len(mended))
			for i, problem := range mended {
				fixes[i] = *problem.Fix
			}

			actions = append(actions, CodeAction{
				Title: "Repair all problems of this file that have one safe repair",
				Kind:  kindFixAll,
				Edit:  s.edit(now, map[string][]schema.Fix{doc.path: fixes}),
			})
		}
	}

	return actions, nil
}

// wanted reports whether a client that wants only these kinds wants this one.
func wanted(only []string, kind string) bool {
	return len(only) == 0 || slices.ContainsFunc(only, func(want string) bool {
		return kind == want || strings.HasPrefix(kind, want+".")
	})
}

// fixTitle names a repair.
func fixTitle(f *facts, now *loaded, doc *document, p schema.Problem) string {
	uid := strings.Trim(p.Fix.Text, `"'`)
	if schema.ParseUID(uid) {
		if name := f.webhookName(now.dir, uid); name != "" {
			return "Use the UID of " + clipped(name)
		}
	}

	old := string(doc.src[p.Fix.Start:p.Fix.End])
	switch {
	case p.Fix.Text == "":
		return fmt.Sprintf("Delete %s", clipped(old))
	case old == "":
		return fmt.Sprintf("Add %s", clipped(p.Fix.Text))
	}

	return fmt.Sprintf("Replace %s by %s", clipped(old), clipped(p.Fix.Text))
}

// clipped is a text that fits into a menu.
func clipped(s string) string {
	const most = 60
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// edit makes fixes of files of a tree an edit of the client's workspace.
func (s *session) edit(now *loaded, fixes map[string][]schema.Fix) *WorkspaceEdit {
	s.mu.Lock()
	versioned := s.client.Capabilities.Workspace.WorkspaceEdit.DocumentChanges
	s.mu.Unlock()

	out := &WorkspaceEdit{}
	if !versioned {
		out.Changes = map[string][]TextEdit{}
	}

	paths := make([]string, 0, len(fixes))
	for path := range fixes {
		paths = append(paths, path)
	}

	slices.Sort(paths)
	for _, path := range paths {
		t := now.text(path)
		if t == nil {
			continue
		}

		edits := make([]TextEdit, len(fixes[path]))
		for i, f := range fixes[path] {
			edits[i] = TextEdit{Range: t.span(f.Start, f.End), NewText: f.Text}
		}
		if !versioned {
			out.Changes[now.uri(path)] = edits
			continue
		}

		change := TextDocumentEdit{Edits: edits}
		change.TextDocument.URI = now.uri(path)
		if doc := now.open[path]; doc != nil {
			change.TextDocument.Version = &doc.version
		}
		out.DocumentChanges = append(out.DocumentChanges, change)
	}

	return out
}
