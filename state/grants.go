package state

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"millwright/schema"
)

// Ungranted is a team secret that a run refers to and that no definition gives to the server which would
// get it.
type Ungranted struct {
	Server string // name of the MCP server
	Part   string // env or headers
	Key    string // of the value with the reference
	Secret string // name of the secret
}

// Ungranted returns the references to team secrets in servers, a map of MCP servers by name as JSON, that
// the definition does not grant, in the order of their names. A reference is granted where the definition has
// a server of that name that is the same in all but its headers, and names the secret in that server or among
// the secrets of the run. So a secret goes where a definition says, and to no other address or command.
// What cannot be read holds no reference.
func (d AgentDefinition) Ungranted(servers json.RawMessage) []Ungranted {
	var all map[string]map[string]json.RawMessage
	if json.Unmarshal(servers, &all) != nil {
		return nil
	}

	var found []Ungranted
	for _, name := range slices.Sorted(maps.Keys(all)) {
		references := secretReferences(name, all[name])
		if len(references) == 0 {
			continue
		}

		defined, same := d.Config.MCPServers[name]
		same = same && sameDestination(defined, all[name])
		granted := append(schema.ServerSecrets(defined), d.Secrets...)
		for _, r := range references {
			if !same || !slices.Contains(granted, r.Secret) {
				found = append(found, r)
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

// secretReferences returns the references to team secrets in a server, in the order of part and key.
func secretReferences(name string, server map[string]json.RawMessage) []Ungranted {
	var found []Ungranted
	for _, part := range schema.SecretParts() {
		var values map[string]json.RawMessage
		if json.Unmarshal(server[part], &values) != nil {
			continue
		}

		for _, key := range slices.Sorted(maps.Keys(values)) {
			var value string
			if json.Unmarshal(values[key], &value) != nil {
				continue
			}

			for _, secret := range schema.SecretReferences(value) {
				found = append(found, Ungranted{name, part, key, secret})
			}
		}
	}

	return found
}

// sameDestination reports whether two servers are the same in all but their headers. An empty member is as
// good as none.
func sameDestination(defined json.RawMessage, server map[string]json.RawMessage) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(defined, &members) != nil {
		return false
	}
	return reflect.DeepEqual(destination(members), destination(server))
}

func destination(server map[string]json.RawMessage) map[string]any {
	out := map[string]any{}
	for key, raw := range server {
		var value any
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if key == "headers" || decoder.Decode(&value) != nil {
			continue
		}

		switch v := value.(type) {
		case nil:
			continue
		case string:
			if v == "" {
				continue
			}
		case []any:
			if len(v) == 0 {
				continue
			}
		case map[string]any:
			if len(v) == 0 {
				continue
			}
		}

		out[key] = value
	}

	return out
}

// DefinitionOf returns what the applied definition says now about runs like r: those of its automation, of
// its agent, or of its factory. ErrNotFound when that is not applied any more, or never was.
func (s *Store) DefinitionOf(ctx context.Context, r Run) (AgentDefinition, error) {
	switch {
	case r.AutomationUID != "":
		return s.definitionFor(ctx, fmt.Errorf("automation %q: %w", r.AutomationUID, ErrNotFound), r.AutomationUID)
	case r.AgentUID != "":
		return s.Agent(ctx, r.AgentUID)
	case r.FactoryUID != "":
		return s.Foreman(ctx, r.FactoryUID)
	}
	return AgentDefinition{}, fmt.Errorf("definition of run %s: %w", r.ID, ErrNotFound)
}

func (s *Store) definitionFor(ctx context.Context, missing error, automationUID string) (AgentDefinition, error) {
	return s.agent(ctx, missing, func(tx *sql.Tx) (factoryUID string, automation schema.Automation, err error) {
		var spec string
		err = tx.QueryRowContext(ctx, `
			SELECT factory_uid, spec
			FROM resources
			WHERE uid = $1 AND kind = 'automation' AND deleted_at IS NULL`, automationUID).Scan(&factoryUID, &spec)
		if err == nil {
			err = json.Unmarshal([]byte(spec), &automation)
		}

		return factoryUID, automation, err
	})
}
