package preset

import (
	"cmp"
	"encoding/json"
	"path"
	"strings"

	"millwright/runs/wire"
)

// claudeSkills is where the agent looks for skills.
const claudeSkills = ".claude/skills"

// claudePreset is Claude Code, tried with version 2.1.330.
var claudePreset = Preset{
	Name:     "claude",
	Program:  "claude",
	Package:  "@anthropic-ai/claude-code",
	SignIn:   []string{"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"},
	Hosts:    []string{"api.anthropic.com"},
	Skills:   claudeSkills,
	Sessions: []string{".claude/projects"},
	launch:   launchClaude,
	adapter:  func(t Task) Adapter { return &claude{names: names{}, counted: t.Counted} },
}

func launchClaude(t Task) Launch {
	own := path.Join(t.Home, ".claude")
	l := Launch{
		Env: map[string]string{
			"CLAUDE_CONFIG_DIR":   own,
			"DISABLE_AUTOUPDATER": "1",
			"IS_SANDBOX":          "1", // else it refuses to work unattended as root
		},
		Files: map[string][]byte{},
	}

	l.Args = []string{
		"-p", "--output-format", "stream-json", "--verbose",
		"--permission-mode", "bypassPermissions",
	}
	if t.Session != "" {
		l.Args = append(l.Args, "--resume", t.Session)
	} else {
		l.Args = append(l.Args, "--session-id", t.NewID)
	}

	if t.Model != "" {
		l.Args = append(l.Args, "--model", t.Model)
	}
	if t.Reasoning != "" {
		l.Args = append(l.Args, "--effort", t.Reasoning)
	}
	if t.BasePrompt != "" {
		l.Files[".claude/base-prompt.md"] = []byte(t.BasePrompt)
		l.Args = append(l.Args, "--append-system-prompt-file", path.Join(own, "base-prompt.md"))
	}

	servers := object{}
	for name, s := range t.Servers {
		if s.URL != "" {
			servers[name] = object{"type": "http", "url": s.URL, "headers": s.Headers}
		} else {
			servers[name] = object{"type": "stdio", "command": s.Command, "args": s.Args, "env": s.Env}
		}
	}
	if len(servers) > 0 {
		l.Files[".claude/mcp.json"] = written(object{"mcpServers": servers})
		l.Args = append(l.Args, "--mcp-config", path.Join(own, "mcp.json"))
	}

	if !t.Trust {
		l.Args = append(l.Args, "--strict-mcp-config", "--setting-sources", "user")
		l.Files[".claude/CLAUDE.md"] = []byte( // the repository's instructions, as text
			"@" + path.Join(t.Dir, "CLAUDE.md") + "\n@" + path.Join(t.Dir, "AGENTS.md") + "\n",
		)
	}

	l.Args = append(l.Args, t.Args...)
	return l
}

// maxTools is how many of its tools the conversation names.
const maxTools = 200

// claude reads the stream of `claude -p --output-format stream-json --verbose`.
type claude struct {
	names   names
	counted wire.Usage // of the session, before this execution
	before  wire.Usage // of this execution, but for the answer that comes just now
	answer  string     // its ID
	latest  wire.Usage // of it
	said    bool       // the assistant put out text
	failure string     // empty once the output has a result without an error
}

type claudeLine struct {
	Type, Subtype string
	Model         string
	SessionID     string `json:"session_id"`
	Skills        []string
	Tools         []string
	Servers       []struct{ Name, Status string } `json:"mcp_servers"`
	Message       struct {
		ID, Model string
		Content   json.RawMessage
		Usage     claudeUsage
	}
	IsError    bool `json:"is_error"`
	Result     string
	Errors     []string
	Error      struct{ Message string }
	NumTurns   int     `json:"num_turns"`
	DurationMS float64 `json:"duration_ms"`
	Cost       float64 `json:"total_cost_usd"`
	Usage      json.RawMessage
	ModelUsage map[string]struct {
		InputTokens, OutputTokens, CacheReadInputTokens, CacheCreationInputTokens int64
		CostUSD                                                                   float64
	}
}

type claudeUsage struct {
	Input   int64 `json:"input_tokens"`
	Output  int64 `json:"output_tokens"`
	Read    int64 `json:"cache_read_input_tokens"`
	Written int64 `json:"cache_creation_input_tokens"`
}

type claudePart struct {
	Type, Text, Thinking, ID, Name string
	Input                          json.RawMessage
	ToolUseID                      string `json:"tool_use_id"`
	Content                        json.RawMessage
	IsError                        bool `json:"is_error"`
}

// Line reads one line.
func (c *claude) Line(out Out, line string) {
	var l claudeLine
	if !decode(out, line, &l) {
		return
	}

	switch l.Type {
	case "system":
		if l.Subtype == "init" {
			c.begin(out, l)
		}

	case "assistant", "user":
		c.message(out, l)
	case "result":
		c.result(out, l)
	case "error":
		out.Add(Event("error", map[string]string{"message": l.Error.Message}))
	}
}

func (c *claude) begin(out Out, l claudeLine) {
	c.failure = cutShort
	out.Session(l.SessionID)
	session := map[string]any{"model": l.Model, "session_id": l.SessionID}
	if len(l.Tools) > 0 {
		session["tools"] = l.Tools[:min(len(l.Tools), maxTools)]
	}
	out.Add(Event("session", session))
	for _, s := range l.Servers {
		if s.Status == "failed" {
			out.Add(Event("mcp_server_failed", map[string]string{"name": s.Name}))
		}
	}

	if l.Skills != nil {
		var skills []Skill
		for _, name := range l.Skills {
			skills = append(skills, Skill{Name: name})
		}

		out.SetSkills(skills)
	}
}

func (c *claude) message(out Out, l claudeLine) {
	defer c.count(out, l) // what was used follows what it was used for

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
}

// count adds an answer of the model, each once though it comes in several lines: what is known should the end
// not come.
func (c *claude) count(out Out, l claudeLine) {
	u := l.Message.Usage
	if l.Type != "assistant" || u == (claudeUsage{}) {
		return
	}

	if c.answer != l.Message.ID {
		c.before, c.answer = c.before.Plus(c.latest), l.Message.ID
	}
	c.latest = usageOf(wire.ModelUsage{
		Model:        l.Message.Model,
		InputTokens:  u.Input + u.Read + u.Written,
		OutputTokens: u.Output,
		CachedTokens: u.Read,
	}).Clean()
	out.Usage(c.before.Plus(c.latest), c.counted)
}

// usageOf is the usage of one model.
func usageOf(m wire.ModelUsage) wire.Usage {
	u := wire.Usage{
		InputTokens:  m.InputTokens,
		OutputTokens: m.OutputTokens,
		CachedTokens: m.CachedTokens,
		CostUSD:      m.CostUSD,
	}
	if m.Model != "" {
		u.Models = []wire.ModelUsage{m}
	}
	return u
}

func (c *claude) result(out Out, l claudeLine) {
	if !c.said && l.Result != "" { // as after a command that the model never saw
		out.Add(wire.Text(l.Result))
	}

	out.Add(
		Event(
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

	var session wire.Usage // it counts the models and the cost of the whole session
	for name, m := range l.ModelUsage {
		session = session.Plus(usageOf(wire.ModelUsage{
			Model:        name,
			InputTokens:  m.InputTokens + m.CacheReadInputTokens + m.CacheCreationInputTokens,
			OutputTokens: m.OutputTokens,
			CachedTokens: m.CacheReadInputTokens,
			CostUSD:      m.CostUSD,
		}))
	}
	if session.CostUSD = l.Cost; session.Total() > 0 {
		session = session.Clean()
		out.Usage(session.Since(c.counted), session)
	}

	c.failure = ""
	if l.IsError || l.Subtype != "success" {
		c.failure = cmp.Or(l.Result, strings.Join(l.Errors, "; "), "the agent ended with "+l.Subtype)
	}
}

func (c *claude) part(out Out, by string, p claudePart) {
	switch {
	case p.Type == "text":
		if by == "assistant" && p.Text != "" {
			c.said = true
			out.Add(wire.Text(p.Text))
		}
	case p.Type == "thinking":
		out.Add(Event("thinking", map[string]string{"text": p.Thinking}))
	case strings.HasSuffix(p.Type, "tool_use"): // those of servers too: server_tool_use, mcp_tool_use
		out.Add(c.names.note(action(p.ID, p.Name, claudeSkills, p.Input)))
	case strings.HasSuffix(p.Type, "tool_result"):
		out.Add(c.names.result(p.ToolUseID, p.IsError, p.Content))
	}
}

// End returns why the agent failed.
func (c *claude) End(Out) string { return c.failure }
