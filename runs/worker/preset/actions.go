package preset

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"millwright/runs/wire"
)

// Categories of actions that the adapters make: the words that clients of conversations know.
const (
	categoryCommand     = "command"
	categoryFiles       = "files"
	categorySearch      = "search"
	categoryIntegration = "integration"
	categorySkill       = "skill"
)

// readSkill is the name of an action that loads a skill.
const readSkill = "read_skill"

// States of results: with "running", which no adapter makes, the words that clients of conversations know.
const (
	stateCompleted = "completed"
	stateFailed    = "failed"
	stateDenied    = "denied"
)

// outcomeOf names how an action ended.
func outcomeOf(isError bool) string {
	if isError {
		return stateFailed
	}
	return stateCompleted
}

// categoryOf returns the category of a tool by its name. A tool that no agent brings along is an integration.
func categoryOf(tool string) string {
	switch strings.ToLower(tool) {
	case "bash", "bashoutput", "killshell", "command_execution", "run_shell_command", "shell":
		return categoryCommand
	case "read", "write", "edit", "multiedit", "notebookedit", "ls", "file_change", "apply_patch", "read_file",
		"read_many_files", "write_file", "replace", "list_directory":
		return categoryFiles
	case "glob", "grep", "websearch", "webfetch", "web_search", "web_fetch", "google_web_search", "grep_search",
		"search_file_content":
		return categorySearch
	}
	return categoryIntegration
}

// action is a tool's use or, when the tool loads a skill, the load of the skill. skills is the directory in
// which the agent looks for skills.
func action(id, tool, skills string, input json.RawMessage) wire.Block {
	b := wire.Block{Type: "action", ID: id, Category: categoryOf(tool), Name: tool, Input: asObject("input", input)}
	switch strings.ToLower(tool) {
	case "skill", "activate_skill", readSkill:
		var asked struct{ Skill, Command, Name, Path string }
		if json.Unmarshal(input, &asked) != nil {
			return b
		}

		path := asked.Path
		name := cmp.Or(asked.Skill, asked.Command, asked.Name)
		if path == "" && name != "" {
			path = skillPath(skills, name)
		}
		if path != "" {
			b.Category, b.Name, b.Input = categorySkill, readSkill, quoted(map[string]string{"skill_path": path})
		}
	}

	return b
}

func quoted(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}

// skillPath returns where an agent reads the skill of a name. A path, and the name of a plugin's skill, stay as
// they are.
func skillPath(directory, name string) string {
	if strings.ContainsAny(name, "/:") || strings.HasSuffix(name, ".md") {
		return name
	}
	return directory + "/" + name + "/SKILL.md"
}

// asObject returns a value as clients of conversations read inputs and outputs: a JSON object. Any other value
// becomes its only member.
func asObject(member string, value json.RawMessage) json.RawMessage {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || string(value) == "null" {
		return json.RawMessage("{}")
	}
	if value[0] == '{' {
		return value
	}

	return quoted(map[string]json.RawMessage{member: value})
}
