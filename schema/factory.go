package schema

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Environment is environments/<name>.yaml, or an entry of environments in the settings of a server: what runs that
// name it by environmentId execute in. It survives a round trip through JSON.
type Environment struct {
	Name          string            `json:"name,omitempty"`
	Path          string            `json:"path,omitempty"`
	Line          int               `json:"line,omitempty"` // of the first key in the file, from 1
	Description   string            `json:"description,omitempty"`
	DockerImage   string            `json:"dockerImage,omitempty"`
	Repositories  []Repository      `json:"repositories,omitempty"`
	SetupCommands []string          `json:"setupCommands,omitempty"`
	Env           map[string]string `json:"env,omitempty"`
	Secrets       []string          `json:"secrets,omitempty"`
}

// SealedSecret is secrets/<NAME>.age: a secret that only this factory sees, encrypted to the factory's recipient.
type SealedSecret struct {
	Name   string
	Path   string
	File   []byte
	Digest string // of File
}

// Factory is a loaded definition tree. Every list is sorted by name. A nil
// *Factory is an empty tree: all methods work on it.
type Factory struct {
	File        *FactoryFile `json:"file,omitempty"` // factory.yaml, nil if there is none
	Webhooks    []Webhook    `json:"webhooks,omitempty"`
	Automations []Automation `json:"automations,omitempty"`
	Agents      []Agent      `json:"agents,omitempty"`
	Runners     []Runner     `json:"runners,omitempty"`
	Skills      []Skill      `json:"skills,omitempty"`

	Environments  []Environment  `json:"environments,omitempty"`
	Notifications []Notification `json:"notifications,omitempty"`

	Sealed []SealedSecret `json:"-"` // secrets/, decrypted by nobody but an apply

	webhookNames []string // also of files with errors
	sealedNames  []string // likewise
	facts        []fact   // what the rules that need state look at
}

// FactoryFile is factory.yaml, the root document of a full definition. Its name
// is for display; it does not identify a factory.
type FactoryFile struct {
	SchemaVersion      string                     `json:"schemaVersion,omitempty"`
	Name               string                     `json:"name,omitempty"`
	Alias              string                     `json:"alias,omitempty"`
	Description        string                     `json:"description,omitempty"`
	CredentialStrategy string                     `json:"credentialStrategy,omitempty"` // EXECUTOR, CREATOR or empty
	Repositories       []Repository               `json:"repositories,omitempty"`
	Secrets            []string                   `json:"secrets,omitempty"`    // given to every run
	MCPServers         map[string]json.RawMessage `json:"mcpServers,omitempty"` // given to every run
	CloudProviders     json.RawMessage            `json:"cloudProviders,omitempty"`
	Integrations       []Integration              `json:"integrations,omitempty"`
	AgentDefaults      Execution                  `json:"agentDefaults"`
}

// Repository names a source repository of the factory.
type Repository struct {
	Owner     string `json:"owner"`
	Name      string `json:"name"`
	CodeForge string `json:"codeForge,omitempty"` // a forge of the server's settings; empty: the default one
}

// Integration names an issue tracker: linear or jira.
type Integration struct {
	Type string `json:"type"`
}

// Webhook returns the webhook of that name.
func (f *Factory) Webhook(name string) (Webhook, bool) {
	if f != nil {
		for _, w := range f.Webhooks {
			if w.Name == name {
				return w, true
			}
		}
	}
	return Webhook{}, false
}

// Agent returns the agent of that name.
func (f *Factory) Agent(name string) (Agent, bool) {
	if f != nil {
		for _, a := range f.Agents {
			if a.Name == name {
				return a, true
			}
		}
	}
	return Agent{}, false
}

// Foreman returns the agent that coordinates the others, if the tree has one.
func (f *Factory) Foreman() (Agent, bool) {
	if f != nil {
		for _, a := range f.Agents {
			if a.IsForeman() {
				return a, true
			}
		}
	}
	return Agent{}, false
}

// Resolve says how a run of the automation is executed: the keys of factory.yaml's agentDefaults, then of its
// agent (the foreman when it names none), then its own, each replacing the one before; model and harness are
// one choice and replace one another. The factory-wide secrets and MCP servers are always added; of MCP
// servers with the same name the narrower wins. Budgets are not resolved: each holds on its own. The base
// prompt is the agent's, and both it and the agent's name are empty when there is no agent.
func (f *Factory) Resolve(a Automation) (exec Execution, basePrompt, agentName string) {
	agent, found := f.Agent(a.Agent)
	if a.Agent == "" {
		agent, found = f.Foreman()
	}
	if f != nil && f.File != nil {
		exec = f.File.AgentDefaults
	}
	if found {
		exec = exec.with(agent.Execution)
		basePrompt, agentName = agent.Prompt, agent.Name
	}

	exec = exec.with(a.Execution)
	exec.NoWorkerHost, exec.Budget = false, nil
	if f != nil && f.File != nil {
		exec.Secrets = union(f.File.Secrets, exec.Secrets)
		exec.MCPServers = merged(f.File.MCPServers, exec.MCPServers)
	}

	return exec, basePrompt, agentName
}

// ResolveAgent is Resolve for a run that an agent does on its own.
func (f *Factory) ResolveAgent(agent Agent) Execution {
	exec, _, _ := f.Resolve(Automation{Agent: agent.Name})
	return exec
}

// sort puts every list in the order of its names.
func (f *Factory) sort() {
	slices.Sort(f.webhookNames)
	slices.Sort(f.sealedNames)
	slices.SortStableFunc(f.Sealed, func(a, b SealedSecret) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.Webhooks, func(a, b Webhook) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.Automations, func(a, b Automation) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.Agents, func(a, b Agent) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.Runners, func(a, b Runner) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.Environments, func(a, b Environment) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.Notifications, func(a, b Notification) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.Skills, func(a, b Skill) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Agent, b.Agent))
	})
}
