package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"millwright/schema"
	"millwright/schema/agentconfig"
	"millwright/state/db"
)

// AgentDefinition is what an applied definition says about runs of one agent, or of no agent.
type AgentDefinition struct {
	FactoryUID string
	UID, Name  string                         // of the agent; empty for runs of no agent
	Config     agentconfig.AmbientAgentConfig // resolved; its BasePrompt is the agent's prompt
	Secrets    []string                       // names of the team secrets that the harness gets
	Skills     []schema.Skill                 // those of the tree that the agent may use

	Repositories []schema.Repository // of factory.yaml
	CheckoutRef  string              // the branch or tag that an automation checks out; empty: what its trigger names
}

const agentSQL = `SELECT factory_uid, name
FROM resources
WHERE uid = $1 AND kind = 'agent' AND deleted_at IS NULL`

// Agent returns the applied agent with this UID. ErrNotFound if there is none.
func (s *Store) Agent(ctx context.Context, uid string) (AgentDefinition, error) {
	return s.agent(
		ctx,
		refuse(ErrNotFound, "agent %q", uid),
		func(tx db.Reader) (factoryUID string, run schema.Automation, err error) {
			err = tx.QueryRow(ctx, agentSQL, uid).Scan(&factoryUID, &run.Agent)
			return factoryUID, run, err
		},
	)
}

// Foreman returns the agent that coordinates the others of a factory or, where the applied tree has none,
// what it says of runs of no agent. ErrNotFound when there is no such factory, or it is detached.
func (s *Store) Foreman(ctx context.Context, factoryUID string) (AgentDefinition, error) {
	return s.agent(
		ctx,
		refuse(ErrNotFound, "factory %q", factoryUID),
		func(db.Reader) (string, schema.Automation, error) {
			return factoryUID, schema.Automation{}, nil
		},
	)
}

const factorySpecSQL = `SELECT spec, generation
FROM factories
WHERE uid = $1 AND detached = 0`

// agent reads what the definition of an attached factory says about the runs that find describes: those of
// an automation, or of the agent that it names; without a name those of the foreman.
func (s *Store) agent(
	ctx context.Context,
	missing error,
	find func(db.Reader) (factoryUID string, run schema.Automation, err error),
) (AgentDefinition, error) {
	var d AgentDefinition
	err := s.db.View(ctx, func(tx db.View) error {
		var spec string
		var generation int64
		factoryUID, run, err := find(tx.Reader)
		if err == nil {
			err = tx.QueryRow(ctx, factorySpecSQL, factoryUID).Scan(&spec, &generation)
		}

		if errors.Is(err, sql.ErrNoRows) {
			return missing
		} else if err != nil {
			return err
		}

		applied, err := s.applied(ctx, tx.Reader, factoryUID, generation)
		if err != nil {
			return err
		}

		tree, uids := applied.tree, applied.uids
		if err := json.Unmarshal([]byte(spec), &tree.File); err != nil {
			return err
		}

		exec, prompt, agent := tree.Resolve(run)
		config, err := agentconfig.FromDefinition(exec, prompt, agent)
		if err != nil {
			return err
		}

		d = AgentDefinition{
			FactoryUID: factoryUID,
			UID:        uids[ResourceKey("agent", agent)],
			Name:       agent,
			Config:     config,
			Secrets:    exec.Secrets,
		}
		if tree.File != nil {
			d.Repositories = tree.File.Repositories
		}
		if run.Checkout != nil {
			d.CheckoutRef = run.Checkout.Ref
		}

		for _, skill := range tree.Skills {
			if skill.Agent == "" || skill.Agent == agent {
				d.Skills = append(d.Skills, skill)
			}
		}

		return nil
	})

	return d, err
}

const specSQL = `SELECT spec
FROM resources
WHERE factory_uid = $1 AND kind = $2 AND name = $3 AND deleted_at IS NULL`

// spec returns the applied specification of a resource of a factory. ErrNotFound when there is none.
func (s *Store) spec(ctx context.Context, factoryUID, kind, name string) (spec string, err error) {
	err = s.db.QueryRow(ctx, specSQL, factoryUID, kind, name).Scan(&spec)
	if errors.Is(err, sql.ErrNoRows) {
		return "", refuse(ErrNotFound, "%s %q", kind, name)
	}
	return spec, err
}

// Runner returns the applied runner of a factory with this name. ErrNotFound if there is none.
func (s *Store) Runner(ctx context.Context, factoryUID, name string) (schema.Runner, error) {
	var r schema.Runner
	spec, err := s.spec(ctx, factoryUID, "runner", name)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal([]byte(spec), &r)
}

// Environment returns the applied environment of a factory with this name. ErrNotFound when there is none.
func (s *Store) Environment(ctx context.Context, factoryUID, name string) (schema.Environment, error) {
	var e schema.Environment
	spec, err := s.spec(ctx, factoryUID, "environment", name)
	if err != nil {
		return e, err
	}
	return e, json.Unmarshal([]byte(spec), &e)
}

// Ungranted is a team secret that a run refers to and that no definition gives to the server which would
// get it.
type Ungranted struct {
	Server string // name of the MCP server
	agentconfig.Reference
}

// Ungranted returns the references to team secrets in servers, a map of MCP servers by name as JSON, that
// the definition does not grant, in the order of their names. A reference is granted where the definition has
// a server of that name that is the same in all but its headers, and names the secret in that server or among
// the secrets of the run. So a secret goes where a definition says, and to no other address or command.
// What cannot be read holds no reference.
func (d AgentDefinition) Ungranted(servers json.RawMessage) []Ungranted {
	all, err := agentconfig.DecodeServers(servers)
	if err != nil {
		return nil
	}

	var found []Ungranted
	for _, name := range slices.Sorted(maps.Keys(all)) {
		defined, same := d.Config.MCPServers[name]
		same = same && defined.SameDestination(all[name])
		granted := slices.Clone(d.Secrets)
		for _, r := range defined.References() {
			granted = append(granted, r.Secret)
		}

		for _, r := range all[name].References() {
			if !same || !slices.Contains(granted, r.Secret) {
				found = append(found, Ungranted{name, r})
			}
		}
	}

	return found
}

// UngrantedReferences is [AgentDefinition.Ungranted] of the definition that applies to r now.
func (s *Store) UngrantedReferences(ctx context.Context, r Run, servers json.RawMessage) ([]Ungranted, error) {
	all := AgentDefinition{}.Ungranted(servers)
	if len(all) == 0 {
		return nil, nil
	}

	def, err := s.DefinitionOf(ctx, r)
	if errors.Is(err, ErrNotFound) {
		return all, nil
	}
	return def.Ungranted(servers), err
}

// DefinitionOf returns what the applied definition says now about runs like r: those of its automation, of
// its agent, or of its factory. ErrNotFound when that is not applied any more, or never was.
func (s *Store) DefinitionOf(ctx context.Context, r Run) (AgentDefinition, error) {
	switch {
	case r.AutomationUID != "":
		return s.definitionFor(ctx, refuse(ErrNotFound, "automation %q", r.AutomationUID), r.AutomationUID)
	case r.AgentUID != "":
		return s.Agent(ctx, r.AgentUID)
	case r.FactoryUID != "":
		return s.Foreman(ctx, r.FactoryUID)
	}
	return AgentDefinition{}, refuse(ErrNotFound, "definition of run %s", r.ID)
}

const automationSQL = `SELECT factory_uid, spec
FROM resources
WHERE uid = $1 AND kind = 'automation' AND deleted_at IS NULL`

func (s *Store) definitionFor(ctx context.Context, missing error, automationUID string) (AgentDefinition, error) {
	return s.agent(ctx, missing, func(tx db.Reader) (factoryUID string, automation schema.Automation, err error) {
		var spec string
		err = tx.QueryRow(ctx, automationSQL, automationUID).Scan(&factoryUID, &spec)
		if err == nil {
			err = json.Unmarshal([]byte(spec), &automation)
		}

		return factoryUID, automation, err
	})
}

// Environments returns the environments of the settings, by their identifiers.
type Environments func() map[string]schema.Environment

// EnvironmentOf returns the environment of a run with this identifier: that of the settings or, without one
// of this name, of its factory. known is false when there is neither.
func (s *Store) EnvironmentOf(
	ctx context.Context,
	r Run,
	id string,
	settings Environments,
) (e schema.Environment, known bool, err error) {
	if settings != nil {
		if e, known := settings()[id]; known {
			return e, true, nil
		}
	}
	if id == "" || r.FactoryUID == "" {
		return schema.Environment{}, false, nil
	}

	e, err = s.Environment(ctx, r.FactoryUID, id)
	if errors.Is(err, ErrNotFound) {
		return e, false, nil
	}
	return e, err == nil, err
}

// SecretValues returns the values of the secrets that a run gets: its own, those of its environment, and
// those of its MCP servers. Secrets without a value are left out.
func (s *Store) SecretValues(ctx context.Context, r Run, settings Environments) ([]string, error) {
	names := slices.Clone(r.Secrets)
	if config, err := agentconfig.Decode(r.Config); err == nil {
		e, _, err := s.EnvironmentOf(ctx, r, config.EnvironmentID, settings)
		if err != nil {
			return nil, err
		}
		names = append(names, e.Secrets...)
	}

	raw, err := s.Servers(ctx, r)
	if err != nil {
		return nil, err
	}
	if raw != nil {
		servers, _ := agentconfig.DecodeServers(raw) // with an error, the run got none
		for _, server := range servers {
			for _, ref := range server.References() {
				names = append(names, ref.Secret)
			}
		}
	}

	var all []string
	for _, name := range names {
		value, err := s.SecretValueFor(ctx, r.FactoryUID, name)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		all = append(all, string(value))
	}

	return all, nil
}

// HarnessesUsed returns the harnesses that the applied definitions of attached factories name, and by which
// of them each is used. A definition that cannot be read is skipped.
func (s *Store) HarnessesUsed(ctx context.Context) (map[string][]string, error) {
	used := map[string][]string{}
	err := s.db.View(ctx, func(tx db.View) error {
		factories, err := db.All(ctx, tx.Reader, scanFactory, `
			SELECT `+factoryColumns+`
			FROM factories
			WHERE detached = 0
			ORDER BY name`)
		if err != nil {
			return err
		}

		for _, f := range factories {
			d, err := s.applied(ctx, tx.Reader, f.UID, f.Generation)
			if ofRow(err) {
				continue
			}
			if err != nil {
				return err
			}

			for _, harness := range harnessesOf(f, d) {
				used[harness] = append(used[harness], f.Name)
			}
		}

		return nil
	})
	return used, err
}

// harnessesOf returns the harnesses that a definition names, in order.
func harnessesOf(f Factory, d *definition) []string {
	var all []string
	tree := d.tree
	tree.File = f.Spec

	for _, a := range tree.Automations {
		exec, _, _ := tree.Resolve(a)
		if a.Enabled && exec.Harness != nil {
			all = append(all, exec.Harness.Type)
		}
	}

	slices.Sort(all)
	return slices.Compact(all)
}
