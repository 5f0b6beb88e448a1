// Package wire is the protocol between servers and workers over NATS: subjects, requests, answers, and the
// worker's side of the connection. It imports neither the state nor a NATS server.
//
// A worker uses the subjects worker.<uid>.> and its own inbox, and no others. The server owns the state of
// a run: a worker asks for one, and each of its writes carries the claim's token.
package wire

import (
	"encoding/json"
	"errors"
	"time"
)

// The verbs of a worker's subjects: worker.<uid>.<verb>. All but Cancel and Wake are requests of the worker.
const (
	VerbClaim     = "claim"
	VerbStart     = "start"
	VerbHeartbeat = "heartbeat"
	VerbAppend    = "append"
	VerbFinish    = "finish"
	VerbRelease   = "release"
	VerbFile      = "file"
	VerbSnapshot  = "snapshot"
	VerbArtifact  = "artifact"
	VerbCheckout  = "checkout"
	VerbLeave     = "leave"
	VerbReport    = "report"
	VerbAsk       = "ask"
	VerbInbox     = "inbox"
	VerbCancel    = "cancel" // from a server: the run's ID
	VerbWake      = "wake"   // from a server: the ID of a run whose inbox has something
)

// Sizes on the wire, in bytes.
const (
	MaxPayload = 1 << 20   // of a message; the default of an external NATS
	MaxInline  = 256 << 10 // files of a work order that travel inside it, together
	Chunk      = 512 << 10 // of a fetched part of a file
)

// Hold is the time in which a worker must begin a run that it claimed.
const Hold = 5 * time.Second

// These values detect a disconnected peer well within a lease.
const (
	PingInterval = 5 * time.Second
	MaxPings     = 2 // without an answer
)

// Subject returns the subject of a worker's verb.
func Subject(uid, verb string) string { return "worker." + uid + "." + verb }

// Inbox returns the first token of the subjects on which a worker receives answers. Servers answer on no
// others.
func Inbox(uid string) string { return "_INBOX_" + uid }

// Request is a request of a worker. The claim's fields are empty in claim and leave.
type Request struct {
	Run      string            `json:"run,omitempty"`
	Token    string            `json:"token,omitempty"`
	Instance string            `json:"instance,omitempty"` // identifies the process among those that share a key
	Name     string            `json:"name,omitempty"`     // claim: the worker's display name; file: the file
	Wait     time.Duration     `json:"wait,omitempty"`     // claim: how long to wait for work
	Offset   int               `json:"offset,omitempty"`   // file
	From     int               `json:"from,omitempty"`     // append, finish
	Messages []Message         `json:"messages,omitempty"` // append, finish
	Skills   json.RawMessage   `json:"skills,omitempty"`   // append
	Usage    *Usage            `json:"usage,omitempty"`    // append, finish: of the attempt so far
	Part     int               `json:"part,omitempty"`     // snapshot, artifact: number of Data
	Data     []byte            `json:"data,omitempty"`     // snapshot, artifact: a part of the content
	Snapshot *Snapshot         `json:"snapshot,omitempty"` // snapshot: the parts that were sent are this
	Number   int               `json:"number,omitempty"`   // artifact: counts those of an attempt from 0
	Artifact *Artifact         `json:"artifact,omitempty"` // artifact: its parts follow; nil without Data: it is whole
	State    RunState          `json:"state,omitempty"`    // finish
	Message  string            `json:"message,omitempty"`  // finish
	Code     string            `json:"code,omitempty"`     // finish
	Later    bool              `json:"later,omitempty"`    // finish: the run may be tried again
	Outputs  []json.RawMessage `json:"outputs,omitempty"`  // finish: the agent's requests
	Lines    []int             `json:"lines,omitempty"`    // finish: the line of each request; absent: they are counted
	Report   *Report           `json:"report,omitempty"`   // report; nil: the process ends
	Bases    []Base            `json:"bases,omitempty"`    // checkout
	Question *Question         `json:"question,omitempty"` // ask
	Seen     string            `json:"seen,omitempty"`     // inbox: the UID of the last message that the agent got
}

// Question is what an agent asks before it goes on.
type Question struct {
	Title   string          `json:"title"`
	Input   json.RawMessage `json:"input,omitempty"` // what it is about to do
	Choices []Choice        `json:"choices"`
}

// Choice is one of the answers that the question of an agent allows.
type Choice struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// Mail has the messages and answers that the living session of an agent has not received yet.
type Mail struct {
	Messages []LiveMessage `json:"messages,omitempty"`
	Replies  []Reply       `json:"replies,omitempty"`
}

// LiveMessage is a message of a user.
type LiveMessage struct {
	UID  string `json:"uid"`
	Text string `json:"text"`
}

// Report describes a worker process to the server: what it is, and which runs it executes now.
type Report struct {
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Slots     int      `json:"slots"`
	Harnesses []string `json:"harnesses"`
	Runs      []string `json:"runs"` // IDs of the runs that it executes
}

// Answer is a server's answer.
type Answer struct {
	Error  string   `json:"error,omitempty"` // one of the codes below
	Detail string   `json:"detail,omitempty"`
	Order  *Order   `json:"order,omitempty"`  // claim; nil: nothing yet
	Cancel bool     `json:"cancel,omitempty"` // start, heartbeat
	Over   string   `json:"over,omitempty"`   // append: the run has exceeded this budget, and is to end
	State  RunState `json:"state,omitempty"`  // finish: the run's state now
	Data   []byte   `json:"data,omitempty"`   // file
	Size   int      `json:"size,omitempty"`   // file: of the whole
	Digest string   `json:"digest,omitempty"` // file: of the whole
	UID    string   `json:"uid,omitempty"`    // ask: of the question
	Inbox  *Mail    `json:"inbox,omitempty"`  // inbox
}

// The codes of failures.
const (
	CodeLost        = "lost"
	CodeNotFound    = "not_found"
	CodeRefused     = "refused"
	CodeUnavailable = "unavailable"
)

var (
	// ErrLost reports that the worker has lost the run.
	ErrLost = errors.New("the claim on this run is lost")
	// ErrNotFound reports that the requested thing does not exist.
	ErrNotFound = errors.New("not found")
	// ErrRefused reports a malformed or too large request. A retry does not help.
	ErrRefused = errors.New("refused")
	// ErrUnavailable reports that no server can answer now. A retry may help.
	ErrUnavailable = errors.New("unavailable")
)

// OverBudgetError reports that the server has taken a request, and that the run is to end since it has exceeded a
// budget.
type OverBudgetError struct{ Budget string }

// Error names the budget that the run exceeded.
func (e OverBudgetError) Error() string { return e.Budget }

// failure is an error in a server's answer.
type failure struct {
	detail string
	kind   error
}

func (f failure) Error() string { return f.detail }
func (f failure) Unwrap() error { return f.kind }

// err returns the failure in an answer.
func (a Answer) err() error {
	switch a.Error {
	case "":
		return nil
	case CodeLost:
		return ErrLost
	case CodeNotFound:
		return failure{a.Detail, ErrNotFound}
	case CodeRefused:
		return failure{a.Detail, ErrRefused}
	}

	return failure{a.Detail, ErrUnavailable}
}
