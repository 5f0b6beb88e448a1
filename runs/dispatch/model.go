package dispatch

import "millwright/state"

// What a worker speaks of, so that it needs nothing of the state but these words.
type (
	// Message is one turn of a conversation.
	Message = state.Message
	// Block is a part of a message.
	Block = state.Block
	// Result is how an execution ended.
	Result = state.Result
	// RunState is where a run stands.
	RunState = state.RunState
)

// The states in which a worker leaves a run, and the role of the agent in its conversation.
const (
	Succeeded = state.RunSucceeded
	Failed    = state.RunFailed
	Error     = state.RunError
	Blocked   = state.RunBlocked
	Cancelled = state.RunCancelled

	Assistant = state.RoleAssistant
)

// PayloadFile is the attachment of a run that a delivery started: the delivery's body, byte for byte.
const PayloadFile = state.PayloadName

var (
	// ErrLost says that the worker no longer holds the run.
	ErrLost = state.ErrLost
	// ErrNotFound says that what was asked for does not exist.
	ErrNotFound = state.ErrNotFound
)

// Text returns a block of plain text.
func Text(text string) Block { return state.Text(text) }
