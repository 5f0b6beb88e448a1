package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"millwright/schema"
)

// maxSettings bounds a settings file, in bytes.
const maxSettings = 1 << 20

// Read reads a settings file. The error has every unknown key and every value of a wrong type, each with
// its place.
func Read(file string) (Settings, error) {
	var s Settings
	src, err := os.ReadFile(file)
	if err != nil {
		return s, fmt.Errorf("--config: %w", err)
	}
	if len(src) > maxSettings {
		return s, fmt.Errorf("%s: more than %d bytes", file, maxSettings)
	}

	doc := &document{file: file}
	doc.check(src)
	var whole any
	if err := yaml.UnmarshalStrict(src, &whole); err != nil && len(doc.problems) == 0 {
		return s, fmt.Errorf("%s: %s", file, decodingError(err)) // such as an anchor that holds itself
	}

	root := doc.parse(src)
	if root != nil && len(doc.problems) == 0 {
		doc.walk(root, reflect.TypeFor[Settings](), "", 0)
	}
	if len(doc.problems) > 0 {
		return s, fmt.Errorf("%s", strings.Join(doc.problems, "\n  "))
	}

	if root != nil {
		text, err := yamlnode.Marshal(root)
		if err == nil {
			err = yaml.UnmarshalStrict(text, &s)
		}
		if err != nil {
			return s, fmt.Errorf("%s: %s", file, decodingError(err))
		}
	}

	base := filepath.Dir(file)
	for i := range s.Factories {
		if dir := &s.Factories[i].Source.Dir; *dir != "" && !filepath.IsAbs(*dir) {
			*dir = filepath.Join(base, *dir)
		}
	}

	var wrong *settingError
	if err := s.Check(); errors.As(err, &wrong) {
		return s, fmt.Errorf("%s: %w", doc.place(wrong.at), err)
	}

	return s, nil
}

func decodingError(err error) string {
	text := err.Error()
	for _, prefix := range []string{"error unmarshaling JSON: ", "while decoding JSON: ", "error converting YAML to JSON: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

// document is a settings file during its check.
type document struct {
	file     string
	places   map[string]*yamlnode.Node // by path
	problems []string
}

// check records YAML errors of the file, by the rules of definition files, except that anchors and tags are
// allowed.
func (d *document) check(src []byte) {
	for _, p := range schema.CheckYAML(d.file, src) {
		switch p.Code {
		case "yaml-anchor", "yaml-tag":
		default:
			text := fmt.Sprintf("%s:%d:%d: %s", d.file, p.Line, p.Column, p.Message)
			if p.Hint != "" {
				text += ": " + p.Hint
			}

			d.problems = append(d.problems, text)
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

// place returns the position of a setting in the file, or that of the nearest enclosing one.
func (d *document) place(at string) string {
	for at != "" {
		if n := d.places[at]; n != nil {
			return d.at(n)
		}
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
	}
	return d.file
}

func (d *document) at(n *yamlnode.Node) string {
	return fmt.Sprintf("%s:%d:%d", d.file, n.Line, n.Column)
}

func (d *document) bad(n *yamlnode.Node, format string, args ...any) {
	d.problems = append(d.problems, d.at(n)+": "+fmt.Sprintf(format, args...))
}

// maxNesting bounds the depth of settings, also of those that refer to themselves.
const maxNesting = 20

// walk records the position of each setting, unknown keys, and values of wrong types.
func (d *document) walk(n *yamlnode.Node, t reflect.Type, at string, depth int) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	if n.Kind == yamlnode.AliasNode {
		n = n.Alias
	}
	if at != "" {
		d.places[at] = n
	}
	if depth > maxNesting || n.Tag == "!!null" {
		return
	}

	want := map[reflect.Kind]yamlnode.Kind{reflect.Struct: yamlnode.MappingNode, reflect.Map: yamlnode.MappingNode, reflect.Slice: yamlnode.SequenceNode}[t.Kind()]
	switch {
	case want == 0:
		d.value(n, t, at)
	case n.Kind != want:
		d.bad(n, "%s: want %s", at, kindOf(t))
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
		d.bad(key, "unknown key %s: did you mean %s?", place, near)
	} else {
		d.bad(key, "unknown key %s: there is %s", place, strings.Join(known, ", "))
	}
}

// value decodes one value, so that its error has a place.
func (d *document) value(n *yamlnode.Node, t reflect.Type, at string) {
	if t.Kind() == reflect.String && n.Kind == yamlnode.ScalarNode && n.Tag != "!!str" {
		d.bad(n, "%s: want text: put it in quotes: %q", at, n.Value)
		return
	}

	text, err := yamlnode.Marshal(n)
	if err == nil {
		err = yaml.Unmarshal(text, reflect.New(t).Interface())
	}

	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		d.bad(n, "%s: want %s, not %s", at, kindOf(t), wrong.Value)
	} else if err != nil {
		d.bad(n, "%s: %s", at, decodingError(err))
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
		if name == key {
			return t.Field(i).Type, nil
		}

		known = append(known, name)
	}

	return nil, known
}
