// Package preset holds the coding agents whose command lines millwright knows: how each takes the configuration
// of a run, where it keeps its sessions, and how its output becomes the conversation. It is pure: it reads and
// writes no files.
//
// A preset is one row of the table and one file. Another agent needs nothing else.
package preset

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"millwright/runs/wire"
)

// Preset is a coding agent. What it says of places is relative to the agent's home, with slashes.
type Preset struct {
	Name    string
	Program string // looked up in the PATH of the harness
	Package string // of the npm registry
	// SignIn are the environment variables by which it can sign in, the usual one first.
	SignIn []string
	// Hosts are those of its model, at its usual provider.
	Hosts []string
	// Skills is the directory in which it looks for skills.
	Skills string // empty: nowhere
	// Sessions are the files and directories in which it keeps its sessions, and nothing else: neither
	// settings nor credentials.
	Sessions []string
	// Believed are the files of a working directory by which a repository would change what the program does,
	// and that it has no flag to ignore.
	Believed []string

	// Restored returns the name below the home under which a file of a session is restored. nil: its own.
	Restored func(name string) string

	launch  func(Task) Launch
	adapter func(Task) Adapter
}

// Task is the work of an agent.
type Task struct {
	Home, Dir  string // of the agent and of the work, as the agent sees them
	Args       []string
	Model      string
	Reasoning  string
	BasePrompt string
	Servers    map[string]Server
	Skills     []wire.Skill
	Session    string            // to go on with; empty: a new one
	NewID      string            // the UUID that a new session gets where the agent lets us choose
	Counted    wire.Usage        // what the agent had counted of the session before
	Trust      bool              // the repository's settings are believed
	Given      map[string]string // the variables that the agent gets
}

// Server is an MCP server: a command with its arguments, or an URL.
type Server struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// Launch is how to start an agent.
type Launch struct {
	Args  []string          // of the program
	Env   map[string]string // beside what every harness gets
	Files map[string][]byte // to write below the home
	// NotApplied are the fields of the configuration that the agent cannot take, with the reason.
	NotApplied map[string]string
}

// Launch returns how to start the agent for a task.
func (p Preset) Launch(t Task) Launch {
	refused := map[string]string{}
	servers := map[string]Server{}
	for name, s := range t.Servers {
		if s.Command == "" && s.URL == "" {
			refused["mcp_servers."+name] = "it has neither a command nor an URL"
			continue
		}
		servers[name] = s
	}
	t.Servers = servers

	l := p.launch(t)
	if l.NotApplied == nil {
		l.NotApplied = map[string]string{}
	}
	maps.Copy(l.NotApplied, refused)

	if l.Files == nil {
		l.Files = map[string][]byte{}
	}
	if p.Skills == "" && len(t.Skills) > 0 {
		l.NotApplied["skills"] = "the place where this program looks for skills is unknown"
		t.Skills = nil
	}
	for _, s := range t.Skills {
		l.Files[path.Join(p.Skills, s.Name, "SKILL.md")] = skillFile(s)
	}

	if l.Env == nil {
		l.Env = map[string]string{}
	}
	l.Env["HOME"] = t.Home
	for name, dir := range map[string]string{
		"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share",
		"XDG_STATE_HOME": ".local/state", "XDG_CACHE_HOME": ".cache",
	} {
		l.Env[name] = path.Join(t.Home, dir)
	}

	return l
}

// SignedIn reports whether the variables that an agent gets have one by which it can sign in.
func (p Preset) SignedIn(given map[string]string) bool {
	return len(p.SignIn) == 0 ||
		slices.ContainsFunc(p.SignIn, func(name string) bool { return given[name] != "" })
}

// Adapter makes what reads the agent's output.
func (p Preset) Adapter(t Task) Adapter { return p.adapter(t) }

// Session reports whether a file below the home is part of a session.
func (p Preset) Session(name string) bool {
	for _, place := range p.Sessions {
		if name == place || strings.HasPrefix(name, place+"/") {
			return true
		}
	}
	return false
}

// skillFile is the SKILL.md of a skill, with the front matter by which agents know it.
func skillFile(s wire.Skill) []byte {
	description := s.Description
	if description == "" {
		description = "The skill " + s.Name + "."
	}
	return []byte("---\nname: " + inline(s.Name) + "\ndescription: " + inline(description) + "\n---\n" + s.Body + "\n")
}

// inline returns text as a JSON string, which YAML and TOML read as their own.
func inline(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return `""`
	}
	return strings.ReplaceAll(string(text), "\x7f", `\u007f`) // TOML takes no raw control character
}

// written returns a value as an indented JSON file.
func written(v any) []byte {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return []byte("{}")
	}
	return append(text, '\n')
}

type object = map[string]any
