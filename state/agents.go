package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"millwright/schema"
)

// AgentDefinition is what an applied definition says about runs of one agent, or of no agent.
type AgentDefinition struct {
	FactoryUID string
	UID, Name  string         // of the agent; empty for runs of no agent
	Config     AgentConfig    // resolved; its BasePrompt is the agent's prompt
	Secrets    []string       // names of the team secrets that the harness gets
	Skills     []schema.Skill // those of the tree that the agent may use
}

// Agent returns the applied agent with this UID. ErrNotFound when there is none.
func (s *Store) Agent(ctx context.Context, uid string) (AgentDefinition, error) {
	return s.agent(
		ctx,
		fmt.Errorf("agent %q: %w", uid, ErrNotFound),
		func(tx *sql.Tx) (factoryUID string, run schema.Automation, err error) {
			err = tx.QueryRowContext(ctx, `
			SELECT factory_uid, name
			FROM resources
			WHERE uid = $1 AND kind = 'agent' AND deleted_at IS NULL`, uid).Scan(&factoryUID, &run.Agent)
			return factoryUID, run, err
		},
	)
}

// Foreman returns the agent that coordinates the others of a factory or, where the applied tree has none,
// what it says of runs of no agent. ErrNotFound when there is no such factory, or it is detached.
func (s *Store) Foreman(ctx context.Context, factoryUID string) (AgentDefinition, error) {
	return s.agent(
		ctx,
		fmt.Errorf("factory %q: %w", factoryUID, ErrNotFound),
		func(*sql.Tx) (string, schema.Automation, error) {
			return factoryUID, schema.Automation{}, nil
		},
	)
}

// agent reads what the definition of an attached factory says about the runs that find describes: those of
// an automation, or of the agent that it names; without a name those of the foreman.
func (s *Store) agent(
	ctx context.Context,
	missing error,
	find func(*sql.Tx) (factoryUID string, run schema.Automation, err error),
) (AgentDefinition, error) {
	var d AgentDefinition
	err := s.view(ctx, func(tx *sql.Tx) error {
		var spec string
		var generation int64
		factoryUID, run, err := find(tx)
		if err == nil {
			err = tx.QueryRowContext(ctx, `
				SELECT spec, generation
				FROM factories
				WHERE uid = $1 AND detached = 0`, factoryUID).Scan(&spec, &generation)
		}

		if errors.Is(err, sql.ErrNoRows) {
			return missing
		} else if err != nil {
			return err
		}

		applied, err := s.applied(ctx, tx, factoryUID, generation)
		if err != nil {
			return err
		}

		tree, uids := applied.tree, applied.uids
		if err := json.Unmarshal([]byte(spec), &tree.File); err != nil {
			return err
		}

		exec, prompt, agent := tree.Resolve(run)
		d = AgentDefinition{
			FactoryUID: factoryUID,
			UID:        uids[ResourceKey("agent", agent)],
			Name:       agent,
			Config:     ConfigOf(exec, prompt, agent),
			Secrets:    exec.Secrets,
		}

		for _, skill := range tree.Skills {
			if skill.Agent == "" || skill.Agent == agent {
				d.Skills = append(d.Skills, skill)
			}
		}

		return nil
	})

	return d, s.classify(err)
}

// Runner returns the applied runner of a factory with this name. ErrNotFound when there is none.
func (s *Store) Runner(ctx context.Context, factoryUID, name string) (schema.Runner, error) {
	var r schema.Runner
	var spec string
	err := s.read.QueryRowContext(ctx, `SELECT spec FROM resources WHERE factory_uid = $1 AND kind = 'runner' AND name = $2 AND deleted_at IS NULL`, factoryUID, name).
		Scan(&spec)
	if errors.Is(err, sql.ErrNoRows) {
		return r, fmt.Errorf("runner %q: %w", name, ErrNotFound)
	}
	if err != nil {
		return r, s.classify(err)
	}

	return r, json.Unmarshal([]byte(spec), &r)
}
