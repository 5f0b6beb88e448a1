package dispatch

import (
	"context"
	"errors"
	"slices"

	"millwright/runs/wire"
	"millwright/state"
)

// A run was created with the grants of that time. The definition may have changed since, so both checks use
// the applied one.

// grant adds the team secrets of a run to its order.
func (d *Dispatcher) grant(ctx context.Context, r state.Run, o *wire.Order) error {
	if err := d.checkSecrets(ctx, r); err != nil {
		return err
	}

	for _, name := range r.Secrets {
		value, err := d.secret(ctx, r, name)
		if err != nil {
			return err
		}
		o.Secrets[name] = value
	}

	return nil
}

// secret returns the value of a secret as the run's factory sees it.
func (d *Dispatcher) secret(ctx context.Context, r state.Run, name string) (string, error) {
	value, err := d.cfg.Store.SecretValueFor(ctx, r.FactoryUID, name)
	if errors.Is(err, state.ErrNotFound) {
		return "", unfit(
			"the team secret %q does not exist or has no value: set it with millwright secret set, or "+
				"take it out of the definition",
			name,
		)
	}
	return string(value), err
}

// withhold takes from an order what a run that starts in the commit of a fork does not get.
func withhold(o *wire.Order) {
	const why = "the run starts in the commit of a fork"
	o.Secrets = map[string]string{}
	notApplied(o, "secrets", why)
	if o.Runner != nil && len(o.Runner.Setup) > 0 {
		o.Runner.Setup = nil
		notApplied(o, "setup_commands", why)
	}
}

// confined reports whether a run starts in the commit of a fork. It gets no secret then, also not those of
// its MCP servers.
func (d *Dispatcher) confined(ctx context.Context, r state.Run) (bool, error) {
	if !r.CheckoutHead {
		return false, nil
	}

	all, err := d.cfg.Store.Repositories(ctx, r.ID)
	return slices.ContainsFunc(all, func(one state.RunRepository) bool { return one.Foreign }), err
}

// checkSecrets returns an unfitError if a run's environment would contain a team secret that the applied
// definition does not grant.
func (d *Dispatcher) checkSecrets(ctx context.Context, r state.Run) error {
	if len(r.Secrets) == 0 {
		return nil
	}

	def, err := d.cfg.Store.DefinitionOf(ctx, r)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}

	for _, name := range r.Secrets {
		if !slices.Contains(def.Secrets, name) {
			return unfit("the applied definition no longer grants the secret %q to this run: start a new run", name)
		}
	}

	return nil
}

// checkReferences returns an unfitError if a run's MCP servers, as JSON, refer to a team secret that
// neither the applied definition nor the admin key of the run grants.
func (d *Dispatcher) checkReferences(ctx context.Context, r state.Run, servers []byte) error {
	ungranted, err := d.cfg.Store.UngrantedReferences(ctx, r, servers)
	if err != nil || len(ungranted) == 0 {
		return err
	}

	key, err := d.cfg.Store.Key(ctx, r.Creator.UID)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	if key.Unbounded() && key.Revoked == nil {
		return nil
	}

	u := ungranted[0]
	return unfit(
		"mcp_servers.%s.%s.%s: the applied definition does not give the secret %q to this server: start "+
			"a new run",
		u.Server,
		u.Part,
		u.Key,
		u.Secret,
	)
}
