package runs

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"millwright/api"
	"millwright/schema"
	"millwright/state"
)

// ListEnvironmentsResponse lists the environments of the settings, and those that definitions name.
type ListEnvironmentsResponse struct {
	Environments []Environment `json:"environments" nullable:"false" doc:"The environments, by identifier"`
}

// Environment is an environment that runs can name.
type Environment struct {
	UID         string            `json:"uid" doc:"Its identifier, as definitions have it"`
	Config      EnvironmentConfig `json:"config" doc:"What is known of it"`
	LastUpdated time.Time         `json:"last_updated" doc:"When a definition that names it was last applied, or else the server was started"`
	SetupFailed bool              `json:"setup_failed" doc:"Always false: runs set up their environments themselves"`
}

// EnvironmentConfig describes an environment.
type EnvironmentConfig struct {
	Name          string                  `json:"name" doc:"The same as the identifier"`
	DockerImage   string                  `json:"docker_image" doc:"Image of containers; empty: that of the harness"`
	GithubRepos   []EnvironmentRepository `json:"github_repos" nullable:"false" doc:"Repositories to check out, of any forge"`
	SetupCommands []string                `json:"setup_commands" nullable:"false" doc:"Commands that run before the harness"`
}

// EnvironmentRepository is a repository of an environment.
type EnvironmentRepository struct {
	Owner string `json:"owner" doc:"The account or organisation"`
	Repo  string `json:"repo" doc:"The name of the repository"`
}

// ListAgentSkillsResponse lists the skills of the applied definitions.
type ListAgentSkillsResponse struct {
	Agents []AgentSkill `json:"agents" nullable:"false" doc:"The skills, by name"`
}

// AgentSkill is a skill that runs can use, by name.
type AgentSkill struct {
	Name     string              `json:"name" doc:"Name of the skill"`
	Variants []AgentSkillVariant `json:"variants" nullable:"false" doc:"The skills of this name"`
}

// AgentSkillVariant is one skill of a definition.
type AgentSkillVariant struct {
	ID           string           `json:"id" doc:"Value of skill_spec that names the skill" example:"acme/factory:skills/triage/SKILL.md"`
	Description  string           `json:"description" doc:"description of the skill"`
	BasePrompt   string           `json:"base_prompt" doc:"The text of the skill"`
	Source       AgentSkillSource `json:"source" doc:"Where it comes from"`
	Environments []string         `json:"environments" nullable:"false" doc:"Always empty"`
}

// AgentSkillSource is the origin of a skill.
type AgentSkillSource struct {
	Owner     string `json:"owner" doc:"Owner of the repository; of a definition outside a repository: factory"`
	Name      string `json:"name" doc:"Name of the repository; of a definition outside a repository that of the factory"`
	SkillPath string `json:"skill_path" doc:"Path of the file in it"`
}

type environmentsInput struct {
	SortBy string `query:"sort_by" enum:"last_updated,name" default:"last_updated" doc:"What to order by: the last updated first, or by name"`
}

type agentSkillsInput struct {
	Repo string `query:"repo" maxLength:"200" doc:"Only skills of this repository: owner/name"`
}

func (s *service) registerDefinitions() {
	api.Handle(s.api, api.Explained(
		api.Filtered(api.Operation(
			http.MethodGet,
			"/agent/environments",
			"listEnvironments",
			state.RoleViewer,
			"List environments",
		)),
		"Lists the environments of the server's settings, and those that applied definitions name. "+
			"An environment that only definitions name has no effect.",
	), s.environments)

	api.Handle(s.api, api.Explained(
		api.Filtered(api.Operation(
			http.MethodGet,
			"/agent",
			"listAgentSkills",
			state.RoleViewer,
			"List the skills of definitions",
		)),
		"The skills of the applied definitions. GET /agent/skills lists the bundled ones.",
	), s.agentSkills)
}

// environments lists those of the settings, and what definitions name as environmentId.
func (s *service) environments(ctx context.Context, in *environmentsInput) (ListEnvironmentsResponse, error) {
	definitions, err := s.definitions(ctx)
	if err != nil {
		return ListEnvironmentsResponse{}, err
	}

	applied := map[string]time.Time{}
	known := map[string]schema.Environment{}
	if s.Environments != nil {
		maps.Copy(known, s.Environments())
	}
	for id := range known {
		applied[id] = s.began
	}
	for _, d := range definitions {
		for _, e := range d.Tree.Environments {
			if _, ofSettings := known[e.Name]; !ofSettings {
				known[e.Name], applied[e.Name] = e, appliedAt(d.Factory)
			}
		}
		for _, e := range executions(d.Tree) {
			if at := appliedAt(d.Factory); e.EnvironmentID != "" && at.After(applied[e.EnvironmentID]) {
				applied[e.EnvironmentID] = at
			}
		}
	}

	out := ListEnvironmentsResponse{[]Environment{}}
	for id, at := range applied {
		out.Environments = append(out.Environments, Environment{id, environmentConfig(id, known[id]), at, false})
	}

	slices.SortFunc(out.Environments, func(a, b Environment) int {
		if c := b.LastUpdated.Compare(a.LastUpdated); c != 0 && in.SortBy != "name" {
			return c
		}
		return strings.Compare(a.UID, b.UID)
	})

	return out, nil
}

func environmentConfig(id string, e schema.Environment) EnvironmentConfig {
	c := EnvironmentConfig{
		Name:          id,
		DockerImage:   e.DockerImage,
		GithubRepos:   []EnvironmentRepository{},
		SetupCommands: append([]string{}, e.SetupCommands...),
	}
	for _, r := range e.Repositories {
		c.GithubRepos = append(c.GithubRepos, EnvironmentRepository{r.Owner, r.Name})
	}
	return c
}

// executions returns what a definition says of how runs are executed: for all, for agents, for automations.
func executions(tree schema.Factory) []schema.Execution {
	var all []schema.Execution
	if tree.File != nil {
		all = append(all, tree.File.AgentDefaults)
	}
	for _, a := range tree.Agents {
		all = append(all, a.Execution)
	}
	for _, a := range tree.Automations {
		all = append(all, a.Execution)
	}
	return all
}

// appliedAt returns when the factory's definition was last applied.
func appliedAt(f state.Factory) time.Time {
	if f.LastApplied != nil {
		return *f.LastApplied
	}
	return f.Updated
}

// agentSkills lists the skills of the applied definitions.
func (s *service) agentSkills(ctx context.Context, in *agentSkillsInput) (ListAgentSkillsResponse, error) {
	definitions, err := s.definitions(ctx)
	if err != nil {
		return ListAgentSkillsResponse{}, err
	}

	variants := map[string][]AgentSkillVariant{}
	for _, d := range definitions {
		for _, skill := range d.Tree.Skills {
			source := skillSource(d.Factory, skill)
			if in.Repo == "" || in.Repo == source.Owner+"/"+source.Name {
				variants[skill.Name] = append(variants[skill.Name], AgentSkillVariant{
					ID:           source.spec(),
					Description:  skill.Description,
					BasePrompt:   skill.Body,
					Source:       source,
					Environments: []string{},
				})
			}
		}
	}

	out := ListAgentSkillsResponse{[]AgentSkill{}}
	for name, all := range variants {
		out.Agents = append(out.Agents, AgentSkill{name, all})
	}

	slices.SortFunc(out.Agents, func(a, b AgentSkill) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// skillSource returns where a skill of a factory's definition comes from.
func skillSource(f state.Factory, skill schema.Skill) AgentSkillSource {
	source := AgentSkillSource{"factory", f.Name, skill.Path}
	if f.Source.Kind != "git" {
		return source
	}

	source.SkillPath = path.Join(f.Source.Path, skill.Path)
	place := f.Source.URL
	if u, err := url.Parse(place); err == nil && u.Host != "" {
		place = u.Path
	}

	segments := strings.FieldsFunc(strings.TrimSuffix(place, ".git"), func(r rune) bool { return r == '/' || r == ':' })
	if n := len(segments); n >= 2 {
		source.Owner, source.Name = segments[n-2], segments[n-1]
	}

	return source
}

func (s AgentSkillSource) spec() string { return s.Owner + "/" + s.Name + ":" + s.SkillPath }
