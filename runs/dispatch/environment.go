package dispatch

import (
	"context"
	"errors"
	"maps"
	"slices"

	"millwright/runs/wire"
	"millwright/schema"
	"millwright/state"
)

// environment adds to an order what the run's environment gives: an image, set-up commands and variables. A secret of
// the environment goes to runs whose applied definition names the environment: whoever starts a run with another one
// does not read it.
func (d *Dispatcher) environment(ctx context.Context, r state.Run, o *wire.Order) (schema.Environment, error) {
	if o.EnvironmentID == "" {
		return schema.Environment{}, nil
	}

	e, known, err := d.cfg.Store.EnvironmentOf(ctx, r, o.EnvironmentID, d.cfg.Environments)
	if err != nil {
		return e, err
	}
	if !known {
		notApplied(o, "environment_id", "this server has no such environment")
		return e, nil
	}

	if o.Runner == nil {
		o.Runner = &wire.Runner{}
	}
	if o.Runner.Image == "" {
		o.Runner.Image = e.DockerImage
	}
	o.Runner.Setup = slices.Concat(o.Runner.Setup, e.SetupCommands)
	o.Env = maps.Clone(e.Env)

	if len(e.Secrets) == 0 {
		return e, nil
	}
	def, err := d.cfg.Store.DefinitionOf(ctx, r)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return e, err
	}
	if def.Config.EnvironmentID != o.EnvironmentID {
		notApplied(o, "environment_id",
			"the applied definition does not name it for this run, which gets none of its secrets")
		return e, nil
	}

	for _, name := range e.Secrets {
		value, err := d.secret(ctx, r, name)
		if err != nil {
			return e, err
		}
		o.Secrets[name] = value
	}
	return e, nil
}
