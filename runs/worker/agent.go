//go:build unix

package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"millwright/runs/wire"
	"millwright/runs/worker/preset"
	"millwright/schema/agentconfig"
)

// placer is an executor that knows the places of its agents.
type placer interface {
	seen(Task) places
	homeOf(Task) string
}

// furnish fills the directories of a task and makes its command. It restores what the execution before left, and
// reports whether the agent goes on with the session of that; where it cannot, the prompt has the conversation so
// far. What of the configuration the harness does not apply becomes an event.
func (j *job) furnish(ctx context.Context, t *Task, name string, h configured, resume bool) (resumed bool, err error) {
	p, ok := preset.Find(h.harness.Preset)
	p = p.Of(h.harness.Program)
	if ok {
		t.home = h.Executor.(placer).homeOf(*t)
	}

	if err := j.checkOut(ctx, t); err != nil {
		return false, err
	}

	restored := j.restore(ctx, *t, p)
	if err := j.continueFrom(ctx, t); err != nil {
		return false, err
	}
	files, err := j.fill(ctx, t)
	if err != nil {
		return false, err
	}

	t.Command = h.harness.Command
	if !ok {
		t.adapter = h.adapter(preset.Task{})
		return false, nil
	}

	config, err := agentconfig.Decode(files[wire.ConfigFile])
	if err != nil {
		return false, fmt.Errorf("%s cannot be read", wire.ConfigFile)
	}

	files[wire.SkillsFile], err = j.worker.cfg.Client.File(ctx, j.order, wire.File{Name: wire.SkillsFile})
	if err != nil {
		return false, err
	}

	task, err := j.agentTask(*t, h, config, files)
	if err != nil {
		return false, err
	}

	if restored && resume {
		task.Session, task.Counted = j.order.Snapshot.Session.ID, j.order.Snapshot.Session.Counted
	} else if j.order.Execution > 1 {
		if err := tellBefore(*t, files); err != nil {
			return false, err
		}
	}

	l := p.Launch(task)
	t.Command = append([]string{p.Program}, l.Args...)
	if h.harness.Program != "" {
		t.Command[0] = h.harness.Program
	}
	t.Env, t.adapter = l.Env, h.adapter(task)
	if !p.SignedIn(task.Given) {
		t.unsigned = fmt.Sprintf("harness %q gives the agent none of %s: name one under env", name,
			strings.Join(p.SignIn, ", "))
	}

	notApplied(l.NotApplied, config, task.Skills)
	if p.Name == preset.ACP {
		delete(l.NotApplied, "idle_timeout_minutes")
	}
	maps.Copy(l.NotApplied, j.order.NotApplied)
	if r := j.order.Runner; r != nil && h.harness.Container == nil && (r.Image != "" || r.CPUs > 0 || r.MemoryGB > 0) {
		l.NotApplied["runner_id"] = "only a container has the image and limits of a runner or environment; " +
			"the set-up commands run"
	}

	g := newGiven(t.out, name, p, config, task)
	g.loseAll(l.NotApplied)
	if p.Name == preset.ACP {
		idle := time.Duration(config.IdleTimeoutMinutes) * time.Minute
		t.session = newSession(j, g, task, t.openPrompt, idle)
	} else {
		g.tell(task.Session != "")
	}

	if len(task.Skills) > 0 && p.Skills != "" {
		var skills []preset.Skill
		for _, s := range task.Skills {
			skills = append(skills, preset.Skill{Name: s.Name})
		}
		t.out.SetSkills(skills)
	}

	if !task.Trust {
		if err := hide(t.Root, t.Dir, p.Believed); err != nil {
			return false, err
		}
	}

	return task.Session != "", writeBelow(t.home, l.Files)
}

// agentTask returns the task of a preset's agent.
func (j *job) agentTask(
	t Task, h configured, c agentconfig.AmbientAgentConfig, files map[string][]byte,
) (preset.Task, error) {
	at := h.Executor.(placer).seen(t)
	task := preset.Task{
		Home:       at.home,
		Dir:        at.dir,
		Args:       h.harness.Args,
		Model:      c.ModelID,
		Reasoning:  c.ReasoningLevel(),
		BasePrompt: strings.TrimSpace(string(files[wire.BasePromptFile]) + "\n\n" + preset.Leaves),
		NewID:      uuid.NewString(),
		Trust:      h.harness.TrustRepositorySettings && !j.order.Confined,
		Given:      variables(h.harness, t, at.dir),
	}

	var mcp struct {
		Servers map[string]preset.Server `json:"mcpServers"`
	}
	if err := json.Unmarshal(files[wire.ServersFile], &mcp); err != nil {
		return task, fmt.Errorf("%s cannot be read", wire.ServersFile)
	}
	task.Servers = mcp.Servers

	var skills []wire.Skill
	if err := json.Unmarshal(files[wire.SkillsFile], &skills); err != nil {
		return task, fmt.Errorf("%s cannot be read", wire.SkillsFile)
	}
	for _, s := range skills {
		if filepath.IsLocal(s.Name) && !strings.ContainsAny(s.Name, `/\`) && s.Name != "." {
			task.Skills = append(task.Skills, s)
		}
	}

	return task, nil
}

// notApplied adds the fields that no preset applies.
func notApplied(all map[string]string, c agentconfig.AmbientAgentConfig, skills []wire.Skill) {
	if c.IdleTimeoutMinutes != 0 {
		all["idle_timeout_minutes"] = "an execution is one process, which has no idle session"
	}

	if c.SkillSpec != "" {
		_, rest, _ := strings.Cut(c.SkillSpec, ":")
		name := strings.TrimSuffix(rest, "/SKILL.md")
		name = name[strings.LastIndexByte(name, '/')+1:]
		if !slices.ContainsFunc(skills, func(s wire.Skill) bool { return s.Name == name }) {
			all["skill_spec"] = "the factory's tree has no such skill for this agent: it gets the name alone"
		}
	}
	if c.ListsSkills() {
		all["skills"] = "skills beside those of the factory's tree are not fetched"
	}
}

// hide takes files out of a working directory that nobody else writes to yet.
func hide(root, dir string, names []string) error {
	for _, name := range names {
		from := filepath.Join(dir, name)
		if _, err := os.Lstat(from); err != nil {
			continue
		}

		to := filepath.Join(root, hidden)
		if err := os.MkdirAll(to, 0o700); err != nil {
			return fmt.Errorf("%s: %v", name, underlying(err))
		}
		if err := os.Rename(from, filepath.Join(to, name)); err != nil {
			return fmt.Errorf("%s: %v", name, underlying(err))
		}
	}

	return nil
}

// writeBelow writes files into a new directory, by their paths with slashes.
func writeBelow(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("home: %v", underlying(err))
	}

	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("home: %v", underlying(err))
	}
	defer root.Close()

	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return fmt.Errorf("%s: %v", name, underlying(err))
		}
		if err := root.WriteFile(name, files[name], 0o600); err != nil {
			return fmt.Errorf("%s: %v", name, underlying(err))
		}
	}

	return nil
}
