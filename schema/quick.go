package schema

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Most definition files have few forms of YAML: keys and values in lines, lists of them, values in brackets
// on one line, plain and quoted text of ASCII. A quick reads those, with the nodes and places that the parser
// gives, comments left out, and gives up at anything else: the parser then reads the file.
type quick struct {
	text  string
	nodes []yaml.Node // room

	line   int // of the current line, from 1
	start  int // offsets of the line, of what it says, and of its end
	at     int
	end    int
	indent int // -1 after the last line
}

// The bounds of what a quick reads.
const (
	quickDepth = 16
	quickKey   = 100 // bytes
	quickInt   = 9   // digits
)

// quickDecode returns the root of a document, or false if the parser has to read it.
func quickDecode(text []byte) (root *yaml.Node, ok bool) {
	for _, c := range text {
		if c > '~' || c < ' ' && c != '\n' {
			return nil, false
		}
	}

	q := &quick{text: string(text), end: -1}
	if !q.advance() || q.indent != 0 {
		return nil, false
	}

	root, ok = q.block(0)
	return root, ok && q.indent < 0
}

// advance goes to the next line that says something.
func (q *quick) advance() bool {
	for q.end+1 < len(q.text) {
		q.line++
		q.start = q.end + 1
		q.end = len(q.text)
		if n := strings.IndexByte(q.text[q.start:], '\n'); n >= 0 {
			q.end = q.start + n
		}

		q.at = q.start
		for q.at < q.end && q.text[q.at] == ' ' {
			q.at++
		}

		switch {
		case q.start == q.end || q.at < q.end && q.text[q.at] == '#':
			continue
		case q.text[q.end-1] == ' ':
			return false
		}

		q.indent = q.at - q.start
		return true
	}

	q.indent = -1
	return true
}

// block reads the mapping or the list that begins at the current line.
func (q *quick) block(depth int) (*yaml.Node, bool) {
	if q.item() {
		return q.sequence(depth)
	}
	return q.mapping(depth)
}

// item reports whether the current line begins an item of a list.
func (q *quick) item() bool { return strings.HasPrefix(q.text[q.at:q.end], "- ") }

// sequence reads items as far as they have the indentation of the current line.
func (q *quick) sequence(depth int) (*yaml.Node, bool) {
	column := q.indent
	list := q.node(yaml.SequenceNode, "!!seq", "", q.at)
	for q.indent == column && q.item() {
		q.at += len("- ")

		var value *yaml.Node
		var ok bool
		if _, key := q.key(); key {
			q.indent += len("- ")
			value, ok = q.mapping(depth + 1)
		} else {
			value, ok = q.single(column)
		}
		if !ok {
			return nil, false
		}

		list.Content = append(list.Content, value)
	}

	return list, q.indent <= column
}

// mapping reads keys as far as they have the indentation of the current line.
func (q *quick) mapping(depth int) (*yaml.Node, bool) {
	if depth > quickDepth {
		return nil, false
	}

	column := q.indent
	m := q.node(yaml.MappingNode, "!!map", "", q.at)
	m.Content = make([]*yaml.Node, 0, 8)
	for q.indent == column {
		colon, ok := q.key()
		if !ok {
			return nil, false
		}

		key := q.plain(q.at, colon)
		value, ok := q.value(colon+1, column, depth)
		if !ok {
			return nil, false
		}

		m.Content = append(m.Content, key, value)
	}

	return m, q.indent < column
}

// key finds the colon behind the key at which the current line stands.
func (q *quick) key() (colon int, ok bool) {
	for i := q.at; i < min(q.end, q.at+quickKey); i++ {
		switch c := q.text[i]; {
		case letter(c), i > q.at && (digit(c) || c == '_' || c == '-' || c == '.'):
		case c == ':':
			return i, i > q.at && (i+1 == q.end || q.text[i+1] == ' ')
		default:
			return 0, false
		}
	}
	return 0, false
}

// value reads what stands behind the colon of a key: in its line, or in the next ones.
func (q *quick) value(after, column, depth int) (*yaml.Node, bool) {
	if after < q.end {
		for q.at = after; q.text[q.at] == ' '; {
			q.at++
		}
		return q.single(column)
	}

	if !q.advance() || q.indent < column || q.indent == column && !q.item() {
		return nil, false
	}
	if depth++; q.indent == column { // a list may stand right below its key
		return q.sequence(depth)
	}

	return q.block(depth)
}

// single reads a value that ends with the current line, and goes to the next one, which must not go on with it.
func (q *quick) single(column int) (*yaml.Node, bool) {
	var n *yaml.Node
	end, ok := q.end, true
	switch q.text[q.at] {
	case '[', '{', '"', '\'':
		n, end, ok = q.flow(q.at, 0)
	default:
		ok = first(q.text[q.at]) && q.wholeLine()
		n = q.plain(q.at, q.end)
	}

	ok = ok && n != nil && end == q.end && q.advance() && q.indent <= column
	return n, ok
}

// wholeLine reports whether the rest of the line is one plain text.
func (q *quick) wholeLine() bool {
	for i := q.at; i < q.end; i++ {
		switch c := q.text[i]; {
		case c == '#', c == ':' && (i+1 == q.end || q.text[i+1] == ' '):
			return false
		}
	}
	return true
}

// flow reads a value in brackets or between two others in them, and returns where it ends.
func (q *quick) flow(at, depth int) (n *yaml.Node, end int, ok bool) {
	if at >= q.end || depth > quickDepth {
		return nil, 0, false
	}

	switch c := q.text[at]; {
	case c == '[':
		return q.brackets(yaml.SequenceNode, "!!seq", at, depth)
	case c == '{':
		return q.brackets(yaml.MappingNode, "!!map", at, depth)
	case c == '"' || c == '\'':
		return q.quoted(at)
	case !first(c):
		return nil, 0, false
	}

	end = at
	for end < q.end && (first(q.text[end]) || strings.IndexByte(" _-.+=@*$", q.text[end]) >= 0) {
		end++
	}
	text := strings.TrimRight(q.text[at:end], " ")
	n = q.plain(at, at+len(text))
	return n, at + len(text), n != nil
}

// quoted reads a text in quotes that is written as it is.
func (q *quick) quoted(at int) (n *yaml.Node, end int, ok bool) {
	quote := q.text[at]
	size := strings.IndexByte(q.text[at+1:q.end], quote)
	if size < 0 {
		return nil, 0, false
	}

	text := q.text[at+1 : at+1+size]
	end = at + 1 + size + 1
	style := yaml.SingleQuotedStyle
	if quote == '"' {
		style = yaml.DoubleQuotedStyle
	}
	if strings.IndexByte(text, '\\') >= 0 || end < q.end && q.text[end] == quote {
		return nil, 0, false
	}

	n = q.node(yaml.ScalarNode, "!!str", text, at)
	n.Style = style
	return n, end, true
}

// brackets reads a list or a mapping in brackets.
func (q *quick) brackets(kind yaml.Kind, tag string, at, depth int) (n *yaml.Node, end int, ok bool) {
	n = q.node(kind, tag, "", at)
	n.Style = yaml.FlowStyle
	last := q.text[at] + 2 // "]" of "[", "}" of "{"
	if at = q.blanks(at + 1); at < q.end && q.text[at] == last {
		return n, at + 1, true
	}

	for {
		if kind == yaml.MappingNode {
			key, colon, found := q.flow(at, quickDepth)
			if !found || key.Kind != yaml.ScalarNode || key.Style != 0 || len(key.Value) > quickKey ||
				!strings.HasPrefix(q.text[colon:q.end], ": ") {
				return nil, 0, false
			}

			n.Content = append(n.Content, key)
			at = q.blanks(colon + 1)
		}

		value, after, found := q.flow(at, depth+1)
		if !found {
			return nil, 0, false
		}

		n.Content = append(n.Content, value)
		at = q.blanks(after)
		switch {
		case at >= q.end:
			return nil, 0, false
		case q.text[at] == last:
			return n, at + 1, true
		case q.text[at] != ',':
			return nil, 0, false
		}

		at = q.blanks(at + 1)
	}
}

// blanks returns the offset behind the blanks at an offset.
func (q *quick) blanks(at int) int {
	for at < q.end && q.text[at] == ' ' {
		at++
	}
	return at
}

// plain makes the node of a text without quotes, or nil when the text may be more than a name, a sentence or a
// small number.
func (q *quick) plain(at, end int) *yaml.Node {
	text, tag := q.text[at:end], "!!str"
	switch text {
	case "true", "True", "TRUE", "false", "False", "FALSE":
		tag = "!!bool"
	case "null", "Null", "NULL":
		tag = "!!null"
	}

	if digit(text[0]) {
		tag = "!!int"
		if len(text) > quickInt || text[0] == '0' && len(text) > 1 || strings.Trim(text, "0123456789") != "" {
			return nil
		}
	}

	return q.node(yaml.ScalarNode, tag, text, at)
}

// node makes a node of what stands at an offset of the current line.
func (q *quick) node(kind yaml.Kind, tag, value string, at int) *yaml.Node {
	if len(q.nodes) == cap(q.nodes) {
		q.nodes = make([]yaml.Node, 0, 16)
	}
	q.nodes = append(q.nodes, yaml.Node{
		Kind:   kind,
		Tag:    tag,
		Value:  value,
		Line:   q.line,
		Column: at - q.start + 1,
	})
	return &q.nodes[len(q.nodes)-1]
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// first reports whether a plain text may begin with a character.
func first(c byte) bool { return letter(c) || digit(c) || c == '/' }
