//go:build unix

package worker

import (
	"context"

	acp "github.com/coder/acp-go-sdk"
)

// SessionUpdate records what the agent says and does.
func (s *session) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	select {
	case s.updates <- struct{}{}:
	default:
	}
	if s.replays.Load() || s.foreign(n.SessionId) {
		return nil
	}

	u := n.Update
	switch {
	case u.AgentMessageChunk != nil:
		s.talk.add(u.AgentMessageChunk.Content, false)
	case u.AgentThoughtChunk != nil:
		s.talk.add(u.AgentThoughtChunk.Content, true)
	case u.ToolCall != nil:
		c := u.ToolCall
		input := inputOf(c.RawInput, c.Locations)
		s.talk.act(use{string(c.ToolCallId), c.Title, c.Kind, input}, c.Status == acp.ToolCallStatusPending)
		s.talk.result(string(c.ToolCallId), c.Title, c.Kind, c.Status, c.RawOutput, c.Content)
	case u.ToolCallUpdate != nil:
		c := u.ToolCallUpdate
		input := inputOf(c.RawInput, c.Locations)
		pending := c.Status == nil || *c.Status == acp.ToolCallStatusPending
		s.talk.act(use{string(c.ToolCallId), value(c.Title), value(c.Kind), input}, pending)
		s.talk.result(string(c.ToolCallId), value(c.Title), value(c.Kind), value(c.Status), c.RawOutput, c.Content)
	case u.UsageUpdate != nil:
		if c := u.UsageUpdate.Cost; c != nil && c.Currency == "USD" {
			s.talk.spend(c.Amount)
		}
	}

	return nil
}

// ReadTextFile is not offered.
func (*session) ReadTextFile(context.Context, acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	return acp.ReadTextFileResponse{}, acp.NewMethodNotFound(acp.ClientMethodFsReadTextFile)
}

// WriteTextFile is not offered.
func (*session) WriteTextFile(context.Context, acp.WriteTextFileRequest) (acp.WriteTextFileResponse, error) {
	return acp.WriteTextFileResponse{}, acp.NewMethodNotFound(acp.ClientMethodFsWriteTextFile)
}

// CreateTerminal is not offered.
func (*session) CreateTerminal(context.Context, acp.CreateTerminalRequest) (acp.CreateTerminalResponse, error) {
	return acp.CreateTerminalResponse{}, acp.NewMethodNotFound(acp.ClientMethodTerminalCreate)
}

// KillTerminal is not offered.
func (*session) KillTerminal(context.Context, acp.KillTerminalRequest) (acp.KillTerminalResponse, error) {
	return acp.KillTerminalResponse{}, acp.NewMethodNotFound(acp.ClientMethodTerminalKill)
}

// TerminalOutput is not offered.
func (*session) TerminalOutput(context.Context, acp.TerminalOutputRequest) (acp.TerminalOutputResponse, error) {
	return acp.TerminalOutputResponse{}, acp.NewMethodNotFound(acp.ClientMethodTerminalOutput)
}

// ReleaseTerminal is not offered.
func (*session) ReleaseTerminal(context.Context, acp.ReleaseTerminalRequest) (acp.ReleaseTerminalResponse, error) {
	return acp.ReleaseTerminalResponse{}, acp.NewMethodNotFound(acp.ClientMethodTerminalRelease)
}

// WaitForTerminalExit is not offered.
func (*session) WaitForTerminalExit(
	context.Context,
	acp.WaitForTerminalExitRequest,
) (acp.WaitForTerminalExitResponse, error) {
	return acp.WaitForTerminalExitResponse{}, acp.NewMethodNotFound(acp.ClientMethodTerminalWaitForExit)
}
