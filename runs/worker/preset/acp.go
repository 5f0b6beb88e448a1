package preset

import "regexp"

// ACP is the name of the preset for every program that speaks the Agent Client Protocol over its standard input and
// output.
const ACP = "acp"

// acpPreset has no program of its own. The protocol carries the prompt, the MCP servers and the session; the worker
// speaks it. Sessions has the places of the agents that are known to speak it.
var acpPreset = Preset{
	Name: ACP,
	Sessions: []string{
		".gemini/tmp",
		".claude/projects",
		".codex/sessions",
		".local/share/opencode/opencode.db",
		".local/share/opencode/opencode.db-wal",
		".local/share/opencode/opencode.db-shm",
		".local/share/opencode/storage",
	},
	Believed: []string{
		".env", ".claude", ".mcp.json", ".codex", ".gemini", ".opencode", "opencode.json", "opencode.jsonc",
	},
	Restored: func(name string) string { return geminiSession.ReplaceAllString(name, "${1}1$2") },

	launch:  launchACP,
	adapter: func(Task) Adapter { return Lines{} },
}

// geminiSession matches the name of a session's file of Gemini CLI, which begins with the minute of its
// start. When Gemini CLI loads a session in that minute, it writes a new one over it, and does not find what
// it loads. So restored files are of another millennium.
var geminiSession = regexp.MustCompile(`^(\.gemini/tmp/[^/]+/chats/session-)2(\d{3}-)`)

// launchACP leaves model, reasoning level and servers to the session.
func launchACP(t Task) Launch { return Launch{Args: t.Args} }
