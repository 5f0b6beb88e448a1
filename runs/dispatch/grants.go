package dispatch

import (
	"context"
	"errors"
	"slices"

	"millwright/state"
)

// A run is created with what the definition granted then. The definition may have changed since, so both
// checks look at what is applied now.

// checkSecrets returns an unfitError when a run's environment would hold a team secret that the applied
// definition does not grant to it any more.
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

// checkReferences returns an unfitError when a run's MCP servers, as JSON, refer to a team secret that
// neither the applied definition grants them nor the admin key that made the run.
func (d *Dispatcher) checkReferences(ctx context.Context, r state.Run, servers []byte) error {
	ungranted, err := d.cfg.Store.UngrantedReferences(ctx, r, servers)
	if err != nil || len(ungranted) == 0 {
		return err
	}

	key, err := d.cfg.Store.Key(ctx, r.Creator.UID)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	if key.Role == state.RoleAdmin && key.Revoked == nil {
		return nil
	}

	u := ungranted[0]
	return unfit(
		"mcp_servers.%s.%s.%s: the applied definition does not give the secret %q to this server: start a new run",
		u.Server,
		u.Part,
		u.Key,
		u.Secret,
	)
}
