package schema

import (
	"bytes"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Outline is the structure of a definition file: where its YAML is, and what stands where in it. It judges
// nothing. Editors show and complete by it. Offsets count bytes of the file.
type Outline struct {
	Document   string // the name of its JSON Schema: automation, webhook and so on
	Name       string // of the resource
	Markdown   bool   // the YAML is front matter
	Closed     bool   // the front matter has its closing line
	Start, End int    // of the YAML
	Root       *Node  // nil where the YAML cannot be read, or holds nothing
}

// Node is a value of an outline.
type Node struct {
	Key              string // "" for items of lists, and for the root
	KeyStart, KeyEnd int
	Start, End       int
	Kind             NodeKind
	Value            string // of a scalar
	Quote            byte   // the quotes around a scalar, or 0
	Items            []*Node
}

// NodeKind is the kind of a node.
type NodeKind uint8

// The kinds of nodes.
const (
	NodeScalar NodeKind = iota
	NodeMapping
	NodeList
)

// At returns the value of a key of a mapping, or nil. It works on a nil node.
func (n *Node) At(key string) *Node {
	if n == nil || n.Kind != NodeMapping {
		return nil
	}
	for _, item := range n.Items {
		if item.Key == key {
			return item
		}
	}
	return nil
}

// ReadOutline reads the structure of the file at path, relative to the root of its tree. It reports false for
// a path that no definition is read from, and for a text that is too large or not UTF-8.
func ReadOutline(path string, src []byte) (Outline, bool) {
	e, ok := entryAt(path)
	if !ok || e.kind == kindSecret || len(src) > MaxFileBytes || !utf8.Valid(src) {
		return Outline{}, false
	}

	d := &document{path: path, src: src, limit: 1}
	out := Outline{Document: documentOf(e.kind), Name: e.name, Markdown: mainFile(e.kind) != ""}
	switch {
	case !out.Markdown:
		d.wholeText()
	case d.splitFrontMatter():
		out.Closed = true
	default:
		d.openFrontMatter()
	}

	out.Start, out.End = d.at, d.at+len(d.text)
	d.parse()
	if d.root != nil {
		out.Root = d.outline(d.root, 0)
	}

	return out, true
}

// openFrontMatter takes what follows the first line for YAML, of a front matter that is not closed yet.
func (d *document) openFrontMatter() {
	text := bytes.TrimPrefix(d.src, byteOrderMark)
	first, next := lineAt(text, 0)
	if isFence(first) {
		d.text = text[next:]
	}
	d.at, d.base = len(d.src)-len(text)+next, 1
}

func (d *document) outline(n *yaml.Node, depth int) *Node {
	start, end := d.extent(n)
	out := &Node{Start: start, End: end}
	if depth >= maxYAMLDepth {
		return out
	}

	switch n.Kind {
	case yaml.MappingNode:
		out.Kind = NodeMapping
		for i := 0; i+1 < len(n.Content); i += 2 {
			item := d.outline(n.Content[i+1], depth+1)
			item.Key = n.Content[i].Value
			item.KeyStart, item.KeyEnd = d.extent(n.Content[i])
			out.Items = append(out.Items, item)
		}

	case yaml.SequenceNode:
		out.Kind = NodeList
		for _, inner := range n.Content {
			out.Items = append(out.Items, d.outline(inner, depth+1))
		}

	case yaml.ScalarNode:
		out.Value = n.Value
		switch {
		case n.Style&yaml.DoubleQuotedStyle != 0:
			out.Quote = '"'
		case n.Style&yaml.SingleQuotedStyle != 0:
			out.Quote = '\''
		}
	}

	return out
}

// entryAt returns what a path of a tree stands for, if a definition is read from it.
func entryAt(path string) (entry, bool) {
	fsys, err := FilesFS([]File{{Path: path}})
	if err != nil {
		return entry{}, false
	}

	t, err := walk(fsys, nil)
	if err != nil || len(t.entries) != 1 {
		return entry{}, false
	}

	return t.entries[0], true
}

// documentOf returns the name of the JSON Schema of a kind of file.
func documentOf(kind fileKind) string {
	switch kind {
	case kindFactory:
		return "factory"
	case kindWebhook:
		return "webhook"
	case kindAutomation:
		return "automation"
	case kindAgent:
		return "agent"
	case kindRunner:
		return "runner"
	case kindEnvironment:
		return "environment"
	case kindNotification:
		return "notification"
	case kindSecret:
		return ""
	}
	return "skill"
}
