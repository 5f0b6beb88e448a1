package agentconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"millwright/schema"
)

// Reference is a team secret that a value of an MCP server refers to.
type Reference struct {
	Part   string // env or headers
	Key    string // of the value
	Secret string // name of the secret
}

// part is one of the members of a server that may hold references to secrets.
func (s MCPServerConfig) part(name string) map[string]string {
	if name == "env" {
		return s.Env
	}
	return s.Headers
}

// References returns the references to team secrets in the order of part and key.
func (s MCPServerConfig) References() (found []Reference) {
	for _, part := range schema.SecretParts() {
		values := s.part(part)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			for _, secret := range schema.SecretReferences(values[key]) {
				found = append(found, Reference{part, key, secret})
			}
		}
	}
	return found
}

// Expand replaces each value of env and headers by what replace returns for it, in the order of part and key.
func (s *MCPServerConfig) Expand(replace func(value string) (string, error)) error {
	for _, part := range schema.SecretParts() {
		values := s.part(part)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			value, err := replace(values[key])
			if err != nil {
				return err
			}

			values[key] = value
		}
	}
	return nil
}

// SameDestination reports whether two servers are the same in all but their headers. An empty member is as
// good as none.
func (s MCPServerConfig) SameDestination(other MCPServerConfig) bool {
	a, err := s.destination()
	if err != nil {
		return false
	}
	b, err := other.destination()
	return err == nil && reflect.DeepEqual(a, b)
}

func (s MCPServerConfig) destination() (map[string]any, error) {
	s.Headers = nil
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}

	out, err := exact(text)
	if err != nil {
		return nil, fmt.Errorf("MCP server: %w", err)
	}

	maps.DeleteFunc(out, func(_ string, v any) bool { return empty(v) })
	return out, nil
}
