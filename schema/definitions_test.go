package schema_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"

	"millwright/schema"
	"millwright/testdata/definitions"
)

// loadFiles loads a tree that is given as texts by path.
func loadFiles(t testing.TB, files map[string]string) *schema.Result {
	t.Helper()
	var pairs []string
	for path, text := range files {
		pairs = append(pairs, path, text)
	}
	return load(t, nil, pairs...)
}

// TestDefinitions loads each document of testdata/definitions and compares its problems.
func TestDefinitions(t *testing.T) {
	archives, err := definitions.Archives()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for name, archive := range archives {
		cases, err := definitions.Cases(archive)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		at := 0
		for i := range archive.Files {
			if archive.Files[i].Name != "expect" {
				continue
			}
			c := cases[at]
			at++
			r := loadFiles(t, c.Files)
			var got strings.Builder
			for _, p := range r.Problems {
				checkProblem(t, r, p)
				if p.Code == "foreman" && !strings.Contains(name, "tree") {
					continue // a factory.yaml alone has none
				}
				got.WriteString(schema.Text(p, nil) + "\n")
			}
			if *update {
				archive.Files[i].Data = []byte(got.String())
			} else if got.String() != c.Expect {
				t.Errorf("%s, %s:\n%s\nwant:\n%s", name, c.Name, got.String(), c.Expect)
			}
			mendAll(t, c)
		}
		if total += at; at == 0 || at != len(cases) {
			t.Errorf("%s: %d of %d cases", name, at, len(cases))
		}
		if *update {
			writeArchive(t, filepath.Join("../testdata/definitions", name), archive)
		}
	}
	if total < 300 {
		t.Errorf("%d documents", total)
	}
}

// mendAll makes every fix of a document and holds that what results is no worse, and that nothing but the
// places of the fixes changes.
func mendAll(t *testing.T, c definitions.Case) {
	t.Helper()
	r := loadFiles(t, c.Files)
	for path, text := range c.Files {
		of := slices.DeleteFunc(slices.Clone(r.Problems), func(p schema.Problem) bool { return p.Path != path })
		mended, made := schema.Mend(path, []byte(text), of)
		if len(made) == 0 {
			if string(mended) != text {
				t.Errorf("%s: mended without a fix", c.Name)
			}
			continue
		}
		files := map[string]string{}
		for p, old := range c.Files {
			files[p] = old
		}
		files[path] = string(mended)
		after := loadFiles(t, files)
		if len(after.Problems) > len(r.Problems) {
			t.Errorf("%s: %d problems become %d:\n%s", c.Name, len(r.Problems), len(after.Problems), output(after))
		}
	}
}

// differs names the problems that no JSON Schema sees in a document, by code and a part of the message; an empty
// part is every message. docs/editors.md lists those that are not of the text.
var differs = []struct{ code, message string }{
	{"invalid-yaml", ""},
	{"duplicate-key", ""},
	{"yaml-anchor", ""},
	{"yaml-tag", ""},
	{"yaml-key", ""},
	{"front-matter", ""},
	{"multiple-documents", ""},
	{"not-utf8", ""},
	{"file-too-large", ""},
	{"invalid-name", ""},
	{"unsupported-path", ""},
	{"type-mismatch", "ambiguous"},
	{"control-character", "the prompt"},
	{"empty-prompt", ""},
	{"reference", ""},
	{"foreman", ""},
	{"trigger", "there is no provider"},
	{"trigger", "has no event"},
	{"schedule", "is already that of the schedule"},
	{"schedule", "no month has this day"},
	{"flow", "shorter than"},
	{"flow", "schedules alone"},
	{"invalid-value", "is already item"},
	{"filter", "levels deep"},
	{"filter", "in both in and not_in"},
	{"filter", "are one key"},
	{"filter-headers", "is here twice"},
}

// TestDefinitionsAgree holds the published schemas, as editors use them, against Load: for each document
// that is YAML without tricks, both accept it or both refuse it.
func TestDefinitionsAgree(t *testing.T) {
	archives, err := definitions.Archives()
	if err != nil {
		t.Fatal(err)
	}
	checked, schemas := 0, map[string]*jsonschema.Schema{}
	for name, archive := range archives {
		cases, err := definitions.Cases(archive)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			for path, text := range c.Files {
				kind, ok := kindOf(path)
				if !ok || len(c.Files) > 1 {
					continue
				}
				r := loadFiles(t, c.Files)
				problems := slices.DeleteFunc(r.Problems, func(p schema.Problem) bool {
					return p.Severity != schema.SeverityError && p.Code != "unknown-key" || p.Code == "foreman"
				})
				if r.Files == 0 || slices.ContainsFunc(problems, beyondSchemas) {
					continue
				}
				doc, ok := asJSON(kind, text)
				if !ok {
					continue
				}
				checked++
				if schemas[kind] == nil {
					schemas[kind] = compiled(t, kind)
				}
				if err := schemas[kind].Validate(doc); (err != nil) != (len(problems) > 0) {
					t.Errorf("%s, %s: Load says %v, the schema %v", name, c.Name, problems, err)
				}
			}
		}
	}
	if checked < 150 {
		t.Errorf("%d documents were compared", checked)
	}
}

// beyondSchemas says whether a problem is one that no JSON Schema sees.
func beyondSchemas(p schema.Problem) bool {
	for _, d := range differs {
		if p.Code == d.code && strings.Contains(p.Message, d.message) {
			return true
		}
	}
	return false
}

func kindOf(path string) (string, bool) {
	for prefix, kind := range map[string]string{
		"webhooks/": "webhook", "automations/": "automation", "agents/": "agent", "runners/": "runner", "skills/": "skill", "notifications/": "notification", "factory.yaml": "factory",
	} {
		if strings.HasPrefix(path, prefix) && (kind != "agent" || !strings.Contains(path, "/skills/")) {
			return kind, true
		}
	}
	return "", false
}

// asJSON decodes the YAML of a file as an editor does.
func asJSON(kind, text string) (v any, ok bool) {
	if kind == "automation" || kind == "agent" || kind == "skill" {
		_, rest, found := strings.Cut(text, "---\n")
		front, _, closed := strings.Cut(rest, "---\n")
		if !found || !closed {
			return nil, false
		}
		text = front
	}
	if yaml.Unmarshal([]byte(text), &v) != nil {
		return nil, false
	}
	if v == nil {
		v = map[string]any{}
	}
	return v, true
}

func writeArchive(t *testing.T, path string, archive *txtar.Archive) {
	t.Helper()
	if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}
