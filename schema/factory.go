package schema

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

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

// Execution holds the keys that say how a run is executed. In a file's own
// Execution a zero value means that the key is absent; an empty, non-nil list
// or map means that it is there and empty, which replaces what is inherited.
type Execution struct {
	Model         string                     `json:"model,omitempty"`
	Harness       *Harness                   `json:"harness,omitempty"`
	Runner        string                     `json:"runner,omitempty"`
	EnvironmentID string                     `json:"environmentId,omitempty"`
	Secrets       []string                   `json:"secrets,omitzero"`
	MCPServers    map[string]json.RawMessage `json:"mcpServers,omitzero"`
	WorkerHost    string                     `json:"workerHost,omitempty"`
	NoWorkerHost  bool                       `json:"noWorkerHost,omitempty"` // workerHost: null, which clears an inherited one
	Budget        *Budget                    `json:"budget,omitempty"`       // holds besides those of other files
}

// Harness names the program that does a run's work.
type Harness struct {
	Type           string       `json:"type"`
	Model          string       `json:"model,omitempty"`
	ReasoningLevel string       `json:"reasoningLevel,omitempty"`
	Auth           *HarnessAuth `json:"auth,omitempty"`
}

// HarnessAuth is the origin of a harness's credential: source is
// managedSecret or workerEnvironment.
type HarnessAuth struct {
	Source     string `json:"source"`
	SecretName string `json:"secretName,omitempty"`
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

func (e Execution) with(o Execution) Execution {
	if o.Model != "" {
		e.Model, e.Harness = o.Model, nil
	}
	if o.Harness != nil {
		e.Model, e.Harness = "", o.Harness
	}
	if o.Runner != "" {
		e.Runner = o.Runner
	}
	if o.EnvironmentID != "" {
		e.EnvironmentID = o.EnvironmentID
	}
	if o.Secrets != nil {
		e.Secrets = o.Secrets
	}
	if o.MCPServers != nil {
		e.MCPServers = o.MCPServers
	}
	if o.WorkerHost != "" || o.NoWorkerHost {
		e.WorkerHost = o.WorkerHost
	}

	return e
}

func union(a, b []string) []string {
	seen := make(map[string]bool, len(a)+len(b))
	var out []string
	for _, list := range [][]string{a, b} {
		for _, s := range list {
			if !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}

	return out
}

func merged(a, b map[string]json.RawMessage) map[string]json.RawMessage {
	if len(a)+len(b) == 0 {
		return nil
	}

	out := make(map[string]json.RawMessage, len(a)+len(b))
	for k, v := range a {
		out[k] = v
	}

	for k, v := range b {
		out[k] = v
	}

	return out
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
