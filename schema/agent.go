package schema

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
