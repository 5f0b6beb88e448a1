package runs

import (
	"context"
	"encoding/json"

	"millwright/api"
	"millwright/state"
)

// ungranted adds a problem for each reference to a team secret in servers, MCP servers as JSON, that def
// does not grant. A key of role admin that is not limited to factories may use any secret.
func ungranted(ctx context.Context, def state.AgentDefinition, servers json.RawMessage, p *problems) {
	if api.KeyOf(ctx).Unbounded() {
		return
	}
	for _, u := range def.Ungranted(servers) {
		p.add(
			"config.mcp_servers."+u.Server+"."+u.Part+"."+u.Key,
			"no applied definition gives the secret %q to this server: give an agent the server, with "+
				"the same address or "+
				"command, and the secret, and start the run with its agent_identity_uid; or use a key of "+
				"role admin",
			u.Secret,
		)
	}
}

// mayContinue returns an error if a run has team secrets from an admin key that its definition does not
// grant, and the key of ctx has a lower role. Whoever writes to the run's agent could make it reveal them.
func (s *service) mayContinue(ctx context.Context, runID string) error {
	if api.KeyOf(ctx).Unbounded() {
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
