// Package agentconfig holds the configuration of a run, which the API calls AmbientAgentConfig: how a
// definition, a request and the state give it, how one is merged over another, and what of it is masked.
package agentconfig

import (
	"encoding/json"
	"fmt"

	"millwright/schema"
)

// AmbientAgentConfig says how to execute a run (docs/contract.md, section 4). Keys that are not listed are
// kept and written again.
type AmbientAgentConfig struct {
	Name               string                     `json:"name,omitempty" nullable:"true" maxLength:"200" doc:"Label for grouping and filtering; the skill's name when a run is started from a skill"`
	ModelID            string                     `json:"model_id,omitempty" nullable:"true" maxLength:"200" doc:"The language model"`
	BasePrompt         string                     `json:"base_prompt,omitempty" nullable:"true" doc:"Instructions that precede the prompt"`
	EnvironmentID      string                     `json:"environment_id,omitempty" nullable:"true" maxLength:"200" doc:"The environment"`
	SkillSpec          string                     `json:"skill_spec,omitempty" nullable:"true" maxLength:"500" doc:"Skill as base prompt: owner/repo:skill-name or owner/repo:path/to/SKILL.md"`
	MCPServers         map[string]MCPServerConfig `json:"mcp_servers,omitempty" nullable:"true" doc:"Tools through MCP, by name"`
	Harness            *Harness                   `json:"harness,omitempty" doc:"What executes the run"`
	WorkerHost         string                     `json:"worker_host,omitempty" nullable:"true" maxLength:"200" doc:"Where to execute the run"`
	RunnerID           string                     `json:"runner_id,omitempty" nullable:"true" maxLength:"200" doc:"The runner"`
	Repositories       []RunRepository            `json:"repositories,omitempty" nullable:"true" maxItems:"20" doc:"Repositories to check out, beside those of the factory"`
	IdleTimeoutMinutes int                        `json:"idle_timeout_minutes,omitempty" nullable:"true" minimum:"0" maximum:"10080" doc:"How long the session of an agent waits for an answer, in minutes; 30 when absent. Only agents that speak the Agent Client Protocol have sessions that wait"`

	given  map[string]json.RawMessage
	stored json.RawMessage // all of it, in place of the fields: see Stored
}

// RunRepository is a repository that a run starts in.
type RunRepository struct {
	Owner     string `json:"owner" minLength:"1" maxLength:"255" doc:"The account or organisation"`
	Name      string `json:"name" minLength:"1" maxLength:"100" doc:"The name of the repository"`
	Ref       string `json:"ref,omitempty" nullable:"true" maxLength:"200" doc:"A branch or tag; the default branch when absent"`
	CodeForge string `json:"code_forge,omitempty" nullable:"true" maxLength:"64" doc:"A forge of the server's settings; the default one when absent"`
}

// Harness selects what executes a run.
type Harness struct {
	Type           string `json:"type,omitempty" nullable:"true" maxLength:"100" doc:"Name of a configured harness; oz and absence mean the default"`
	ModelID        string `json:"model_id,omitempty" nullable:"true" maxLength:"200" doc:"The language model"`
	ReasoningLevel string `json:"reasoning_level,omitempty" nullable:"true" maxLength:"100" doc:"Effort of the model"`
}

// MCPServerConfig is an MCP server: exactly one of command, url and warp_id. Values of env and headers are
// sealed, and returned as ***; ${secret:NAME} in them is the team secret of that name, where the applied
// definition gives it to the same server, or the key is an admin's.
type MCPServerConfig struct {
	Command string            `json:"command,omitempty" nullable:"true" doc:"The program"`
	Args    []string          `json:"args,omitempty" nullable:"true" doc:"Its arguments"`
	URL     string            `json:"url,omitempty" nullable:"true" doc:"URL of the server"`
	WarpID  string            `json:"warp_id,omitempty" nullable:"true" doc:"Identifier of a shared server"`
	Env     map[string]string `json:"env,omitempty" nullable:"true" doc:"Environment variables; values are returned as ***. ${secret:NAME} is a team secret. It needs a key of role admin, or the same server in the applied definition"`
	Headers map[string]string `json:"headers,omitempty" nullable:"true" doc:"HTTP headers; values are returned as ***. ${secret:NAME} is a team secret. It needs a key of role admin, or an applied definition that grants the secret to the same server"`

	given map[string]json.RawMessage
}

// Given returns the keys as they were read, those that are not listed too; nil for a configuration that was
// not read from JSON.
func (c AmbientAgentConfig) Given() map[string]json.RawMessage { return c.given }

// Given returns the keys as they were read, those that are not listed too.
func (s MCPServerConfig) Given() map[string]json.RawMessage { return s.given }

// ReasoningLevel returns the reasoning level of the harness, empty if there is none.
func (c AmbientAgentConfig) ReasoningLevel() string {
	if c.Harness == nil {
		return ""
	}
	return c.Harness.ReasoningLevel
}

// ListsSkills reports whether the key skills, which is kept and not read, lists any.
func (c AmbientAgentConfig) ListsSkills() bool {
	switch string(c.given["skills"]) {
	case "", "null", "[]", "{}", `""`:
		return false
	}
	return true
}

// FromDefinition returns the configuration that exec and basePrompt resolve to, labelled name. The execution
// of a tree without errors gives no error.
func FromDefinition(exec schema.Execution, basePrompt, name string) (AmbientAgentConfig, error) {
	c := AmbientAgentConfig{
		Name: name, ModelID: exec.Model, BasePrompt: basePrompt, EnvironmentID: exec.EnvironmentID,
		WorkerHost: exec.WorkerHost, RunnerID: exec.Runner,
	}
	if h := exec.Harness; h != nil {
		c.Harness = &Harness{Type: h.Type, ModelID: h.Model, ReasoningLevel: h.ReasoningLevel}
		if c.ModelID == "" {
			c.ModelID = h.Model
		}
	}

	for name, raw := range exec.MCPServers {
		var server MCPServerConfig
		if err := json.Unmarshal(raw, &server); err != nil {
			return c, fmt.Errorf("MCP server %q: %w", name, err)
		}

		c.addServer(name, server)
	}

	return c, nil
}

func (c *AmbientAgentConfig) addServer(name string, server MCPServerConfig) {
	if c.MCPServers == nil {
		c.MCPServers = map[string]MCPServerConfig{}
	}
	c.MCPServers[name] = server
}

// Inherit fills in from a definition's configuration what c leaves open. Harness and model are one choice: a
// harness of c takes its own model, and MCP servers are added by name.
func (c *AmbientAgentConfig) Inherit(def AmbientAgentConfig) {
	for to, from := range map[*string]string{
		&c.Name: def.Name, &c.BasePrompt: def.BasePrompt, &c.EnvironmentID: def.EnvironmentID,
		&c.WorkerHost: def.WorkerHost, &c.RunnerID: def.RunnerID,
	} {
		if *to == "" {
			*to = from
		}
	}

	if c.Harness == nil && def.Harness != nil {
		harness := *def.Harness
		c.Harness = &harness
	}
	if c.ModelID == "" && c.Harness != nil {
		c.ModelID = c.Harness.ModelID
	}
	if c.ModelID == "" {
		c.ModelID = def.ModelID
	}

	for name, server := range def.MCPServers {
		if _, ok := c.MCPServers[name]; !ok {
			c.addServer(name, server)
		}
	}
}
