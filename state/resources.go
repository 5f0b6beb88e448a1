package state

import (
	"encoding/json"

	"millwright/schema"
)

var resourcePrefix = map[string]string{"automation": PrefixAutomation, "agent": PrefixAgent, "runner": PrefixRunner, "skill": PrefixSkill}

// AgentConfig is AmbientAgentConfig (contract.md, section 4) as a definition resolves to it.
type AgentConfig struct {
	Name          string                     `json:"name,omitempty"`
	ModelID       string                     `json:"model_id,omitempty"`
	BasePrompt    string                     `json:"base_prompt,omitempty"`
	EnvironmentID string                     `json:"environment_id,omitempty"`
	MCPServers    map[string]json.RawMessage `json:"mcp_servers,omitempty"`
	Harness       *HarnessConfig             `json:"harness,omitempty"`
	WorkerHost    string                     `json:"worker_host,omitempty"`
	RunnerID      string                     `json:"runner_id,omitempty"`
}

// HarnessConfig selects the harness of a run.
type HarnessConfig struct {
	Type           string `json:"type,omitempty"`
	ModelID        string `json:"model_id,omitempty"`
	ReasoningLevel string `json:"reasoning_level,omitempty"`
}

// ConfigOf returns the configuration that exec and basePrompt resolve to, labelled name.
func ConfigOf(exec schema.Execution, basePrompt, name string) AgentConfig {
	c := AgentConfig{
		Name: name, ModelID: exec.Model, BasePrompt: basePrompt, EnvironmentID: exec.EnvironmentID,
		MCPServers: exec.MCPServers, WorkerHost: exec.WorkerHost, RunnerID: exec.Runner,
	}
	if h := exec.Harness; h != nil {
		c.Harness = &HarnessConfig{Type: h.Type, ModelID: h.Model, ReasoningLevel: h.ReasoningLevel}
		if c.ModelID == "" {
			c.ModelID = h.Model
		}
	}
	return c
}

func routeAutomation(tree schema.Factory, uids map[string]string, a schema.Automation) (RoutedAutomation, error) {
	exec, basePrompt, agent := tree.Resolve(a)
	config := ConfigOf(exec, basePrompt, a.Name)
	raw, err := json.Marshal(config)
	r := RoutedAutomation{UID: uids[ResourceKey("automation", a.Name)], Spec: a, Config: raw, Model: config.ModelID, Env: config.EnvironmentID, Secrets: exec.Secrets}
	if agent != "" {
		r.Agent = uids[ResourceKey("agent", agent)]
	}
	return r, err
}
