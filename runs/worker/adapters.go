package worker

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"millwright/runs/wire"
)

// Words of the blocks that the adapters make.
const (
	categoryTool  = "tool"
	categorySkill = "skill"
	readSkill     = "read_skill"
	succeeded     = "succeeded"
	failedState   = "failed"
)

// outcomeOf names how an action ended.
func outcomeOf(isError bool) string {
	if isError {
		return failedState
	}
	return succeeded
}

// event is a block that tells of something.
func event(name string, data any) wire.Block {
	return wire.Block{Type: "event", Name: name, Data: quoted(data)}
}

// names remembers which action an ID belongs to, for the block of its result. It is bounded.
type names map[string]wire.Block

// maxNames is how many actions are remembered, and maxName how long their IDs and names may be, in bytes.
const (
	maxNames = 10_000
	maxName  = 500
)

func (n names) note(b wire.Block) wire.Block {
	if len(n) < maxNames && len(b.ID) <= maxName && len(b.Name) <= maxName {
		n[b.ID] = wire.Block{Name: b.Name, Category: b.Category}
	}
	return b
}

func (n names) result(id string, isError bool, output json.RawMessage) wire.Block {
	return wire.Block{
		Type:     "action_result",
		ActionID: id,
		Category: cmp.Or(n[id].Category, categoryTool),
		Name:     n[id].Name,
		State:    outcomeOf(isError),
		Output:   output,
	}
}

// action is a tool's use or, when the tool loads a skill, the load of the skill.
func action(id, tool string, input json.RawMessage) wire.Block {
	b := wire.Block{Type: "action", ID: id, Category: categoryTool, Name: tool, Input: input}
	switch strings.ToLower(tool) {
	case "skill", "activate_skill", readSkill:
		var asked struct{ Skill, Command, Name, Path string }
		if json.Unmarshal(input, &asked) == nil {
			if path := cmp.Or(asked.Skill, asked.Path, asked.Command, asked.Name); path != "" {
				b.Category, b.Name, b.Input = categorySkill, readSkill, quoted(map[string]string{"skill_path": path})
			}
		}
	}

	return b
}

// decode reads a line of a JSON stream into v. What is no JSON object is the assistant's text; a field that
// is not of the kind that was known when this was written is left out.
func decode(out *recorder, line string, v any) bool {
	if strings.TrimSpace(line) == "" {
		return false
	}

	err := errors.New("no object")
	if strings.HasPrefix(line, "{") {
		err = json.Unmarshal([]byte(line), v)
	}

	var kind *json.UnmarshalTypeError
	if err != nil && !errors.As(err, &kind) {
		out.add(wire.Text(line))
		return false
	}

	return true
}

// claude reads the stream of `claude -p --output-format stream-json --verbose`.
type claude struct {
	names   names
	said    bool // the assistant put out text
	failure string
}

type claudeLine struct {
	Type, Subtype string
	Model         string
	SessionID     string `json:"session_id"`
	Skills        []string
	Message       struct {
		Content json.RawMessage
	}
	IsError    bool `json:"is_error"`
	Result     string
	Errors     []string
	Error      struct{ Message string }
	NumTurns   int     `json:"num_turns"`
	DurationMS float64 `json:"duration_ms"`
	Cost       float64 `json:"total_cost_usd"`
	Usage      json.RawMessage
}

type claudePart struct {
	Type, Text, Thinking, ID, Name string
	Input                          json.RawMessage
	ToolUseID                      string `json:"tool_use_id"`
	Content                        json.RawMessage
	IsError                        bool `json:"is_error"`
}

func (c *claude) line(out *recorder, line string) {
	var l claudeLine
	if !decode(out, line, &l) {
		return
	}

	switch l.Type {
	case "system":
		if l.Subtype != "init" {
			return
		}

		out.add(event("session", map[string]string{"model": l.Model, "session_id": l.SessionID}))
		if l.Skills != nil {
			var skills []skill
			for _, name := range l.Skills {
				skills = append(skills, skill{Name: name})
			}

			out.setSkills(quoted(known(skills)))
		}

	case "assistant", "user":
		var text string
		if json.Unmarshal(l.Message.Content, &text) == nil {
			c.part(out, l.Type, claudePart{Type: "text", Text: text})
			return
		}

		var parts []claudePart
		if json.Unmarshal(l.Message.Content, &parts) == nil {
			for _, p := range parts {
				c.part(out, l.Type, p)
			}
		}

	case "result":
		if !c.said && l.Result != "" { // as after a command that the model never saw
			out.add(wire.Text(l.Result))
		}

		out.add(
			event(
				"result",
				map[string]any{
					"subtype":        l.Subtype,
					"is_error":       l.IsError,
					"num_turns":      l.NumTurns,
					"duration_ms":    l.DurationMS,
					"total_cost_usd": l.Cost,
					"usage":          l.Usage,
				},
			),
		)

		c.failure = ""
		if l.IsError || l.Subtype != "success" {
			c.failure = cmp.Or(l.Result, strings.Join(l.Errors, "; "), "the agent ended with "+l.Subtype)
		}

	case "error":
		out.add(event("error", map[string]string{"message": l.Error.Message}))
	}
}

func (c *claude) part(out *recorder, by string, p claudePart) {
	switch {
	case p.Type == "text":
		if by == "assistant" && p.Text != "" {
			c.said = true
			out.add(wire.Text(p.Text))
		}
	case p.Type == "thinking":
		out.add(event("thinking", map[string]string{"text": p.Thinking}))
	case strings.HasSuffix(p.Type, "tool_use"): // those of servers too: server_tool_use, mcp_tool_use
		out.add(c.names.note(action(p.ID, p.Name, p.Input)))
	case strings.HasSuffix(p.Type, "tool_result"):
		out.add(c.names.result(p.ToolUseID, p.IsError, p.Content))
	}
}

func (c *claude) end(*recorder) string { return c.failure }

// codex reads the stream of `codex exec --json`.
type codex struct {
	begun   map[string]bool // items whose action was put out
	failure string
}

type codexLine struct {
	Type     string
	ThreadID string `json:"thread_id"`
	Message  string
	Error    struct{ Message string }
	Usage    json.RawMessage
	Item     codexItem
}

type codexItem struct {
	ID       string
	Type     string
	ItemType string `json:"item_type"` // of older versions
	Text     string
	Message  string
	Status   string
	Command  string
	Output   string `json:"aggregated_output"`
	ExitCode *int   `json:"exit_code"`
	Server   string
	Tool     string
	Query    string
	Prompt   string

	Arguments, Result, Changes, Items json.RawMessage
	Error                             json.RawMessage
}

func (c *codex) line(out *recorder, line string) {
	var l codexLine
	if !decode(out, line, &l) {
		return
	}

	switch l.Type {
	case "thread.started":
		out.add(event("session", map[string]string{"session_id": l.ThreadID}))
	case "item.started", "item.completed":
		c.item(out, l.Item, l.Type == "item.completed")
	case "turn.completed":
		out.add(event("result", map[string]any{"usage": l.Usage}))
		c.failure = ""
	case "turn.failed":
		c.failure = cmp.Or(l.Error.Message, "the agent's turn failed")
	case "error":
		out.add(event("error", map[string]string{"message": l.Message}))
		c.failure = cmp.Or(c.failure, l.Message)
	}
}

func (c *codex) item(out *recorder, i codexItem, completed bool) {
	kind := cmp.Or(i.Type, i.ItemType)
	switch kind {
	case "agent_message", "assistant_message", "plan":
		if completed {
			out.add(wire.Text(i.Text))
		}
	case "reasoning":
		if completed {
			out.add(event("thinking", map[string]string{"text": i.Text}))
		}
	case "error":
		if completed {
			out.add(event("error", map[string]string{"message": i.Message}))
		}
	case "todo_list":
		if completed {
			out.add(event(kind, map[string]any{"items": i.Items}))
		}
	case "command_execution":
		failed := i.Status == "failed" || i.Status == "declined" || i.ExitCode != nil && *i.ExitCode != 0
		c.pair(
			out,
			i.ID,
			kind,
			quoted(map[string]string{"command": i.Command}),
			completed,
			failed,
			quoted(map[string]any{"output": i.Output, "exit_code": i.ExitCode}),
		)

	case "mcp_tool_call":
		result := i.Result
		failed := i.Status == "failed"
		if failed && len(i.Error) > 0 {
			result = i.Error
		}

		c.pair(out, i.ID, i.Server+"."+i.Tool, i.Arguments, completed, failed, result)

	case "collab_tool_call":
		c.pair(out, i.ID, i.Tool, quoted(map[string]string{"prompt": i.Prompt}), completed, i.Status == "failed", nil)
	case "file_change":
		c.pair(out, i.ID, kind, quoted(map[string]any{"changes": i.Changes}), completed, i.Status == "failed", nil)
	case "web_search":
		c.pair(out, i.ID, kind, quoted(map[string]string{"query": i.Query}), completed, false, nil)
	}
}

// pair puts out an action once and, when it is completed, its result.
func (c *codex) pair(
	out *recorder,
	id, name string,
	input json.RawMessage,
	completed, failed bool,
	output json.RawMessage,
) {
	if !c.begun[id] {
		if len(c.begun) < maxNames && len(id) <= maxName {
			c.begun[id] = true
		}
		out.add(wire.Block{Type: "action", ID: id, Category: categoryTool, Name: name, Input: input})
	}

	if completed {
		out.add(
			wire.Block{
				Type:     "action_result",
				ActionID: id,
				Category: categoryTool,
				Name:     name,
				State:    outcomeOf(failed),
				Output:   output,
			},
		)
	}
}

func (c *codex) end(*recorder) string { return c.failure }

// gemini reads the stream of `gemini --output-format stream-json`.
type gemini struct {
	names   names
	text    strings.Builder // pieces of a message
	failure string
}

type geminiLine struct {
	Type, Role, Content string
	Delta               bool
	Model               string
	SessionID           string `json:"session_id"`
	ToolName            string `json:"tool_name"`
	ToolID              string `json:"tool_id"`
	Parameters          json.RawMessage
	Status              string
	Output              json.RawMessage
	Error               struct{ Type, Message string }
	Severity, Message   string
	Stats               json.RawMessage
}

func (g *gemini) line(out *recorder, line string) {
	var l geminiLine
	if !decode(out, line, &l) {
		return
	}

	if l.Type == "message" && l.Role == "assistant" {
		if !l.Delta {
			g.flush(out)
		}
		if g.text.WriteString(l.Content); !l.Delta || g.text.Len() > maxText/2 {
			g.flush(out)
		}

		return
	}

	switch l.Type {
	case "message", "init", "tool_use", "tool_result", "error", "result":
		g.flush(out)
	}

	switch l.Type {
	case "init":
		out.add(event("session", map[string]string{"model": l.Model, "session_id": l.SessionID}))
	case "tool_use":
		out.add(g.names.note(action(l.ToolID, l.ToolName, l.Parameters)))
	case "tool_result":
		output := l.Output
		if len(output) == 0 && l.Error.Message != "" {
			output = quoted(l.Error.Message)
		}

		out.add(g.names.result(l.ToolID, l.Status != "success", output))

	case "error":
		out.add(event("error", map[string]string{"severity": l.Severity, "message": l.Message}))
	case "result":
		out.add(event("result", map[string]any{"status": l.Status, "stats": l.Stats}))
		g.failure = ""
		if l.Status != "success" {
			g.failure = cmp.Or(l.Error.Message, "the agent ended with status "+l.Status)
		}
	}
}

func (g *gemini) flush(out *recorder) {
	if g.text.Len() > 0 {
		out.add(wire.Text(g.text.String()))
		g.text.Reset()
	}
}

func (g *gemini) end(out *recorder) string {
	g.flush(out)
	return g.failure
}
