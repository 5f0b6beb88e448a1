package preset

import (
	"cmp"
	"encoding/json"
	"strings"

	"millwright/runs/wire"
)

// geminiSkills is where the agent looks for skills.
const geminiSkills = ".gemini/skills"

// geminiPreset is Google's Gemini CLI, tried with version 0.61.0. It has no reasoning level. In a folder that
// it does not trust it asks before it acts, and in one that it trusts it believes the files of Believed.
var geminiPreset = Preset{
	Name:     "gemini",
	Program:  "gemini",
	Package:  "@google/gemini-cli",
	SignIn:   []string{"GEMINI_API_KEY"},
	Hosts:    []string{"generativelanguage.googleapis.com"},
	Skills:   geminiSkills,
	Sessions: []string{".gemini/tmp"},
	Believed: []string{".env", ".gemini"},
	launch:   launchGemini,
	adapter:  func(Task) Adapter { return &gemini{names: names{}} },
}

func launchGemini(t Task) Launch {
	servers := object{}
	for name, s := range t.Servers {
		if s.URL != "" {
			servers[name] = object{"httpUrl": s.URL, "headers": s.Headers, "trust": true}
		} else {
			servers[name] = object{"command": s.Command, "args": s.Args, "env": s.Env, "trust": true}
		}
	}

	settings := object{
		"mcpServers": servers,
		"context":    object{"fileName": []string{"GEMINI.md", "AGENTS.md"}},
		"general":    object{"enableAutoUpdate": false},
		"privacy":    object{"usageStatisticsEnabled": false},
	}
	if t.Given["GEMINI_API_KEY"] != "" {
		settings["security"] = object{"auth": object{"selectedType": "gemini-api-key"}}
	}

	l := Launch{
		Files: map[string][]byte{".gemini/settings.json": written(settings)},
		Args:  []string{"--output-format", "stream-json", "--yolo", "--skip-trust"},
	}
	if t.Session != "" {
		l.Args = append(l.Args, "--resume", t.Session)
	} else {
		l.Args = append(l.Args, "--session-id", t.NewID)
	}

	if t.Model != "" {
		l.Args = append(l.Args, "-m", t.Model)
	}
	if t.BasePrompt != "" { // the instructions of its user, which follow its own
		l.Files[".gemini/GEMINI.md"] = []byte(t.BasePrompt)
	}
	if t.Reasoning != "" {
		l.NotApplied = map[string]string{"reasoning_level": "it has no reasoning level"}
	}

	l.Args = append(l.Args, t.Args...)
	return l
}

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

// Line reads one line.
func (g *gemini) Line(out Out, line string) {
	var l geminiLine
	if !decode(out, line, &l) {
		return
	}

	if l.Type == "message" && l.Role == "assistant" {
		if !l.Delta {
			g.flush(out)
		}
		if g.text.WriteString(l.Content); !l.Delta || g.text.Len() > maxPieces {
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
		g.failure = cutShort
		out.Session(l.SessionID)
		out.Add(Event("session", map[string]string{"model": l.Model, "session_id": l.SessionID}))
	case "tool_use":
		out.Add(g.names.note(action(l.ToolID, l.ToolName, geminiSkills, l.Parameters)))
	case "tool_result":
		output := l.Output
		if len(output) == 0 && l.Error.Message != "" {
			output = quoted(l.Error.Message)
		}

		out.Add(g.names.result(l.ToolID, l.Status != "success", output))

	case "error":
		out.Add(Event("error", map[string]string{"severity": l.Severity, "message": l.Message}))
	case "result":
		out.Add(Event("result", map[string]any{"status": l.Status, "stats": l.Stats}))
		g.count(out, l.Stats)
		g.failure = ""
		if l.Status != "success" {
			g.failure = cmp.Or(l.Error.Message, "the agent ended with status "+l.Status)
		}
	}
}

type geminiStats struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	Cached int64 `json:"cached"`
	Models map[string]geminiStats
}

// count takes the usage of this execution.
func (g *gemini) count(out Out, raw json.RawMessage) {
	var s geminiStats
	var kind *json.UnmarshalTypeError
	if err := json.Unmarshal(raw, &s); err != nil && !asError(err, &kind) {
		return
	}

	u := wire.Usage{InputTokens: s.Input, OutputTokens: s.Output, CachedTokens: s.Cached}
	for name, m := range s.Models {
		u.Models = append(u.Models, wire.ModelUsage{
			Model: name, InputTokens: m.Input, OutputTokens: m.Output, CachedTokens: m.Cached,
		})
	}
	out.Usage(u.Clean(), wire.Usage{})
}

func (g *gemini) flush(out Out) {
	if g.text.Len() > 0 {
		out.Add(wire.Text(g.text.String()))
		g.text.Reset()
	}
}

// End returns why the agent failed.
func (g *gemini) End(out Out) string {
	g.flush(out)
	return g.failure
}
