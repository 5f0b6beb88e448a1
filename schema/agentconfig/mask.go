package agentconfig

import (
	"encoding/json"
	"maps"
	"slices"

	"millwright/schema"
)

// Masked stands for a value of env or headers wherever a configuration is shown.
const Masked = "***"

// Mask replaces the values of env and headers of every MCP server by Masked, and returns the servers as they
// were, as JSON; nil when there was nothing to mask. It changes no map that c shares.
func (c *AmbientAgentConfig) Mask() (servers json.RawMessage, err error) {
	hides := false
	out := make(map[string]MCPServerConfig, len(c.MCPServers))
	for name, server := range c.MCPServers {
		hides = hides || len(server.Env)+len(server.Headers) > 0
		server.Env, server.Headers = maskAll(server.Env), maskAll(server.Headers)
		out[name] = server
	}

	if !hides {
		return nil, nil
	}

	servers, err = json.Marshal(c.MCPServers)
	c.MCPServers = out
	return servers, err
}

func maskAll(values map[string]string) map[string]string {
	out := maps.Clone(values)
	for name := range out {
		out[name] = Masked
	}
	return out
}

// MaskValue returns a value of a definition, decoded from JSON, with every member of every env and headers
// replaced by Masked. A member that is one reference to a secret stays: it names the secret and holds none.
// The value itself is not changed.
func MaskValue(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = MaskValue(v[i])
		}

		return out

	case map[string]any:
		out := make(map[string]any, len(v))
		for key, member := range v {
			out[key] = MaskValue(member)
			if inner, ok := member.(map[string]any); ok && slices.Contains(schema.SecretParts(), key) {
				out[key] = maskMembers(inner)
			}
		}

		return out
	}

	return v
}

func maskMembers(values map[string]any) map[string]any {
	out := make(map[string]any, len(values))
	for name, value := range values {
		out[name] = Masked
		if text, ok := value.(string); ok && schema.IsSecretReference(text) {
			out[name] = text
		}
	}
	return out
}
