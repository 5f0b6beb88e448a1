package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"sigs.k8s.io/yaml"

	"millwright/schema"
	"millwright/signature"
)

// compiled compiles a published schema as any other tool would.
// schemas are the compiled schemas by name. That of automations takes seconds with the race detector.
var schemas sync.Map

func compiled(t testing.TB, name string) *jsonschema.Schema {
	t.Helper()

	compile := sync.OnceValues(func() (*jsonschema.Schema, error) {
		text, ok := schema.JSONSchema(name)
		if !ok {
			return nil, fmt.Errorf("there is no schema %s", name)
		}
		return jsonschema.CompileString("https://example.com/"+name, string(text))
	})
	once, _ := schemas.LoadOrStore(name, compile)

	s, err := once.(func() (*jsonschema.Schema, error))()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestJSONSchemas(t *testing.T) {
	names := schema.JSONSchemaNames()
	if want := []string{"agent", "automation", "environment", "factory", "notification", "report", "runner", "settings", "skill", "webhook"}; !slices.Equal(names, want) {
		t.Fatalf("names %v", names)
	}
	shared := map[string]any{}
	for _, name := range names {
		text, _ := schema.JSONSchema(name)
		s := compiled(t, name)
		var doc map[string]any
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		if doc["$schema"] != "https://json-schema.org/draft/2020-12/schema" || doc["title"] == nil || doc["description"] == nil || doc["additionalProperties"] != false {
			t.Errorf("%s: head of the schema: %v %v", name, doc["$schema"], doc["title"])
		}
		examples, _ := doc["examples"].([]any)
		if len(examples) == 0 {
			t.Errorf("%s has no example", name)
		}
		for _, e := range examples {
			if err := s.Validate(e); err != nil {
				t.Errorf("an example of %s: %v", name, err)
			}
		}
		described(t, name, doc)
		defs, _ := doc["$defs"].(map[string]any)
		for key, def := range defs {
			if other, ok := shared[key]; ok && !reflect.DeepEqual(other, def) {
				t.Errorf("the shared definition %s of the schemas differs", key)
			}
			shared[key] = def
		}
		if regexp.MustCompile(`"@(schemes|handshakes|headers)`).Match(text) {
			t.Errorf("%s holds a placeholder", name)
		}
	}
	if _, ok := schema.JSONSchema("../webhook"); ok {
		t.Error("an unknown document has a schema")
	}
	webhook, _ := schema.JSONSchema("webhook")
	for _, scheme := range signature.Names() {
		if !bytes.Contains(webhook, []byte(`"`+scheme+`"`)) {
			t.Errorf("the scheme %s is not in the schema", scheme)
		}
	}
}

// described checks that every property has a description.
func described(t *testing.T, where string, v any) {
	t.Helper()
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	if props, ok := m["properties"].(map[string]any); ok {
		for name, p := range props {
			pm, _ := p.(map[string]any)
			if pm["$ref"] == nil && (pm["title"] == nil || pm["description"] == nil) {
				t.Errorf("%s.%s has no title or description", where, name)
			}
		}
	}
	for k, c := range m {
		if k != "allOf" && k != "not" { // conditions on properties that are described elsewhere
			described(t, where+"."+k, c)
		}
	}
}

// TestEditorsSeeConditions holds what the schemas say of keys that go together against what Load says.
func TestEditorsSeeConditions(t *testing.T) {
	const uid = "wh_01h2xcejqtf2nbrexx3vqjhp41"
	for _, tt := range []struct {
		kind, text string
		ok         bool
	}{
		{"webhook", "{secretName: A, authMode: signature, signatureScheme: github}", true},
		{"webhook", "{secretName: A, authMode: signature}", false},
		{"webhook", "{secretName: A, signatureScheme: github}", false},
		{"webhook", "{secretName: A, authMode: token, signatureScheme: github}", false},
		{"webhook", "{secretName: A, authMode: signature, signatureScheme: custom}", false},
		{"webhook", "{secretName: A, authMode: signature, signatureScheme: custom, customScheme: {alg: hmac-sha256, header: X, encoding: hex, template: '{body}'}}", true},
		{"webhook", "{secretName: A, authMode: signature, signatureScheme: github, customScheme: {alg: hmac-sha256, header: X, encoding: hex, template: '{body}'}}", false},
		{"automation", "{triggers: [{provider: webhook, event: received, filter: {webhook_ids: [" + uid + "]}}]}", true},
		{"automation", "{triggers: [{provider: webhook, event: received, filter: {webhook_ids: []}}]}", false},
		{"automation", "{triggers: [{provider: webhook, event: received, filter: {webhook_ids: [ci]}}]}", false},
		{"automation", "{triggers: [{provider: webhook, event: received, filter: {}}]}", false},
		{"automation", "{triggers: [{provider: webhook, event: received}]}", false},
		{"automation", "{triggers: [{provider: schedule, event: cron_fired, schedule: {cron: '@daily'}}]}", true},
		{"automation", "{triggers: [{provider: schedule, event: cron_fired}]}", false},
		{"automation", "{triggers: [{provider: webhook, event: received, filter: {webhook_ids: [" + uid + "]}, schedule: {cron: '@daily'}}]}", false},
		{"automation", "{triggers: [{provider: github, event: push, filter: {branches: [main]}}]}", true},
	} {
		file, text := "webhooks/x.yaml", tt.text
		if tt.kind == "automation" {
			file, text = "automations/x/automation.md", "---\n"+tt.text+"\n---\nGo.\n"
		}
		if got := load(t, nil, file, text); got.Valid() != tt.ok {
			t.Errorf("%s: valid is %v: %v", tt.text, got.Valid(), got.Problems)
		}
		asJSON, err := yaml.YAMLToJSON([]byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(asJSON, &v); err != nil {
			t.Fatal(err)
		}
		if err := compiled(t, tt.kind).Validate(v); (err == nil) != tt.ok {
			t.Errorf("%s: the schema says %v", tt.text, err)
		}
	}
}

// TestAgreesWithOtherTools mutates good files and compares Load with what an
// editor would say: the published schema, over what an ordinary YAML reader
// makes of the file. Where that combination refuses, Load must; where Load
// accepts, it must.
func TestAgreesWithOtherTools(t *testing.T) {
	kinds := map[string]*jsonschema.Schema{"webhooks": compiled(t, "webhook"), "runners": compiled(t, "runner")}
	var seeds [][2]string
	for _, pattern := range []string{"webhooks/*.yaml", "runners/*.yaml"} {
		for _, kind := range []string{"ok", "err"} {
			paths, err := filepath.Glob(filepath.Join(fixtures, kind, "*", pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range paths {
				if text, err := os.ReadFile(p); err == nil {
					seeds = append(seeds, [2]string{strings.Split(pattern, "/")[0], string(text)})
				}
			}
		}
	}
	pieces := []string{"true", "null", "012", "{}", "[]", "\"", "'", ": ", "\n", "  ", "- ", "secretName", "authMode: token\n", "enabled: yes\n", "1e3", "2026-01-01", "#", "&a ", "*a", "!!str ", "\t", "x: 1\n"}
	r := rand.New(rand.NewPCG(1, 2))
	agreed, refused := 0, 0
	for range 6000 {
		seed := seeds[r.IntN(len(seeds))]
		text := seed[1]
		for range r.IntN(3) {
			at := r.IntN(len(text) + 1)
			cut := at + r.IntN(min(6, len(text)-at)+1)
			text = text[:at] + pieces[r.IntN(len(pieces))] + text[cut:]
		}
		var other error
		asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
		if err != nil {
			other = err
		} else {
			var v any
			d := json.NewDecoder(bytes.NewReader(asJSON))
			d.UseNumber()
			if err := d.Decode(&v); err != nil {
				t.Fatal(err)
			}
			other = kinds[seed[0]].Validate(v)
		}
		res := load(t, nil, seed[0]+"/x.yaml", text)
		if other == nil || !res.Valid() {
			agreed++
		}
		if !res.Valid() {
			refused++
		}
		// In a runner an unknown key is a warning, and the schema refuses it. A
		// YAML 1.1 reader takes yes and no for booleans, so it refuses them where
		// a string is meant.
		loose := slices.ContainsFunc(res.Problems, func(p schema.Problem) bool { return p.Severity == schema.SeverityWarning })
		if other != nil && res.Valid() && !loose && !strings.Contains(text, "yes") {
			t.Errorf("accepted, while others say %v:\n%s", other, text)
		}
	}
	if refused == 0 || agreed == 0 {
		t.Fatal("the test compared nothing")
	}
}

// TestStructureIsChecked shows that each keyword of the schemas has a problem of
// its own, at its place.
func TestStructureIsChecked(t *testing.T) {
	tests := []struct{ path, text, want string }{
		{"webhooks/a.yaml", "secretName: A\nauthMode: [token]\n", "2:11 type-mismatch"},
		{"webhooks/a.yaml", "secretName: A\nauthMode: ''\n", "2:11 auth-mode"},
		{"webhooks/a.yaml", "{secretName: A, x: 1}\n", "1:17 unknown-key"},
		{"webhooks/a.yaml", "secretName: A\n? enabled\n: 1\n", "3:3 type-mismatch"},
		{"webhooks/a.yaml", "secretName:\n", "1:12 type-mismatch"},
		{"webhooks/a.yaml", "secretName: |\n  A\n", "1:13 secret-name"},
		{"webhooks/a.yaml", "secretName: >-\n  A\n", ""},
		{"webhooks/a.yaml", "secretName: " + strings.Repeat("a", 128) + "\n", ""},
		{"webhooks/a.yaml", "secretName: " + strings.Repeat("a", 129) + "\n", "1:13 secret-name"},
		{"runners/a.yaml", "instanceShape: {vcpus: 1e999999999, memoryGb: 1}\nplatform: {os: macos}\n", "1:24 invalid-value"},
		{"runners/a.yaml", "instanceShape: {vcpus: 0." + strings.Repeat("0", 5000) + "1, memoryGb: 1}\nplatform: {os: macos}\n", "1:24 invalid-value"},
		{"runners/a.yaml", "instanceShape: {vcpus: 1e2, memoryGb: .5}\nplatform: {os: macos}\n", "1:24 invalid-value 1:39 type-mismatch"},
		{"runners/a.yaml", "setupCommands: [a, 1, true]\nplatform: {os: macos}\n", "1:20 type-mismatch 1:23 type-mismatch"},
		{"runners/a.yaml", "setupCommands:\n  a: b\nplatform: {os: macos}\n", "2:3 type-mismatch"},
		{"automations/a/automation.md", "---\ntriggers: {}\n---\nx\n", "2:11 type-mismatch"},
		{"automations/a/automation.md", "---\ntriggers: [1]\n---\nx\n", "2:12 type-mismatch"},
		{"automations/a/automation.md", "---\ntriggers: [{provider: github, event: '', filter: []}]\n---\nx\n", "2:23 trigger-not-fired 2:38 trigger 2:50 type-mismatch"},
		{"automations/a/automation.md", "---\n---\nx\n", "2:1 missing-key"},
		{"skills/a/SKILL.md", "---\nname: 1\nx-y: 2\n---\n", "2:7 type-mismatch 3:1 unknown-key"},
		{"skills/a/SKILL.md", "---\nallowed-tools: read\n---\n", ""},
	}
	for _, tt := range tests {
		var got []string
		for _, p := range load(t, nil, tt.path, tt.text).Problems {
			got = append(got, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Code))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%.80q: got %v, want %s", tt.text, got, tt.want)
		}
	}
}
