package dispatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"millwright/runs/wire"
	"millwright/schema"
	"millwright/schema/agentconfig"
	"millwright/state"
)

// order makes the work order of a claimed run. It returns an unfitError if that is impossible.
func (d *Dispatcher) order(ctx context.Context, c state.Claim, r state.Run) (*wire.Order, error) {
	over, err := d.cfg.Store.OverBudget(ctx, r)
	if err != nil {
		return nil, err
	}
	if over != "" { // a follow-up to a run that has ended for that
		return nil, unfit("%s", over)
	}

	var config struct {
		ModelID       string `json:"model_id"`
		EnvironmentID string `json:"environment_id"`
		SkillSpec     string `json:"skill_spec"`
		RunnerID      string `json:"runner_id"`
		Harness       struct {
			Type string `json:"type"`
		} `json:"harness"`
	}
	if err := json.Unmarshal(r.Config, &config); err != nil {
		return nil, unfit("the configuration cannot be read")
	}

	o := &wire.Order{
		RunID: r.ID, Token: c.Token, Execution: r.Execution, Attempt: r.Attempt, Lease: d.cfg.Lease,
		Harness:       config.Harness.Type,
		ModelID:       config.ModelID,
		EnvironmentID: config.EnvironmentID,
		Skill:         config.SkillSpec,
		Secrets:       map[string]string{},
	}
	if o.Runner, err = d.runner(ctx, r.FactoryUID, config.RunnerID); err != nil {
		return nil, err
	}
	if o.Runner == nil && config.RunnerID != "" {
		notApplied(o, "runner_id", "the factory has no such runner")
	}
	environment, err := d.environment(ctx, r, o)
	if err != nil {
		return nil, err
	}
	if err := d.checkout(ctx, c, r, environment, o); err != nil {
		return nil, err
	}

	if o.Confined {
		withhold(o)
	} else if err := d.grant(ctx, r, o); err != nil {
		return nil, err
	}

	if o.Snapshot, err = d.snapshot(ctx, r); err != nil {
		return nil, err
	}
	if o.Replies, err = d.lateReplies(ctx, r); err != nil {
		return nil, err
	}
	_, values, err := d.servers(ctx, r)
	if err != nil {
		return nil, err
	}
	o.Redact = append(o.Redact, values...)
	if err := d.aim(ctx, r); err != nil {
		return nil, err
	}

	names := []string{wire.PromptFile, wire.BasePromptFile, wire.ConversationFile, wire.ConfigFile, wire.ServersFile}
	attachments, err := d.cfg.Store.Attachments(ctx, r)
	if err != nil {
		return nil, err
	}

	used := 0
	for _, name := range names {
		body, err := d.fileBody(ctx, r, name)
		if err != nil {
			return nil, err
		}

		f := wire.File{Name: name, MimeType: "text/markdown", Size: len(body)}
		if strings.HasSuffix(name, ".json") {
			f.MimeType = "application/json"
		}

		inline(&f, body, &used)
		o.Files = append(o.Files, f)
	}

	for _, a := range attachments {
		f := wire.File{Name: a.Name, MimeType: a.MimeType, Size: int(a.Size), Attachment: true}
		if used+f.Size <= wire.MaxInline {
			a, err := d.cfg.Store.Attachment(ctx, r, a.Name)
			if errors.Is(err, state.ErrNotFound) {
				continue // retention deleted the payload meanwhile
			}
			if err != nil {
				return nil, err
			}

			f.Size = len(a.Body)
			inline(&f, a.Body, &used)
		}

		o.Files = append(o.Files, f)
	}

	return o, nil
}

// runner returns the definition's settings of a runner; zero if the factory has no such runner.
func (d *Dispatcher) runner(ctx context.Context, factoryUID, name string) (*wire.Runner, error) {
	if factoryUID == "" || name == "" {
		return nil, nil
	}

	def, err := d.cfg.Store.Runner(ctx, factoryUID, name)
	if errors.Is(err, state.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	out := &wire.Runner{Setup: def.SetupCommands}
	if shape := def.InstanceShape; shape != nil {
		out.CPUs, out.MemoryGB = shape.VCPUs, shape.MemoryGB
	}
	if p := def.Platform; p != nil && p.Linux != nil {
		out.Image = p.Linux.DockerImage
	}

	return out, nil
}

// inline adds the body to the order if it fits.
func inline(f *wire.File, body []byte, used *int) {
	if *used+len(body) > wire.MaxInline {
		return
	}
	f.Inline, f.Data = true, body
	*used += len(body)
}

// fileBody returns a file of a run's working directory, or ErrNotFound.
func (d *Dispatcher) fileBody(ctx context.Context, r state.Run, name string) ([]byte, error) {
	switch name {
	case wire.PromptFile:
		prompt, err := d.cfg.Store.SubmittedPrompt(ctx, r)
		return []byte(prompt), err
	case wire.BasePromptFile:
		config, err := agentconfig.Decode(r.Config)
		return []byte(config.BasePrompt), err

	case wire.ConfigFile:
		return r.Config, nil
	case wire.ServersFile:
		body, _, err := d.servers(ctx, r)
		return body, err
	case wire.ConversationFile:
		return d.conversation(ctx, r)
	case wire.SkillsFile:
		return d.skills(ctx, r)
	}

	a, err := d.cfg.Store.Attachment(ctx, r, name)
	return a.Body, err
}

// skills returns the skills of the factory's tree that the run's agent may use.
func (d *Dispatcher) skills(ctx context.Context, r state.Run) ([]byte, error) {
	skills := []wire.Skill{}
	if r.FactoryUID == "" {
		return json.Marshal(skills)
	}

	def, err := d.cfg.Store.DefinitionOf(ctx, r)
	if errors.Is(err, state.ErrNotFound) {
		return json.Marshal(skills) // the factory or the agent is gone
	}
	if err != nil {
		return nil, err
	}

	for _, s := range def.Skills {
		skills = append(skills, wire.Skill{Name: s.Name, Description: s.Description, Body: s.Body})
	}

	return json.Marshal(skills)
}

// conversation returns the conversation before this attempt, including earlier runs.
func (d *Dispatcher) conversation(ctx context.Context, r state.Run) ([]byte, error) {
	runs, err := d.cfg.Store.Conversation(ctx, r.ConversationID, r.ID)
	if err != nil {
		return nil, err
	}

	steps := []state.Step{}
	for _, other := range runs {
		said := other.Steps
		if last := r.Execution - 1; other.RunID == r.ID && len(said[last].Steps) == 0 {
			said = said[:last] // this attempt's prompt is not part of the conversation yet
		}

		steps = append(steps, said...)
	}

	return json.Marshal(struct {
		ConversationID string       `json:"conversation_id"`
		Steps          []state.Step `json:"steps"`
	}{r.ConversationID, steps})
}

// servers returns mcp.json with resolved references to team secrets, and the values of these secrets.
func (d *Dispatcher) servers(ctx context.Context, r state.Run) (body []byte, used []string, err error) {
	raw, err := d.cfg.Store.Servers(ctx, r)
	if err != nil || raw == nil {
		return []byte(`{"mcpServers":{}}`), nil, err
	}
	if err := d.checkReferences(ctx, r, raw); err != nil {
		return nil, nil, err
	}

	servers, err := agentconfig.DecodeServers(raw)
	if err != nil {
		return nil, nil, unfit("mcp_servers cannot be read")
	}
	if confined, err := d.confined(ctx, r); err != nil {
		return nil, nil, err
	} else if confined {
		maps.DeleteFunc(servers, func(_ string, s agentconfig.MCPServerConfig) bool {
			return len(s.Env)+len(s.Headers) > 0
		})
	}

	for _, name := range slices.Sorted(maps.Keys(servers)) {
		server := servers[name]
		err := server.Expand(func(value string) (string, error) {
			value, err := d.resolve(ctx, r, value, &used)
			used = append(used, value)
			return value, err
		})
		if err != nil {
			return nil, nil, err
		}
	}

	body, err = json.Marshal(map[string]any{"mcpServers": servers})
	return body, used, err
}

// resolve replaces the references to secrets in a value.
func (d *Dispatcher) resolve(ctx context.Context, r state.Run, value string, used *[]string) (string, error) {
	var failed error
	out := schema.ExpandSecrets(value, func(name string) string {
		secret, err := d.secret(ctx, r, name)
		failed = errors.Join(failed, err)
		*used = append(*used, secret)
		return secret
	})
	return out, failed
}

// onFile answers with a part of a file of the run that the worker holds.
func (d *Dispatcher) onFile(ctx context.Context, worker string, r wire.Request) wire.Answer {
	if _, err := d.cfg.Store.RenewLease(ctx, claimOf(worker, r), d.cfg.Lease); err != nil {
		return failure(err)
	}

	run, err := d.cfg.Store.Run(ctx, r.Run)
	if err != nil {
		return failure(err)
	}

	if r.Name == wire.SnapshotFile {
		return d.snapshotPart(ctx, run, r.Offset)
	}

	body, err := d.fileBody(ctx, run, r.Name)
	if err != nil {
		return failure(err)
	}
	if r.Offset < 0 || r.Offset > len(body) {
		return failure(fmt.Errorf("offset %d of %d: %w", r.Offset, len(body), wire.ErrRefused))
	}

	digest := sha256.Sum256(body)
	return wire.Answer{
		Data:   body[r.Offset:min(r.Offset+wire.Chunk, len(body))],
		Size:   len(body),
		Digest: hex.EncodeToString(digest[:]),
	}
}
