package runs

import (
	"context"
	"net/http"
	"slices"
	"time"

	"millwright/api"
	"millwright/schema"
	"millwright/schema/agentconfig"
	"millwright/state"
)

// ListAgentIdentitiesResponse lists the agents of the applied definitions.
type ListAgentIdentitiesResponse struct {
	Agents []AgentIdentity `json:"agents" nullable:"false" doc:"The agents, by factory and name"`
}

// AgentIdentity is an agent of an applied definition, with what the definition gives its runs.
type AgentIdentity struct {
	UID                string                                 `json:"uid" doc:"Identifier, for agent_identity_uid of a run"`
	Name               string                                 `json:"name" doc:"Its name"`
	FactoryUID         string                                 `json:"factory_uid" doc:"The factory whose definition has it"`
	AgentType          string                                 `json:"agent_type" enum:"FOREMAN,TRIAGE,SPEC,IMPLEMENT,REVIEW,VERIFY,CUSTOM" doc:"Its agentType; FOREMAN for MAIN"`
	Available          bool                                   `json:"available" doc:"Always true"`
	Description        string                                 `json:"description" doc:"description of its file, or empty"`
	Prompt             string                                 `json:"prompt" doc:"The text of its file: the base prompt of its runs"`
	BaseModel          string                                 `json:"base_model" doc:"The language model of its runs, or empty"`
	BaseHarness        string                                 `json:"base_harness" doc:"The harness of its runs, or empty for the default one"`
	Harness            *agentconfig.Harness                   `json:"harness,omitempty" doc:"The harness with its settings. type is present for oz, claude, gemini and codex only; base_harness names every harness"`
	EnvironmentID      string                                 `json:"environment_id" doc:"The environment of its runs, or empty"`
	DefaultRunnerUID   string                                 `json:"default_runner_uid" doc:"Name of the runner of its runs, or empty"`
	WorkerHost         string                                 `json:"worker_host" doc:"Where its runs are executed, or empty"`
	CredentialStrategy string                                 `json:"credential_strategy,omitempty" enum:"CREATOR,EXECUTOR" doc:"credentialStrategy of its file"`
	Secrets            []SecretRef                            `json:"secrets" nullable:"false" doc:"The team secrets that its runs get"`
	Skills             []string                               `json:"skills" nullable:"false" doc:"The skills of the definition that it may use, in the form of skill_spec"`
	MCPServers         map[string]agentconfig.MCPServerConfig `json:"mcp_servers" doc:"Tools through MCP of its runs, by name; values of env and headers are ***"`
	Memory             AgentMemory                            `json:"memory" doc:"Memory of the agent; this server has none"`
	CreatedAt          time.Time                              `json:"created_at" doc:"When it was first applied"`
	UpdatedAt          time.Time                              `json:"updated_at" doc:"When its file last changed"`
}

// SecretRef names a team secret.
type SecretRef struct {
	Name string `json:"name" doc:"Name of the secret"`
}

// AgentMemory is the memory of an agent, which is empty.
type AgentMemory struct {
	AttachedStores []string   `json:"attached_stores" nullable:"false" doc:"Always empty"`
	AutoMemory     AutoMemory `json:"auto_memory" doc:"Always off"`
}

// AutoMemory says whether an agent keeps a memory.
type AutoMemory struct {
	Enabled bool `json:"enabled" doc:"Always false"`
}

type identitiesInput struct {
	FactoryUID string `query:"factory_uid" maxLength:"200" doc:"Only agents of this factory"`
}

type identityPath struct {
	UID string `path:"uid" doc:"UID of the agent"`
}

func (s *service) registerIdentities() {
	api.Handle(s.api, api.Explained(
		api.Filtered(
			api.Operation(http.MethodGet, "/agent/identities", "listAgentIdentities", state.RoleViewer, "List agents"),
		),
		"Lists the agents of the applied definitions. To change one, edit its file.",
	), func(ctx context.Context, in *identitiesInput) (ListAgentIdentitiesResponse, error) {
		agents, err := s.identities(ctx, in.FactoryUID)
		return ListAgentIdentitiesResponse{agents}, err
	})

	api.Handle(s.api, api.Explained(
		api.Filtered(api.Operation(
			http.MethodGet,
			"/agent/identities/{uid}",
			"getAgentIdentity",
			state.RoleViewer,
			"Show an agent",
		)),
		"An agent of an applied definition.",
	), func(ctx context.Context, in *identityPath) (AgentIdentity, error) {
		agents, err := s.identities(ctx, "")
		if err != nil {
			return AgentIdentity{}, err
		}

		i := slices.IndexFunc(agents, func(a AgentIdentity) bool { return a.UID == in.UID })
		if i < 0 {
			return AgentIdentity{}, api.Problem("resource_not_found", "no applied agent has the UID %q", in.UID)
		}

		return agents[i], nil
	})
}

// identities returns the agents of one factory, or of all.
func (s *service) identities(ctx context.Context, factoryUID string) ([]AgentIdentity, error) {
	definitions, err := s.definitions(ctx)
	if err != nil {
		return nil, err
	}

	all := []AgentIdentity{}
	for _, d := range definitions {
		if factoryUID != "" && d.Factory.UID != factoryUID {
			continue
		}

		stamps, err := s.Store.ResourceStamps(ctx, d.Factory.UID)
		if err != nil {
			return nil, err
		}

		for _, a := range d.Tree.Agents {
			described, err := identity(d, a, stamps[d.UIDs[state.ResourceKey("agent", a.Name)]])
			if err != nil {
				return nil, err
			}

			all = append(all, described)
		}
	}

	return all, nil
}

// identity describes an agent of a definition.
func identity(d state.Current, a schema.Agent, at state.Stamps) (AgentIdentity, error) {
	exec := d.Tree.ResolveAgent(a)
	config, err := agentconfig.FromDefinition(exec, a.Prompt, a.Name)
	if err != nil {
		return AgentIdentity{}, err
	}
	if _, err := config.Mask(); err != nil {
		return AgentIdentity{}, err
	}

	out := AgentIdentity{
		UID:                d.UIDs[state.ResourceKey("agent", a.Name)],
		Name:               a.Name,
		FactoryUID:         d.Factory.UID,
		AgentType:          a.AgentType,
		Available:          true,
		Description:        a.Description,
		Prompt:             a.Prompt,
		BaseModel:          config.ModelID,
		EnvironmentID:      config.EnvironmentID,
		DefaultRunnerUID:   config.RunnerID,
		WorkerHost:         config.WorkerHost,
		CredentialStrategy: a.CredentialStrategy,
		Secrets:            []SecretRef{},
		Skills:             []string{},
		MCPServers:         map[string]agentconfig.MCPServerConfig{},
		Memory:             AgentMemory{AttachedStores: []string{}},
		CreatedAt:          at.Created,
		UpdatedAt:          at.Updated,
	}

	if config.MCPServers != nil {
		out.MCPServers = config.MCPServers
	}
	if a.IsForeman() {
		out.AgentType = schema.AgentForeman
	}

	if h := config.Harness; h != nil {
		out.BaseHarness = h.Type
		out.Harness = &agentconfig.Harness{ModelID: h.ModelID, ReasoningLevel: h.ReasoningLevel}
		if slices.Contains([]string{"oz", "claude", "gemini", "codex"}, h.Type) {
			out.Harness.Type = h.Type
		}
	}

	for _, name := range exec.Secrets {
		out.Secrets = append(out.Secrets, SecretRef{name})
	}

	for _, skill := range d.Tree.Skills {
		if skill.Agent == "" || skill.Agent == a.Name {
			out.Skills = append(out.Skills, skillSource(d.Factory, skill).spec())
		}
	}

	return out, nil
}
