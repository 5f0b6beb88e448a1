package language

import (
	"context"
	"encoding/json"
	"fmt"

	"millwright/schema"
)

// documentSymbol is a part of a document that an editor lists.
type documentSymbol struct {
	Name           string           `json:"name"`
	Detail         string           `json:"detail,omitempty"`
	Kind           int              `json:"kind"`
	Range          Range            `json:"range"`
	SelectionRange Range            `json:"selectionRange"`
	Children       []documentSymbol `json:"children,omitempty"`
}

// The kinds of symbols.
const (
	symbolText   = 15
	symbolList   = 18
	symbolObject = 19
	symbolEvent  = 24
)

// maxSymbols bounds the symbols of one document.
const maxSymbols = 5000

// outlineOf reads the structure of a document.
func outlineOf(doc *document) (schema.Outline, bool) {
	if doc == nil || doc.dir == "" {
		return schema.Outline{}, false
	}
	return schema.ReadOutline(doc.path, doc.src)
}

// symbols lists the keys of a document, and its prompt.
func (s *session) symbols(_ context.Context, doc *document, _ json.RawMessage) (any, error) {
	all := []documentSymbol{}
	outline, ok := outlineOf(doc)
	if !ok {
		return all, nil
	}

	left := maxSymbols
	if outline.Root != nil {
		all = append(all, symbolsIn(doc, outline.Root, &left)...)
	}
	if outline.Closed {
		fence := doc.position(outline.End)
		start := doc.offset(Position{Line: fence.Line + 1})
		if text := doc.span(start, len(doc.src)); text.Start != text.End {
			all = append(all, documentSymbol{
				Name: "prompt", Kind: symbolText, Range: text, SelectionRange: Range{text.Start, text.Start},
			})
		}
	}

	return all, nil
}

// symbolsIn lists what is in a mapping or list.
func symbolsIn(doc *document, of *schema.Node, left *int) (all []documentSymbol) {
	for i, n := range of.Items {
		if *left--; *left < 0 {
			return all
		}

		start := n.Start
		if n.Key != "" {
			start = n.KeyStart
		}

		symbol := documentSymbol{
			Name: n.Key, Kind: symbolText, Range: doc.span(start, max(n.End, n.KeyEnd)),
			SelectionRange: doc.span(start, max(start, n.KeyEnd)),
		}
		if n.Key == "" {
			symbol.Name = fmt.Sprintf("%d", i+1)
		}

		switch n.Kind {
		case schema.NodeScalar:
			symbol.Detail = clipped(n.Value)
		case schema.NodeList:
			symbol.Kind = symbolList
		case schema.NodeMapping:
			symbol.Kind = symbolObject
			if from, event := n.At("provider"), n.At("event"); from != nil && event != nil {
				symbol.Name, symbol.Kind = clipped(from.Value+"/"+event.Value), symbolEvent
			}
		}

		symbol.Children = symbolsIn(doc, n, left)
		if symbol.Name == "" {
			symbol.Name = `""`
		}
		all = append(all, symbol)
	}

	return all
}

// foldingRange is a part of a document that an editor can fold.
type foldingRange struct {
	StartLine uint32 `json:"startLine"`
	EndLine   uint32 `json:"endLine"`
	Kind      string `json:"kind,omitempty"`
}

// folding lists the front matter and the keys of several lines.
func (s *session) folding(_ context.Context, doc *document, _ json.RawMessage) (any, error) {
	all := []foldingRange{}
	outline, ok := outlineOf(doc)
	if !ok {
		return all, nil
	}

	if outline.Closed {
		all = append(all, foldingRange{EndLine: doc.position(outline.End).Line, Kind: "region"})
	}

	var add func(n *schema.Node)
	add = func(n *schema.Node) {
		for _, inner := range n.Items {
			start := inner.Start
			if inner.Key != "" {
				start = inner.KeyStart
			}

			at := doc.span(start, max(inner.End, inner.KeyEnd))
			if at.End.Line > at.Start.Line && len(all) < maxSymbols {
				all = append(all, foldingRange{StartLine: at.Start.Line, EndLine: at.End.Line})
			}
			add(inner)
		}
	}
	if outline.Root != nil {
		add(outline.Root)
	}

	return all, nil
}

// codeLens is a line of text that an editor shows above another.
type codeLens struct {
	Range   Range          `json:"range"`
	Command map[string]any `json:"command"`
}

// lenses counts above the triggers of an automation how often they would have fired.
func (s *session) lenses(_ context.Context, doc *document, _ json.RawMessage) (any, error) {
	all := []codeLens{}
	outline, ok := outlineOf(doc)
	if !ok || outline.Document != "automation" {
		return all, nil
	}

	said, _ := s.facts.of(doc.dir)
	fired, known := said.Fired[outline.Name]
	triggers := outline.Root.At("triggers")
	if !known || triggers == nil {
		return all, nil
	}

	return append(all, codeLens{
		Range:   doc.span(triggers.KeyStart, triggers.KeyEnd),
		Command: map[string]any{"title": fired.String(), "command": ""},
	}), nil
}

// String says how often the triggers would have fired.
func (f Fired) String() string {
	times := fmt.Sprintf("%d times", f.Count)
	if f.Count == 1 {
		times = "once"
	}

	text := fmt.Sprintf(
		"would have fired %s in the last %d days, of %d deliveries", times, f.Days, f.LookedAt)
	if !f.Complete {
		text += " looked at before the time was up"
	}
	return text
}
