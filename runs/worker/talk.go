//go:build unix

package worker

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	acp "github.com/coder/acp-go-sdk"

	"millwright/runs/wire"
	"millwright/runs/worker/preset"
)

// talk turns what an agent says over the Agent Client Protocol into blocks of the conversation.
type talk struct {
	out *recorder

	mu      sync.Mutex
	cost    float64 // of the session, in US dollars, as the agent reports it
	text    strings.Builder
	thought bool              // text is the agent's thinking
	known   map[string]string // names of actions that are in the conversation, by ID
	begun   map[string]use    // actions that the agent still describes, by ID
}

// Bounds of what is remembered of a session.
const (
	maxPiece   = 32 << 10 // of a message that comes in pieces, in bytes
	maxActions = 10_000
	maxBegun   = 20
)

// use is a tool's use, as far as the agent has described it.
type use struct {
	id, title string
	kind      acp.ToolKind
	input     json.RawMessage
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

// spend takes the cost of the session so far.
func (t *talk) spend(cost float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cost = cost
}

// spent returns the last cost that the agent reported.
func (t *talk) spent() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cost
}

// pause records what was said so far.
func (t *talk) pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush()
}

// end records what was said and described so far.
func (t *talk) end() {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.flush()
	for _, id := range slices.Sorted(maps.Keys(t.begun)) {
		t.record(t.begun[id])
	}
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

// act records the use of a tool, once. One that is pending waits for the rest of its description.
func (t *talk) act(u use, pending bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if _, recorded := t.known[u.id]; recorded || len(t.known) >= maxActions {
		return
	}

	before, begun := t.begun[u.id]
	if begun {
		u.title = before.title
		u.kind = cmp.Or(u.kind, before.kind)
		if string(u.input) == "{}" {
			u.input = before.input
		}
	}
	if u.title == "" {
		return
	}

	if pending && len(u.input) <= maxPiece && (begun || len(t.begun) < maxBegun) {
		if t.begun == nil {
			t.begun = map[string]use{}
		}
		t.begun[u.id] = u
		return
	}
	t.record(u)
}

// record adds the use of a tool to the conversation.
func (t *talk) record(u use) {
	if t.known == nil {
		t.known = map[string]string{}
	}

	t.flush()
	delete(t.begun, u.id)
	t.known[u.id] = line(u.title)
	t.out.Add(wire.Block{
		Type: "action", ID: u.id, Category: categoryOfKind(u.kind), Name: line(u.title), Input: u.input,
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
		Type: "action_result", ActionID: id, Category: categoryOfKind(kind), Name: cmp.Or(t.known[id], line(title)),
		State: string(status), Output: quoted(object),
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
	input := inputOf(c.RawInput, c.Locations)
	t.act(use{string(c.ToolCallId), title, value(c.Kind), input}, string(input) == "{}")

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

const maxAskedText = 500 // of a question's title, in bytes

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
