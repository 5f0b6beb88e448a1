package state

import (
	"context"
	"fmt"
	"strings"

	"millwright/schema"
	"millwright/state/db"
)

// secretUsers returns what uses each secret, in words: webhooks, and what in the applied definitions of
// attached factories gives it to runs. It passes over a definition that cannot be read.
func (s *Store) secretUsers(ctx context.Context, tx db.Reader) (map[string][]string, error) {
	users := map[string][]string{}
	_, err := db.All(ctx, tx, func(row db.Row) (struct{}, error) {
		var secret, webhook, factory string
		err := row.Scan(&secret, &webhook, &factory)
		users[secret] = append(users[secret], fmt.Sprintf("webhook %s of factory %s", webhook, factory))
		return struct{}{}, err
	}, `
		SELECT w.secret_name, w.name, f.name
		FROM webhooks w
		JOIN factories f ON f.uid = w.factory_uid
		WHERE w.secret_name IS NOT NULL
		ORDER BY f.name, w.name`)
	if err != nil {
		return nil, err
	}

	attached, err := db.All(ctx, tx, scanFactory, `
		SELECT `+factoryColumns+`
		FROM factories
		WHERE detached = 0
		ORDER BY name`)
	if err != nil {
		return nil, err
	}

	for _, f := range attached {
		applied, err := s.applied(ctx, tx, f.UID, f.Generation)
		if ofRow(err) {
			s.Skip("secret users", f.UID, "factory "+f.UID, err)
			continue
		}
		if err != nil {
			return nil, err
		}

		grants(f, applied.tree, users)
	}

	return users, nil
}

// grants adds what gives each secret to runs of a factory.
func grants(f Factory, tree schema.Factory, users map[string][]string) {
	add := func(user string, granted ...schema.Execution) {
		names := map[string]bool{}
		for _, exec := range granted {
			for _, secret := range exec.Secrets {
				names[secret] = true
			}

			if h := exec.Harness; h != nil && h.Auth != nil && h.Auth.SecretName != "" {
				names[h.Auth.SecretName] = true
			}

			for _, server := range exec.MCPServers {
				for _, secret := range schema.ServerSecrets(server) {
					names[secret] = true
				}
			}
		}

		for secret := range names {
			users[secret] = append(users[secret], user+" of factory "+f.Name)
		}
	}

	if file := f.Spec; file != nil {
		add("factory.yaml", schema.Execution{Secrets: file.Secrets, MCPServers: file.MCPServers}, file.AgentDefaults)
	}

	for _, a := range tree.Agents {
		add("agent "+a.Name, a.Execution)
	}

	for _, a := range tree.Automations {
		add("automation "+a.Name, a.Execution)
	}
}

// listed joins users of a secret for an error, the first twenty of them.
func listed(users []string) string {
	const most = 20
	if more := len(users) - most; more > 0 {
		users = append(users[:most:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(users, ", ")
}
