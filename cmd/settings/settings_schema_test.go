package settings

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
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
	sameKeys(t, "settings", reflect.TypeFor[Settings](), settingsSchema(t))
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
			if name == "harness" || name == "defaultForge" { // they name one of harnesses and forges
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
		if _, err := Read(file); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// TestContainerSettings reads the one part of the settings that another package declares.
func TestContainerSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "millwright.yaml")
	text := "harnesses: {a: {command: [x], container: {image: i, engine: podman, cpus: 1.5, memory: 2g, network: bridge, namespace: agents}}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Harnesses["a"].Container; c == nil || c.Image != "i" || c.Engine != "podman" || c.CPUs != 1.5 || c.Memory != "2g" || c.Network != "bridge" || c.Namespace != "agents" {
		t.Errorf("container %+v", c)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(text, "image", "imag", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file); err == nil || !strings.Contains(err.Error(), "did you mean image?") {
		t.Errorf("error %v", err)
	}
}

// every key that the settings file may have.
const everySetting = `
listen: 127.0.0.1:8080
publicUrl: https://hooks.example.com
tls: { cert: cert.pem, key: key.pem }
state: postgres://millwright@db/millwright
masterKeyFile: /run/secrets/master-key
trustedProxies: [10.0.0.0/8]
corsOrigins: []
metricsListen: 127.0.0.1:9090
otlpEndpoint: http://127.0.0.1:4318
grace: 10s
workers: 2
nats: { listen: "", cluster: [], url: "", credentials: "" }
factories:
  - name: payments
    suspended: false
    source:
      git:
        url: https://git.example.com/acme/factory.git
        branch: main
        path: .
        interval: 30s
        tokenSecret: GIT_TOKEN
        pushSecret: GIT_PUSH_SECRET
        pushScheme: github
      allowPrune: false
      allowRename: false
    repositories: [acme/*]
  - name: sandbox
    source: { dir: ./factory }
    repositories: []
  - name: ops
    source: { managed: {} }
    repositories: [acme/shop, hub:other/*]
forges:
  acme: { kind: gitea, url: https://git.acme.example, tokenSecret: GITEA_TOKEN }
  hub: { kind: github, app: { id: 12345, privateKeySecret: GH_APP_KEY } }
  plain: { kind: git, url: "https://git.example.com/{owner}/{name}.git", username: millwright }
defaultForge: acme
harness: claude
harnesses:
  claude:
    command: [claude, -p, --output-format, stream-json, --verbose]
    adapter: claude
    env: [ANTHROPIC_API_KEY]
    timeout: 1h
    user: agent
auth:
  oidc:
    - issuer: https://token.actions.githubusercontent.com
      audience: millwright
      claims: { repository_id: "74", ref: refs/heads/main, event_name: "*" }
      role: runner
      factories: [payments]
  login:
    issuer: https://login.acme.example
    clientId: millwright
    clientSecretFile: /run/secrets/login
    scopes: [email, groups]
    roles:
      - { claim: groups, value: operators, role: admin }
      - { claim: groups, value: developers, role: runner, factories: [payments] }
limits:
  deliveriesPerMinute: 60
  failedAuthPerMinute: 20
  inFlightBytes: 64MiB
retention:
  deliveries: { keep: 50, days: 7 }
  runs: { days: 0 }
  artifacts: { bytes: 5GiB }
`

// TestSettingsSchemaAgrees compares what an editor says, by the schema, with what the program says.
func TestSettingsSchemaAgrees(t *testing.T) {
	text, _ := schema.JSONSchema("settings")
	compiled := jsonschema.MustCompileString("settings.json", string(text))
	for name, edit := range map[string]struct {
		old, new string
		good     bool
	}{
		"as it is":           {"", "", true},
		"unknown key":        {"listen: 127", "lisen: 127", false},
		"nested":             {"branch: main", "brunch: main", false},
		"wrong type":         {"workers: 2", "workers: two", false},
		"bad duration":       {"grace: 10s", "grace: soon", false},
		"long duration":      {"grace: 10s", "grace: 1h30m", true},
		"bytes":              {"64MiB", "1048576", true},
		"bad size":           {"64MiB", "lots", false},
		"kept bytes":         {"5GiB", "1000000", true},
		"no bytes":           {"5GiB", "0", false},
		"bad bytes":          {"5GiB", "much", false},
		"no source":          {"{ dir: ./factory }", "{}", false},
		"two sources":        {"{ dir: ./factory }", "{ dir: x, managed: {} }", false},
		"bad factory name":   {"name: sandbox", "name: ../sandbox", false},
		"public path":        {"hooks.example.com", "hooks.example.com/deep", false},
		"half of tls":        {"{ cert: cert.pem, key: key.pem }", "{ cert: cert.pem }", false},
		"unsafe harness":     {"    user: agent\n", "", false},
		"not so safe":        {"user: agent", "sameUser: true", true},
		"two ways":           {"    user: agent\n", "    user: agent\n    sameUser: true\n", false},
		"one way":            {"    user: agent\n", "    user: agent\n    sameUser: false\n", true},
		"users":              {"user: agent", "users: [a, b]", true},
		"user twice":         {"user: agent", "users: [a, a]", false},
		"no users":           {"user: agent", "users: []", false},
		"range":              {"user: agent", "uidRange: 70000-70063", true},
		"bad range":          {"user: agent", "uidRange: 70000", false},
		"sandbox":            {"user: agent", "sandbox: bubblewrap", true},
		"another sandbox":    {"user: agent", "sandbox: docker", false},
		"allowed hosts":      {"user: agent", "sandbox: { network: { allow: [api.example.com] } }", true},
		"no allowed hosts":   {"user: agent", "sandbox: { network: { allow: [] } }", false},
		"another network":    {"user: agent", "sandbox: { network: closed }", false},
		"path":               {"user: agent", "user: agent\n    path: /opt/agent/bin:/bin", true},
		"bad path":           {"user: agent", "user: agent\n    path: bin", false},
		"push scheme":        {"pushScheme: github", "pushScheme: sourcehut", false},
		"forge's kind":       {"kind: gitea", "kind: sourcehut", false},
		"forge's name":       {"  acme: {", "  ac/me: {", false},
		"forge's URL":        {"url: https://git.acme.example", "url: ''", false},
		"app without key":    {"id: 12345, privateKeySecret: GH_APP_KEY", "id: 12345", false},
		"app's number":       {"id: 12345", "id: 0", false},
		"whole repository":   {"[acme/*]", "[acme/tool]", true},
		"no owner":           {"[acme/*]", "[tool]", false},
		"climbing":           {"[acme/*]", "[../tool]", false},
		"hidden":             {"[acme/*]", "[acme/.git]", false},
		"option":             {"[acme/*]", "[-acme/x]", false},
		"issuer":             {"https://token.actions", "http://token.actions", false},
		"local issuer":       {"https://token.actions.githubusercontent.com", "http://127.0.0.1:9000", true},
		"no audience":        {"audience: millwright", "audience: ''", false},
		"any audience":       {"audience: millwright", "audience: '*'", false},
		"nobody's claims":    {"repository_id: \"74\", ", "", false},
		"everybody":          {"repository_id: \"74\"", "repository_id: '*'", false},
		"part of a claim":    {"refs/heads/main", "refs/heads/*", false},
		"empty claim":        {"refs/heads/main", "''", false},
		"number":             {"repository_id: \"74\"", "repository_id: 74", false},
		"too high a role":    {"role: runner", "role: admin", false},
		"planner":            {"role: runner", "role: planner", true},
		"no factory":         {"factories: [payments]", "factories: []", false},
		"login's issuer":     {"https://login.acme.example", "http://login.acme.example", false},
		"no client":          {"    clientId: millwright\n", "", false},
		"any value":          {"value: operators", "value: '*'", false},
		"a planner signs in": {"value: operators, role: admin", "value: operators, role: planner", false},
	} {
		t.Run(name, func(t *testing.T) {
			src := everySetting
			if edit.old != "" && strings.Replace(src, edit.old, edit.new, 1) == src {
				t.Fatal("the edit changes nothing")
			}
			src = strings.Replace(src, edit.old, edit.new, 1)
			file := filepath.Join(t.TempDir(), "millwright.yaml")
			if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
				t.Fatal(err)
			}
			var doc any
			if err := yaml.Unmarshal([]byte(src), &doc); err != nil {
				t.Fatal(err)
			}
			_, err := Read(file)
			said := compiled.Validate(doc)
			if (err == nil) != edit.good || (said == nil) != edit.good {
				t.Errorf("good is %v; the program: %v; the schema: %v", edit.good, err, said)
			}
		})
	}
}
