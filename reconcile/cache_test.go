package reconcile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"millwright/reconcile"
	"millwright/reconcile/plan"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// TestCachesChangeNoPlan pushes random edits, good and bad, and lets the host be away now and then. A loop
// that keeps what it read before plans the same, byte for byte, as one that begins with an empty clone.
func TestCachesChangeNoPlan(t *testing.T) {
	texts := []string{
		"secretName: A\n", "secretName: B\nenabled: false\n", "secretNam: A\n", "secretName: MISSING\n", "{{{",
		"---\ntriggers:\n  - provider: schedule\n    event: cron_fired\n    schedule:\n      cron: '@daily'\n---\nGo.\n",
		"---\nagentType: FOREMAN\n---\nLead.\n", "---\ndescription: One of them.\n---\nWork.\n",
	}
	paths := []string{
		"webhooks/a.yaml", "webhooks/b.yaml", "webhooks/deep/c.yaml", "automations/x/automation.md", "automations/y/automation.md",
		"automations/y/notes.txt", "agents/x/agent.md", "agents/x/skills/s/SKILL.md", "agents/x/skills/t/SKILL.md", "skills/s/SKILL.md", "README.md",
	}
	random := rand.New(rand.NewPCG(5, 6))
	r := newRepository(t)
	s := statetest.Open(t, statetest.SQLite(t))
	allow := func(c *reconcile.Config) { c.AllowPrune, c.AllowRename = true, true }
	b := newBench(t, s, gitSource(t, reconcile.GitConfig{URL: r.fileURL()}), allow)
	now := tree{"webhooks/a.yaml": texts[0]}
	applied, refused := 0, 0
	for round := range 30 {
		for range random.IntN(3) {
			path := paths[random.IntN(len(paths))]
			text := texts[random.IntN(len(texts))]
			if good := map[byte][]string{'w': texts[:2], 'a': texts[5:]}[path[0]]; good != nil && random.IntN(4) > 0 {
				text = good[random.IntN(len(good))]
			}
			if now[path] = text; random.IntN(4) == 0 {
				delete(now, path)
			}
		}
		r.push(now, fmt.Sprint("Edit ", round))
		if round%5 == 3 { // the host is away
			must(t, os.Rename(r.bare, r.bare+".away"))
			b.check(b.Once(t.Context(), reconcile.Request{Force: true}), state.OutcomeFailed, true)
			must(t, os.Rename(r.bare+".away", r.bare))
		}
		fresh := newBench(t, s, gitSource(t, reconcile.GitConfig{URL: r.fileURL()}), allow)
		want, err := fresh.Plan(t.Context(), plan.Allowed{})
		must(t, err)
		for range 2 { // the second time, nothing is new
			got, err := b.Plan(t.Context(), plan.Allowed{})
			must(t, err)
			if g, w := planText(t, got), planText(t, want); g != w {
				t.Fatalf("round %d, %v:\n%s\nis not\n%s", round, slices.Sorted(maps.Keys(now)), g, w)
			}
		}
		switch result := b.Once(t.Context(), reconcile.Request{Force: round%3 == 0}); result.Outcome {
		case state.OutcomeRefused:
			refused++
		case state.OutcomeFailed:
			t.Fatalf("round %d: %v", round, result.Err)
		default:
			applied++
			keptPlan(t, s, b.now().UID)
		}
	}
	if applied < 3 || refused < 3 {
		t.Errorf("%d applied and %d refused: too few of one", applied, refused)
	}
}

// keptPlan checks that the kept files of the definition in force are the definition in force.
func keptPlan(t *testing.T, s *state.Store, factoryUID string) {
	t.Helper()
	kept, err := s.Trees().All(t.Context(), factoryUID)
	must(t, err)
	if len(kept) == 0 || kept[0].Replaced != nil {
		t.Fatalf("the files in force are not kept: %+v", kept)
	}

	files, err := s.Trees().Files(t.Context(), factoryUID, kept[0].Digest)
	must(t, err)
	tree, err := schema.FilesFS(files)
	must(t, err)
	cur, err := s.Current(t.Context(), factoryUID)
	must(t, err)
	_, app := plan.Make(cur, tree, plan.Options{AllowPrune: true, AllowRename: true})
	if app == nil || !app.Empty() {
		t.Fatalf("the kept files are another definition: %+v, %+v", app, files)
	}
}

func planText(t *testing.T, p any) string {
	t.Helper()
	text, err := json.Marshal(p)
	must(t, err)
	return string(text)
}
