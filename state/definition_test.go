package state_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"millwright/schema"
	"millwright/schema/agentconfig"
	"millwright/state"
	"millwright/state/statetest"
)

// TestAppliedFollowsEveryChange changes the resources of a factory at random, few and many at a time. What a
// plan and the ingress are told is what was applied, though only the changes are read; and a process that
// has read nothing yet is told the same.
func TestAppliedFollowsEveryChange(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		s := statetest.Open(t, dsn)
		f, _ := factory(t, s)
		random := rand.New(rand.NewPCG(3, 4))
		want := map[string]any{} // specs by key
		uids := map[string]string{}
		for round := range 60 {
			app := application(t, s, f.UID)
			changes := 1 + random.IntN(3)
			if round%20 == 5 {
				changes = 150
			}
			touched := map[string]bool{}
			for range changes {
				kind := []string{"automation", "agent", "runner", "skill"}[random.IntN(4)]
				name := fmt.Sprintf("%c%d", "Bb_z"[random.IntN(4)], random.IntN(60))
				stored := name
				if kind == "skill" && random.IntN(2) == 0 {
					stored = "a/" + name
				}
				key := state.ResourceKey(kind, stored)
				if touched[key] {
					continue
				}
				touched[key] = true
				if want[key] != nil && random.IntN(3) == 0 {
					app.DeleteResources = append(app.DeleteResources, uids[key])
					delete(want, key)
					continue
				}
				text := fmt.Sprint("Edition ", round)
				spec := map[string]any{
					"automation": schema.Automation{Name: name, Enabled: true, Agent: fmt.Sprintf("b%d", random.IntN(60)), Prompt: text},
					"agent":      schema.Agent{Name: name, AgentType: "CUSTOM", Prompt: text},
					"runner":     schema.Runner{Name: name, Description: text},
					"skill":      schema.Skill{Name: name, Body: text},
				}[kind]
				if stored != name {
					spec = schema.Skill{Name: name, Agent: "a", Body: text}
				}
				c := state.ResourceChange{Kind: kind, Name: stored, Spec: spec}
				if want[key] != nil {
					c.UID = uids[key]
				}
				want[key] = spec
				app.Resources = append(app.Resources, c)
			}
			if round%7 == 0 {
				app.File, app.FileChanged = &schema.FactoryFile{Name: fmt.Sprint("edition-", round), AgentDefaults: schema.Execution{Model: fmt.Sprint("m", round)}}, true
			}
			if err := s.Apply(t.Context(), app); err != nil {
				t.Fatal(err)
			}
			cur, err := s.Current(t.Context(), f.UID)
			if err != nil {
				t.Fatal(err)
			}
			routing, err := s.Routing(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i, a := range cur.Tree.Automations {
				exec, prompt, _ := cur.Tree.Resolve(a)
				want, err := agentconfig.FromDefinition(exec, prompt, a.Name)
				if err != nil {
					t.Fatal(err)
				}
				if r := routing.Factories[0].Automations[i]; string(r.Config) != inJSON(t, want) {
					t.Fatalf("round %d: runs of %s get %s", round, a.Name, r.Config)
				}
			}
			got := map[string]any{}
			for _, a := range cur.Tree.Automations {
				got[state.ResourceKey("automation", a.Name)] = a
			}
			for _, a := range cur.Tree.Agents {
				got[state.ResourceKey("agent", a.Name)] = a
			}
			for _, r := range cur.Tree.Runners {
				got[state.ResourceKey("runner", r.Name)] = r
			}
			for _, k := range cur.Tree.Skills {
				key := state.ResourceKey("skill", k.Name)
				if k.Agent != "" {
					key = state.ResourceKey("skill", k.Agent+"/"+k.Name)
				}
				got[key] = k
			}
			if inJSON(t, got) != inJSON(t, want) {
				t.Fatalf("round %d: applied\n%s\nwant\n%s", round, inJSON(t, got), inJSON(t, want))
			}
			if have := slices.Sorted(maps.Keys(cur.UIDs)); !slices.Equal(have, slices.Sorted(maps.Keys(want))) {
				t.Fatalf("round %d: UIDs of %v", round, have)
			}
			for key, uid := range cur.UIDs {
				if was := uids[key]; was != "" && was != uid && !touched[key] {
					t.Errorf("round %d: %s was %s and is %s", round, key, was, uid)
				}
				uids[key] = uid
			}
		}
		before := told(t, s, f.UID)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if after := told(t, statetest.Open(t, dsn), f.UID); after != before {
			t.Errorf("a process of its own is told\n%s\nwant\n%s", after, before)
		}
	})
}

// told has the resources as a plan and the ingress see them.
func told(t *testing.T, s *state.Store, uid string) string {
	t.Helper()
	cur, err := s.Current(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	routing, err := s.Routing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return inJSON(t, cur.Tree) + inJSON(t, cur.UIDs) + inJSON(t, routing.Factories[0].Automations)
}

func inJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
