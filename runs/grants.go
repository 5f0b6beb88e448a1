package runs

import (
	"context"
	"encoding/json"

	"millwright/api"
	"millwright/state"
)

// ungranted adds a problem for each reference to a team secret in servers, MCP servers as JSON, that def
// does not grant. A key of role admin may refer to any.
func ungranted(ctx context.Context, def state.AgentDefinition, servers json.RawMessage, p *problems) {
	if api.KeyOf(ctx).Role.Allows(state.RoleAdmin) {
		return
	}
	for _, u := range def.Ungranted(servers) {
		p.add(
			"config.mcp_servers."+u.Server+"."+u.Part+"."+u.Key,
			"no applied definition gives the secret %q to this server: give an agent the server, with the same address or "+
				"command, and the secret, and start the run with its agent_identity_uid; or use a key of role admin",
			u.Secret,
		)
	}
}

// mayContinue returns an error when a run has team secrets that an admin key gave it beyond its definition,
// and the key of ctx is not an admin's: who writes to the run's agent can have it show them.
func (s *service) mayContinue(ctx context.Context, runID string) error {
	if api.KeyOf(ctx).Role.Allows(state.RoleAdmin) {
		return nil
	}

	r, err := s.Store.Run(ctx, runID)
	if err != nil {
		return err
	}

	servers, err := s.Store.Servers(ctx, r)
	if err != nil {
		return err
	}

	found, err := s.Store.UngrantedReferences(ctx, r, servers)
	if err != nil || len(found) == 0 {
		return err
	}

	return api.Problem(
		"not_authorized",
		"mcp_servers.%s of this run holds the secret %q, which its definition does not grant: "+
			"only a key of role admin may send it messages",
		found[0].Server,
		found[0].Secret,
	)
}
