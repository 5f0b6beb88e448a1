package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A parsed file takes a hundred times the memory of its text when it holds little but values.
const (
	maxYAMLValues     = 20_000
	maxYAMLIndicators = 3 * maxYAMLValues // prose has some too
)

// parse reads the YAML text into nodes and data, and reports whatever would
// read differently from how it looks. When the text cannot be read at all, root
// stays nil. A value that was refused is nil in data and marked in bad.
func (d *document) parse() {
	if !d.checkText() || d.holdsTooMuch(indicators(d.text), maxYAMLIndicators) {
		return
	}

	root, ok := quickDecode(d.text)
	if !ok {
		if root, ok = d.decode(); !ok {
			return
		}
	}

	if d.holdsTooMuch(values(root), maxYAMLValues) {
		return
	}
	if root.Kind == yaml.ScalarNode && root.Value == "" && root.Style == 0 && root.Tag == "!!null" {
		d.data = map[string]any{}
		return
	}

	d.bang = bytes.IndexByte(d.text, '!') >= 0
	data := d.convert(root, 0)
	if root.Kind != yaml.MappingNode {
		d.errorAt(
			root,
			ruleTypeMismatch,
			"the file holds "+nodeArticle(root)+"; it must be a mapping of keys to values",
			d.rootHint(root),
		)
		return
	}

	d.root = root
	d.data, _ = data.(map[string]any)
}

// decode has the parser read the text. It reports what it finds, and returns false, when there is no value.
func (d *document) decode() (root *yaml.Node, ok bool) {
	first, second, err := decode(d.text)
	if err != nil {
		d.parseErr = err // placed later: see diagnose.go
		return nil, false
	}

	if second != nil {
		n := second
		start := d.offset(n.Line, n.Column)
		d.report(d.spanAt(start, start+min(3, len(d.src)-start)), ruleMultipleDocuments,
			"a second YAML document begins here; a file holds one",
			"move it to a file of its own, or delete the line with ---")
	}

	if first == nil || len(first.Content) == 0 {
		d.data = map[string]any{}
		return nil, false
	}

	return first.Content[0], true
}

// holdsTooMuch reports a file that holds more than most of something, values or what stands between them.
func (d *document) holdsTooMuch(n, most int) bool {
	if n <= most {
		return false
	}

	d.report(
		fileSpan(),
		ruleFileTooLarge,
		fmt.Sprintf("the file holds more than %d values", maxYAMLValues),
		"",
	)

	return true
}

// indicators counts what separates the values of a YAML text, before it is parsed.
func indicators(text []byte) (n int) {
	for _, c := range text {
		switch c {
		case ',', ':', '[', '{', '\n':
			n++
		}
	}
	return n
}

// values counts the values in n.
func values(n *yaml.Node) int {
	total := 1
	for _, inner := range n.Content {
		total += values(inner)
	}
	return total
}

// rootHint says how a file became something other than a mapping.
func (d *document) rootHint(root *yaml.Node) string {
	_, rest, colon := strings.Cut(root.Value, ":")
	_, _, equals := strings.Cut(root.Value, "=")
	switch blank := d.falseBlank(root.Line, math.MaxInt); {
	case root.Kind == yaml.SequenceNode:
		return `a file holds one resource: write its keys without "- "`
	case blank != "":
		return blank
	case colon && rest != "" && !strings.HasPrefix(rest, "//"):
		return "put a space after the colon"
	case equals:
		return `write "key: value", with a colon`
	}

	return "begin with a line like: key: value"
}

// checkText refuses characters that readers of YAML and editors treat
// differently, before the parser sees them.
func (d *document) checkText() bool {
	if d.directive() {
		return false
	}

	for i := 0; i < len(d.text); {
		c := d.text[i]
		if c >= ' ' && c < utf8.RuneSelf && c != 0x7f || c == '\n' || c == '\t' {
			i++
			continue
		}
		if c == '\r' && i+1 < len(d.text) && d.text[i+1] == '\n' {
			i++
			continue
		}

		r, n := utf8.DecodeRune(d.text[i:])
		if r >= 0xa0 && r != 0x2028 && r != 0x2029 && r != 0xfeff && r != 0xfffe && r != 0xffff {
			i += n
			continue
		}

		what := "control character"
		switch r {
		case '\r':
			what = "carriage return without a line feed"
		case 0x85, 0x2028, 0x2029:
			what = "line separator that is not a line feed"
		case 0xfeff:
			what = "byte-order mark inside the text"
		}

		if wide := wideEncoding(d.src); r == 0 && wide != "" {
			d.report(fileSpan(), ruleNotUTF8, "the file is "+wide, "save it as UTF-8")
			return false
		}
		if r == '\r' && bytes.IndexByte(d.src, '\n') < 0 {
			d.report(
				fileSpan(),
				ruleInvalidYAML,
				"the lines of the file end with carriage returns",
				"save it with LF line ends",
			)
			return false
		}

		d.report(d.spanAt(d.at+i, d.at+i+n), ruleInvalidYAML,
			fmt.Sprintf("%s U+%04X is not allowed here", what, r),
			fmt.Sprintf(`delete it, or write it as "\u%04x" in a double-quoted string`, r))
		return false
	}

	return true
}

// directive refuses lines such as %YAML 1.1 before the document: they change how the rest is read.
func (d *document) directive() bool {
	for at := 0; at < len(d.text); {
		line, next := lineAt(d.text, at)
		trimmed := bytes.TrimSpace(line)
		if len(trimmed) > 0 && trimmed[0] == '%' && line[0] == '%' {
			d.report(d.spanAt(d.at+at, d.at+at+lineLen(line)), ruleInvalidYAML,
				"YAML directives are not supported", "delete the line that begins with %")
			return true
		}
		if len(trimmed) > 0 && trimmed[0] != '#' {
			return false
		}

		at = next
	}

	return false
}

// convert turns a node into the value it stands for: map[string]any, []any,
// string, json.Number, bool or nil.
func (d *document) convert(n *yaml.Node, depth int) any {
	if depth >= maxYAMLDepth && n.Kind != yaml.ScalarNode {
		d.errorAt(n, ruleInvalidYAML, fmt.Sprintf("values nest more than %d levels deep", maxYAMLDepth), "")
		return nil
	}
	if !d.checkProperties(n) {
		return nil
	}

	switch n.Kind {
	case yaml.MappingNode:
		return d.convertMapping(n, depth)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			list[i] = d.convert(c, depth+1)
		}

		return list

	case yaml.ScalarNode:
		return d.convertScalar(n)
	}

	return nil
}

// checkProperties refuses anchors, aliases and tags.
func (d *document) checkProperties(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		d.errorAt(
			n,
			ruleYAMLAnchor,
			fmt.Sprintf("the alias *%s stands for text written elsewhere", n.Value),
			"write the value out",
		)

	case n.Anchor != "":
		d.errorAt(
			n,
			ruleYAMLAnchor,
			fmt.Sprintf("the anchor &%s is not allowed", n.Anchor),
			"delete the anchor, and write the value out where it is used",
		)

	case n.Style&yaml.TaggedStyle == 0 && d.bareTag(n):
		d.errorAt(n, ruleYAMLTag, "the tag ! is not allowed", "delete the tag; put a string in quotes")
		return false

	case n.Style&yaml.TaggedStyle != 0:
		d.errorAt(
			n,
			ruleYAMLTag,
			fmt.Sprintf("the tag %s is not allowed", shortTag(n.Tag)),
			"delete the tag; put a string in quotes",
		)

	default:
		return true
	}

	return false
}

// bareTag reports whether a value has the tag "!", which the parser drops.
func (d *document) bareTag(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || !d.bang {
		return false
	}
	start := min(d.offset(n.Line, n.Column), len(d.src))
	return bytes.HasPrefix(d.src[start:], []byte("!"))
}

func shortTag(tag string) string {
	if t, ok := strings.CutPrefix(tag, "tag:yaml.org,2002:"); ok {
		return "!!" + t
	}
	return tag
}

func (d *document) convertMapping(n *yaml.Node, depth int) any {
	out := make(map[string]any, len(n.Content)/2)
	var lines map[string]int
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		ok := d.checkKey(key)
		if ok {
			if _, twice := out[key.Value]; twice {
				if lines == nil {
					lines = keyLines(n)
				}

				d.errorAt(
					key,
					ruleDuplicateKey,
					fmt.Sprintf("the key %s is already on line %d", quoted(key.Value), lines[key.Value]+d.base),
					"keep one of the two",
				)

				ok = false
			}
		}

		v := d.convert(val, depth+1)
		if ok {
			out[key.Value] = v
		}
	}

	return out
}

// keyLines gives the line of the first occurrence of each key.
func keyLines(n *yaml.Node) map[string]int {
	lines := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if _, seen := lines[n.Content[i].Value]; !seen {
			lines[n.Content[i].Value] = n.Content[i].Line
		}
	}
	return lines
}

func (d *document) checkKey(key *yaml.Node) bool {
	if key.Kind == yaml.ScalarNode && key.Value == "<<" &&
		key.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0 {
		d.errorAt(key, ruleYAMLAnchor, "the merge key << is not allowed", "write the keys out")
		return false
	}

	if !d.checkProperties(key) {
		return false
	}
	if key.Kind != yaml.ScalarNode {
		d.errorAt(key, ruleYAMLKey, "a key must be a plain name, not "+nodeArticle(key), "")
		return false
	}

	if key.Style == 0 {
		if k := classify(key.Value); k != scalarString {
			if key.Value == "" {
				d.errorAt(key, ruleYAMLKey, "a key is missing before the colon", "")
			} else {
				message := fmt.Sprintf("the key %s is %s, not a string", key.Value, k.article())
				d.errorAt(key, ruleYAMLKey, message, "put it in quotes: "+doubleQuoted(key.Value))
			}

			return false
		}
	}

	return true
}

// CheckYAML returns the problems of the YAML of a file outside of the
// definition, such as the server's settings, by the rules that the definition's
// own files have: nothing of what its keys mean.
func CheckYAML(path string, src []byte) []Problem {
	d := &document{path: path, src: src}
	if d.checkEncoding() {
		d.wholeText()
		d.parse()
		d.diagnose(diagnosisBudget)
	}
	d.settle()
	SortProblems(d.problems)
	return d.problems
}

// FilterText reads a payload filter that stands in a text of its own, as JSON
// or as a definition file would write it, and gives it as JSON, numbers as they
// are written, for CompileFilter. What a definition file would refuse gives nil
// and the problems, whose path is name.
func FilterText(name string, text []byte) (json.RawMessage, []Problem) {
	if ValidJSON(text) == nil {
		return text, nil
	}

	d := &document{path: name, src: text, text: bytes.TrimPrefix(text, byteOrderMark)}
	d.at = len(d.src) - len(d.text)
	d.parse()
	d.diagnose(diagnosisBudget)
	if len(d.problems) > 0 {
		SortProblems(d.problems)
		return nil, d.problems
	}
	if d.root == nil {
		return json.RawMessage("null"), nil
	}

	return nodeJSON(d.root), nil
}
