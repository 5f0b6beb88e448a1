//go:build unix

package worker

import (
	"maps"
	"slices"

	"millwright/runs/worker/preset"
	"millwright/schema/agentconfig"
)

// given is what a run's configuration asks of the agent of a preset, and what of it does not reach the agent.
type given struct {
	out     *recorder
	harness string
	preset  string
	fields  []string          // that the configuration sets
	lost    map[string]string // with the reasons
}

// newGiven lists the fields of a run's configuration: MCP servers and skills each by its name.
func newGiven(
	out *recorder,
	harness string,
	p preset.Preset,
	c agentconfig.AmbientAgentConfig,
	t preset.Task,
) *given {
	g := &given{out: out, harness: harness, preset: p.Name, lost: map[string]string{}}
	elsewhere := p.Skills == "" && len(t.Skills) > 0
	for field, set := range map[string]bool{
		"model_id":             c.ModelID != "",
		"base_prompt":          c.BasePrompt != "",
		"reasoning_level":      c.ReasoningLevel() != "",
		"environment_id":       c.EnvironmentID != "",
		"runner_id":            c.RunnerID != "",
		"skill_spec":           c.SkillSpec != "",
		"skills":               c.ListsSkills() || elsewhere,
		"idle_timeout_minutes": c.IdleTimeoutMinutes != 0,
	} {
		if set {
			g.fields = append(g.fields, field)
		}
	}

	for name := range t.Servers {
		g.fields = append(g.fields, "mcp_servers."+name)
	}
	for _, s := range t.Skills {
		if elsewhere {
			break
		}
		g.fields = append(g.fields, "skills."+s.Name)
	}

	slices.Sort(g.fields)
	return g
}

// lose records that a field does not reach the agent.
func (g *given) lose(field, reason string) {
	g.lost[field] = reason
	g.out.Add(preset.Event("config_not_applied", map[string]string{
		"field": field, "harness": g.harness, "reason": reason,
	}))
}

// loseAll is lose for several fields, in their order.
func (g *given) loseAll(reasons map[string]string) {
	for _, field := range slices.Sorted(maps.Keys(reasons)) {
		g.lose(field, reasons[field])
	}
}

// tell records the fields that reach the agent, and whether it goes on with the session that it left.
func (g *given) tell(resumed bool) {
	session := "new"
	if resumed {
		session = "resumed"
	}

	applied := []string{}
	for _, field := range g.fields {
		if g.lost[field] == "" {
			applied = append(applied, field)
		}
	}

	g.out.Add(preset.Event("config_applied", map[string]any{
		"harness": g.harness, "preset": g.preset, "session": session, "fields": applied,
	}))
}
