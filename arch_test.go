package millwright_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms is the import map of the house: which packages of this module each package may import
// (AGENTS.md draws it). A package that is not here is a new room: give it a line, and a reason in
// docs/decisions.
var rooms = map[string][]string{
	"signature":                       {},
	"bounds":                          {},
	"bounds/address":                  {},
	"bounds/address/addresstest":      {},
	"forge":                           {"forge/bundle"},
	"forge/forgetest":                 {"forge", "state/statetest"},
	"docs":                            {},
	"schema":                          {"docs", "schema/agefile", "schema/provider", "signature"},
	"schema/agefile":                  {},
	"schema/agentconfig":              {"schema"},
	"schema/editortest":               {"schema/language"},
	"schema/language":                 {"schema", "schema/provider", "signature"},
	"schema/provider":                 {},
	"schema/report":                   {"schema"},
	"state":                           {"state/audit", "state/batch", "state/trees", "state/budget", "state/checks", "state/db", "state/events", "state/flow", "state/notice", "state/outputs", "state/registrations", "state/search", "state/lanes", "state/runlist", "state/seal", "state/skip", "state/workers", "schema/agentconfig", "schema/agefile", "bounds", "schema"},
	"state/audit":                     {"state/db"},
	"state/backup":                    {"state/audit", "state/db"},
	"state/batch":                     {"state/db"},
	"state/budget":                    {"schema", "state/db"},
	"state/checks":                    {"schema", "state/db"},
	"state/db":                        {},
	"state/events":                    {"state/db", "schema"},
	"state/flow":                      {"state/db", "schema"},
	"state/lanes":                     {"state/db"},
	"state/notice":                    {"state/db"},
	"state/outputs":                   {"state/audit", "state/db", "state/events", "schema"},
	"state/seal":                      {"state/audit", "state/db"},
	"state/registrations":             {"state/db"},
	"state/search":                    {"state/db"},
	"state/runlist":                   {},
	"state/skip":                      {},
	"state/statetest":                 {"state"},
	"state/trees":                     {"schema", "state/db"},
	"state/workers":                   {"state/db"},
	"trace":                           {},
	"api":                             {"api/identity", "bounds", "state", "state/audit", "schema"},
	"api/identity":                    {"bounds/address", "state"},
	"api/issuertest":                  {},
	"api/mcp":                         {"api", "bounds", "state", "schema"},
	"reconcile/plan":                  {"state", "schema", "schema/agefile"},
	"forge/bundle":                    {},
	"outbox":                          {"forge", "forge/bundle", "outbox/events", "outbox/request", "state", "state/checks", "state/notice", "state/outputs", "state/registrations", "schema", "schema/provider"},
	"outbox/events":                   {"bounds/address", "signature", "state", "state/events", "state/notice", "schema"},
	"outbox/request":                  {"schema"},
	"reconcile/pulls":                 {"forge", "reconcile", "reconcile/plan", "schema", "state", "state/checks", "state/notice"},
	"reconcile/signers":               {},
	"reconcile":                       {"forge/bundle", "reconcile/plan", "reconcile/signers", "state", "state/notice", "schema"},
	"ingress":                         {"signature", "trace", "api", "bounds", "state", "state/notice", "schema", "schema/provider"},
	"ingress/conformance":             {"signature"},
	"runs":                            {"forge", "outbox/request", "state/outputs", "schema/agentconfig", "runs/dispatch", "runs/wire", "trace", "api", "state", "state/notice", "schema"},
	"runs/dispatch":                   {"bounds", "forge", "forge/bundle", "outbox/request", "state/outputs", "schema/provider", "schema/agentconfig", "runs/wire", "trace", "state", "state/notice", "state/workers", "schema"},
	"runs/wire":                       {},
	"runs/worker":                     {"schema/agentconfig", "runs/wire", "runs/worker/checkout", "runs/worker/collect", "runs/worker/confine", "runs/worker/egress", "runs/worker/sandbox", "runs/worker/preset", "runs/worker/workspace", "trace"},
	"runs/worker/checkout":            {"runs/worker/confine", "runs/worker/workspace"},
	"runs/worker/collect":             {"runs/worker/workspace"},
	"runs/worker/confine":             {},
	"runs/worker/confine/confinetest": {},
	"runs/worker/preset":              {"runs/wire"},
	"runs/worker/egress":              {"bounds/address"},
	"runs/worker/sandbox":             {"runs/worker/confine"},
	"runs/worker/workspace":           {},
	"admin":                           {"schema/agentconfig", "bounds", "reconcile/plan", "signature", "api", "state", "state/audit", "state/trees", "state/events", "state/notice", "state/registrations", "state/workers", "schema", "schema/provider"},
	"dashboard":                       {"signature", "api/identity", "outbox/request", "state/audit", "state/checks", "state/events", "state/outputs", "state/registrations", "state/search", "schema/agentconfig", "bounds", "admin", "runs", "reconcile/plan", "schema", "schema/provider", "state", "state/notice", "state/workers", "api"},
	"testdata/definitions":            {},
	"testdata/factories":              {},
	"testdata/conformance":            {},
	"testdata/issuer":                 {},
	"cmd/settings":                    {"api/identity", "forge", "runs/worker", "runs/worker/preset", "reconcile", "trace", "schema", "state"},
	"cmd/cli":                         {"*"},
	"cmd/server":                      {"*"},
	"cmd/millwright":                  {"cmd/cli", "cmd/server", "runs/worker/confine", "runs/worker/sandbox"},
	"bench":                           {"*"},

	"state/statetest/powerfs":   {},
	"deploy/packages/documents": {"cmd/cli", "cmd/server"},
}

// reserved lists the imports from outside that only some rooms may use; a name ending in / is a prefix.
var reserved = map[string][]string{
	"database/sql":                {"state", "state/checks", "state/db", "state/events", "state/flow", "state/lanes", "state/outputs", "state/registrations", "state/runlist", "state/search", "state/seal", "state/statetest", "state/trees"},
	"modernc.org/sqlite":          {"state/db"},
	"github.com/jackc/pgx/":       {"state", "state/db", "state/notice", "state/statetest"},
	"github.com/pressly/goose/":   {"state/db"},
	"github.com/go-git/":          {"reconcile", "forge", "forge/bundle"},
	"github.com/google/go-github": {"forge"},
	"github.com/bradleyfalzon/":   {"forge"},
	"gitlab.com/gitlab-org/":      {"forge"},
	"code.gitea.io/sdk/":          {"forge", "forge/forgetest"},
	"github.com/hiddeco/":         {"reconcile/signers"},
	"github.com/ProtonMail/":      {"reconcile/signers"},
	"github.com/fsnotify/":        {"reconcile", "cmd/cli"},
	"github.com/nats-io/":         {"runs/dispatch", "runs/wire"},
	"go.yaml.in/yaml/":            {"schema", "cmd/settings"},
	"sigs.k8s.io/yaml":            {"schema", "cmd/cli", "cmd/settings"},
	"github.com/adrg/frontmatter": {"schema"},
	"github.com/coder/":           {"runs/worker"},
	"github.com/coreos/go-oidc/":  {"api/identity"},
	"github.com/go-jose/":         {"api/identity", "api/issuertest"},
	"github.com/santhosh-tekuri/": {"schema", "schema/report"},
	"github.com/go-chi/":          {"api", "admin", "runs", "dashboard"},
	"github.com/danielgtaylor/":   {"api", "admin", "runs"},
	"github.com/sourcegraph/":     {"schema/editortest", "schema/language"},
	"filippo.io/":                 {"schema/agefile"},
	"github.com/spf13/":           {"cmd/cli", "cmd/server", "deploy/packages/documents"},
	"go.opentelemetry.io/":        {"trace"},
	"github.com/yuin/":            {"dashboard"},

	"github.com/modelcontextprotocol/": {"api/mcp"},
	"github.com/google/jsonschema-go/": {"api/mcp"},
}

// never lists imports that a room must do without.
var never = map[string][]string{
	"schema":            {"net/http", "time/tzdata"},
	"schema/report":     {"net/http"},
	"state":             {"net/http"},
	"signature":         {"net/http"},
	"reconcile/plan":    {"net/http", "os"},
	"reconcile/signers": {"net/http", "os"},
	"runs/worker":       {"database/sql"},
	"runs/wire":         {"database/sql"},
}

// buckets are names of packages whose contents a newcomer cannot guess.
var buckets = []string{"util", "utils", "common", "models", "types", "pkg", "internal", "helpers"}

const module = "millwright"

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && file != "." || d.Name() == "node_modules" || file == "sdk") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		room := path.Dir(filepath.ToSlash(file))
		if room == "bench" || strings.HasPrefix(room, "bench/") {
			room = "bench"
		}
		if !seen[room] && slices.ContainsFunc(strings.Split(room, "/"), func(part string) bool { return slices.Contains(buckets, part) }) {
			t.Errorf("package %s: a name that says nothing", room)
		}
		seen[room] = true
		allowed, known := rooms[room]
		if !known {
			t.Errorf("%s: package %s has no line in the import map (arch_test.go)", file, room)
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range parsed.Imports {
			name, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			if own, ok := strings.CutPrefix(name, module+"/"); ok {
				if !slices.Contains(allowed, own) && !slices.Contains(allowed, "*") {
					t.Errorf("%s: %s may not import %s", file, room, own)
				}
				continue
			}
			if slices.Contains(never[room], name) {
				t.Errorf("%s: %s may not import %s", file, room, name)
			}
			for prefix, users := range reserved {
				hit := name == prefix || strings.HasPrefix(name, strings.TrimSuffix(prefix, "/")+"/")
				if hit && !slices.Contains(users, room) && room != "bench" {
					t.Errorf("%s: only %s may import %s", file, strings.Join(users, ", "), name)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range []string{"schema", "reconcile", "ingress", "runs", "state", "cmd/millwright"} {
		if !seen[room] {
			t.Errorf("the room %s is empty", room)
		}
	}
}

// TestWorkerLinks holds that a worker on another machine links neither the state, nor a database, nor a
// NATS server (docs/decisions/0001-rooms.md).
func TestWorkerLinks(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./runs/worker").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, module+"/runs/wire") {
		t.Errorf("what the worker links is not listed: %s", out)
	}

	for _, name := range linked {
		for _, part := range []string{"jackc/pgx", "pressly/goose", "sqlite", "nats-server"} {
			if strings.Contains(name, part) {
				t.Errorf("runs/worker links %s", name)
			}
		}
		if name == module+"/state" || name == "database/sql" {
			t.Errorf("runs/worker links %s", name)
		}
	}
}
