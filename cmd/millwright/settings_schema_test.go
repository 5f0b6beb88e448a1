package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"millwright/schema"
)

type object = map[string]any

func settingsSchema(t *testing.T) object {
	t.Helper()
	text, ok := schema.JSONSchema("settings")
	if !ok {
		t.Fatal("there is no schema of the settings")
	}
	var doc object
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestSettingsSchemaHasTheSameKeys walks the settings and their published schema side by side.
func TestSettingsSchemaHasTheSameKeys(t *testing.T) {
	sameKeys(t, "settings", reflect.TypeFor[settings](), settingsSchema(t))
}

func sameKeys(t *testing.T, at string, typ reflect.Type, doc object) {
	t.Helper()
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ.Kind() {
	case reflect.Slice:
		items, _ := doc["items"].(object)
		sameKeys(t, at+"[]", typ.Elem(), items)
	case reflect.Map:
		values, _ := doc["additionalProperties"].(object)
		sameKeys(t, at+".*", typ.Elem(), values)
	case reflect.Struct:
		properties, _ := doc["properties"].(object)
		if doc["additionalProperties"] != false {
			t.Errorf("%s: the schema allows other keys", at)
		}
		_, known := jsonField(typ, "")
		slices.Sort(known)
		if got := slices.Sorted(maps.Keys(properties)); !slices.Equal(got, known) {
			t.Errorf("%s: the schema has the keys\n%v\nand the program\n%v", at, got, known)
		}
		for name, p := range properties {
			field, _ := jsonField(typ, name)
			sub, _ := p.(object)
			if sub["title"] == nil || sub["description"] == nil {
				t.Errorf("%s.%s is not described", at, name)
			}
			if field != nil {
				sameKeys(t, at+"."+name, field, sub)
			}
		}
	case reflect.Bool:
		if doc["type"] != "boolean" {
			t.Errorf("%s: %v in the schema", at, doc["type"])
		}
	case reflect.Int:
		if doc["type"] != "integer" {
			t.Errorf("%s: %v in the schema", at, doc["type"])
		}
	}
}

// TestSettingsExamplesAreRead serves the examples of the schema to the program.
func TestSettingsExamplesAreRead(t *testing.T) {
	doc := settingsSchema(t)
	examples, _ := doc["examples"].([]any)
	for name, p := range doc["properties"].(object) {
		sub, _ := p.(object)
		list, _ := sub["examples"].([]any)
		if len(list) == 0 {
			t.Errorf("%s has no example", name)
		}
		for _, e := range list {
			if name == "harness" { // it names one of harnesses
				continue
			}
			examples = append(examples, object{name: e})
		}
	}
	for _, e := range examples {
		text, err := yaml.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "millwright.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readSettings(file); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// TestContainerSettings reads the one part of the settings that another package declares.
func TestContainerSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "millwright.yaml")
	text := "harnesses: {a: {command: [x], container: {image: i, engine: podman, cpus: 1.5, memory: 2g, network: bridge}}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := readSettings(file)
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Harnesses["a"].Container; c == nil || c.Image != "i" || c.Engine != "podman" || c.CPUs != 1.5 || c.Memory != "2g" || c.Network != "bridge" {
		t.Errorf("container %+v", c)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(text, "image", "imag", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readSettings(file); err == nil || !strings.Contains(err.Error(), "did you mean image?") {
		t.Errorf("error %v", err)
	}
}
