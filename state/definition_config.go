package state

import (
	"encoding/json"
	"fmt"

	"millwright/schema"
)

var resourcePrefix = map[string]string{
	"automation": PrefixAutomation,
	"agent":      PrefixAgent,
	"runner":     PrefixRunner,
	"skill":      PrefixSkill,
}

// AgentConfig is AmbientAgentConfig (docs/contract.md, section 4) as a definition resolves to it.
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

// mask replaces the values of env and headers of every MCP server by "***", and returns the servers as
// they were; nil when there was nothing to mask (docs/contract.md, section 4).
func (c *AgentConfig) mask() (servers []byte, err error) {
	masked := make(map[string]json.RawMessage, len(c.MCPServers))
	hides := false
	for name, raw := range c.MCPServers {
		var server map[string]json.RawMessage
		if err := json.Unmarshal(raw, &server); err != nil {
			return nil, fmt.Errorf("MCP server %q: %w", name, err)
		}

		for _, key := range []string{"env", "headers"} {
			var values map[string]json.RawMessage
			if server[key] == nil {
				continue
			}
			if err := json.Unmarshal(server[key], &values); err != nil {
				return nil, fmt.Errorf("MCP server %q: %s: %w", name, key, err)
			}

			for k := range values {
				values[k], hides = json.RawMessage(`"***"`), true
			}

			if server[key], err = json.Marshal(values); err != nil {
				return nil, err
			}
		}

		if masked[name], err = json.Marshal(server); err != nil {
			return nil, err
		}
	}

	if !hides {
		return nil, nil
	}

	servers, err = json.Marshal(c.MCPServers)
	c.MCPServers = masked
	return servers, err
}

func routeAutomation(tree schema.Factory, uids map[string]string, a schema.Automation) (RoutedAutomation, error) {
	exec, basePrompt, agent := tree.Resolve(a)
	config := ConfigOf(exec, basePrompt, a.Name)
	sealed, err := config.mask()
	if err != nil {
		return RoutedAutomation{}, err
	}

	raw, err := json.Marshal(config)
	r := RoutedAutomation{
		UID:     uids[ResourceKey("automation", a.Name)],
		Spec:    a,
		Config:  raw,
		Sealed:  sealed,
		Model:   config.ModelID,
		Env:     config.EnvironmentID,
		Secrets: exec.Secrets,
	}
	if agent != "" {
		r.Agent = uids[ResourceKey("agent", agent)]
	}

	return r, err
}
