package schema_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"millwright/schema"
)

const (
	sampleUID = "wh_01h2xcejqtf2nbrexx3vqjhp41"
	otherUID  = "wh_01h455vb4pex5vsknk084sn02q"
)

func load(t testing.TB, known *schema.Known, pathsAndTexts ...string) *schema.Result {
	t.Helper()
	var files []schema.File
	for i := 0; i < len(pathsAndTexts); i += 2 {
		files = append(files, schema.File{Path: pathsAndTexts[i], Content: pathsAndTexts[i+1]})
	}
	fsys, err := schema.FilesFS(files)
	if err != nil {
		t.Fatal(err)
	}
	return schema.Load(fsys, known)
}

func codes(r *schema.Result) []string {
	out := []string{}
	for _, p := range r.Problems {
		out = append(out, p.Code)
	}
	return out
}

func automation(ids string) string {
	return "---\ntriggers:\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids: [" + ids + "]\n---\n\nDo it.\n"
}

func TestLoadEmptyTree(t *testing.T) {
	r := schema.Load(os.DirFS(t.TempDir()), nil)
	if !r.Valid() || r.Factory == nil || len(r.Problems) != 0 || r.Problems == nil || r.Files != 0 {
		t.Errorf("an empty tree: %+v", r)
	}
}

func TestLoadMissingRoot(t *testing.T) {
	r := schema.Load(os.DirFS(filepath.Join(t.TempDir(), "nowhere")), nil)
	if r.Valid() || r.Factory != nil || r.Err == nil || !slices.Equal(codes(r), []string{"missing-path"}) {
		t.Errorf("a missing root: %+v", r)
	}
}

// TestLoadIsDeterministic loads a tree full of problems many times.
func TestLoadIsDeterministic(t *testing.T) {
	var files []string
	seen := map[string]bool{}
	for _, f := range listFixtures(t, "err") {
		if f.name == "tree-too-large" || f.name == "tree-too-large-bytes" {
			continue
		}
		r := schema.Load(f.tree(t), f.known(t))
		for _, p := range r.Problems {
			src, name := r.Source(p.Path), fmt.Sprintf("f%d", len(files))
			kind, _, _ := strings.Cut(p.Path, "/")
			if src == nil || seen[kind+string(src)] {
				continue
			}
			seen[kind+string(src)] = true
			switch {
			case kind == "webhooks" || kind == "runners":
				files = append(files, kind+"/"+name+".yaml", string(src))
			case kind == "automations":
				files = append(files, kind+"/"+name+"/automation.md", string(src))
			case kind == "agents":
				files = append(files, kind+"/"+name+"/agent.md", string(src))
			}
		}
	}
	first := output(load(t, nil, files...))
	if strings.Count(first, "\n") < 100 {
		t.Fatalf("only this came out:\n%s", first)
	}
	for range 20 {
		if again := output(load(t, nil, files...)); again != first {
			t.Fatalf("two runs differ:\n%s", cmp.Diff(first, again))
		}
	}
}

func TestProblemsOfOneFileHideNoOther(t *testing.T) {
	r := load(t, nil,
		"webhooks/a.yaml", "authMode: nope\nenabled: maybe\nwhat: 1\n",
		"webhooks/b.yaml", "secretName: [\n",
		"automations/x/automation.md", "no front matter\n",
		"automations/y/automation.md", automation("b, "+sampleUID)+"\n",
		"agents/l/agent.md", "---\nrunner: none\n---\n",
	)
	want := []string{"reference", "front-matter", "webhook-ids", "missing-key", "auth-mode", "type-mismatch", "unknown-key", "invalid-yaml"}
	if got := codes(r); !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v\n%s", got, want, output(r))
	}
	if got := r.WebhookNames(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("webhook names %v", got)
	}
	if r.Files != 5 || r.Factory != nil {
		t.Errorf("%d files, factory %v", r.Files, r.Factory)
	}
}

func TestNotChecked(t *testing.T) {
	planned := []string{"deliveries-limit", "prune-guard", "sender-contract", "webhook-last", "webhook-renamed"}
	yes := true
	tests := []struct {
		name  string
		known *schema.Known
		want  []string
	}{
		{"nothing known", nil, []string{"deliveries-limit", "harness-unknown", "prune-guard", "secret-missing", "secret-not-granted", "secret-not-url-safe", "secret-not-visible", "secret-reserved", "sender-contract", "trigger-no-forge", "webhook-last", "webhook-renamed", "webhook-unknown"}},
		{"names of secrets only", &schema.Known{Secrets: map[string]schema.SecretFact{"S": {}, "T": {}}}, []string{"deliveries-limit", "harness-unknown", "prune-guard", "secret-not-url-safe", "secret-not-visible", "secret-reserved", "sender-contract", "trigger-no-forge", "webhook-last", "webhook-renamed", "webhook-unknown"}},
		{"values of secrets", &schema.Known{Secrets: map[string]schema.SecretFact{"S": {URLSafe: &yes, VisibleASCII: &yes}, "T": schema.FactOf("x")}}, []string{"deliveries-limit", "harness-unknown", "prune-guard", "secret-reserved", "sender-contract", "trigger-no-forge", "webhook-last", "webhook-renamed", "webhook-unknown"}},
		{"everything", &schema.Known{Secrets: map[string]schema.SecretFact{"S": schema.FactOf("a"), "T": schema.FactOf("b")}, UIDs: map[string]string{}, KnownUIDs: map[string]string{}, HarnessTypes: []string{}, ForgeKinds: []string{}, Reserved: map[string]string{}}, planned},
	}
	for _, tt := range tests {
		r := load(t, tt.known, "webhooks/s.yaml", "secretName: S\n", "webhooks/t.yaml", "secretName: T\nauthMode: url_token\n")
		if !slices.Equal(r.NotChecked, tt.want) || !r.Valid() {
			t.Errorf("%s: not checked %v, want %v\n%s", tt.name, r.NotChecked, tt.want, output(r))
		}
	}
}

// TestCheckAgain shows that the state rules alone, over a loaded tree, find what
// Load finds with the same knowledge.
func TestCheckAgain(t *testing.T) {
	known := schema.Known{
		Secrets:      map[string]schema.SecretFact{"CI_TOKEN": schema.FactOf("not safe!")},
		UIDs:         map[string]string{"ci": sampleUID},
		KnownUIDs:    map[string]string{sampleUID: "ci"},
		HarnessTypes: []string{"claude"},
	}
	files := []string{
		"webhooks/ci.yaml", "authMode: url_token\nsecretName: CI_TOKEN\n",
		"webhooks/ops.yaml", "secretName: 'CI_TOKN'\n",
		"automations/a/automation.md", automation(otherUID),
		"agents/l/agent.md", "---\nharness: {type: x}\nsecrets: [GONE]\n---\n",
	}
	all := load(t, &known, files...)
	plain := load(t, nil, files...)
	if !plain.Valid() {
		t.Fatal(output(plain))
	}
	if diff := cmp.Diff(all.Problems, plain.Factory.Check(known)); diff != "" {
		t.Errorf("Factory.Check and Load disagree:\n%s", diff)
	}
	want := []string{"harness-unknown", "secret-not-granted", "webhook-unknown", "secret-not-url-safe", "secret-missing"}
	if got := codes(all); !slices.Equal(got, want) {
		t.Errorf("got %v want %v", got, want)
	}
	plain.Check(known)
	if diff := cmp.Diff(all.Problems, plain.Problems); diff != "" || plain.Factory != nil {
		t.Errorf("Result.Check and Load disagree:\n%s", diff)
	}
	plain.Check(schema.Known{})
	if !plain.Valid() || plain.Factory == nil {
		t.Errorf("checking again with less known keeps the old problems: %v", plain.Problems)
	}
	var none *schema.Factory
	if got := none.Check(known); len(got) != 0 {
		t.Errorf("an empty tree has problems: %v", got)
	}
}

func TestFixes(t *testing.T) {
	known := &schema.Known{
		Secrets: map[string]schema.SecretFact{"CI_TOKEN": schema.FactOf("x")},
		UIDs:    map[string]string{"ci": sampleUID}, KnownUIDs: map[string]string{sampleUID: "ci"},
	}
	tests := []struct{ name, path, before, after string }{
		{"key", "webhooks/ci.yaml", "\ufeff# é\r\nsecretname: CI_TOKEN\r\n", "\ufeff# é\r\nsecretName: CI_TOKEN\r\n"},
		{"quoted key", "webhooks/ci.yaml", "'secret_name': CI_TOKEN\n", "'secretName': CI_TOKEN\n"},
		{"value", "webhooks/ci.yaml", "secretName: CI_TOKEN\nauthMode: \"tokn\" # the default\n", "secretName: CI_TOKEN\nauthMode: \"token\" # the default\n"},
		{"secret", "webhooks/ci.yaml", "secretName: \"CI_TOKE\"\n", "secretName: \"CI_TOKEN\"\n"},
		{"file name", "automations/a/automation.md", automation("  'webhooks/ci.yaml' ,ci # both\n  "), automation("  '" + sampleUID + "' ," + sampleUID + " # both\n  ")},
		{"cron", "automations/a/automation.md", strings.Replace(schedule(`"@dayly"`), "\n", "\r\n", -1), strings.Replace(schedule(`"@daily"`), "\n", "\r\n", -1)},
		{"event", "automations/a/automation.md", strings.Replace(automation(sampleUID), "received", "recieved", 1), automation(sampleUID)},
	}
	for _, tt := range tests {
		files := []string{tt.path, tt.before}
		if tt.path != "webhooks/ci.yaml" {
			files = append(files, "webhooks/ci.yaml", "secretName: CI_TOKEN\n")
		}
		r := load(t, known, files...)
		var fixes []schema.Fix
		for _, p := range r.Problems {
			if p.Fix == nil {
				t.Errorf("%s: no fix for %s", tt.name, schema.Text(p, r.Source(p.Path)))
				continue
			}
			fixes = append(fixes, *p.Fix)
		}
		got := string(schema.ApplyFixes([]byte(tt.before), fixes))
		if got != tt.after {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.after)
		}
		files[1] = got
		if again := load(t, known, files...); !again.Valid() {
			t.Errorf("%s: after the fix:\n%s", tt.name, output(again))
		}
	}
}

func schedule(cron string) string {
	return "---\ntriggers:\n  - provider: schedule\n    event: cron_fired\n    schedule: {cron: " + cron + "}\n---\n\nDo it.\n"
}

func TestApplyFixesIgnoresWhatCannotBe(t *testing.T) {
	got := schema.ApplyFixes([]byte("abcdef"), []schema.Fix{{Start: 4, End: 5, Text: "X"}, {Start: 0, End: 2, Text: "Y"}, {Start: 1, End: 3, Text: "no"}, {Start: 5, End: 99, Text: "no"}, {Start: 6, End: 6, Text: "!"}})
	if string(got) != "YcdXf!" {
		t.Errorf("got %q", got)
	}
}

func TestRewriteWebhookIDs(t *testing.T) {
	src := "\ufeff---\r\n# é 日本\r\ntriggers:\r\n  - provider: webhook\r\n    event: received\r\n    filter:\r\n      webhook_ids:\r\n        - ci   # the build\r\n        - \"webhooks/ops.yaml\"\r\n        - " + otherUID + "\r\n        - unknown\r\n---\r\n\r\nci stays here.\r\n"
	want := strings.NewReplacer("- ci ", "- "+sampleUID+" ", `"webhooks/ops.yaml"`, `"wh_01h2e8kqvbfwea724h75qc655w"`, otherUID, "wh_01h2e8kqvbfwea724h75qc655x").Replace(src)
	ids := map[string]string{"ci": sampleUID, "ops": "wh_01h2e8kqvbfwea724h75qc655w", otherUID: "wh_01h2e8kqvbfwea724h75qc655x"}
	got, err := schema.RewriteWebhookIDs([]byte(src), "automations/a/automation.md", ids)
	if err != nil || string(got) != want {
		t.Errorf("%v:\n%s", err, cmp.Diff(want, string(got)))
	}
	same, err := schema.RewriteWebhookIDs(got, "automations/a/automation.md", ids)
	if err != nil || string(same) != want {
		t.Errorf("a second time: %v\n%s", err, same)
	}
	broken := []byte("---\na: [\n---\nx\n")
	out, err := schema.RewriteWebhookIDs(broken, "automations/a/automation.md", ids)
	if err == nil || !strings.Contains(err.Error(), "automations/a/automation.md:2:4") || string(out) != string(broken) {
		t.Errorf("a broken file: %q, %v", out, err)
	}
}

func TestResolve(t *testing.T) {
	r := schema.Load(os.DirFS(fixtures+"/ok/full"), nil)
	if !r.Valid() {
		t.Fatal(output(r))
	}
	f := r.Factory
	exec, prompt, agent := f.Resolve(f.Automations[0])
	if agent != "reviewer" || prompt != "You review." {
		t.Errorf("agent %q with prompt %q", agent, prompt)
	}
	// The automation's model replaces the agent's harness; its empty secrets
	// replace the agent's, and the factory's are added.
	want := schema.Execution{
		Model: "fast", Runner: "small", EnvironmentID: "env-1", Secrets: []string{"SENTRY_TOKEN"},
		MCPServers: map[string]json.RawMessage{"docs": json.RawMessage(`{"url":"https://mcp.example.com","headers":{"X-Team":"payments"}}`)},
	}
	if diff := cmp.Diff(want, exec); diff != "" {
		t.Errorf("execution:\n%s", diff)
	}
	exec, prompt, agent = f.Resolve(schema.Automation{})
	if agent != "lead" || prompt != "You plan the work.\n\n---\n\nYou hand it out." || exec.Model != "auto" || !slices.Equal(exec.Secrets, []string{"SENTRY_TOKEN", "NPM_TOKEN"}) {
		t.Errorf("without an agent: %+v, %q, %q", exec, prompt, agent)
	}
	exec = f.ResolveAgent(f.Agents[1])
	if exec.Model != "" || exec.Harness == nil || exec.Harness.Type != "claude" {
		t.Errorf("of the reviewer: %+v", exec)
	}
	var none *schema.Factory
	exec, prompt, agent = none.Resolve(schema.Automation{Agent: "x", Execution: schema.Execution{Model: "m"}})
	if exec.Model != "m" || prompt != "" || agent != "" {
		t.Errorf("of no tree: %+v, %q, %q", exec, prompt, agent)
	}
}

// TestJSONRoundTrip shows that a stored resource is the one that was loaded.
func TestJSONRoundTrip(t *testing.T) {
	for _, f := range listFixtures(t, "ok") {
		r := schema.Load(f.tree(t), f.known(t))
		for _, w := range r.Factory.Webhooks {
			roundTrip(t, w)
		}
		for _, a := range r.Factory.Automations {
			roundTrip(t, a)
		}
		for _, a := range r.Factory.Agents {
			roundTrip(t, a)
		}
		for _, a := range r.Factory.Runners {
			roundTrip(t, a)
		}
		for _, a := range r.Factory.Skills {
			roundTrip(t, a)
		}
	}
}

func roundTrip[T any](t *testing.T, v T) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back T
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(v, back) {
		t.Errorf("%s", cmp.Diff(v, back))
	}
}

// TestWrittenFilesLoad writes every good webhook and automation and loads them.
func TestWrittenFilesLoad(t *testing.T) {
	for _, f := range listFixtures(t, "ok") {
		r := schema.Load(f.tree(t), f.known(t))
		var files []string
		for _, w := range r.Factory.Webhooks {
			text, err := schema.EditWebhookFile(nil, w)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, w.Path, string(text))
		}
		for i := range r.Factory.Webhooks {
			r.Factory.Webhooks[i].Line = 1 // where the writer begins
		}
		for i, a := range r.Factory.Automations {
			a.Agent, a.Runner = "", "" // of another directory
			r.Factory.Automations[i] = a
			text, err := schema.AutomationFile(a)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, "automations/"+a.Name+"/automation.md", string(text))
			r.Factory.Automations[i].Path = "automations/" + a.Name + "/automation.md"
		}
		again := load(t, nil, files...)
		if !again.Valid() {
			t.Errorf("%s: %s", f.name, output(again))
			continue
		}
		before, _ := json.Marshal(schema.Factory{Webhooks: r.Factory.Webhooks, Automations: sortedFilters(t, r.Factory.Automations)})
		after, _ := json.Marshal(schema.Factory{Webhooks: again.Factory.Webhooks, Automations: sortedFilters(t, again.Factory.Automations)})
		if diff := cmp.Diff(string(before), string(after)); diff != "" {
			t.Errorf("%s: %s", f.name, diff)
		}
	}
}

// sortedFilters gives filters their keys in order: writing sorts them.
func sortedFilters(t *testing.T, list []schema.Automation) []schema.Automation {
	t.Helper()
	sorted := func(raw json.RawMessage) json.RawMessage {
		if raw == nil {
			return nil
		}
		var v any
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		out, _ := json.Marshal(v)
		return out
	}
	out := slices.Clone(list)
	for i := range out {
		out[i].Triggers = slices.Clone(out[i].Triggers)
		for j := range out[i].Triggers {
			tr := &out[i].Triggers[j]
			tr.Payload, tr.Filter = sorted(tr.Payload), sorted(tr.Filter)
		}
	}
	return out
}

func TestWriteOddText(t *testing.T) {
	for _, prompt := range []string{"x", "---\nx", "a: b", "é\n\n  y", "#"} {
		for _, odd := range []string{"yes", "012", "1e3", "2026-01-01", "null", "~", "true", "a: b", "#x", "- x", "'", `"`, "*x", "&x", "!x", "%x", "@x", "é\u2028", "\x1b", "0x1F", "1_000", ".5", "+1", "<<", "", " ", "a\nb", "😀"} {
			a := schema.Automation{
				Name: "a", Path: "automations/a/automation.md", Line: 2, Enabled: true, Prompt: prompt,
				Triggers: []schema.Trigger{{Provider: "webhook", Event: "received", WebhookIDs: []string{sampleUID}, Payload: rawJSON(t, map[string]any{"k": []any{odd, odd + "x"}})}},
			}
			text, err := schema.AutomationFile(a)
			if err != nil {
				// Refused is honest; written wrongly would not be.
				if odd != "\x1b" && odd != "é\u2028" && odd != "<<" {
					t.Errorf("%q: %v", odd, err)
				}
				continue
			}
			r := load(t, nil, a.Path, string(text))
			if !r.Valid() || !reflect.DeepEqual(r.Factory.Automations[0], a) {
				t.Errorf("%q with prompt %q comes back as\n%s\n%s", odd, prompt, text, output(r))
			}
		}
	}
}

func rawJSON(t *testing.T, v any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestKnownForms(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, ".": false, "..": false, "...": true, "a": true, "aZ09-._~": true, "a/b": false, "a b": false, "a%20": false, "é": false, "a\x00": false, "a+b": false,
	} {
		if got := schema.URLSafe(s); got != want {
			t.Errorf("URLSafe(%q) = %v", s, got)
		}
	}
	for s, want := range map[string]bool{"": false, "a b": false, "a\tb": false, "!~": true, "é": false, "\x7f": false, "p/a=s+s:": true} {
		if got := schema.VisibleASCII(s); got != want {
			t.Errorf("VisibleASCII(%q) = %v", s, got)
		}
	}
	for s, want := range map[string]bool{
		sampleUID: true, "wh_7zzzzzzzzzzzzzzzzzzzzzzzzz": true, "wh_8zzzzzzzzzzzzzzzzzzzzzzzzz": false, "": false, "wh_": false,
		strings.ToUpper(sampleUID): false, sampleUID + "0": false, sampleUID[:28]: false, "wh_01h2xcejqtf2nbrexx3vqjhpil": false, "WH" + sampleUID[2:]: false,
	} {
		if got := schema.ParseUID(s); got != want {
			t.Errorf("ParseUID(%q) = %v", s, got)
		}
	}
}

func TestFilesFS(t *testing.T) {
	for _, bad := range [][]string{{"/etc/passwd"}, {"../x"}, {"a/../b"}, {"a//b"}, {"."}, {""}, {"a/"}, {"a", "a"}, {"a", "a/b"}, {"a/b", "a"}, {"a/b/c", "a/b"}, {"\xff"}} {
		var files []schema.File
		for _, p := range bad {
			files = append(files, schema.File{Path: p})
		}
		if _, err := schema.FilesFS(files); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if r := load(t, nil, "webhooks/a.yaml", "secretName: A\n", "README.md", "x", "automations/b/automation.md", automation(sampleUID), "automations/b/more.txt", "x"); !r.Valid() || r.Files != 2 {
		t.Errorf("%d files\n%s", r.Files, output(r))
	}
}

// TestLimits keeps to the edges of what a tree may hold.
func TestLimits(t *testing.T) {
	files := make([]schema.File, 0, schema.MaxFiles+2)
	for i := range schema.MaxFiles {
		files = append(files, schema.File{Path: fmt.Sprintf("runners/r%d.yaml", i), Content: "platform: {os: macos}\n"})
	}
	for i := range 100 {
		files = append(files, schema.File{Path: fmt.Sprintf("docs/d%d.md", i), Content: "not counted"})
	}
	fsys, err := schema.FilesFS(files)
	if err != nil {
		t.Fatal(err)
	}
	if r := schema.Load(fsys, nil); !r.Valid() || len(r.Factory.Runners) != schema.MaxFiles {
		t.Errorf("%d files are refused: %v", schema.MaxFiles, r.Problems[:min(3, len(r.Problems))])
	}
	text := "secretName: A\n"
	r := load(t, nil, "webhooks/a.yaml", text+strings.Repeat("#", schema.MaxFileBytes-len(text)))
	if !r.Valid() {
		t.Errorf("a file of exactly the limit is refused: %v", r.Problems)
	}
}

// TestProblemsAreBounded fills a tree with problems: what is kept is bounded,
// the same on every run, and says that there is more.
func TestProblemsAreBounded(t *testing.T) {
	var bad strings.Builder
	for i := range 130 {
		fmt.Fprintf(&bad, "k%d: 1\n", i)
	}
	var files []string
	for i := range 1500 {
		files = append(files, fmt.Sprintf("webhooks/w%04d.yaml", i), bad.String())
	}
	r := load(t, nil, files...)
	if n := len(r.Problems); n < 10_000 || n > 60_000 || r.Valid() {
		t.Errorf("%d problems", n)
	}
	each := map[string]int{}
	more := 0
	for _, p := range r.Problems {
		each[p.Path]++
		if p.Code == "more-problems" {
			more++
		}
	}
	if len(each) != 1500 || more != 1500 || each["webhooks/w0000.yaml"] != 101 || each["webhooks/w1499.yaml"] != 2 {
		t.Errorf("%d files have problems, %d say that there are more; the first has %d and the last %d", len(each), more, each["webhooks/w0000.yaml"], each["webhooks/w1499.yaml"])
	}
	if again := load(t, nil, files...); !slices.EqualFunc(r.Problems, again.Problems, func(a, b schema.Problem) bool { a.Fix, b.Fix = nil, nil; return a == b }) {
		t.Error("two runs keep other problems")
	}
	// One file that names too much.
	r = load(t, nil, "webhooks/ci.yaml", "secretName: A\n", "automations/a/automation.md", automation(strings.Repeat("ci, ", 30_000)+"ci"))
	if n := len(r.Problems); n > 110 || r.Valid() {
		t.Errorf("%d problems", n)
	}
}

func TestLoadContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := schema.LoadContext(ctx, os.DirFS(fixtures+"/ok/full"), nil)
	if !errors.Is(r.Err, context.Canceled) || r.Valid() || r.Factory != nil {
		t.Errorf("given up: %+v", r)
	}
}

// TestUnfoldedTreeIsBounded has a small tree whose automations would each be given one long prompt.
func TestUnfoldedTreeIsBounded(t *testing.T) {
	tree := fstest.MapFS{"agents/lead/agent.md": {Data: []byte("---\nagentType: FOREMAN\n---\n" + strings.Repeat("Go on. ", 30_000))}}
	automation := &fstest.MapFile{Data: []byte("---\ntriggers:\n  - provider: schedule\n    event: cron_fired\n    schedule:\n      cron: '@daily'\n---\nGo.\n")}
	for i := range 600 {
		tree[fmt.Sprintf("automations/a%d/automation.md", i)] = automation
	}
	if r := schema.Load(tree, nil); !r.Valid() {
		t.Errorf("600 automations: %+v", r.Problems)
	}
	for i := range 200 {
		tree[fmt.Sprintf("automations/b%d/automation.md", i)] = automation
	}
	if r := schema.Load(tree, nil); r.Valid() || len(r.Problems) != 1 || r.Problems[0].Code != "tree-too-large" {
		t.Errorf("800 automations: %+v", r.Problems)
	}
}

// TestRulesHaveEntries holds that every constant of a rule has its entry in the table.
func TestRulesHaveEntries(t *testing.T) {
	for i, r := range schema.Rules() {
		if r.Code == "" || r.Severity == "" {
			t.Errorf("rule %d has no entry", i+1)
		}
		if id := schema.RuleID(i + 1); id.Rule() != r || id.Code() != r.Code {
			t.Errorf("rule %d is %v and %v", i+1, id.Rule(), r)
		}
	}
}
