package schema

import (
	"encoding/json"
	"regexp"
)

var secretInText = regexp.MustCompile(`\$\{secret:([A-Za-z_][A-Za-z0-9_]{0,127})\}`)

// SecretReferences returns the names of the team secrets that a value of an MCP server refers to as
// ${secret:NAME}, in their order.
func SecretReferences(value string) []string {
	var names []string
	for _, m := range secretInText.FindAllStringSubmatch(value, -1) {
		names = append(names, m[1])
	}
	return names
}

// IsSecretReference reports whether a value is one reference to a team secret and nothing else.
func IsSecretReference(value string) bool {
	return secretInText.FindString(value) == value && value != ""
}

// ExpandSecrets replaces each ${secret:NAME} in a value by what secret returns for the name.
func ExpandSecrets(value string, secret func(name string) string) string {
	return secretInText.ReplaceAllStringFunc(value, func(ref string) string {
		return secret(secretInText.FindStringSubmatch(ref)[1])
	})
}

// SecretParts are the members of an MCP server in whose values references to team secrets are resolved.
func SecretParts() []string { return []string{"env", "headers"} }

// ServerSecrets returns the names of the team secrets that an MCP server refers to.
func ServerSecrets(server json.RawMessage) []string {
	var parts map[string]json.RawMessage
	if json.Unmarshal(server, &parts) != nil {
		return nil
	}

	var names []string
	for _, part := range SecretParts() {
		var values map[string]json.RawMessage
		if json.Unmarshal(parts[part], &values) != nil {
			continue
		}

		for _, raw := range values {
			var value string
			if json.Unmarshal(raw, &value) == nil {
				names = append(names, SecretReferences(value)...)
			}
		}
	}

	return names
}
