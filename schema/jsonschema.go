package schema

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"go.yaml.in/yaml/v3"

	"millwright/signature"
)

//go:embed jsonschema/*.json
var schemaFiles embed.FS

// documentNames are the kinds of definition file, which are checked against
// their JSON Schemas.
var documentNames = []string{
	"agent", "automation", "environment", "factory", "notification", "runner", "skill", "webhook",
}

// JSONSchemaNames returns the names of the documents that JSONSchema knows,
// sorted: those of the definition files (agent, automation, environment,
// factory, notification, runner, skill, webhook), the server's settings file, and the JSON form of a report.
func JSONSchemaNames() []string {
	names := append([]string{"report", "settings"}, documentNames...)
	slices.Sort(names)
	return names
}

// JSONSchema returns the JSON Schema (2020-12) of a document, or false for an
// unknown one. The structure of every definition file is checked against this
// schema. Rules that tie files together are code, and so are those that tie
// keys together, which the schema has under allOf for editors. For
// Markdown files it describes the front matter.
func JSONSchema(document string) ([]byte, bool) {
	if !slices.Contains(JSONSchemaNames(), document) {
		return nil, false
	}

	text, err := schemaFiles.ReadFile("jsonschema/" + document + ".json")
	if err != nil {
		return nil, false
	}

	return fillSchema(text), true
}

// fillSchema puts what tables of the program know into a schema, so that it can never lag behind them.
func fillSchema(text []byte) []byte {
	text = []byte(fillLimits(string(text)))
	text = bytes.ReplaceAll(text, []byte(`"@schemes"`), quotedList(signature.Names()))
	text = bytes.ReplaceAll(text, []byte(`"@handshakes"`), quotedList(handshakeSchemes()))
	if triggers := []byte(`"@providerTriggers"`); bytes.Contains(text, triggers) {
		text = bytes.ReplaceAll(text, triggers, providerConditions())
	}
	text = bytes.ReplaceAll(text, []byte(`"@headerName"`), inJSONBytes(headerNamePattern))
	text = bytes.ReplaceAll(text, []byte(`"@credentialHeader"`), inJSONBytes(credentialPattern()))
	return headerNames.ReplaceAllFunc(text, func(m []byte) []byte {
		names := strings.Fields(string(headerNames.FindSubmatch(m)[1]))
		if names[0] == "reserved" {
			names = signature.ReservedHeaders()
		}

		return []byte(`"` + anyCase(names) + `"`)
	})
}

// credentialPattern matches the names of headers that a filter may not name.
func credentialPattern() string {
	var words []string
	for _, word := range credentialWords() {
		words = append(words, strings.Trim(anyCase([]string{word}), "^()$"))
	}
	return strings.Join(words, "|") + "|" + anyCase(signature.ReservedHeaders())
}

func handshakeSchemes() (names []string) {
	for _, s := range signature.Schemes() {
		if s.HasHandshake() {
			names = append(names, s.Name())
		}
	}
	return names
}

func quotedList(names []string) []byte { return []byte(`"` + strings.Join(names, `", "`) + `"`) }

// headerNames stands in a schema for a pattern of those names of headers.
var headerNames = regexp.MustCompile(`"@headers ([A-Za-z_ -]+)"`)

// anyCase is a pattern that the names match in any case, for readers whose patterns have no flags.
func anyCase(names []string) string {
	var b strings.Builder
	for i, name := range names {
		b.WriteString([]string{"^(", "|"}[min(i, 1)])
		for _, c := range name {
			if upper, lower := unicode.ToUpper(c), unicode.ToLower(c); upper != lower {
				fmt.Fprintf(&b, "[%c%c]", upper, lower)
			} else {
				b.WriteString(regexp.QuoteMeta(string(c)))
			}
		}
	}

	return b.String() + ")$"
}

// structureSchema is a compiled schema beside its text as data, in which the
// places of errors are looked up.
type structureSchema struct {
	compiled *jsonschema.Schema
	raw      func() any
}

// structures compiles each schema once, when the first file of its kind is
// checked: a short command must not wait for those it does not need.
var structures = func() map[string]func() (structureSchema, error) {
	m := make(map[string]func() (structureSchema, error), len(documentNames))
	for _, name := range documentNames {
		m[name] = sync.OnceValues(func() (structureSchema, error) { return compileStructure(name) })
	}
	return m
}()

func compileStructure(name string) (structureSchema, error) {
	text, err := schemaFiles.ReadFile("jsonschema/" + name + ".json")
	if err != nil {
		return structureSchema{}, err
	}

	if text, err = withoutConditions(text); err != nil {
		return structureSchema{}, err
	}
	text = fillSchema(text)

	url := "mem:///" + name + ".json"
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	if err := c.AddResource(url, bytes.NewReader(text)); err != nil {
		return structureSchema{}, err
	}

	compiled, err := c.Compile(url)
	if err != nil {
		return structureSchema{}, err
	}

	raw := sync.OnceValue(func() (v any) {
		_ = json.Unmarshal(text, &v) // the compiler has read it
		return v
	})
	return structureSchema{compiled, raw}, nil
}

// withoutConditions takes out of a schema what ties keys together: the code that
// checks those rules says better what is wrong.
func withoutConditions(text []byte) ([]byte, error) {
	var raw any
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, err
	}

	dropConditions(raw)
	return json.Marshal(raw)
}

func dropConditions(v any) {
	switch t := v.(type) {
	case map[string]any:
		delete(t, "allOf")
		for _, inner := range t {
			dropConditions(inner)
		}
	case []any:
		for _, inner := range t {
			dropConditions(inner)
		}
	}
}

func collectLeaves(e *jsonschema.ValidationError, out *[]*jsonschema.ValidationError) {
	if len(e.Causes) == 0 {
		*out = append(*out, e)
	}
	for _, c := range e.Causes {
		collectLeaves(c, out)
	}
}

func pointer(location string) []string {
	location = strings.TrimPrefix(location, "/")
	if location == "" {
		return nil
	}

	parts := strings.Split(location, "/")
	for i, p := range parts {
		if u, err := url.PathUnescape(p); err == nil {
			p = u
		}
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}

	return parts
}

// node follows a path of keys and indexes from the root.
func (d *document) node(path []string) *yaml.Node {
	n := d.root
	for _, step := range path {
		switch {
		case n == nil:
			return nil
		case n.Kind == yaml.MappingNode:
			_, n = find(n, step)
		case n.Kind == yaml.SequenceNode:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(n.Content) {
				return nil
			}

			n = n.Content[i]

		default:
			return nil
		}
	}

	return n
}
