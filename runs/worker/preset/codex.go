package preset

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"millwright/runs/wire"
)

// codexPreset is OpenAI's Codex, tried with version 0.169.0.
var codexPreset = Preset{
	Name:     "codex",
	Program:  "codex",
	Package:  "@openai/codex",
	SignIn:   []string{"OPENAI_API_KEY", "CODEX_API_KEY"},
	Hosts:    []string{"api.openai.com"},
	Skills:   ".agents/skills",
	Sessions: []string{".codex/sessions"},
	launch:   launchCodex,
	adapter: func(t Task) Adapter {
		return &codex{begun: map[string]bool{}, model: t.Model, counted: t.Counted}
	},
}

// launchCodex configures it by a file of its own home. A project that the file does not name is not trusted:
// its configuration, hooks and servers are ignored.
func launchCodex(t Task) Launch {
	var config strings.Builder
	set := func(key string, value any) { fmt.Fprintf(&config, "%s = %s\n", key, inline(value)) }
	if t.BasePrompt != "" {
		set("developer_instructions", t.BasePrompt)
	}
	if t.Reasoning != "" {
		set("model_reasoning_effort", t.Reasoning)
	}
	set("check_for_update_on_startup", false)

	for _, name := range slices.Sorted(maps.Keys(t.Servers)) {
		s := t.Servers[name]
		fmt.Fprintf(&config, "\n[mcp_servers.%s]\n", inline(name))
		if s.URL != "" {
			set("url", s.URL)
			table := fmt.Sprintf("\n[mcp_servers.%s.http_headers]\n", inline(name))
			config.WriteString(tomlTable(table, s.Headers))
			continue
		}

		set("command", s.Command)
		if len(s.Args) > 0 {
			set("args", s.Args)
		}
		config.WriteString(tomlTable(fmt.Sprintf("\n[mcp_servers.%s.env]\n", inline(name)), s.Env))
	}

	if t.Trust {
		fmt.Fprintf(&config, "\n[projects.%s]\ntrust_level = \"trusted\"\n", inline(t.Dir))
	}

	l := Launch{
		Env:   map[string]string{"CODEX_HOME": path.Join(t.Home, ".codex")},
		Files: map[string][]byte{".codex/config.toml": []byte(config.String())},
		Args: []string{
			"exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
		},
	}

	if key := t.Given["OPENAI_API_KEY"]; key != "" && t.Given["CODEX_API_KEY"] == "" {
		l.Env["CODEX_API_KEY"] = key // the only one that its own provider takes without a sign-in
	}

	if t.Model != "" {
		l.Args = append(l.Args, "-m", t.Model)
	}
	l.Args = append(l.Args, t.Args...)
	if t.Session != "" {
		l.Args = append(l.Args, "resume", t.Session)
	}
	l.Args = append(l.Args, "-")

	return l
}

// tomlTable writes a table of texts, and nothing for an empty one.
func tomlTable(head string, values map[string]string) string {
	if len(values) == 0 {
		return ""
	}

	text := head
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text += inline(name) + " = " + inline(values[name]) + "\n"
	}
	return text
}

// codex reads the stream of `codex exec --json`.
type codex struct {
	begun   map[string]bool // items whose action was put out
	model   string
	counted wire.Usage // of the session, before this execution
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

// Line reads one line.
func (c *codex) Line(out Out, line string) {
	var l codexLine
	if !decode(out, line, &l) {
		return
	}

	switch l.Type {
	case "thread.started":
		c.failure = cutShort
		out.Session(l.ThreadID)
		out.Add(Event("session", map[string]string{"session_id": l.ThreadID}))
	case "item.started", "item.completed":
		c.item(out, l.Item, l.Type == "item.completed")
	case "turn.completed":
		out.Add(Event("result", map[string]any{"usage": l.Usage}))
		c.count(out, l.Usage)
		c.failure = ""
	case "turn.failed":
		c.failure = cmp.Or(l.Error.Message, "the agent's turn failed")
	case "error":
		out.Add(Event("error", map[string]string{"message": l.Message}))
		if c.failure == "" || c.failure == cutShort {
			c.failure = cmp.Or(l.Message, c.failure)
		}
	}
}

// count takes the usage of the whole thread.
func (c *codex) count(out Out, raw json.RawMessage) {
	var u struct {
		Input  int64 `json:"input_tokens"`
		Cached int64 `json:"cached_input_tokens"`
		Output int64 `json:"output_tokens"`
	}
	var kind *json.UnmarshalTypeError
	if err := json.Unmarshal(raw, &u); err != nil && !asError(err, &kind) {
		return
	}

	thread := usageOf(wire.ModelUsage{
		Model: c.model, InputTokens: u.Input, OutputTokens: u.Output, CachedTokens: u.Cached,
	}).Clean()
	out.Usage(thread.Since(c.counted), thread)
}

func (c *codex) item(out Out, i codexItem, completed bool) {
	kind := cmp.Or(i.Type, i.ItemType)
	switch kind {
	case "agent_message", "assistant_message", "plan":
		if completed {
			out.Add(wire.Text(i.Text))
		}
	case "reasoning":
		if completed {
			out.Add(Event("thinking", map[string]string{"text": i.Text}))
		}
	case "error":
		if completed {
			out.Add(Event("error", map[string]string{"message": i.Message}))
		}
	case "todo_list":
		if completed {
			out.Add(Event(kind, map[string]any{"items": i.Items}))
		}
	case "command_execution":
		outcome := codexOutcome(i.Status)
		if outcome == stateCompleted && i.ExitCode != nil && *i.ExitCode != 0 {
			outcome = stateFailed
		}

		c.pair(
			out,
			i.ID,
			kind,
			quoted(map[string]string{"command": i.Command}),
			completed,
			outcome,
			quoted(map[string]any{"output": i.Output, "exit_code": i.ExitCode}),
		)

	case "mcp_tool_call":
		result := i.Result
		failed := i.Status == "failed"
		if failed && len(i.Error) > 0 {
			result = i.Error
		}

		c.pair(out, i.ID, i.Server+"."+i.Tool, i.Arguments, completed, outcomeOf(failed), result)

	case "collab_tool_call":
		outcome := codexOutcome(i.Status)
		c.pair(out, i.ID, i.Tool, quoted(map[string]string{"prompt": i.Prompt}), completed, outcome, nil)
	case "file_change":
		outcome := codexOutcome(i.Status)
		c.pair(out, i.ID, kind, quoted(map[string]any{"changes": i.Changes}), completed, outcome, nil)
	case "web_search":
		c.pair(out, i.ID, kind, quoted(map[string]string{"query": i.Query}), completed, stateCompleted, nil)
	}
}

// codexOutcome names how an action of this status ended.
func codexOutcome(status string) string {
	switch status {
	case "failed":
		return stateFailed
	case "declined":
		return stateDenied
	}
	return stateCompleted
}

// pair puts out an action once and, when it is completed, its result.
func (c *codex) pair(
	out Out,
	id, name string,
	input json.RawMessage,
	completed bool,
	outcome string,
	output json.RawMessage,
) {
	if !c.begun[id] {
		if len(c.begun) < maxNames && len(id) <= maxName {
			c.begun[id] = true
		}
		block := wire.Block{
			Type: "action", ID: id, Category: categoryOf(name), Name: name, Input: asObject("input", input),
		}
		out.Add(block)
	}

	if completed {
		out.Add(
			wire.Block{
				Type:     "action_result",
				ActionID: id,
				Category: categoryOf(name),
				Name:     name,
				State:    outcome,
				Output:   asObject("output", output),
			},
		)
	}
}

// End returns why the agent failed.
func (c *codex) End(Out) string { return c.failure }
