package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"millwright/admin"
	"millwright/api"
	"millwright/cmd/cli"
	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/schema/report"
	"millwright/state"
	"millwright/state/statetest"
)

// judgeServer is a server of the management API over a real state with one factory.
type judgeServer struct {
	t       testing.TB
	store   *state.Store
	handler http.Handler
	url     string
	uid     string
}

func newJudgeServer(t testing.TB) *judgeServer {
	t.Helper()
	s := &judgeServer{t: t, store: statetest.Open(t, statetest.SQLite(t))}
	a := api.New(api.Config{Store: s.store, Version: cli.Version()})
	admin.Register(a, admin.Config{
		Store:         s.store,
		HarnessTypes:  []string{"echo"},
		ForgeKinds:    func() []string { return []string{} },
		SourceSecrets: func() (used, reserved map[string]string) { return nil, map[string]string{} },
	})
	s.handler = a
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }))
	t.Cleanup(srv.Close)
	s.url = srv.URL
	s.uid = s.factory("default")
	_, key, err := s.store.CreateKey(context.Background(), "ci", state.RoleViewer, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("MILLWRIGHT_API_KEY", key)
	return s
}

func (s *judgeServer) factory(name string) string {
	s.t.Helper()
	f, err := s.store.EnsureFactory(context.Background(), name, state.Source{Kind: "dir", Path: "/x"}, false)
	if err != nil {
		s.t.Fatal(err)
	}
	return f.UID
}

func (s *judgeServer) secret(name, value string) {
	s.t.Helper()
	if _, err := s.store.SetSecret(context.Background(), name, []byte(value)); err != nil {
		s.t.Fatal(err)
	}
}

// apply makes the state equal to the tree in dir.
func (s *judgeServer) apply(dir string) {
	s.t.Helper()
	cur, err := s.store.Current(context.Background(), s.uid)
	if err != nil {
		s.t.Fatal(err)
	}
	p, app := plan.Make(cur, os.DirFS(dir), plan.Options{Revision: state.Revision{ID: "r1"}})
	if app == nil {
		s.t.Fatalf("not applied: %+v", p.Problems)
	}
	if err := s.store.Apply(context.Background(), *app); err != nil {
		s.t.Fatal(err)
	}
}

// files writes a tree and returns its directory.
func files(t testing.TB, tree map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range tree {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// collectAsUsual has the checks of a test leave the collector of garbage alone. They bound the memory of a program
// that checks once, which is less than the process of the tests always holds.
func collectAsUsual(t testing.TB) {
	t.Helper()
	t.Setenv("GOGC", "100")
}

// program runs the program and returns its status and what it printed.
func program(t testing.TB, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	status = run(context.Background(), args, strings.NewReader(""), &o, &e)
	return status, o.String(), e.String()
}

// wantProgram runs the program and checks its status and that its output has patterns; "!" before one
// means that it has not.
func wantProgram(t testing.TB, want int, args []string, patterns ...string) (out string) {
	t.Helper()
	status, out, errs := program(t, args...)
	if status != want {
		t.Fatalf("%s: status %d, want %d\n%s%s", strings.Join(args, " "), status, want, out, errs)
	}
	for _, p := range patterns {
		positive := strings.TrimPrefix(p, "!")
		if regexp.MustCompile(positive).MatchString(out+errs) == (positive != p) {
			t.Errorf("%s: want %s in\n%s%s", strings.Join(args, " "), p, out, errs)
		}
	}
	return out
}

const hookFile = "webhooks/ci.yaml"

func automationOf(id string) string {
	return "---\ntriggers:\n  - provider: webhook\n    event: received\n    filter: {webhook_ids: [" + id + "]}\n---\nGo.\n"
}

func TestValidateWithAServer(t *testing.T) {
	s := newJudgeServer(t)
	s.secret("GOOD", "abc")
	s.secret("SPACED", "hush hush")
	good := files(t, map[string]string{hookFile: "authMode: url_token\nsecretName: GOOD\n", "README.md": "x"})
	wantProgram(t, 0, []string{"validate", good, "--server", s.url}, "checked 1 file", "no problems", "!not checked")

	bad := files(t, map[string]string{
		hookFile:              "authMode: url_token\nsecretName: SPACED\n",
		"webhooks/b.yaml":     "secretName: GOD\n",
		"automations/a.md":    automationOf("wh_01h2xcejqtf2nbrexx3vqjhp41"),
		"webhook/c.yaml":      "secretName: GOOD\n",
		"webhooks/broken.yml": "",
	})
	wantProgram(t, 1, []string{"validate", bad, "--server", s.url},
		`ci.yaml:2:13: error: .*\[secret-not-url-safe\]`, `b.yaml:1:13: error: .*\[secret-missing\]`, `a.md:5:28: warning: .*\[webhook-unknown\]`,
		`webhook/c.yaml:1:1: error: .*\[unsupported-path\]`, `broken.yml:1:1: error: .*\[unsupported-path\]`, `(?m)^  2 \| secretName: SPACED$`, "!hush")

	s.apply(good)
	moved := files(t, map[string]string{"webhooks/other.yaml": "authMode: url_token\nsecretName: GOOD\n"})
	wantProgram(t, 1, []string{"validate", moved, "--server", s.url}, `other.yaml:1:1: error: .*\[webhook-renamed\]`)
}

func TestValidateCannotAsk(t *testing.T) {
	s := newJudgeServer(t)
	s.secret("GOOD", "abc")
	tree := files(t, map[string]string{hookFile: "secretName: GOOD\n"})
	broken := files(t, map[string]string{hookFile: "secretname: GOOD\n"})

	wantProgram(t, 3, []string{"validate", tree, "--server", "http://127.0.0.1:1"}, "could not check all", "the server was not asked", "not checked: .*secret-missing", "!no problems")
	wantProgram(t, 3, []string{"validate", broken, "--server", "http://127.0.0.1:1"}, "unknown-key", "the server was not asked")
	wantProgram(t, 2, []string{"validate", tree, "--server", "nowhere"}, "want a URL")
	wantProgram(t, 2, []string{"validate", tree, broken, "--server", s.url}, "one PATH")
	wantProgram(t, 2, []string{"validate", tree, "--factory", "x"}, "goes with --server")
	wantProgram(t, 2, []string{"validate", tree, "--server", s.url, "--secrets", "x"}, "secrets")

	s.factory("second")
	wantProgram(t, 3, []string{"validate", tree, "--server", s.url}, "choose one with --factory default\\|second")
	wantProgram(t, 0, []string{"validate", tree, "--server", s.url, "--factory", "second"})
	wantProgram(t, 3, []string{"validate", tree, "--server", s.url, "--factory", "third"}, "no factory")

	many := map[string]string{}
	for i := range cli.MaxSentFiles + 1 {
		many[fmt.Sprintf("automations/a%d/automation.md", i)] = "---\ntriggers: [{provider: slack, event: mention}]\n---\nGo.\n"
	}
	wantProgram(t, 3, []string{"validate", files(t, many), "--server", s.url, "--factory", "default", "--format", "github"}, "it has 2001 files", "not checked: .*secret-missing")

	t.Setenv("MILLWRIGHT_API_KEY", "mw_wrong")
	wantProgram(t, 3, []string{"validate", tree, "--server", s.url}, "set MILLWRIGHT_API_KEY")
}

// TestValidateSeesWhatAServerCannot checks a link and a file in another encoding, which the API cannot carry.
func TestValidateSeesWhatAServerCannot(t *testing.T) {
	s := newJudgeServer(t)
	s.secret("GOOD", "abc")
	tree := files(t, map[string]string{hookFile: "secretName: GOOD\n"})
	if err := os.Symlink("ci.yaml", filepath.Join(tree, "webhooks", "link.yaml")); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	wantProgram(t, 1, []string{"validate", tree, "--server", s.url}, `link.yaml:1:1: error: .*\[symlink\]`, "!not checked")
	wantProgram(t, 1, []string{"plan", tree, "--server", s.url}, `\[symlink\]`, "would be refused")

	latin := files(t, map[string]string{hookFile: "secretName: GOOD # caf\xe9\n"})
	wantProgram(t, 1, []string{"validate", latin, "--server", s.url}, `\[not-utf8\]`, "was not asked", "not checked: .*secret-missing")
	wantProgram(t, 1, []string{"plan", latin, "--server", s.url}, `\[not-utf8\]`, "would be refused")
	out := wantProgram(t, 1, []string{"plan", latin, "--server", s.url, "--format", "json"})
	var p plan.Plan
	if err := json.Unmarshal([]byte(out), &p); err != nil || p.WouldApply || len(p.Problems) != 1 {
		t.Errorf("%v: %s", err, out)
	}
}

// relabelled answers as another version of the server would.
func (s *judgeServer) relabelled(header string, edit func([]byte) []byte) {
	inner := s.handler
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		inner.ServeHTTP(rec, r)
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.Header().Set(api.VersionHeader, header)
		w.WriteHeader(rec.Code)
		w.Write(edit(rec.Body.Bytes()))
	})
}

func TestOlderThanTheServer(t *testing.T) {
	same := func(b []byte) []byte { return b }
	for name, c := range map[string]struct {
		header string
		edit   func([]byte) []byte
		want   string
	}{
		"newer definitions": {"v2.0.0; definitions=v1beta1", same, "older than the server \\(v2.0.0, definitions v1beta1\\)"},
		"older definitions": {"v0.1.0; definitions=v0", same, "newer than the server"},
		"the same":          {cli.Version() + "; definitions=" + schema.SchemaVersion, same, "!than the server"},
		"says nothing":      {"", same, "!than the server"},
		"an unknown rule": {
			"", func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("secret-missing"), []byte("secret-vanished")) },
			"older than the server \\(unknown",
		},
		"hostile": {"\u202ev9; definitions=v9", same, "!\u202e"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newJudgeServer(t)
			s.relabelled(c.header, c.edit)
			tree := files(t, map[string]string{hookFile: "secretName: GONE\n"})
			wantProgram(t, 1, []string{"validate", tree, "--server", s.url}, c.want)
			wantProgram(t, 1, []string{"plan", tree, "--server", s.url, "--format", "json"}, c.want)
		})
	}
}

func TestPlan(t *testing.T) {
	s := newJudgeServer(t)
	s.secret("A", "abc")
	s.secret("B", "abc")
	base := map[string]string{
		hookFile:                        "secretName: A\n",
		"webhooks/old.yaml":             "secretName: B\n",
		"automations/go/automation.md":  automationOf("wh_01h2xcejqtf2nbrexx3vqjhp41"),
		"agents/boss/agent.md":          "---\nmcpServers:\n  x: {url: 'https://x.example.com', headers: {Authorization: hush}}\n---\nLead.\n",
		"automations/say/automation.md": "---\ntriggers: [{provider: slack, event: mention}]\n---\n" + strings.Repeat("a long prompt ", 50) + "\n",
	}
	first := files(t, base)
	wantProgram(t, 2, []string{"plan", first, "--server", s.url}, `\+ webhook ci: will be wh_[0-9a-z]{26}`, "would be applied: 5 to create", "!compared")
	s.apply(first)
	wantProgram(t, 0, []string{"plan", first, "--server", s.url}, "nothing to do", "5 unchanged", "compared with revision r1")

	s.secret("B", "new")
	s.secret("C", "abc")
	next := map[string]string{}
	for k, v := range base {
		next[k] = v
	}
	delete(next, hookFile)
	next["webhooks/old.yaml"] = "secretName: B\ndeliveryIdHeader: X-Id\nenabled: false\n"
	next["webhooks/new.yaml"] = "secretName: C\nauthMode: signature\nsignatureScheme: github\n"
	next["agents/boss/agent.md"] = strings.ReplaceAll(base["agents/boss/agent.md"], "hush", "quiet")
	next["automations/say/automation.md"] = strings.Replace(base["automations/say/automation.md"], "long prompt a", "long prompt; a", 1)
	second := files(t, next)
	text := wantProgram(t, 2, []string{"plan", second, "--server", s.url},
		`(?m)^- webhook ci: the URL of wh_[0-9a-z]{26} will answer 404$`, `(?m)^\+ webhook new: will be wh_`, `(?m)^~ webhook old$`,
		`(?m)^    deliveryIdHeader: \(none\) → "X-Id"$`, `(?m)^    enabled: true → false$`, `secret B: version 2 is picked up by old`,
		`prompt: "?…?.*long prompt.* → .*;`, `(?m)^    mcpServers: .*\*\*\*`, "!hush", "!quiet", "1 to create, 3 to update, 1 to delete", `\[webhook-unknown\]`)
	if strings.Contains(text, "\x1b") {
		t.Errorf("colour without a terminal: %q", text)
	}
	out := wantProgram(t, 2, []string{"plan", second, "--server", s.url, "--format", "json"})
	var p plan.Plan
	if err := json.Unmarshal([]byte(out), &p); err != nil || !p.WouldApply || len(p.Changes) != 6 || len(p.Secrets) != 1 {
		t.Errorf("%v: %s", err, out)
	}
	wantProgram(t, 2, []string{"plan", second, "--server", s.url, "--format", "markdown"}, "### millwright plan: would be applied", "```diff\n", `(?m)^! webhook old$`, "!hush")

	broken := files(t, map[string]string{hookFile: "secretName: GONE\n"})
	wantProgram(t, 1, []string{"plan", broken, "--server", s.url}, `ci.yaml:1:13: error: .*\[secret-missing\]`, "would be refused; 1 error")
	wantProgram(t, 1, []string{"plan", broken, "--server", s.url, "--format", "markdown"}, "### millwright plan: would be refused")

	for _, args := range [][]string{{"nowhere"}, {first, "x"}, {first, "--format", "sarif"}, {first, "--frmat", "json"}, {filepath.Join(first, hookFile)}, {first, "--factory", "x"}} {
		wantProgram(t, 3, append([]string{"plan", "--server", s.url}, args...))
	}
	wantProgram(t, 3, []string{"plan", first, "--server", "http://127.0.0.1:1"}, "cannot reach")
	wantProgram(t, 3, []string{"plan", first, "--server", "x"})
}

// TestPlanMarkdownFits plans more than a comment can hold.
func TestPlanMarkdownFits(t *testing.T) {
	s := newJudgeServer(t)
	many := map[string]string{}
	for i := range 1500 {
		many[fmt.Sprintf("automations/automation-with-a-long-name-%d/automation.md", i)] = "---\ntriggers: [{provider: slack, event: mention}]\n---\nGo.\n"
	}
	t.Chdir(files(t, many)) // the paths are relative to it
	out := wantProgram(t, 2, []string{"plan", ".", "--server", s.url, "--format", "markdown"})
	if len(out) > report.MarkdownLimit {
		t.Errorf("%d bytes", len(out))
	}
	for _, what := range []string{`\+ automation `, `\[trigger-not-fired\]`} {
		shown, left := len(regexp.MustCompile(what).FindAllString(out, -1)), 0
		for _, m := range regexp.MustCompile(`… and (\d+) more`).FindAllStringSubmatch(out, -1) {
			var n int
			fmt.Sscan(m[1], &n)
			if shown+n == 1500 {
				left = n
			}
		}
		if shown < 100 || shown+left != 1500 {
			t.Errorf("%s: %d are shown and %d counted", what, shown, left)
		}
	}
}

func TestWebhookUIDs(t *testing.T) {
	s := newJudgeServer(t)
	s.secret("A", "abc")
	automation := "\ufeff---\r\n# which one?\r\ntriggers:\r\n  - provider: webhook # the build\r\n    event: received\r\n    filter:\r\n" +
		"      webhook_ids: [ 'ci' , \"webhooks/new.yaml\",wh_01h2xcejqtf2nbrexx3vqjhp41 ]   # three\r\n---\r\nci and webhooks/new.yaml stay.\r\n"
	tree := files(t, map[string]string{
		hookFile: "secretName: A\n", "webhooks/new.yaml": "secretName: NOT_YET\n", "webhooks/broken.yaml": "secretname: A\n",
		"automations/go/automation.md": automation, "automations/other/automation.md": "---\ntriggers: [{provider: slack, event: mention}]\n---\nci\n",
	})
	file := filepath.Join(tree, "automations", "go", "automation.md")
	out := wantProgram(t, 0, []string{"webhook", "uids", tree, "--server", s.url}, `(?m)^new +wh_[0-9a-z]{26}$`, "to change: .*automations/go/automation.md", "!other/automation.md")
	uid := regexp.MustCompile(`(?m)^(ci|new) +(wh_[0-9a-z]{26})$`).FindAllStringSubmatch(out, -1)
	if len(uid) != 2 {
		t.Fatal(out)
	}
	if now, _ := os.ReadFile(file); string(now) != automation {
		t.Fatal("it was written without --write")
	}
	wantProgram(t, 0, []string{"webhook", "uids", "--write", tree, "--server", s.url}, "changed: .*automations/go/automation.md")
	want := strings.NewReplacer("'ci'", "'"+uid[0][2]+"'", `"webhooks/new.yaml"`, `"`+uid[1][2]+`"`).Replace(automation)
	now, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	wantProgram(t, 0, []string{"webhook", "uids", "--write", tree, "--server", s.url}, "!change")

	// The apply follows the plan.
	s.secret("NOT_YET", "abc")
	if err := os.Remove(filepath.Join(tree, "webhooks", "broken.yaml")); err != nil {
		t.Fatal(err)
	}
	s.apply(tree)
	cur, err := s.store.Current(t.Context(), s.uid)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range cur.Webhooks {
		for _, m := range uid {
			if w.Spec.Name == m[1] && w.UID != m[2] {
				t.Errorf("%s has %s, planned was %s", w.Spec.Name, w.UID, m[2])
			}
		}
	}

	wantProgram(t, 3, []string{"webhook", "uids", "nowhere", "--server", s.url})
	wantProgram(t, 2, []string{"webhook", "uids", file, "--server", s.url})
	wantProgram(t, 3, []string{"webhook", "uids", tree, "--server", "http://127.0.0.1:1"})
	unreadable := files(t, map[string]string{hookFile: "secretName: A\n", "automations/x/automation.md": "no front matter\n"})
	wantProgram(t, 1, []string{"webhook", "uids", unreadable, "--server", s.url}, "not changed: automations/x/automation.md:1:1")
}

// TestFixWithAServer puts UIDs in place of names, as validate --fix.
func TestFixWithAServer(t *testing.T) {
	s := newJudgeServer(t)
	s.secret("A", "abc")
	tree := files(t, map[string]string{hookFile: "secretname: A\n", "automations/go/automation.md": automationOf("ci")})
	wantProgram(t, 0, []string{"validate", tree, "--fix", "--server", s.url}, "fixed 2 problems: no problems", `fixed .*automation.md:5:28: ci → wh_[0-9a-z]{26} \[webhook-ids\]`, `secretname → secretName`)
	now, err := os.ReadFile(filepath.Join(tree, "automations", "go", "automation.md"))
	if err != nil || !regexp.MustCompile(`webhook_ids: \[wh_[0-9a-z]{26}\]`).Match(now) {
		t.Errorf("%v: %s", err, now)
	}
}
