package dashboard

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"millwright/schema/agentconfig"
	"millwright/state"
)

// startEntries is how many entries of an attempt are searched for what its agent was given: the worker
// records that before the agent speaks.
const startEntries = 20

// givenView is what the latest attempt of a run was given, and what of it reached the agent.
type givenView struct {
	Harness string
	Session string // new or resumed; empty for a command
	Model   string // as the agent reports it
	Tools   []string
	Rows    []givenRow
}

// givenRow is a field of a run's configuration.
type givenRow struct {
	Name, Value string
	Tone, State string // State is empty before the run begins
	Reason      string
}

// reached is what the events of an attempt tell about its configuration.
type reached struct {
	known   bool // the worker told what it applied
	Harness string
	Session string
	Fields  []string
	lost    map[string]string // reasons by field
	failed  map[string]bool   // MCP servers that did not start
	model   string
	tools   []string
}

// given returns what the run was given; nil when its configuration sets nothing and no agent told anything.
func (q *request) given(r state.Run, prompts []state.Message) (*givenView, error) {
	config, err := agentconfig.Decode(r.Config)
	if err != nil {
		return nil, nil // the page shows the rest of the run
	}

	found, began, err := q.reached(r)
	if err != nil {
		return nil, err
	}

	v := &givenView{
		Harness: found.Harness,
		Session: found.Session,
		Model:   found.model,
		Tools:   found.tools,
	}
	if v.Harness == "" && config.Harness != nil {
		v.Harness = config.Harness.Type
	}

	add := func(field, name, value string) {
		if value != "" {
			v.Rows = append(v.Rows, found.row(field, name, value, began))
		}
	}
	if last := prompts[len(prompts)-1]; len(last.Content) > 0 {
		add("prompt", "Prompt", byteCount(int64(len(last.Content[0].Text)))+", in the conversation")
	}
	add("model_id", "Model", config.ModelID)
	add("reasoning_level", "Effort", config.ReasoningLevel())
	add("base_prompt", "Base prompt", config.BasePrompt)
	for _, name := range slices.Sorted(maps.Keys(config.MCPServers)) {
		server := config.MCPServers[name]
		address := cmp.Or(
			server.URL,
			strings.Join(append([]string{server.Command}, server.Args...), " "),
			"shared",
		)
		add("mcp_servers."+name, "MCP server "+name, address)
	}

	add("skill_spec", "Skill", config.SkillSpec)
	for _, field := range found.Fields {
		if name, ok := strings.CutPrefix(field, "skills."); ok && name != config.SkillSpec {
			add(field, "Skill", name)
		}
	}
	if config.ListsSkills() || found.lost["skills"] != "" {
		add("skills", "Skills", "as listed in the configuration")
	}

	add("environment_id", "Environment", config.EnvironmentID)
	add("runner_id", "Runner", config.RunnerID)
	if n := config.IdleTimeoutMinutes; n > 0 {
		add("idle_timeout_minutes", "Idle time", count(n, "minute", "minutes"))
	}
	if found.lost["repositories"] != "" {
		add("repositories", "Repositories", "of the factory or the run")
	}

	return v, nil
}

// row returns the row of a field.
func (f reached) row(field, name, value string, began bool) givenRow {
	r := givenRow{Name: name, Value: value}
	server, _ := strings.CutPrefix(field, "mcp_servers.")
	switch {
	case f.lost[field] != "":
		r.Tone, r.State, r.Reason = "odd", "not applied", f.lost[field]
	case f.failed[server]:
		r.Tone, r.State, r.Reason = "bad", "failed", "the agent reports that the server does not start"
	case slices.Contains(f.Fields, field), field == "prompt" && began:
		r.Tone, r.State = "good", "applied"
	case began && !f.known:
		r.Tone, r.State = "quiet", "in files"
	}
	return r
}

// maxMoments is how many changes of state a timeline shows, the latest.
const maxMoments = 200

// reached reads the events with which the latest attempt of a run began.
func (q *request) reached(r state.Run) (f reached, began bool, err error) {
	changes, err := q.Store.Changes(q.Context(), r.ID, maxMoments)
	if err != nil {
		return f, false, err
	}

	first := int64(0)
	for _, e := range changes {
		if e.Change.State == state.RunClaimed && e.Execution == r.Execution {
			first = e.Seq
		}
	}
	if first == 0 {
		return f, false, nil
	}

	entries, err := q.Store.Entries(q.Context(), r.ID, first, startEntries)
	f.lost, f.failed = map[string]string{}, map[string]bool{}
	for _, e := range entries {
		if e.Message == nil {
			continue
		}
		for _, b := range e.Message.Content {
			f.event(b)
		}
	}

	return f, true, err
}

// event takes an event of an attempt.
func (f *reached) event(b state.Block) {
	if b.Type != "event" {
		return
	}

	var data struct {
		Field, Reason, Name string
		Harness, Session    string
		Model               string
		Fields, Tools       []string
	}
	if json.Unmarshal(b.Data, &data) != nil {
		return
	}

	switch b.Name {
	case "config_applied":
		f.known, f.Harness, f.Session, f.Fields = true, data.Harness, data.Session, data.Fields
	case "config_not_applied":
		f.lost[data.Field] = data.Reason
	case "mcp_server_failed":
		f.failed[data.Name] = true
	case "session":
		f.model, f.tools = data.Model, data.Tools
	}
}
