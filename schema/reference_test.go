package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"millwright/schema"
	"millwright/signature"
)

// files of a definition, in the order of docs/definitions.md, with the JSON Schema of each.
const sealedSecrets = `
## ` + "`secrets/<NAME>.age`" + `

A secret that only this factory has, encrypted with [age](https://age-encryption.org) to the factory's recipient. ` + "`millwright secret seal NAME`" + ` writes the file; ` + "[operating/secrets.md](operating/secrets.md#secrets-in-the-definition)" + ` describes the file. ` + "`<NAME>`" + ` is the name of the secret; every key that takes the name of a team secret takes it too. Definitions of the hosted service have no such files.
`

var definitionFiles = []struct{ path, schema, note string }{
	{"webhooks/<name>.yaml", "webhook", "A URL to which other systems post JSON. `<name>` identifies the webhook; a file with another name is another webhook, with another URL."},
	{"automations/<name>/automation.md", "automation", "Front matter, and below it the prompt of the runs. The prompt must not be empty."},
	{"agents/<name>/agent.md", "agent", "Front matter, and below it the base prompt of the agent's runs."},
	{"runners/<name>.yaml", "runner", "Where runs execute: an image and its size."},
	{"environments/<name>.yaml", "environment", "Image, repositories, commands and variables for the runs that name the environment by `environmentId`."},
	{"notifications/<name>.yaml", "notification", "Where the server sends events of the factory: see [notifications.md](notifications.md)."},
	{"skills/<skill>/SKILL.md", "skill", "Front matter, and below it the skill. `agents/<name>/skills/<skill>/SKILL.md` is a skill of one agent."},
	{"factory.yaml", "factory", "The root of a full definition. A tree may leave it out; with it the tree has exactly one foreman."},
}

// filterExamples are the payload filters of the page, each with bodies that it matches and that it does not.
var filterExamples = []struct {
	filter, what string
	yes, no      []string
}{
	{`{"action": ["opened", "reopened"]}`, "the field has one of the values", []string{`{"action": "opened"}`}, []string{`{"action": "closed"}`, `{}`, `{"action": "Opened"}`}},
	{`{"action": {"in": ["opened"]}}`, "the same as a bare array", []string{`{"action": "opened"}`}, []string{`{"action": "closed"}`}},
	{`{"labels": ["bug"]}`, "an array matches if one of its elements does", []string{`{"labels": ["bug", "ui"]}`}, []string{`{"labels": []}`, `{"labels": [["bug"]]}`}},
	{`{"branch": {"not_in": ["main"]}}`, "the field has none of the values; an absent field matches", []string{`{"branch": "dev"}`, `{}`}, []string{`{"branch": "main"}`}},
	{`{"error": {"exists": true}}`, "the field is present, even with the value null", []string{`{"error": null}`}, []string{`{}`}},
	{`{"error": {"exists": false}}`, "the field is absent", []string{`{}`}, []string{`{"error": null}`}},
	{`{"repository": {"name": ["shop"]}}`, "nested fields: objects nest, paths with dots do not", []string{`{"repository": {"name": "shop"}}`}, []string{`{"repository.name": "shop"}`}},
	{`{"a": [1], "b": [2]}`, "all fields must match", []string{`{"a": 1, "b": 2}`}, []string{`{"a": 1}`}},
	{`{"n": [1]}`, "numbers compare as numbers, and never equal text", []string{`{"n": 1.0}`}, []string{`{"n": "1"}`}},
	{`{"a": [null]}`, "null is a value", []string{`{"a": null}`}, []string{`{}`}},
}

// TestDocsDefinitions compares docs/definitions.md with what the schemas and the filters say.
func TestDocsDefinitions(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Definition files

Every kind of file and every key, generated from the JSON Schemas (` + "`make docs`" + `). Read [from-webhook-to-run.md](from-webhook-to-run.md) first. [checks.md](checks.md) has the rules that go beyond a single key, with examples.

* The column *since* has the ` + "`schemaVersion`" + ` in which the key was introduced.
* The column *hosted* shows whether a definition of the hosted service may have the key, by its [definition syntax](https://docs.warp.dev/factories/factory-as-code/). ` + "`millwright validate --hosted`" + ` warns of keys that may not be in such a definition.

| limit | value |
| --- | --- |
`)
	fmt.Fprintf(&b, "| one file | %d KiB |\n| all files of a tree | %d MiB |\n| files of a tree | %d |\n", schema.MaxFileBytes>>10, schema.MaxTreeBytes>>20, schema.MaxFiles)
	b.WriteString("| webhooks of a factory | 20 |\n| notifications of a factory | 20 |\n\nThe **foreman** is the agent with `agentType: FOREMAN` (or `MAIN`). It coordinates the other agents. It gets the work that is sent to the factory, and the runs of automations that name no agent. A factory with a `factory.yaml` has exactly one foreman; a tree of webhooks and automations alone needs none.\n")

	for _, f := range definitionFiles {
		fmt.Fprintf(&b, "\n## `%s`\n\n%s\n\n| key | type | default | meaning | example | since | hosted |\n| --- | --- | --- | --- | --- | --- | --- |\n", f.path, f.note)
		text, ok := schema.JSONSchema(f.schema)
		if !ok {
			t.Fatalf("no schema %s", f.schema)
		}
		var doc map[string]any
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		r := reference{t: t, root: doc, file: f.schema, out: &b}
		r.keys("", doc, false)
	}

	b.WriteString(sealedSecrets)
	b.WriteString("\n## Payload filters\n\n`filter.payload` of a webhook trigger mirrors the body. Each example is executed by the test that writes this page.\n\n| filter | meaning | matches | does not match |\n| --- | --- | --- | --- |\n")
	for _, e := range filterExamples {
		filter, problems := schema.CompileFilter([]byte(e.filter))
		if len(problems) > 0 {
			t.Fatalf("%s: %v", e.filter, problems)
		}
		for bodies, want := range map[*[]string]bool{&e.yes: true, &e.no: false} {
			for _, body := range *bodies {
				payload, err := schema.ParsePayload([]byte(body))
				if err != nil {
					t.Fatal(err)
				}
				if got := filter.Match(payload); got != want {
					t.Errorf("%s on %s: %t", e.filter, body, got)
				}
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", code(e.filter), e.what, codeList(e.yes), codeList(e.no))
	}
	b.WriteString("\nA trigger without a filter, and a filter without fields, match every body. A body that is not a JSON object matches these two only. `millwright filter test` tries a filter on a file.\n")

	golden(t, "../docs/definitions.md", b.String())
}

// reference writes the rows of a schema's keys.
type reference struct {
	t    *testing.T
	root map[string]any
	file string
	out  *strings.Builder
}

// keys writes the keys of an object. ours: the hosted service does not have the object.
func (r *reference) keys(prefix string, object map[string]any, ours bool) {
	properties, _ := object["properties"].(map[string]any)
	var required []string
	for _, v := range list(object["required"]) {
		required = append(required, fmt.Sprint(v))
	}

	names := slices.SortedFunc(maps.Keys(properties), func(a, b string) int {
		if c := slices.Index(required, b) - slices.Index(required, a); c != 0 && (slices.Contains(required, a) != slices.Contains(required, b)) {
			return c
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		p := r.resolve(properties[name].(map[string]any))
		key := prefix + name
		ours := ours || p["x-hosted"] == false
		hosted := map[bool]string{true: "no", false: "yes"}[ours]
		if values := list(p["x-hosted"]); values != nil {
			hosted = kind(map[string]any{"enum": values})
		}

		since, ok := p["x-since"].(string)
		if !ok {
			since = schema.SchemaVersion
		}

		value := "required"
		if !slices.Contains(required, name) {
			value = ""
			if v, ok := p["default"]; ok {
				value = code(jsonOf(v))
			}
		}

		example := ""
		if all := list(p["examples"]); len(all) > 0 {
			example = code(jsonOf(all[0]))
		}
		if p["description"] == nil {
			r.t.Errorf("%s: %s has no description", r.file, key)
		}

		fmt.Fprintf(r.out, "| `%s` | %s | %s | %s | %s | `%s` | %s |\n", key, kind(p), value, cell(fmt.Sprint(p["description"])), example, since, hosted)
		if items, ok := p["items"].(map[string]any); ok {
			r.keys(key+"[].", r.resolve(items), ours)
		}
		if values, ok := p["additionalProperties"].(map[string]any); ok {
			r.keys(key+".<name>.", r.resolve(values), ours)
		}
		r.keys(key+".", p, ours)
	}
}

// resolve follows a reference to $defs; what stands beside the reference wins.
func (r *reference) resolve(p map[string]any) map[string]any {
	ref, _ := p["$ref"].(string)
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	if !ok {
		return p
	}
	target := maps.Clone(r.resolve(r.root["$defs"].(map[string]any)[name].(map[string]any)))
	maps.Copy(target, p)
	return target
}

// kind describes the values that a key takes.
func kind(p map[string]any) string {
	values := list(p["enum"])
	switch {
	case len(values) > 20:
		return fmt.Sprintf("one of %d names", len(values))
	case len(values) > 0:
		var all []string
		for _, v := range values {
			all = append(all, strings.Trim(jsonOf(v), `"`))
		}
		return codeList(all)
	case p["const"] != nil:
		return code(fmt.Sprint(p["const"]))
	}

	words := map[string]string{"string": "text", "array": "list", "object": "mapping", "integer": "whole number", "null": "null", "boolean": "true or false", "number": "number"}
	var all []string
	if types := list(p["type"]); types != nil {
		for _, v := range types {
			all = append(all, words[fmt.Sprint(v)])
		}
	} else if p["type"] != nil {
		all = append(all, words[fmt.Sprint(p["type"])])
	}
	return strings.Join(all, " or ")
}

func list(v any) []any {
	all, _ := v.([]any)
	return all
}

func jsonOf(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}

// code writes text as code in a cell of a table.
func code(text string) string {
	fence := "`"
	if strings.Contains(text, "`") {
		fence = "``"
	}
	return fence + strings.ReplaceAll(strings.ReplaceAll(text, "|", `\|`), "\n", " ") + fence
}

func codeList(all []string) string {
	var out []string
	for _, text := range all {
		out = append(out, code(text))
	}
	return strings.Join(out, ", ")
}

func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(text)
}

// TestInsteadOfUnshipped writes the custom schemes of the table of providers without a scheme into webhooks.
func TestInsteadOfUnshipped(t *testing.T) {
	found := 0
	for _, u := range signature.NotShipped() {
		_, text, ok := strings.Cut(u.Instead, "`customScheme: ")
		if !ok {
			continue
		}

		found++
		text, _, _ = strings.Cut(text, "`")
		file := "authMode: signature\nsignatureScheme: custom\nsecretName: A\ncustomScheme: " + text + "\n"
		if r := loadFiles(t, map[string]string{"webhooks/x.yaml": file}); len(r.Problems) > 0 {
			t.Errorf("%s: %s: %v", u.Provider, text, r.Problems)
		}
	}

	if found < 15 {
		t.Errorf("%d custom schemes", found)
	}
}
