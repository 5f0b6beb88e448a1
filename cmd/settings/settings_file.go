package settings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"millwright/schema"
)

// maxSettings bounds a settings file, in bytes.
const maxSettings = 1 << 20

// Read reads a settings file. The error has everything that is wrong with it, each with its place.
func Read(file string) (Settings, error) {
	var s Settings
	src, err := os.ReadFile(file)
	if err != nil {
		return s, fmt.Errorf("--config: %w", err)
	}
	if len(src) > maxSettings {
		return s, fmt.Errorf("%s: more than %d bytes", file, maxSettings)
	}

	doc := &document{file: file, broken: map[*yamlnode.Node]bool{}}
	doc.check(src)
	var whole any
	if err := yaml.Unmarshal(src, &whole); err != nil { // such as an anchor that holds itself
		if len(doc.problems) == 0 {
			return s, fmt.Errorf("%s: %s", file, decodingError(err))
		}
		return s, doc.err()
	}

	s.File = file
	if root := doc.parse(src); root != nil {
		doc.walk(root, reflect.TypeFor[Settings](), "", 0)
		if err := doc.decode(root, &s); err != nil {
			return s, err
		}
	}

	base := filepath.Dir(file)
	for i := range s.Factories {
		source := &s.Factories[i].Source
		paths := []*string{&source.Dir}
		if source.Git != nil && source.Git.Verify != nil {
			paths = append(paths, &source.Git.Verify.SSH, &source.Git.Verify.OpenPGP)
		}

		for _, file := range paths {
			if *file != "" && !filepath.IsAbs(*file) {
				*file = filepath.Join(base, *file)
			}
		}
	}

	for _, wrong := range s.check() {
		if !doc.hides(wrong.at) {
			doc.add(doc.node(wrong.at), wrong.Error())
		}
	}

	return s, doc.err()
}

// decode reads what the walk found no fault with.
func (d *document) decode(root *yamlnode.Node, s *Settings) error {
	faulty := len(d.problems) > 0
	d.prune(root)
	text, err := yamlnode.Marshal(root)
	if err == nil {
		err = yaml.UnmarshalStrict(text, s)
	}

	switch {
	case err == nil:
		return nil
	case faulty: // the rest of the file hangs on what is wrong, such as an anchor
		return d.err()
	}

	return fmt.Errorf("%s: %s", d.file, decodingError(err))
}

func decodingError(err error) string {
	text := err.Error()
	prefixes := []string{
		"error unmarshaling JSON: ", "while decoding JSON: ", "error converting YAML to JSON: ",
	}
	for _, prefix := range prefixes {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

// document is a settings file during its check.
type document struct {
	file     string
	places   map[string]*yamlnode.Node // by path
	broken   map[*yamlnode.Node]bool   // keys and values with a problem
	wrong    []string                  // their paths
	problems []problem
}

// problem is something wrong with a settings file.
type problem struct {
	line, column int // 0: of the file as a whole
	text         string
}

// err returns the problems in the order of their places; nil without one.
func (d *document) err() error {
	if len(d.problems) == 0 {
		return nil
	}

	slices.SortStableFunc(d.problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	var lines []string
	for _, p := range d.problems {
		place := d.file
		if p.line > 0 {
			place = fmt.Sprintf("%s:%d:%d", d.file, p.line, p.column)
		}
		lines = append(lines, place+": "+p.text)
	}

	return errors.New(strings.Join(lines, "\n  "))
}

// check records YAML errors of the file, by the rules of definition files, except that anchors and tags are
// allowed.
func (d *document) check(src []byte) {
	for _, p := range schema.CheckYAML(d.file, src) {
		switch p.Code {
		case "yaml-anchor", "yaml-tag":
		default:
			text := p.Message
			if p.Hint != "" {
				text += ": " + p.Hint
			}

			d.problems = append(d.problems, problem{p.Line, p.Column, text})
		}
	}
}

func (d *document) parse(src []byte) *yamlnode.Node {
	var n yamlnode.Node
	if yamlnode.Unmarshal(src, &n) != nil || len(n.Content) == 0 {
		return nil // the file is empty
	}
	d.places = map[string]*yamlnode.Node{}
	quoteText(&n)
	return n.Content[0]
}

// quoteText puts text in quotes, so that yes, no, on and off are text to every reader, as in YAML 1.2.
func quoteText(n *yamlnode.Node) {
	if n.Kind == yamlnode.ScalarNode && n.Tag == "!!str" {
		n.Style = yamlnode.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		quoteText(c)
	}
}

// node returns the node of a setting, or that of the nearest enclosing one; nil for the file.
func (d *document) node(at string) *yamlnode.Node {
	for at != "" {
		if n := d.places[at]; n != nil {
			return n
		}
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
	}
	return nil
}

func (d *document) add(n *yamlnode.Node, text string) {
	p := problem{text: text}
	if n != nil {
		p.line, p.column = n.Line, n.Column
	}
	d.problems = append(d.problems, p)
}

// bad records a problem of the setting at a path.
func (d *document) bad(n *yamlnode.Node, at, format string, args ...any) {
	d.add(n, fmt.Sprintf(format, args...))
	d.broken[n] = true
	d.wrong = append(d.wrong, at)
}

// hides reports whether a problem of the file's structure may be why a setting is wrong.
func (d *document) hides(at string) bool {
	for _, wrong := range d.wrong {
		if entryOf(wrong) == entryOf(at) || at == "harness" && strings.HasPrefix(wrong, "harnesses") {
			return true
		}
	}
	return false
}

// entryOf returns the entry of the settings that a path leads into: factories[0], harnesses.claude, limits.
func entryOf(at string) string {
	parts := strings.SplitN(at, ".", 3)
	if (parts[0] == "harnesses" || parts[0] == "prices") && len(parts) > 1 {
		return parts[0] + "." + parts[1]
	}
	return parts[0]
}

// prune removes what is broken from the tree, and the repetitions of keys.
func (d *document) prune(n *yamlnode.Node) {
	var left []*yamlnode.Node
	switch n.Kind {
	case yamlnode.MappingNode:
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if !d.broken[key] && !d.broken[value] && !seen[key.Value] {
				left = append(left, key, value)
			}
			seen[key.Value] = true
		}
	case yamlnode.SequenceNode:
		for _, item := range n.Content {
			if !d.broken[item] {
				left = append(left, item)
			}
		}
	default:
		return
	}

	n.Content = left
	for _, c := range left {
		d.prune(c)
	}
}

// maxNesting bounds the depth of settings, also of those that refer to themselves.
const maxNesting = 20

// unmarshaler is the type of settings that are text, or keys and values.
var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// walk records the position of each setting, unknown keys, and values of wrong types.
func (d *document) walk(n *yamlnode.Node, t reflect.Type, at string, depth int) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	if n.Kind == yamlnode.AliasNode {
		n = n.Alias
	}
	if at != "" && d.places[at] == nil { // of a key that is there twice, the first counts
		d.places[at] = n
	}
	if depth > maxNesting || n.Tag == "!!null" {
		return
	}

	want := map[reflect.Kind]yamlnode.Kind{
		reflect.Struct: yamlnode.MappingNode,
		reflect.Map:    yamlnode.MappingNode,
		reflect.Slice:  yamlnode.SequenceNode,
	}[t.Kind()]
	switch {
	case want == 0, n.Kind == yamlnode.ScalarNode && reflect.PointerTo(t).Implements(unmarshaler):
		d.value(n, t, at)
	case n.Kind != want:
		d.bad(n, at, "%s: want %s", at, kindOf(t))
	case want == yamlnode.SequenceNode:
		for i, item := range n.Content {
			d.walk(item, t.Elem(), fmt.Sprintf("%s[%d]", at, i), depth+1)
		}
	default:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.Tag == "!!merge" {
				d.walk(value, t, at, depth+1)
				continue
			}

			d.entry(key, value, t, strings.TrimPrefix(at+"."+key.Value, "."), depth+1)
		}
	}
}

// entry walks one key of a mapping.
func (d *document) entry(key, value *yamlnode.Node, t reflect.Type, place string, depth int) {
	if t.Kind() == reflect.Map {
		d.walk(value, t.Elem(), place, depth)
		return
	}

	field, known := jsonField(t, key.Value)
	if field != nil {
		d.walk(value, field, place, depth)
	} else if near := schema.Nearest(key.Value, known); near != "" {
		d.bad(key, place, "unknown key %s: did you mean %s?", place, near)
	} else {
		d.bad(key, place, "unknown key %s: there is %s", place, strings.Join(known, ", "))
	}
}

// value decodes one value, so that its error has a place.
func (d *document) value(n *yamlnode.Node, t reflect.Type, at string) {
	if t.Kind() == reflect.String && n.Kind == yamlnode.ScalarNode && n.Tag != "!!str" {
		d.bad(n, at, "%s: want text: put it in quotes: %q", at, n.Value)
		return
	}

	text, err := yamlnode.Marshal(n)
	if err == nil {
		err = yaml.Unmarshal(text, reflect.New(t).Interface())
	}

	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		d.bad(n, at, "%s: want %s, not %s", at, kindOf(t), wrong.Value)
	} else if err != nil {
		d.bad(n, at, "%s: %s", at, decodingError(err))
	}
}

// kindOf names the expected kind of a setting of type t.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "a list"
	}

	return "keys and values"
}

func jsonField(t reflect.Type, key string) (reflect.Type, []string) {
	var known []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" { // of a type of another package
			name = strings.ToLower(t.Field(i).Name)
		}
		if name == "-" {
			continue
		}
		if name == key {
			return t.Field(i).Type, nil
		}

		known = append(known, name)
	}

	return nil, known
}
