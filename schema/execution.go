package schema

import (
	"encoding/json"
	"maps"
)

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
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}
