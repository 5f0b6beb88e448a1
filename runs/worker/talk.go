//go:build unix

package worker

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	acp "github.com/coder/acp-go-sdk"

	"millwright/runs/wire"
	"millwright/runs/worker/preset"
)

// talk turns what an agent says over the Agent Client Protocol into blocks of the conversation.
type talk struct {
	out  *recorder
	cost float64 // of the session, in US dollars, as the agent reports it

	mu      sync.Mutex
	text    strings.Builder
	thought bool            // text is the agent's thinking
	known   map[string]bool // actions that are in the conversation, by ID
}

// Bounds of what is remembered of a session.
const (
	maxPiece   = 32 << 10 // of a message that comes in pieces, in bytes
	maxActions = 10_000
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
		s.talk.act(string(c.ToolCallId), c.Title, c.Kind, c.RawInput, c.Locations)
		s.talk.result(string(c.ToolCallId), c.Title, c.Kind, c.Status, c.RawOutput, c.Content)
	case u.ToolCallUpdate != nil:
		c := u.ToolCallUpdate
		s.talk.act(string(c.ToolCallId), value(c.Title), value(c.Kind), c.RawInput, c.Locations)
		s.talk.result(string(c.ToolCallId), value(c.Title), value(c.Kind), value(c.Status), c.RawOutput, c.Content)
	case u.UsageUpdate != nil:
		if c := u.UsageUpdate.Cost; c != nil && c.Currency == "USD" {
			s.talk.cost = c.Amount
		}
	}

	return nil
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// add takes a piece of a message.
func (t *talk) add(c acp.ContentBlock, thought bool) {
	if c.Text == nil {
		return
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	if t.thought != thought {
		t.flush()
		t.thought = thought
	}
	if t.text.WriteString(c.Text.Text); t.text.Len() > maxPiece {
		t.flush()
		return
	}

	if said := t.text.String(); !thought && strings.HasSuffix(said, "\n\n") && len(said) > 200 {
		t.flush() // a paragraph is ready to be read
	}
}

// end records what was said so far.
func (t *talk) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush()
}

func (t *talk) flush() {
	text := strings.TrimRight(t.text.String(), "\n")
	t.text.Reset()
	switch {
	case text == "":
	case t.thought:
		t.out.Add(preset.Event("thinking", map[string]string{"text": text}))
	default:
		t.out.Add(wire.Text(clean(text)))
	}
}

// categoryOfKind returns the category of a tool by the protocol's kind.
func categoryOfKind(kind acp.ToolKind) string {
	switch kind {
	case acp.ToolKindExecute:
		return "command"
	case acp.ToolKindRead, acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove:
		return "files"
	case acp.ToolKindSearch, acp.ToolKindFetch:
		return "search"
	}
	return "integration"
}

// act records the use of a tool, once.
func (t *talk) act(id, title string, kind acp.ToolKind, input any, places []acp.ToolCallLocation) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if t.known[id] || len(t.known) >= maxActions || title == "" {
		return
	}
	if t.known == nil {
		t.known = map[string]bool{}
	}

	t.flush()
	t.known[id] = true
	t.out.Add(wire.Block{
		Type: "action", ID: id, Category: categoryOfKind(kind), Name: line(title), Input: inputOf(input, places),
	})
}

// inputOf returns what a tool is about to do, as a JSON object.
func inputOf(input any, places []acp.ToolCallLocation) json.RawMessage {
	if object, ok := input.(map[string]any); ok {
		return quoted(object)
	}

	about := map[string]any{}
	if input != nil {
		about["input"] = input
	}
	for _, p := range places {
		about["path"] = p.Path
	}
	return quoted(about)
}

// result records how the use of a tool ended.
func (t *talk) result(
	id, title string,
	kind acp.ToolKind,
	status acp.ToolCallStatus,
	output any,
	content []acp.ToolCallContent,
) {
	if status != acp.ToolCallStatusCompleted && status != acp.ToolCallStatusFailed {
		return
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	t.flush()
	object, ok := output.(map[string]any)
	if !ok {
		object = map[string]any{"output": contentText(content)}
		if output != nil {
			object["output"] = output
		}
	}
	t.out.Add(wire.Block{
		Type: "action_result", ActionID: id, Category: categoryOfKind(kind), Name: line(title), State: string(status),
		Output: quoted(object),
	})
}

// contentText returns what a tool put out.
func contentText(content []acp.ToolCallContent) string {
	var all []string
	for _, c := range content {
		switch {
		case c.Content != nil && c.Content.Content.Text != nil:
			all = append(all, c.Content.Content.Text.Text)
		case c.Diff != nil:
			all = append(all, c.Diff.Path+":\n"+c.Diff.NewText)
		}
	}
	return clean(cut(strings.Join(all, "\n"), maxText/2))
}

// question returns what a request for permission asks.
func (t *talk) question(p acp.RequestPermissionRequest) wire.Question {
	c := p.ToolCall
	title := line(value(c.Title))
	if title == "" {
		title = "May the agent go on?"
	}
	t.act(string(c.ToolCallId), title, value(c.Kind), c.RawInput, c.Locations)

	input := inputOf(c.RawInput, c.Locations)
	if text := contentText(c.Content); text != "" && string(input) == "{}" {
		input = quoted(map[string]string{"content": text})
	}
	if len(input) > maxText {
		input = quoted(map[string]string{"input": cut(string(input), maxText/2)})
	}

	q := wire.Question{Title: t.out.redact.text(title), Input: t.out.redact.json(input)}
	for _, o := range p.Options {
		q.Choices = append(q.Choices, wire.Choice{ID: string(o.OptionId), Name: line(o.Name), Kind: string(o.Kind)})
	}
	return q
}

// line returns text in one line, cut.
func line(text string) string {
	text = strings.Join(strings.Fields(clean(text)), " ")
	if len(text) > maxAskedText {
		text = clean(text[:maxAskedText]) + "…"
	}
	return text
}

// paced reads what an agent puts out, in portions, not before it is ready and not while much waits for the server: the
// connection has room for a bounded number of updates.
type paced struct {
	r     io.Reader
	ready <-chan struct{}
	out   *recorder
}

// maxPortion is small enough for the updates in it to have room.
const maxPortion = 16 << 10

// Read reads a portion.
func (p *paced) Read(b []byte) (int, error) {
	<-p.ready
	p.out.waitForRoom()
	return p.r.Read(b[:min(len(b), maxPortion)])
}

// heard writes to an agent, and records when the agent can no longer be written to.
type heard struct {
	w    io.Writer
	deaf *atomic.Bool
}

// Write writes to the agent's input.
func (h *heard) Write(b []byte) (int, error) {
	n, err := h.w.Write(b)
	if err != nil {
		h.deaf.Store(true)
	}

	return n, err
}

// The agent has its own files and processes: it is told that the client has none to offer.

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
