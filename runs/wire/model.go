package wire

import (
	"encoding/json"
	"time"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string    `json:"role"`
	Content []Block   `json:"content"`
	At      time.Time `json:"timestamp"`
}

// Assistant is the role of the agent in a conversation.
const Assistant = "assistant"

// Block is a part of a message. Which fields count depends on Type.
type Block struct {
	Type     string          `json:"type"` // text, action, action_result or event
	Text     string          `json:"text,omitempty"`
	ID       string          `json:"id,omitempty"`
	ActionID string          `json:"action_id,omitempty"`
	Category string          `json:"category,omitempty"`
	Name     string          `json:"name,omitempty"`
	State    string          `json:"state,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	Output   json.RawMessage `json:"output,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
}

// Text returns a block of plain text.
func Text(text string) Block { return Block{Type: "text", Text: text} }

// Valid reports whether the block is of a known type, with the fields that this type needs.
func (b Block) Valid() bool {
	switch b.Type {
	case "text":
		return true
	case "action", "event":
		return b.Name != ""
	case "action_result":
		return b.ActionID != ""
	}
	return false
}

// RunState is the state of a run.
type RunState string

// The states that a worker gives a run. Finish may answer Queued instead, if follow-ups wait.
const (
	Succeeded RunState = "SUCCEEDED"
	Failed    RunState = "FAILED"
	Error     RunState = "ERROR"
	Blocked   RunState = "BLOCKED"
	Cancelled RunState = "CANCELLED"
	Queued    RunState = "QUEUED"
)

// Result is how an execution ended.
type Result struct {
	State     RunState
	Message   string // for people; empty if it succeeded
	ErrorCode string // empty unless the platform failed
	Later     bool   // the execution has not begun: its forge is away, and a later claim may succeed
	From      int    // number of earlier messages of this order
	Messages  []Message
	Usage     *Usage // of the attempt; nil: the server has it, or there is none

	// Outputs are the lines of OutputsFile that are JSON, within the bounds of outputs.
	Outputs []json.RawMessage
	// OutputLines are the numbers of these lines in the file, from 1.
	OutputLines []int
}

// Bounds of the outputs of an execution. They travel with its last message in one message of NATS.
const (
	MaxOutputs     = 100
	MaxOutput      = 64 << 10  // bytes of one
	MaxOutputBytes = 384 << 10 // of all
)

// Reply is the answer to a question.
type Reply struct {
	Question string `json:"question"` // UID
	Title    string `json:"title"`
	Choice   string `json:"choice"` // ID
	Message  string `json:"message,omitempty"`
}

// Order has the data that a worker needs to execute one attempt of a run.
type Order struct {
	RunID         string            `json:"run_id"`
	Token         string            `json:"token"` // fences every write; the harness never gets it
	Execution     int               `json:"execution"`
	Attempt       int               `json:"attempt"`
	Lease         time.Duration     `json:"lease"`   // how long the worker may be silent after its start
	Harness       string            `json:"harness"` // by name; empty: the default
	ModelID       string            `json:"model_id"`
	EnvironmentID string            `json:"environment_id"`
	Skill         string            `json:"skill"`
	Runner        *Runner           `json:"runner,omitempty"`      // the definition's requirements of the machine
	Checkout      *Checkout         `json:"checkout,omitempty"`    // nil: the run starts in an empty directory
	NotApplied    map[string]string `json:"not_applied,omitempty"` // fields of the configuration, with the reason
	// Confined: a repository has the commit of a fork. Only a harness in a sandbox that limits its network
	// executes the order, and without set-up commands.
	Confined    bool              `json:"confined,omitempty"`
	Env         map[string]string `json:"env,omitempty"`      // of the environment, for the harness
	Secrets     map[string]string `json:"secrets,omitempty"`  // environment variables for the harness
	Redact      []string          `json:"redact,omitempty"`   // further values to redact from the conversation
	Files       []File            `json:"files"`              // of the working directory
	Snapshot    *Snapshot         `json:"snapshot,omitempty"` // what the execution before left
	Replies     []Reply           `json:"replies,omitempty"`  // to questions of the execution before, that its session did not get
	Traceparent string            `json:"traceparent,omitempty"`
}

// Snapshot has the files that an execution leaves for the next one. Its archive travels in parts of Chunk
// bytes.
type Snapshot struct {
	Session Session `json:"session"`
	Size    int64   `json:"size"`   // of the archive; 0: none
	Digest  string  `json:"digest"` // SHA-256 of the archive, in hexadecimal
}

// Session is an agent's own session.
type Session struct {
	Preset  string `json:"preset,omitempty"` // whose it is; empty: the harness is no agent that is known
	ID      string `json:"id,omitempty"`
	Counted Usage  `json:"counted"` // what the agent has counted of it
}

// Artifact describes a file that an execution leaves for people. Its content travels in parts of Chunk bytes.
type Artifact struct {
	Path       string `json:"path"` // below the directory of artifacts, with slashes
	Kind       string `json:"kind"`
	MimeType   string `json:"mime_type,omitempty"`
	Size       int64  `json:"size"`
	Digest     string `json:"digest"`               // SHA-256 of the content, in hexadecimal
	Repository string `json:"repository,omitempty"` // owner/name, of a patch or bundle
	Base       string `json:"base,omitempty"`       // of a bundle: the commit that the changes begin at
}

// The kinds of artifacts.
const (
	ArtifactFile = "file"
	// ArtifactPatch is the changes of a repository as `git diff --binary --full-index` prints them.
	ArtifactPatch = "patch"
	// ArtifactBundle is the same as a git bundle of version 2 with one branch. Its pack is not thin. Beside the new
	// objects it has what shows the changes without the repository: the commit Base, and of its trees and files
	// those that the new commit has otherwise or not at all.
	ArtifactBundle = "bundle"
)

// Bounds of the artifacts of an execution, in bytes. A server refuses what exceeds them.
const (
	MaxArtifacts     = 64       // of any kind
	MaxArtifactFiles = 20       // of kind ArtifactFile
	MaxFileBytes     = 64 << 20 // of all of these
	MaxChangeBytes   = 50 << 20 // of one patch or bundle
)

// MaxSnapshotParts is how many parts an archive has at most.
const MaxSnapshotParts = 160

// SnapshotFile names the archive when a worker fetches it.
const SnapshotFile = "snapshot"

// Runner has the definition's requirements of the machine that executes a run. Zero values require nothing.
type Runner struct {
	Image    string   `json:"image,omitempty"`
	CPUs     float64  `json:"cpus,omitempty"`
	MemoryGB float64  `json:"memory_gb,omitempty"`
	Setup    []string `json:"setup,omitempty"` // commands to run before the harness
}

// The files that every working directory has beside the run's attachments (docs/contract.md, section 10).
const (
	PromptFile       = "prompt.md"
	BasePromptFile   = "base-prompt.md"
	ConversationFile = "conversation.json"
	ConfigFile       = "config.json"
	ServersFile      = "mcp.json"
)

// SkillsFile is the list of the skills that a run's agent may use. It is in no order and no working directory: a
// worker whose harness is a preset fetches it, and puts each skill where the agent looks for it.
const SkillsFile = "skills.json"

// Skill is a skill of the factory's tree.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Body        string `json:"body"`
}

// PayloadFile is the attachment of a run that a delivery started: the delivery's body, byte for byte.
const PayloadFile = "event-payload.json"

// ReservedFile reports whether an attachment of this name would collide with another file.
func ReservedFile(name string) bool {
	switch name {
	case PromptFile, BasePromptFile, ConversationFile, ConfigFile, ServersFile, SkillsFile:
		return true
	}
	return false
}

// File is a file of a run's working directory.
type File struct {
	Name       string `json:"name"`
	MimeType   string `json:"mime_type"`
	Size       int    `json:"size"`
	Attachment bool   `json:"attachment,omitempty"` // came with the run
	Inline     bool   `json:"inline,omitempty"`     // Data has the body; otherwise fetch it
	Data       []byte `json:"data,omitempty"`
}
