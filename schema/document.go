package schema

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"millwright/schema/provider"
)

// meantKey is a key of a mapping that stands there misspelt.
type meantKey struct {
	in  *yaml.Node
	key string
}

// document is one file on its way from bytes to a resource: the text of its
// YAML, where that text stands in the file, and what was found wrong with it.
type document struct {
	path string
	src  []byte // the file as it is on disk
	text []byte // the YAML in it: all but a byte-order mark, or the front matter
	body []byte // what follows the front matter
	at   int    // byte offset of text in src
	base int    // number of lines of src before text

	root  *yaml.Node // the mapping at the root, nil if there is none
	data  map[string]any
	bad   map[*yaml.Node]bool // values that a problem was reported for
	lines []int               // byte offset of each line of src
	close int                 // byte offset of the closing fence, of front matter

	meant    map[meantKey]bool // keys that an unknown one was probably meant to be
	bang     bool              // there is a "!" in the text, which may be a tag
	loose    bool              // unknown keys are warnings
	parseErr error
	facts    []fact
	crowded  bool // more facts than are kept
	problems []Problem
	limit    int // how many problems are kept; 0 means maxProblems
	dropped  int // how many were not
	worst    Severity
	cursor   struct{ line, col, offset int } // the place last asked for
}

// line is where what the file says begins: the line of the first key, or the first line.
func (d *document) line() int {
	if d.root == nil || len(d.root.Content) == 0 {
		return 1
	}
	return d.root.Content[0].Line + d.base
}

// maxProblems bounds the problems kept of one file. Beyond it they are counted.
const maxProblems = 100

// full says whether no more problems are kept: their places need not be found.
func (d *document) full() bool {
	if d.limit > 0 {
		return len(d.problems) >= d.limit
	}
	return len(d.problems) >= maxProblems
}

// settle adds the problem that stands for those that were dropped.
func (d *document) settle() {
	if d.dropped == 0 {
		return
	}

	at := fileSpan()
	for _, p := range d.problems {
		if p.Line > at.line || p.Line == at.line && p.Column >= at.col {
			at = span{p.Line, p.Column, p.EndLine, p.EndColumn}
		}
	}

	more := newProblem(d.path, at, ruleMoreProblems,
		fmt.Sprintf("%d more problems in this file are not shown", d.dropped),
		"fix the first ones and check again")
	d.problems = append(d.problems, more.as(d.worst))
	d.dropped = 0
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// lineStarts returns the byte offset at which each line begins.
func lineStarts(src []byte) []int {
	starts := []int{0}
	if bytes.HasPrefix(src, byteOrderMark) {
		starts[0] = len(byteOrderMark)
	}

	for i := 0; ; {
		n := bytes.IndexByte(src[i:], '\n')
		if n < 0 {
			return starts
		}

		i += n + 1
		starts = append(starts, i)
	}
}

func (d *document) lineStarts() []int {
	if d.lines == nil {
		d.lines = lineStarts(d.src)
	}
	return d.lines
}

// position turns a byte offset of the file into a line and a column, both
// 1-based, the column in code points.
func (d *document) position(offset int) (line, col int) {
	starts := d.lineStarts()
	lo, hi := 0, len(starts)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; starts[mid] <= offset {
			lo = mid
		} else {
			hi = mid
		}
	}

	if offset < starts[lo] {
		return lo + 1, 1
	}

	return lo + 1, utf8.RuneCount(d.src[starts[lo]:offset]) + 1
}

// offset turns a line and column of the YAML text, as the parser counts them,
// into a byte offset of the file.
func (d *document) offset(line, col int) int {
	starts := d.lineStarts()
	line += d.base
	if line < 1 {
		return d.at
	}
	if line > len(starts) {
		return len(d.src)
	}

	i := starts[line-1]

	// Values come mostly in order: on a long line, go on from the last one.
	at := col
	if c := &d.cursor; c.line == line && c.col <= col {
		i, col = c.offset, col-c.col+1
	}

	for ; col > 1 && i < len(d.src) && d.src[i] != '\n'; col-- {
		_, n := utf8.DecodeRune(d.src[i:])
		i += n
	}

	if col == 1 {
		d.cursor.line, d.cursor.col, d.cursor.offset = line, at, i
	}

	return i
}

// extent returns the byte offsets of a value in the file, the end exclusive.
func (d *document) extent(n *yaml.Node) (start, end int) {
	start = d.offset(n.Line, n.Column)
	return start, d.extentEnd(n, start)
}

func (d *document) extentEnd(n *yaml.Node, start int) int {
	limit := d.at + len(d.text)
	start = min(start, limit)
	rest := d.src[start:limit]
	if n.Anchor != "" || n.Kind == yaml.AliasNode || n.Style&yaml.TaggedStyle != 0 {
		return start + wordLen(rest)
	}

	switch n.Kind {
	case yaml.ScalarNode:
		return start + scalarLen(n, rest)
	case yaml.MappingNode, yaml.SequenceNode:
		end := start
		if len(n.Content) > 0 {
			last := n.Content[len(n.Content)-1]
			if last.Kind == yaml.ScalarNode && last.Value == "" && last.Style == 0 && len(n.Content) > 1 &&
				n.Kind == yaml.MappingNode {
				last = n.Content[len(n.Content)-2] // an empty value has no place of its own
			}

			_, end = d.extent(last)
		}

		if n.Style&yaml.FlowStyle != 0 {
			end = max(end, start+min(1, len(rest)))
			for i := end; i < limit; i++ {
				switch d.src[i] {
				case ']', '}':
					return i + 1
				case '#':
					if nl := bytes.IndexByte(d.src[i:limit], '\n'); nl >= 0 {
						i += nl
						continue
					}
					return end
				}
			}
		}

		return max(end, start)
	}

	return start
}

// wordLen is the length of the text up to white space or a flow indicator.
func wordLen(text []byte) int {
	if n := bytes.IndexAny(text, " \t\r\n,]}"); n >= 0 {
		return n
	}
	return len(text)
}

// lineLen is the length of the rest of the line without white space at its end.
func lineLen(text []byte) int {
	if n := bytes.IndexByte(text, '\n'); n >= 0 {
		text = text[:n]
	}
	return len(bytes.TrimRight(text, " \t\r"))
}

func scalarLen(n *yaml.Node, text []byte) int {
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}

	case n.Style&yaml.SingleQuotedStyle != 0:
		for i := 1; i < len(text); i++ {
			if text[i] != '\'' {
				continue
			}
			if i+1 < len(text) && text[i+1] == '\'' {
				i++
				continue
			}

			return i + 1
		}

	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return lineLen(text)
	case strings.HasPrefix(string(text[:min(len(text), len(n.Value))]), n.Value):
		return len(n.Value)
	}

	return lineLen(text)
}

// spanOf returns the place of a value; that of an empty value is its key's end.
func (d *document) spanOf(n *yaml.Node) span {
	if d.full() {
		return span{}
	}
	start, end := d.extent(n)
	return d.spanAt(start, end)
}

func (d *document) spanAt(start, end int) span {
	line, col := d.position(start)
	endLine, endCol := d.position(end)
	return span{line, col, endLine, endCol}
}

// start is the place where a file as a whole is marked.
func fileSpan() span { return span{1, 1, 1, 1} }

// report adds a problem with the severity of its rule.
func (d *document) report(s span, rule RuleID, message, hint string) *Problem {
	return d.add(newProblem(d.path, s, rule, message, hint))
}

func (d *document) add(p Problem) *Problem {
	if d.full() {
		d.drop(1, p.Severity)
		return &p
	}

	d.problems = append(d.problems, p)
	return &d.problems[len(d.problems)-1]
}

// drop counts problems that are not kept.
func (d *document) drop(n int, severity Severity) {
	d.dropped += n
	if severity == SeverityError || d.worst == "" || d.worst == SeverityInfo {
		d.worst = severity
	}
}

// errorAt reports a problem of a value, once: later problems of a value that was
// already refused would only repeat the first.
func (d *document) errorAt(n *yaml.Node, rule RuleID, message, hint string) *Problem {
	if d.bad[n] {
		return nil
	}
	d.spoil(n)
	return d.report(d.spanOf(n), rule, message, hint)
}

func (d *document) spoil(n *yaml.Node) {
	if d.bad == nil {
		d.bad = map[*yaml.Node]bool{}
	}
	d.bad[n] = true
}

func newProblem(path string, s span, rule RuleID, message, hint string) Problem {
	return Problem{
		Path: strings.ToValidUTF8(path, "\uFFFD"),
		Line: s.line, Column: s.col, EndLine: s.endLine, EndColumn: s.endCol,
		Severity: rule.Rule().Severity, Code: rule.Code(), Message: message, Hint: hint,
	}
}

// as is the problem with another severity than that of its rule.
func (p Problem) as(s Severity) Problem {
	p.Severity = s
	return p
}

// FileProblem returns a problem of a whole file or directory, with the severity of its rule.
func FileProblem(path string, rule RuleID, message, hint string) Problem {
	return newProblem(path, fileSpan(), rule, message, hint)
}

// find returns the key and value nodes of a key of a mapping, or nils.
func find(m *yaml.Node, key string) (k, v *yaml.Node) {
	if m == nil || m.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if c := m.Content[i]; c.Kind == yaml.ScalarNode && c.Value == key {
			return c, m.Content[i+1]
		}
	}
	return nil, nil
}

// value returns the value node of a key of the root mapping, or nil.
func (d *document) value(keys ...string) *yaml.Node {
	n := d.root
	for _, key := range keys {
		_, n = find(n, key)
	}
	return n
}

// notFired reports a trigger that is kept and never fires. A sender whose events are those of another provider
// is named with it.
func (d *document) notFired(n *yaml.Node, sender, message string) {
	hint := "the trigger is kept; docs/triggers.md lists the events that fire here"
	if name := provider.OfScheme(sender); name != "" && name != sender {
		hint = "write provider: " + name + ", whose events webhooks with signatureScheme: " + sender + " receive"
	}
	d.report(d.spanOf(n), ruleTriggerNotFired, message, hint)
}

// onOneLine reports whether the bytes from start to end are all of a scalar: they are its text, or its text
// in quotes. A block scalar or a text that goes on in the next line is more than its first line.
func (d *document) onOneLine(n *yaml.Node, start, end int) bool {
	if start >= end || bytes.IndexByte(d.src[start:end], '\n') >= 0 {
		return false
	}
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		return end-start >= 2 && d.src[start] == d.src[end-1] && (d.src[start] == '"' || d.src[start] == '\'')
	}
	return n.Style == 0 && string(d.src[start:end]) == n.Value
}
