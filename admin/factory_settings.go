package admin

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"

	"millwright/schema"
	"millwright/schema/agentconfig"
	"millwright/state"
)

// FactorySettings are the settings of factory.yaml for all runs of a factory, in the terms of clients that
// other servers with this API have too.
type FactorySettings struct {
	TeamUID            string               `json:"team_uid" doc:"Always empty: a server has one team"`
	AgentDefaults      FactoryAgentDefaults `json:"agent_defaults" doc:"Defaults of runs; agents and automations override them"`
	DefaultModel       *string              `json:"default_model" nullable:"true" doc:"The language model of agentDefaults"`
	DefaultEnvironment *string              `json:"default_environment" nullable:"true" doc:"environmentId of agentDefaults"`
	CredentialStrategy string               `json:"credential_strategy" enum:"CREATOR,EXECUTOR" doc:"credentialStrategy of factory.yaml; EXECUTOR where it has none"`
	CodeForge          string               `json:"code_forge" enum:"GITHUB,GITLAB,AZURE_DEVOPS,NONE" doc:"Host of the source, judged by its address"`
	CodeForges         []string             `json:"code_forges" nullable:"false" doc:"code_forge alone"`
	Integrations       []FactoryIntegration `json:"integrations" nullable:"false" doc:"integrations of factory.yaml"`
	Scoring            map[string]any       `json:"scoring" doc:"Always empty"`
	ScorerDefaults     map[string]any       `json:"scorer_defaults" doc:"Always empty"`
}

// FactoryAgentDefaults is agentDefaults of factory.yaml, with the secrets and MCP servers of all runs.
type FactoryAgentDefaults struct {
	DefaultRunnerUID string                     `json:"default_runner_uid" doc:"Name of the runner, or empty"`
	WorkerHost       string                     `json:"worker_host" doc:"Where runs are executed, or empty"`
	Harness          *FactoryHarness            `json:"harness,omitempty" doc:"What executes runs"`
	Secrets          []FactorySecret            `json:"secrets" nullable:"false" doc:"The team secrets that runs get"`
	MCPServers       map[string]json.RawMessage `json:"mcp_servers" doc:"Tools through MCP, by name; values of env and headers are ***, but for references to secrets"`
}

// FactoryHarness selects what executes runs.
type FactoryHarness struct {
	Type           string `json:"type" doc:"Name of a configured harness"`
	ModelID        string `json:"model_id,omitempty" doc:"The language model"`
	ReasoningLevel string `json:"reasoning_level,omitempty" doc:"How hard the model is to think"`
}

// FactorySecret names a team secret.
type FactorySecret struct {
	Name string `json:"name" doc:"Name of the secret"`
}

// FactoryIntegration names a tracker of a factory.
type FactoryIntegration struct {
	Type string `json:"type" doc:"Its kind" example:"linear"`
}

// factorySettings describes what factory.yaml says of all runs.
func factorySettings(f state.Factory) FactorySettings {
	forge := codeForge(f.Source.URL)
	out := FactorySettings{
		AgentDefaults: FactoryAgentDefaults{
			Secrets:    []FactorySecret{},
			MCPServers: map[string]json.RawMessage{},
		},
		CredentialStrategy: "EXECUTOR",
		CodeForge:          forge,
		CodeForges:         []string{forge},
		Integrations:       []FactoryIntegration{},
		Scoring:            map[string]any{},
		ScorerDefaults:     map[string]any{},
	}
	if f.Spec == nil {
		return out
	}

	exec := (&schema.Factory{File: f.Spec}).ResolveAgent(schema.Agent{})
	model := exec.Model
	if exec.Harness != nil && model == "" {
		model = exec.Harness.Model
	}

	out.CredentialStrategy = cmp.Or(f.Spec.CredentialStrategy, out.CredentialStrategy)
	out.DefaultModel, out.DefaultEnvironment = orNull(model), orNull(exec.EnvironmentID)
	out.AgentDefaults.DefaultRunnerUID = exec.Runner
	out.AgentDefaults.WorkerHost = exec.WorkerHost
	if h := exec.Harness; h != nil {
		out.AgentDefaults.Harness = &FactoryHarness{h.Type, h.Model, h.ReasoningLevel}
	}

	for _, name := range exec.Secrets {
		out.AgentDefaults.Secrets = append(out.AgentDefaults.Secrets, FactorySecret{name})
	}

	for name, raw := range exec.MCPServers {
		out.AgentDefaults.MCPServers[name] = maskedServer(raw)
	}

	for _, in := range f.Spec.Integrations {
		out.Integrations = append(out.Integrations, FactoryIntegration{in.Type})
	}

	return out
}

// maskedServer returns an MCP server of a definition without the values of env and headers.
func maskedServer(raw json.RawMessage) json.RawMessage {
	var server any
	if err := json.Unmarshal(raw, &server); err != nil {
		return json.RawMessage("{}")
	}

	text, err := json.Marshal(agentconfig.MaskValue(server))
	if err != nil {
		return json.RawMessage("{}")
	}

	return text
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// codeForge returns the host of a repository, judged by its address.
func codeForge(address string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(address, "git@"), ":")
	if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
		host = u.Hostname()
	}

	switch {
	case host == "dev.azure.com", strings.HasSuffix(host, ".visualstudio.com"):
		return "AZURE_DEVOPS"
	case strings.Contains(host, "github"):
		return "GITHUB"
	case strings.Contains(host, "gitlab"):
		return "GITLAB"
	}

	return "NONE"
}
