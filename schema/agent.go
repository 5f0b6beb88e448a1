package schema

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// The agent types that have a meaning of their own here; the others are labels.
const (
	AgentCustom  = "CUSTOM"
	AgentForeman = "FOREMAN"
	AgentMain    = "MAIN" // another word for FOREMAN
)

// Agent is agents/<name>/agent.md, defaults filled in. It survives a round trip
// through JSON.
type Agent struct {
	Name               string `json:"name"`
	Path               string `json:"path"`
	Line               int    `json:"line,omitempty"` // of the first key in the file, from 1
	Description        string `json:"description,omitempty"`
	AgentType          string `json:"agentType"` // as written; CUSTOM when absent
	CredentialStrategy string `json:"credentialStrategy,omitempty"`
	Execution
	Prompt string `json:"prompt,omitempty"`
}

// IsForeman reports whether the agent is the one that coordinates the others.
func (a Agent) IsForeman() bool { return a.AgentType == AgentForeman || a.AgentType == AgentMain }

// Runner is runners/<name>.yaml. It survives a round trip through JSON.
type Runner struct {
	Name          string         `json:"name"`
	Path          string         `json:"path"`
	Line          int            `json:"line,omitempty"` // of the first key in the file, from 1
	Description   string         `json:"description,omitempty"`
	SetupCommands []string       `json:"setupCommands,omitempty"`
	InstanceShape *InstanceShape `json:"instanceShape,omitempty"`
	Platform      *Platform      `json:"platform,omitempty"`
}

// InstanceShape is the size of the machine a runner asks for.
type InstanceShape struct {
	VCPUs    float64 `json:"vcpus,omitempty"`
	MemoryGB float64 `json:"memoryGb,omitempty"`
}

// Platform is the system a runner asks for.
type Platform struct {
	OS    string         `json:"os,omitempty"`   // linux or macos
	Arch  string         `json:"arch,omitempty"` // x86_64 or aarch64
	Linux *LinuxPlatform `json:"linux,omitempty"`
	Mac   *MacPlatform   `json:"mac,omitempty"`
}

// LinuxPlatform goes with os: linux.
type LinuxPlatform struct {
	DockerImage string `json:"dockerImage,omitempty"`
}

// MacPlatform goes with os: macos.
type MacPlatform struct {
	Version string `json:"version,omitempty"`
}

// Skill is skills/<skill>/SKILL.md, for every agent, or
// agents/<name>/skills/<skill>/SKILL.md, for one. It survives a round trip
// through JSON.
type Skill struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	Line        int    `json:"line,omitempty"`  // of the first key in the file, from 1
	Agent       string `json:"agent,omitempty"` // empty: for every agent
	Description string `json:"description,omitempty"`
	Body        string `json:"body,omitempty"`
}

func (d *document) agent(name string) Agent {
	d.loose = true
	d.checkStructure("agent")
	a := Agent{
		Name: name, Path: d.path, Line: d.line(),
		Description:        text(d.data, "description"),
		AgentType:          text(d.data, "agentType"),
		CredentialStrategy: text(d.data, "credentialStrategy"),
		Execution:          d.execution(d.root, d.data, false),
		Prompt:             string(d.body),
	}
	if a.AgentType == "" {
		a.AgentType = AgentCustom
	}
	if a.IsForeman() {
		d.fact(factForeman, d.value("agentType"), a.AgentType)
	}

	return a
}

func (d *document) runner(name string) Runner {
	d.loose = true
	d.checkStructure("runner")
	r := Runner{
		Name:          name,
		Path:          d.path,
		Line:          d.line(),
		Description:   text(d.data, "description"),
		SetupCommands: texts(d.data, "setupCommands"),
	}
	if m, ok := d.data["instanceShape"].(map[string]any); ok {
		r.InstanceShape = &InstanceShape{VCPUs: number(m, "vcpus"), MemoryGB: number(m, "memoryGb")}
	}

	m, ok := d.data["platform"].(map[string]any)
	if !ok {
		return r
	}

	r.Platform = &Platform{OS: text(m, "os"), Arch: text(m, "arch")}
	if l, ok := m["linux"].(map[string]any); ok {
		r.Platform.Linux = &LinuxPlatform{DockerImage: text(l, "dockerImage")}
	}
	if l, ok := m["mac"].(map[string]any); ok {
		r.Platform.Mac = &MacPlatform{Version: text(l, "version")}
	}

	platform := d.value("platform")
	for os, key := range map[string]string{"linux": "mac", "macos": "linux"} {
		if k, _ := find(platform, key); k != nil && r.Platform.OS == os {
			d.errorAt(
				k,
				ruleInvalidValue,
				fmt.Sprintf("platform.%s does not go with os: %s", key, os),
				"delete this key, or change os",
			)
		}
	}

	return r
}

func (d *document) skill(name, agent string) Skill {
	d.loose = true
	d.checkStructure("skill")
	return Skill{
		Name:        name,
		Path:        d.path,
		Line:        d.line(),
		Agent:       agent,
		Description: text(d.data, "description"),
		Body:        string(d.body),
	}
}

func (d *document) factoryFile() *FactoryFile {
	d.loose = true
	d.checkStructure("factory")
	f := &FactoryFile{
		SchemaVersion:      text(d.data, "schemaVersion"),
		Name:               text(d.data, "name"),
		Alias:              text(d.data, "alias"),
		Description:        text(d.data, "description"),
		CredentialStrategy: text(d.data, "credentialStrategy"),
		Secrets:            texts(d.data, "secrets"),
		MCPServers:         d.servers(d.value("mcpServers")),
	}

	d.grants(d.value("secrets"))
	if n := d.value("cloudProviders"); n != nil && !d.anyBad(n) {
		f.CloudProviders = nodeJSON(n)
	}

	for _, m := range objects(d.data, "repositories") {
		f.Repositories = append(f.Repositories, Repository{Owner: text(m, "owner"), Name: text(m, "name")})
	}

	trackers := 0
	for i, m := range objects(d.data, "integrations") {
		in := Integration{Type: text(m, "type")}
		f.Integrations = append(f.Integrations, in)
		if in.Type == "linear" || in.Type == "jira" {
			if trackers++; trackers > 1 {
				if n := child(d.value("integrations"), fmt.Sprint(i)); n != nil {
					d.errorAt(
						n,
						ruleInvalidValue,
						"a second issue tracker; a factory has at most one of linear and jira",
						"keep one",
					)
				}
			}
		}
	}

	if n := d.value("agentDefaults"); n != nil && n.Kind == yaml.MappingNode {
		m, _ := d.data["agentDefaults"].(map[string]any)
		f.AgentDefaults = d.execution(n, m, true)
	}

	return f
}

// execution reads the execution keys of a mapping. With one of model and
// harness required, their absence is an error too.
func (d *document) execution(n *yaml.Node, m map[string]any, required bool) Execution {
	e := Execution{
		Model: text(m, "model"), Runner: text(m, "runner"), EnvironmentID: text(m, "environmentId"),
		Secrets: texts(m, "secrets"), WorkerHost: text(m, "workerHost"),
	}
	modelKey, _ := find(n, "model")
	harnessKey, harness := find(n, "harness")
	switch {
	case modelKey != nil && harnessKey != nil:
		later := harnessKey
		if modelKey.Line > harnessKey.Line {
			later = modelKey
		}

		d.errorAt(
			later,
			ruleModelOrHarness,
			"model and harness exclude one another",
			"keep one of the two; a harness takes its model as harness.model",
		)
	case required && modelKey == nil && harnessKey == nil && n != nil:
		d.report(
			d.spanOf(d.keyOf(n)),
			ruleModelOrHarness,
			"agentDefaults needs model or harness",
			"write one of the two, for example: model: auto",
		)
	}

	if h, ok := m["harness"].(map[string]any); ok {
		e.Harness = &Harness{
			Type:           text(h, "type"),
			Model:          text(h, "model"),
			ReasoningLevel: text(h, "reasoningLevel"),
		}
		if _, v := find(harness, "type"); v != nil && e.Harness.Type != "" {
			d.fact(factHarness, v, e.Harness.Type)
		}
		if a, ok := h["auth"].(map[string]any); ok {
			e.Harness.Auth = &HarnessAuth{Source: text(a, "source"), SecretName: text(a, "secretName")}
			d.harnessAuth(child(harness, "auth"), e.Harness.Auth)
		}
	}

	if r := child(n, "runner"); r != nil && e.Runner != "" {
		d.fact(factRunner, r, e.Runner)
	}

	d.grants(child(n, "secrets"))
	e.MCPServers = d.servers(child(n, "mcpServers"))
	return e
}

func (d *document) harnessAuth(n *yaml.Node, a *HarnessAuth) {
	sourceKey, _ := find(n, "source")
	secretKey, secret := find(n, "secretName")
	switch {
	case a.Source == "managedSecret" && secretKey == nil:
		d.errorAt(
			sourceKey,
			ruleMissingKey,
			"harness.auth: source: managedSecret needs secretName",
			"name the team secret that holds the credential",
		)

	case a.Source == "workerEnvironment" && secretKey != nil:
		d.errorAt(
			secretKey,
			ruleInvalidValue,
			"harness.auth: secretName does not go with source: workerEnvironment",
			"delete this key, or write source: managedSecret",
		)

	case secretKey != nil && a.SecretName != "":
		d.fact(factGrant, secret, a.SecretName)
	}
}

// grants notes the secrets that runs are given.
func (d *document) grants(n *yaml.Node) {
	if n == nil || n.Kind != yaml.SequenceNode {
		return
	}
	for _, c := range n.Content {
		if c.Kind == yaml.ScalarNode && !d.bad[c] {
			d.fact(factGrant, c, c.Value)
		}
	}
}

// references notes the secrets that an MCP server refers to.
func (d *document) references(server *yaml.Node) {
	for _, part := range SecretParts() {
		values := child(server, part)
		if values == nil || values.Kind != yaml.MappingNode {
			continue
		}

		for i := 1; i < len(values.Content); i += 2 {
			for _, name := range SecretReferences(values.Content[i].Value) {
				d.fact(factReference, values.Content[i], name)
			}
		}
	}
}

func (d *document) servers(n *yaml.Node) map[string]json.RawMessage {
	if n == nil || n.Kind != yaml.MappingNode || d.anyBad(n) {
		return nil
	}
	out := make(map[string]json.RawMessage, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		out[n.Content[i].Value] = nodeJSON(n.Content[i+1])
		d.references(n.Content[i+1])
	}
	return out
}
