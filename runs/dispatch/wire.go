package dispatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"millwright/state"
)

// The verbs of a worker's subjects: worker.<uid>.<verb>. All but cancel are requests of the worker.
const (
	verbClaim     = "claim"
	verbStart     = "start"
	verbHeartbeat = "heartbeat"
	verbAppend    = "append"
	verbFinish    = "finish"
	verbRelease   = "release"
	verbFile      = "file"
	verbLeave     = "leave"
	verbCancel    = "cancel" // from a server: the run's ID
)

// Sizes on the wire, in bytes. An external NATS takes messages of 1 MiB by default.
const (
	maxPayload = 1 << 20
	maxInline  = 256 << 10 // files of a work order that travel inside it, together
	chunk      = 512 << 10 // of a file that is fetched
	maxAppend  = 512 << 10 // messages of one append, as JSON
)

func subject(uid, verb string) string { return "worker." + uid + "." + verb }

// inbox is the first token of the subjects on which a worker receives answers. A server answers on no others.
func inbox(uid string) string { return "_INBOX_" + uid }

// request is what a worker sends. The claim's fields are empty in claim and leave.
type request struct {
	Run      string          `json:"run,omitempty"`
	Token    string          `json:"token,omitempty"`
	Instance string          `json:"instance,omitempty"` // which of the processes that share a key
	Name     string          `json:"name,omitempty"`     // claim: the worker's display name; file: the file
	Wait     time.Duration   `json:"wait,omitempty"`     // claim: how long to wait for work
	Offset   int             `json:"offset,omitempty"`   // file
	From     int             `json:"from,omitempty"`     // append, finish
	Messages []state.Message `json:"messages,omitempty"` // append, finish
	Skills   json.RawMessage `json:"skills,omitempty"`   // append
	State    state.RunState  `json:"state,omitempty"`    // finish
	Message  string          `json:"message,omitempty"`  // finish
	Code     string          `json:"code,omitempty"`     // finish
}

// answer is what a server answers.
type answer struct {
	Error  string         `json:"error,omitempty"` // one of the codes below
	Detail string         `json:"detail,omitempty"`
	Order  *Order         `json:"order,omitempty"`  // claim; nil: nothing yet
	Cancel bool           `json:"cancel,omitempty"` // start, heartbeat
	State  state.RunState `json:"state,omitempty"`  // finish: the run's state now
	Data   []byte         `json:"data,omitempty"`   // file
	Size   int            `json:"size,omitempty"`   // file: of the whole
	Digest string         `json:"digest,omitempty"` // file: of the whole
}

const (
	codeLost        = "lost"
	codeNotFound    = "not_found"
	codeRefused     = "refused"
	codeUnavailable = "unavailable"
)

// ErrRefused says that a request of a worker was malformed or over a limit; a repeat will not help.
var ErrRefused = errors.New("refused")

func failure(err error) answer {
	a := answer{Error: codeUnavailable, Detail: "try again"}
	switch {
	case errors.Is(err, state.ErrLost):
		a = answer{Error: codeLost}
	case errors.Is(err, state.ErrNotFound):
		a = answer{Error: codeNotFound, Detail: detail(err, state.ErrNotFound)}
	case errors.Is(err, ErrRefused), errors.Is(err, state.ErrConflict):
		a = answer{Error: codeRefused, Detail: detail(err, ErrRefused)}
	}
	return a
}

// detail is an error's text without that of its kind, which the reader of the answer adds again.
func detail(err, kind error) string { return strings.TrimSuffix(err.Error(), ": "+kind.Error()) }

func (a answer) err() error {
	switch a.Error {
	case "":
		return nil
	case codeLost:
		return state.ErrLost
	case codeNotFound:
		return fmt.Errorf("%s: %w", a.Detail, state.ErrNotFound)
	case codeRefused:
		return fmt.Errorf("%s: %w", a.Detail, ErrRefused)
	}
	return fmt.Errorf("%s: %w", a.Detail, state.ErrUnavailable)
}

// Order is what a worker needs to execute one attempt of a run.
type Order struct {
	RunID         string            `json:"run_id"`
	Token         string            `json:"token"` // fences every write; the harness never gets it
	Execution     int               `json:"execution"`
	Attempt       int               `json:"attempt"`
	Lease         time.Duration     `json:"lease"`   // how long the worker may be silent
	Harness       string            `json:"harness"` // by name; empty: the default
	ModelID       string            `json:"model_id"`
	EnvironmentID string            `json:"environment_id"`
	Skill         string            `json:"skill"`
	Runner        *Runner           `json:"runner,omitempty"`  // what the definition asks of the machine
	Secrets       map[string]string `json:"secrets,omitempty"` // environment variables for the harness
	Redact        []string          `json:"redact,omitempty"`  // further values to keep out of the conversation
	Files         []File            `json:"files"`             // of the working directory
	Traceparent   string            `json:"traceparent,omitempty"`
}

// Runner is what a definition asks of the machine that executes a run. Zero values ask for nothing.
type Runner struct {
	Image    string   `json:"image,omitempty"`
	CPUs     float64  `json:"cpus,omitempty"`
	MemoryGB float64  `json:"memory_gb,omitempty"`
	Setup    []string `json:"setup,omitempty"` // commands to run before the harness
}

// The files that every working directory has beside the run's attachments (contract.md, section 10).
const (
	PromptFile       = "prompt.md"
	BasePromptFile   = "base-prompt.md"
	ConversationFile = "conversation.json"
	ConfigFile       = "config.json"
	ServersFile      = "mcp.json"
)

// ReservedFile reports whether an attachment of this name would stand in the way of another file.
func ReservedFile(name string) bool {
	switch name {
	case PromptFile, BasePromptFile, ConversationFile, ConfigFile, ServersFile:
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
	Inline     bool   `json:"inline,omitempty"`     // Data holds it; else it is to be fetched
	Data       []byte `json:"data,omitempty"`
}
