package preset

import (
	"cmp"
	"encoding/json"
	"path"

	"millwright/runs/wire"
)

// opencodeSkills is where the agent looks for skills.
const opencodeSkills = ".config/opencode/skills"

// opencodePreset is opencode, tried with version 1.18.33. Its models are named provider/model. It loads the plugins
// of .opencode whatever its flags say.
var opencodePreset = Preset{
	Name:    "opencode",
	Program: "opencode",
	Package: "opencode-ai",
	SignIn:  []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"},
	Skills:  opencodeSkills,
	Sessions: []string{
		".local/share/opencode/opencode.db",
		".local/share/opencode/opencode.db-wal",
		".local/share/opencode/opencode.db-shm",
		".local/share/opencode/storage",
	},
	Believed: []string{".opencode", "opencode.json", "opencode.jsonc"},
	launch:   launchOpencode,
	adapter: func(t Task) Adapter {
		return &opencode{names: names{}, model: t.Model, steps: map[string]bool{}}
	},
}

func launchOpencode(t Task) Launch {
	servers := object{}
	for name, s := range t.Servers {
		if s.URL != "" {
			servers[name] = object{"type": "remote", "url": s.URL, "headers": s.Headers, "enabled": true}
		} else {
			command := append([]string{s.Command}, s.Args...)
			servers[name] = object{"type": "local", "command": command, "environment": s.Env, "enabled": true}
		}
	}

	config := object{"mcp": servers, "autoupdate": false, "share": "disabled"}
	l := Launch{
		Env: map[string]string{
			"OPENCODE_CONFIG":             path.Join(t.Home, ".config/opencode/millwright.json"),
			"OPENCODE_DISABLE_AUTOUPDATE": "1",
		},
		Files: map[string][]byte{},
		Args:  []string{"run", "--format", "json", "--auto"},
	}

	var instructions []string
	if t.BasePrompt != "" {
		l.Files[".config/opencode/base-prompt.md"] = []byte(t.BasePrompt)
		instructions = append(instructions, path.Join(t.Home, ".config/opencode/base-prompt.md"))
	}
	if !t.Trust {
		l.Args = append(l.Args, "--pure")
		l.Env["OPENCODE_DISABLE_PROJECT_CONFIG"] = "1"
		for _, name := range []string{"AGENTS.md", "CLAUDE.md"} { // the repository's instructions, as text
			instructions = append(instructions, path.Join(t.Dir, name))
		}
	}
	if instructions != nil {
		config["instructions"] = instructions
	}
	l.Files[".config/opencode/millwright.json"] = written(config)

	if t.Session != "" {
		l.Args = append(l.Args, "--session", t.Session)
	} else {
		l.Args = append(l.Args, "--title", "millwright") // else it asks the model for one
	}
	if t.Model != "" {
		l.Args = append(l.Args, "-m", t.Model)
	}
	if t.Reasoning != "" {
		l.Args = append(l.Args, "--variant", t.Reasoning)
	}

	l.Args = append(l.Args, t.Args...)
	return l
}

// opencode reads the stream of `opencode run --format json`.
type opencode struct {
	names   names
	model   string
	session string
	steps   map[string]bool // that were counted
	usage   wire.Usage
	failure string
}

type opencodeLine struct {
	Type      string
	SessionID string
	Error     struct {
		Name string
		Data struct{ Message string }
	}
	Part struct {
		ID, Text, Tool, CallID string
		State                  struct {
			Status, Error string
			Input         json.RawMessage
			Output        json.RawMessage
		}
		Cost   float64
		Tokens struct {
			Input, Output, Reasoning int64
			Cache                    struct{ Read, Write int64 }
		}
	}
}

// Line reads one line.
func (o *opencode) Line(out Out, line string) {
	var l opencodeLine
	if !decode(out, line, &l) {
		return
	}

	if l.SessionID != "" && l.SessionID != o.session {
		o.session = l.SessionID
		out.Session(l.SessionID)
		out.Add(Event("session", map[string]string{"session_id": l.SessionID}))
	}

	switch p := l.Part; l.Type {
	case "text":
		out.Add(wire.Text(p.Text))
	case "reasoning":
		out.Add(Event("thinking", map[string]string{"text": p.Text}))
	case "tool_use":
		output := p.State.Output
		if p.State.Error != "" {
			output = quoted(p.State.Error)
		}

		out.Add(o.names.note(action(p.CallID, p.Tool, opencodeSkills, p.State.Input)))
		out.Add(o.names.result(p.CallID, p.State.Status != "completed", output))
	case "step_start":
		o.failure = cutShort
	case "step_finish":
		o.failure = ""
		o.count(out, l)
	case "error":
		o.failure = cmp.Or(l.Error.Data.Message, l.Error.Name, "the agent failed")
		out.Add(Event("error", map[string]string{"message": o.failure}))
	}
}

// count adds a step, each once.
func (o *opencode) count(out Out, l opencodeLine) {
	p := l.Part
	if o.steps[p.ID] || len(o.steps) >= maxNames || len(p.ID) > maxName {
		return
	}

	o.steps[p.ID] = true
	o.usage = o.usage.Plus(usageOf(wire.ModelUsage{
		Model:        o.model,
		InputTokens:  p.Tokens.Input + p.Tokens.Cache.Read + p.Tokens.Cache.Write,
		OutputTokens: p.Tokens.Output + p.Tokens.Reasoning,
		CachedTokens: p.Tokens.Cache.Read,
		CostUSD:      p.Cost,
	}).Clean())
	out.Usage(o.usage, wire.Usage{})
}

// End returns why the agent failed. What it puts out before its first event is a failure too: it ends with
// status 0 though it does not know a session.
func (o *opencode) End(Out) string {
	if o.failure == "" && o.session == "" {
		return "the agent ended without a word of its session"
	}
	return o.failure
}
