package plan_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// tree is a definition tree: content by path.
type tree map[string]string

func (t tree) fs() fs.FS {
	m := fstest.MapFS{}
	for name, content := range t {
		m[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return m
}

// with returns the tree with files changed; an empty content removes the file.
func (t tree) with(pairs ...string) tree {
	out := tree{}
	for name, content := range t {
		out[name] = content
	}
	for i := 0; i < len(pairs); i += 2 {
		if out[pairs[i]] = pairs[i+1]; pairs[i+1] == "" {
			delete(out, pairs[i])
		}
	}
	return out
}

// bench is a state with one factory and a few secrets.
type bench struct {
	t     *testing.T
	store *state.Store
	uid   string
}

func newBench(t *testing.T, s *state.Store) *bench {
	t.Helper()
	f, err := s.EnsureFactory(t.Context(), "default", state.Source{Kind: "dir", Path: "/x"}, false)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t, s, f.UID}
	for _, name := range []string{"A", "B", "C"} {
		b.secret(name, "value-of-"+name)
	}
	return b
}

func (b *bench) secret(name, value string) {
	b.t.Helper()
	if _, err := b.store.SetSecret(context.Background(), name, []byte(value)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) current() state.Current {
	b.t.Helper()
	cur, err := b.store.Current(context.Background(), b.uid)
	if err != nil {
		b.t.Fatal(err)
	}
	return cur
}

func (b *bench) plan(t tree, opts plan.Options) (plan.Plan, *state.ChangeSet) {
	b.t.Helper()
	p, app := plan.Make(b.current(), t.fs(), opts)
	if p.Err != nil {
		b.t.Fatal(p.Err)
	}
	if p.WouldApply != (app != nil) {
		b.t.Fatalf("would_apply is %v, application %v", p.WouldApply, app)
	}
	return p, app
}

func (b *bench) apply(t tree, revision string) plan.Plan {
	b.t.Helper()
	p, app := b.plan(t, plan.Options{Revision: state.Revision{ID: revision}, AllowPrune: true, AllowRename: true})
	if app == nil {
		b.t.Fatalf("not applied: %+v", p.Problems)
	}
	if err := b.store.Apply(context.Background(), *app); err != nil {
		b.t.Fatal(err)
	}
	return p
}

func actions(p plan.Plan) string {
	var parts []string
	for _, c := range p.Changes {
		parts = append(parts, c.Action+" "+c.Kind+" "+c.Name)
	}
	return strings.Join(parts, ", ")
}

func codes(p plan.Plan, severity schema.Severity) []string {
	var out []string
	for _, q := range p.Problems {
		if q.Severity == severity {
			out = append(out, q.Code)
		}
	}
	return out
}

func uidOf(t *testing.T, p plan.Plan, name string) string {
	t.Helper()
	for _, c := range p.Changes {
		if c.Kind == plan.KindWebhook && c.Name == name {
			return c.UID
		}
	}
	t.Fatalf("no webhook %q in the plan", name)
	return ""
}

func hook(secret string, extra ...string) string {
	return "secretName: " + secret + "\n" + strings.Join(extra, "\n") + "\n"
}

func automation(prompt string, uids ...string) string {
	ids, _ := json.Marshal(uids)
	return "---\ntriggers:\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids: " + string(ids) + "\n---\n" + prompt + "\n"
}

func TestEveryActionIsPlanned(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBench(t, s)
		base := tree{"webhooks/one.yaml": hook("A"), "webhooks/two.yaml": hook("B")}
		first, _ := b.plan(base, plan.Options{Revision: state.Revision{ID: "r1"}})
		if got, want := actions(first), "create webhook one, create webhook two"; got != want {
			t.Errorf("first plan: %s, want %s", got, want)
		}
		if first.BaseRevision != "" || first.HeadRevision != "r1" {
			t.Errorf("revisions %q, %q", first.BaseRevision, first.HeadRevision)
		}
		one := uidOf(t, first, "one")
		base = base.with("automations/go/automation.md", automation("Do it.", one))
		applied := b.apply(base, "r1")
		if got := uidOf(t, applied, "one"); got != one {
			t.Errorf("the plan said %s and the apply gave %s", one, got)
		}
		if again, _ := b.plan(base, plan.Options{}); actions(again) != "unchanged webhook one, unchanged webhook two, unchanged automation go" || again.BaseRevision != "r1" {
			t.Errorf("after the apply: %s from %q", actions(again), again.BaseRevision)
		}
		next := base.with("webhooks/one.yaml", hook("A", "enabled: false", "deliveryIdHeader: X-Id"), "webhooks/two.yaml", "", "webhooks/three.yaml", hook("C"), "automations/go/automation.md", automation("Do that.", one))
		p, _ := b.plan(next, plan.Options{})
		if got, want := actions(p), "update webhook one, create webhook three, delete webhook two, update automation go"; got != want {
			t.Errorf("next plan: %s, want %s", got, want)
		}
		want := []plan.Field{{Name: "deliveryIdHeader", New: "X-Id"}, {Name: "enabled", Old: true, New: false}}
		if diff := cmp.Diff(want, p.Changes[0].Fields); diff != "" {
			t.Errorf("fields of webhook one (-want +got):\n%s", diff)
		}
		if got := p.Changes[0]; got.UID != one || got.File != "webhooks/one.yaml" || got.Line != 1 {
			t.Errorf("webhook one: %+v", got)
		}
	})
}

func TestPlanChangesNothing(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBench(t, s)
		b.apply(tree{"webhooks/one.yaml": hook("A")}, "r1")
		before := b.current()
		b.plan(tree{"webhooks/two.yaml": hook("B")}, plan.Options{Revision: state.Revision{ID: "r2"}})
		after := b.current()
		if diff := cmp.Diff(before.Webhooks, after.Webhooks); diff != "" || before.Factory.Generation != after.Factory.Generation {
			t.Errorf("a plan changed the state:\n%s", diff)
		}
	})
}

func TestSecretsArePickedUpByTheNextApply(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBench(t, s)
		base := tree{"webhooks/one.yaml": hook("A"), "webhooks/two.yaml": hook("A"), "webhooks/three.yaml": hook("B")}
		b.apply(base, "r1")
		b.secret("A", "another")
		p, app := b.plan(base, plan.Options{})
		if diff := cmp.Diff([]plan.Secret{{Name: "A", Version: 2, Webhooks: []string{"one", "two"}}}, p.Secrets); diff != "" {
			t.Errorf("secrets (-want +got):\n%s", diff)
		}
		if strings.Contains(actions(p), "update") || app.Counts.Secrets != 2 || app.Empty() {
			t.Errorf("%s, counts %+v", actions(p), app.Counts)
		}
		b.apply(base.with("webhooks/three.yaml", hook("B", "enabled: false")), "r2")
		if p, app := b.plan(base.with("webhooks/three.yaml", hook("B", "enabled: false")), plan.Options{}); len(p.Secrets) != 0 || !app.Empty() {
			t.Errorf("after an apply of another file: %+v", p.Secrets)
		}
		if p, _ := b.plan(base.with("webhooks/one.yaml", hook("B")), plan.Options{}); len(p.Secrets) != 0 {
			t.Errorf("a webhook that changes its secretName picks up nothing: %+v", p.Secrets)
		}
	})
}

func TestGuards(t *testing.T) {
	four := tree{"webhooks/a.yaml": hook("A"), "webhooks/b.yaml": hook("B"), "webhooks/c.yaml": hook("C"), "webhooks/d.yaml": hook("A", "enabled: false")}
	two := tree{"webhooks/a.yaml": hook("A"), "webhooks/b.yaml": hook("B")}
	tests := []struct {
		name     string
		from, to tree
		opts     plan.Options
		want     []string
	}{
		{"one of one", tree{"webhooks/a.yaml": hook("A")}, tree{}, plan.Options{}, nil},
		{"one of two", two, two.with("webhooks/a.yaml", ""), plan.Options{}, nil},
		{"both of two", two, tree{}, plan.Options{}, []string{"prune-guard"}},
		{"both of two, allowed", two, tree{}, plan.Options{AllowPrune: true}, nil},
		{"both of two, others added", two, tree{"webhooks/c.yaml": hook("C")}, plan.Options{}, []string{"prune-guard"}},
		{"half of four", four, four.with("webhooks/a.yaml", "", "webhooks/b.yaml", ""), plan.Options{}, nil},
		{"three of four", four, tree{"webhooks/a.yaml": hook("A")}, plan.Options{}, []string{"prune-guard"}},
		{"two of three", four.with("webhooks/d.yaml", ""), tree{"webhooks/a.yaml": hook("A")}, plan.Options{}, nil},
		{"renamed", two, two.with("webhooks/a.yaml", "", "webhooks/z.yaml", hook("A")), plan.Options{}, []string{"webhook-renamed"}},
		{"renamed with defaults written out", two, two.with("webhooks/a.yaml", "", "webhooks/z.yaml", hook("A", "enabled: true", "# same")), plan.Options{}, []string{"webhook-renamed"}},
		{"renamed, allowed", two, two.with("webhooks/a.yaml", "", "webhooks/z.yaml", hook("A")), plan.Options{AllowRename: true}, nil},
		{"renamed and edited", two, two.with("webhooks/a.yaml", "", "webhooks/z.yaml", hook("A", "enabled: false")), plan.Options{}, []string{"webhook-renamed"}},
		{"the only one renamed and edited", tree{"webhooks/a.yaml": hook("A")}, tree{"webhooks/z.yaml": hook("A", "authMode: url_token")}, plan.Options{}, []string{"webhook-renamed"}},
		{"renamed and edited, allowed", two, two.with("webhooks/a.yaml", "", "webhooks/z.yaml", hook("A", "enabled: false")), plan.Options{AllowRename: true}, nil},
		{"another secret in its place", two, two.with("webhooks/a.yaml", "", "webhooks/z.yaml", hook("C", "enabled: false")), plan.Options{}, nil},
		{"a secret that one which stays uses too", four, four.with("webhooks/a.yaml", "", "webhooks/z.yaml", hook("A", "deliveryIdHeader: X-Id")), plan.Options{}, nil},
		{"two that use the secret of the removed one", two, two.with("webhooks/a.yaml", "", "webhooks/y.yaml", hook("A", "enabled: false"), "webhooks/z.yaml", hook("A", "deliveryIdHeader: X-Id")), plan.Options{}, nil},
		{"one of the same content and one of the same secret", two, two.with("webhooks/a.yaml", "", "webhooks/y.yaml", hook("A", "enabled: false"), "webhooks/z.yaml", hook("A")), plan.Options{}, []string{"webhook-renamed"}},
		{"copied", two, two.with("webhooks/z.yaml", hook("A")), plan.Options{}, nil},
		{"one removed, two like it added", two, two.with("webhooks/a.yaml", "", "webhooks/y.yaml", hook("A"), "webhooks/z.yaml", hook("A")), plan.Options{}, []string{"webhook-renamed"}},
		{"both renamed", two, tree{"webhooks/y.yaml": hook("A"), "webhooks/z.yaml": hook("B")}, plan.Options{}, []string{"prune-guard", "webhook-renamed", "webhook-renamed"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, statetest.Open(t, statetest.SQLite(t)))
			b.apply(test.from, "r1")
			p, _ := b.plan(test.to, test.opts)
			if got := codes(p, schema.SeverityError); !slices.Equal(got, test.want) {
				t.Errorf("errors %v, want %v", got, test.want)
			}
			for _, q := range p.Problems {
				if q.Severity == schema.SeverityError && !strings.Contains(q.Hint, "millwright sync --allow-") {
					t.Errorf("%s does not say how to allow it: %q", q.Code, q.Hint)
				}
			}
		})
	}
}

func TestSenderContract(t *testing.T) {
	b := newBench(t, statetest.Open(t, statetest.SQLite(t)))
	b.apply(tree{"webhooks/a.yaml": hook("A")}, "r1")
	p, _ := b.plan(tree{"webhooks/a.yaml": hook("A", "authMode: signature", "signatureScheme: github")}, plan.Options{})
	if !p.WouldApply || !slices.Contains(codes(p, schema.SeverityWarning), schema.RuleSenderContract.Code()) {
		t.Errorf("changed mode: would apply %v, %+v", p.WouldApply, p.Problems)
	}
	b.apply(tree{"webhooks/a.yaml": hook("A", "authMode: signature", "signatureScheme: github")}, "r2")
	p, _ = b.plan(tree{"webhooks/a.yaml": hook("A", "authMode: signature", "signatureScheme: stripe")}, plan.Options{})
	if !slices.Contains(codes(p, schema.SeverityWarning), schema.RuleSenderContract.Code()) {
		t.Errorf("changed scheme: %+v", p.Problems)
	}
	p, _ = b.plan(tree{"webhooks/a.yaml": hook("B", "authMode: signature", "signatureScheme: github")}, plan.Options{})
	if slices.Contains(codes(p, schema.SeverityWarning), schema.RuleSenderContract.Code()) {
		t.Errorf("changed secret: %+v", p.Problems)
	}
	custom := func(header string) tree {
		return tree{"webhooks/a.yaml": hook("A", "authMode: signature", "signatureScheme: custom", "customScheme: {alg: hmac-sha256, header: "+header+", encoding: hex, template: '{body}'}")}
	}
	b.apply(custom("X-Sign"), "r3")
	for header, want := range map[string]bool{"X-Sign": false, "X-Signature": true} {
		p, _ = b.plan(custom(header), plan.Options{})
		if !p.WouldApply || slices.Contains(codes(p, schema.SeverityWarning), schema.RuleSenderContract.Code()) != want {
			t.Errorf("custom scheme with the header %s: %+v", header, p.Problems)
		}
	}
}

func TestUIDs(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBench(t, s)
		with, without := tree{"webhooks/a.yaml": hook("A")}, tree{"README.md": "x"}
		planned, _ := b.plan(with, plan.Options{})
		first := uidOf(t, planned, "a")
		for range 3 {
			planned, _ := b.plan(with, plan.Options{})
			uid := uidOf(t, planned, "a")
			if uid != first {
				t.Fatalf("UID %s, and first %s", uid, first)
			}
			b.apply(with, "r")
			b.apply(tree{"webhooks/a.yaml": hook("B", "authMode: url_token")}, "r")
			if ws := b.current().Webhooks; len(ws) != 1 || ws[0].UID != uid {
				t.Fatalf("webhooks %+v, want the one with UID %s", ws, uid)
			}
			b.apply(without, "r")
			if ws := b.current().Webhooks; len(ws) != 0 {
				t.Fatalf("webhooks %+v, want none", ws)
			}
		}
	})
}

func TestAnAutomationThatSelectsADeletedWebhookIsWarnedAbout(t *testing.T) {
	b := newBench(t, statetest.Open(t, statetest.SQLite(t)))
	base := tree{"webhooks/a.yaml": hook("A"), "webhooks/b.yaml": hook("B")}
	uid := uidOf(t, b.apply(base, "r1"), "a")
	base = base.with("automations/x/automation.md", automation("Go.", uid))
	if p := b.apply(base, "r2"); len(p.Problems) != 0 {
		t.Fatalf("problems %+v", p.Problems)
	}
	p, _ := b.plan(base.with("webhooks/a.yaml", ""), plan.Options{})
	if !p.WouldApply || !slices.Contains(codes(p, schema.SeverityWarning), "webhook-unknown") {
		t.Errorf("would apply %v, problems %+v", p.WouldApply, p.Problems)
	}
}

func TestErrorsAreAllReportedAndNothingIsPlanned(t *testing.T) {
	b := newBench(t, statetest.Open(t, statetest.SQLite(t)))
	p, _ := b.plan(tree{"webhooks/a.yaml": hook("NONE"), "webhooks/b.yaml": "secretName: A\nsecretname: A\n"}, plan.Options{})
	if got := codes(p, schema.SeverityError); !slices.Equal(got, []string{"secret-missing", "unknown-key"}) {
		t.Errorf("errors %v", got)
	}
	if p.WouldApply || len(p.Changes) != 0 {
		t.Errorf("would apply %v, changes %v", p.WouldApply, p.Changes)
	}
	if len(p.WebhookUIDs) != 2 || !schema.ParseUID(p.WebhookUIDs["a"]) {
		t.Errorf("UIDs %v: a tree with errors has them too, so that they can be written into it", p.WebhookUIDs)
	}
}

func TestJSON(t *testing.T) {
	b := newBench(t, statetest.Open(t, statetest.SQLite(t)))
	p, _ := b.plan(tree{"README.md": ""}, plan.Options{
		HarnessTypes: []string{"echo"}, ForgeKinds: []string{}, Reserved: map[string]string{},
		Revision: state.Revision{ID: "r9"},
	})
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"would_apply":true,"base_revision":"","head_revision":"r9","changes":[],"secrets":[],"problems":[]}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestAnUnreadableTreeIsNeitherGoodNorBad(t *testing.T) {
	b := newBench(t, statetest.Open(t, statetest.SQLite(t)))
	p, app := plan.Make(b.current(), broken{}, plan.Options{})
	if p.Err == nil || app != nil || p.WouldApply {
		t.Errorf("err %v, application %v, would apply %v", p.Err, app, p.WouldApply)
	}
}

// broken is a file system that cannot be read.
type broken struct{}

func (broken) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

func TestEveryKindIsPlanned(t *testing.T) {
	b := newBench(t, statetest.Open(t, statetest.SQLite(t)))
	full := tree{
		"factory.yaml":                  "schemaVersion: v1alpha1\nname: f\nrepositories:\n  - owner: o\n    name: r\nagentDefaults:\n  model: m\n",
		"agents/boss/agent.md":          "---\nagentType: FOREMAN\n---\nLead.\n",
		"agents/boss/skills/s/SKILL.md": "---\nname: s\ndescription: d\n---\nOne.\n",
		"skills/s/SKILL.md":             "---\nname: s\ndescription: d\n---\nAll.\n",
		"runners/big.yaml":              "platform: {os: macos}\n",
		"webhooks/w.yaml":               hook("A"),
	}
	p := b.apply(full, "r1")
	want := "create factory factory.yaml, create webhook w, create agent boss, create runner big, create skill boss/s, create skill s"
	if got := actions(p); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	p = b.apply(full.with("factory.yaml", "", "agents/boss/skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\nTwo.\n"), "r2")
	want = "delete factory factory.yaml, unchanged webhook w, unchanged agent boss, unchanged runner big, update skill boss/s, unchanged skill s"
	if got := actions(p); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if b.current().Tree.File != nil {
		t.Error("factory.yaml is still applied")
	}
	b.apply(full, "r3")
	if p, app := b.plan(full, plan.Options{}); !app.Empty() {
		t.Errorf("an applied tree is not unchanged: %s", actions(p))
	}
}

// TestBrokenRevisions applies the tree before of each fixture that only a plan can judge, and compares what
// the plan of the tree after says with the fixture's page. UIDs differ from state to state.
func TestBrokenRevisions(t *testing.T) {
	const fixtures = "../../testdata/factories/err/"
	uid := regexp.MustCompile(`wh_[0-9a-z]{26}`)
	for _, name := range []string{"deliveries-limit", "prune-guard", "sender-contract", "webhook-last", "webhook-renamed"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, statetest.Open(t, statetest.SQLite(t)))
			b.secret("CI_TOKEN", "x")
			b.secret("GITHUB_SECRET", "y")
			p, app := plan.Make(b.current(), os.DirFS(fixtures+name+"/before"), plan.Options{Revision: state.Revision{ID: "r1"}})
			if app == nil {
				t.Fatalf("the tree before is refused: %v", p.Problems)
			}
			if err := b.store.Apply(t.Context(), *app); err != nil {
				t.Fatal(err)
			}
			if name == "webhook-last" {
				b.accept(b.current().Webhooks[0])
			}
			p, app = plan.Make(b.current(), os.DirFS(fixtures+name+"/after"), plan.Options{MaxDeliveries: 600})
			var got strings.Builder
			refused := false
			for _, problem := range p.Problems {
				got.WriteString(schema.Text(problem, nil) + "\n")
				refused = refused || problem.Severity == schema.SeverityError
			}
			if refused != (app == nil) {
				t.Errorf("refused is %v, and the application %v", refused, app)
			}
			want, err := os.ReadFile(fixtures + name + "/expected.txt")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(uid.ReplaceAllString(string(want), "wh_"), uid.ReplaceAllString(got.String(), "wh_")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestLines follows the line of a resource through revisions that only move it and so do not change it.
func TestLines(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		b := newBench(t, s)
		first := tree{"webhooks/a.yaml": hook("A")}
		first["automations/x/automation.md"] = automation("Go.", b.apply(first, "r1").Changes[0].UID)
		b.apply(first, "r2")
		second := first.with("webhooks/a.yaml", "# Who posts here.\n\n"+hook("A"), "automations/x/automation.md", strings.Replace(first["automations/x/automation.md"], "---\n", "---\n# Why.\n", 1))
		for _, c := range b.apply(second, "r3").Changes {
			if c.Action != plan.ActionUnchanged || c.Line != 3 {
				t.Errorf("%s %s: %s, line %d", c.Kind, c.Name, c.Action, c.Line)
			}
		}
		cur := b.current()
		if w, a := cur.Webhooks[0].Spec, cur.Tree.Automations[0]; w.Line != 3 || a.Line != 3 {
			t.Errorf("kept: %s:%d and %s:%d", w.Path, w.Line, a.Path, a.Line)
		}
	})
}
