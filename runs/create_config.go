package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"millwright/forge"
	"millwright/runs/wire"
	"millwright/schema"
	"millwright/schema/agentconfig"
	"millwright/state"
)

// skillName returns the name of a skill, or the directory of its SKILL.md, which at the root of a
// repository is the repository.
func skillName(spec string) string {
	repository, rest, qualified := strings.Cut(spec, ":")
	if !qualified {
		repository, rest = "", spec
	}

	if path.Base(rest) == "SKILL.md" {
		if dir := path.Base(path.Dir(rest)); dir != "." {
			return dir
		}
		if repository != "" {
			return path.Base(repository)
		}
	}

	return path.Base(rest)
}

// ownSkills adds a problem for each skill of the factory's own repository that the definition does not have.
// Skills of other repositories, and those outside of the definition, are the agent's to find.
func (s *service) ownSkills(
	ctx context.Context,
	def state.AgentDefinition,
	c *agentconfig.AmbientAgentConfig,
	p *problems,
) error {
	named := map[string]string{} // field: specification
	if c.SkillSpec != "" {
		named["config.skill_spec"] = c.SkillSpec
	}
	for i, spec := range listedSkills(c) {
		named[fmt.Sprintf("config.skills[%d]", i)] = spec
	}
	if def.FactoryUID == "" || len(named) == 0 {
		return nil
	}

	f, err := s.Store.Factory(ctx, def.FactoryUID)
	if err != nil {
		return err
	}

	own := skillSource(f, schema.Skill{})
	var known []string
	for _, skill := range def.Skills {
		known = append(known, skill.Name)
	}

	for _, field := range slices.Sorted(maps.Keys(named)) {
		repository, skill, _ := strings.Cut(named[field], ":")
		if repository != own.Owner+"/"+own.Name && repository != own.Name {
			continue
		}
		if file, inTree := strings.CutPrefix(skill, path.Join(own.SkillPath, "skills")+"/"); inTree {
			skill = path.Dir(file)
		}
		if strings.Contains(skill, "/") || skill == "SKILL.md" || slices.Contains(known, skill) {
			continue
		}

		p.add(field, "the definition has no skill %q for this agent: it has %s", skill,
			cmp.Or(strings.Join(slices.Sorted(slices.Values(known)), ", "), "none"))
	}

	return nil
}

var (
	fullSkill = regexp.MustCompile(
		`^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+:([A-Za-z0-9_.-]+|([A-Za-z0-9_. -]+/)*SKILL\.md)$`,
	)
	shortSkill = regexp.MustCompile(
		`^([A-Za-z0-9_.-]+/)?[A-Za-z0-9_.-]+:([A-Za-z0-9_.-]+|([A-Za-z0-9_. -]+/)*[A-Za-z0-9_. -]+)$`,
	)
)

// config resolves the configuration of a run: the request overrides the definition.
func (s *service) config(
	ctx context.Context, b *RunAgentRequest, def state.AgentDefinition, p *problems,
) *agentconfig.AmbientAgentConfig {
	c := b.Config
	if c == nil {
		c = &agentconfig.AmbientAgentConfig{}
	}

	given, asked := c.BasePrompt, c.EnvironmentID
	c.Inherit(def.Config)
	if b.Skill != "" {
		if c.SkillSpec = b.Skill; !shortSkill.MatchString(b.Skill) || strings.Contains(b.Skill, "..") ||
			blank(skillName(b.Skill)) {
			p.add("skill", "want owner/repo:skill-name, owner/repo:path/to/SKILL.md, repo:name or repo:path")
		}
	} else if c.SkillSpec != "" && (!fullSkill.MatchString(c.SkillSpec) || strings.Contains(c.SkillSpec, "..")) {
		p.add("config.skill_spec", "want owner/repo:skill-name or owner/repo:path/to/SKILL.md")
	}

	if c.SkillSpec != "" {
		name := skillName(c.SkillSpec)
		if b.Config == nil || b.Config.Name == "" || c.Name == def.Config.Name && def.Config.Name != "" {
			c.Name = name
		}

		for _, skill := range def.Skills {
			if skill.Name == name {
				c.BasePrompt = strings.TrimSpace(skill.Body + "\n\n" + given)
			}
		}
	}

	if specs := listedSkills(c); len(specs) > 0 && c.SkillSpec == "" && c.Name == "" {
		c.Name = skillName(specs[0])
	}

	p.text("config.base_prompt", c.BasePrompt)
	lines := map[string]string{
		"config.name": c.Name, "config.model_id": c.ModelID, "config.environment_id": c.EnvironmentID,
		"config.worker_host": c.WorkerHost, "config.runner_id": c.RunnerID,
	}
	if h := c.Harness; h != nil {
		lines["config.harness.type"], lines["config.harness.reasoning_level"] = h.Type, h.ReasoningLevel
		lines["config.harness.model_id"] = h.ModelID
	}

	for _, field := range slices.Sorted(maps.Keys(lines)) {
		p.line(field, lines[field])
	}

	if h := c.Harness; h != nil && h.Type != "" && h.Type != "oz" && s.Harnesses != nil &&
		!slices.Contains(s.Harnesses, h.Type) {
		p.add(
			"config.harness.type",
			"unknown harness %q: this server has %s",
			h.Type,
			strings.Join(slices.Sorted(slices.Values(s.Harnesses)), ", "),
		)
	}

	s.checkEnvironment(ctx, asked, def, p)
	s.checkRepositories(ctx, c.Repositories, def, p)

	for name, server := range c.MCPServers {
		ways := 0
		for _, v := range []string{server.Command, server.URL, server.WarpID} {
			if v != "" {
				ways++
			}
		}

		if ways != 1 {
			p.add("config.mcp_servers."+name, "want exactly one of command, url and warp_id")
		}

		kept("config.mcp_servers."+name, server.Given(), p)
	}

	kept("config", c.Given(), p)
	return c
}

// checkEnvironment adds a problem for an environment that neither the settings nor the factory of the run have.
func (s *service) checkEnvironment(ctx context.Context, id string, def state.AgentDefinition, p *problems) {
	if id == "" || s.Environments == nil {
		return
	}
	if _, known := s.Environments()[id]; known {
		return
	}
	if _, err := s.Store.Environment(ctx, def.FactoryUID, id); err != nil {
		p.add("config.environment_id", "this server has no environment %q", id)
	}
}

// checkRepositories adds a problem for a repository that the factory of the run may not use.
func (s *service) checkRepositories(
	ctx context.Context,
	all []agentconfig.RunRepository,
	def state.AgentDefinition,
	p *problems,
) {
	factory := ""
	if len(all) > 0 && def.FactoryUID != "" {
		f, err := s.Store.Factory(ctx, def.FactoryUID)
		if err != nil {
			p.add("config.repositories", "the factory cannot be read")
			return
		}
		factory = f.Name
	}

	for i, r := range all {
		field := fmt.Sprintf("config.repositories[%d]", i)
		repo := forge.Repository{Forge: r.CodeForge, Owner: r.Owner, Name: r.Name}
		_, unknown := s.Forges.Of(repo)
		switch {
		case repo.Check() != nil:
			p.add(field, "%v", repo.Check())
		case factory == "":
			p.add(field, "a run of no factory has no repositories: name an agent of a factory")
		case unknown != nil:
			p.add(field, "%v", unknown)
		case !s.Forges.Allowed(factory, repo):
			p.add(field, "the settings of the server do not allow factory %s to use %s", factory, repo)
		case r.Ref != "" && !schema.ValidRef(r.Ref):
			p.add(field+".ref", "not the name of a branch or tag")
		}
	}
}

// kept adds a problem for a value that some clients could not parse when it is returned.
func kept(field string, rest map[string]json.RawMessage, p *problems) {
	for key, value := range rest {
		if wire.Deep(value) {
			p.add(field+"."+key, "at most %d levels of lists and objects", wire.MaxDepth)
		}
	}
}

// listedSkills returns the skills that a configuration lists by their specifications.
func listedSkills(c *agentconfig.AmbientAgentConfig) []string {
	var specs []string
	if json.Unmarshal(c.Given()["skills"], &specs) != nil {
		return nil
	}
	return slices.DeleteFunc(specs, blank)
}
