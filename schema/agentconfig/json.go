package agentconfig

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
)

// Decode reads a configuration from JSON, such as the state keeps it.
func Decode(raw json.RawMessage) (c AmbientAgentConfig, err error) {
	err = json.Unmarshal(raw, &c)
	return c, err
}

// Stored returns a configuration that the state keeps, as an answer shows it: masked. One without MCP
// servers is not decoded, since lists of runs hold many: only its JSON is set. One that cannot be read is
// empty, beside the error.
func Stored(raw json.RawMessage) (*AmbientAgentConfig, error) {
	if !bytes.Contains(raw, []byte(`"mcp_servers"`)) {
		return &AmbientAgentConfig{stored: raw}, nil
	}

	c, err := Decode(raw)
	if err == nil {
		_, err = c.Mask()
	}
	if err != nil {
		return &AmbientAgentConfig{}, err
	}

	return &c, nil
}

// DecodeServers reads MCP servers by name from JSON.
func DecodeServers(raw json.RawMessage) (servers map[string]MCPServerConfig, err error) {
	err = json.Unmarshal(raw, &servers)
	return servers, err
}

// UnmarshalJSON reads the listed keys and keeps the others.
func (c *AmbientAgentConfig) UnmarshalJSON(data []byte) error {
	type plain AmbientAgentConfig
	if err := json.Unmarshal(data, (*plain)(c)); err != nil {
		return err
	}
	return json.Unmarshal(data, &c.given)
}

// MarshalJSON writes the listed keys and those that were kept.
func (c AmbientAgentConfig) MarshalJSON() ([]byte, error) {
	if c.stored != nil {
		return c.stored, nil
	}
	type plain AmbientAgentConfig
	return merged(c.given, plain(c))
}

// UnmarshalJSON reads the listed keys and keeps the others.
func (s *MCPServerConfig) UnmarshalJSON(data []byte) error {
	type plain MCPServerConfig
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	return json.Unmarshal(data, &s.given)
}

// MarshalJSON writes the listed keys and those that were kept.
func (s MCPServerConfig) MarshalJSON() ([]byte, error) {
	type plain MCPServerConfig
	return merged(s.given, plain(s))
}

// merged writes the fields of listed, and the keys of given that listed does not know. Reading takes a field
// in any case, so that ENV is env: masked, and not kept beside it.
func merged(given map[string]json.RawMessage, listed any) ([]byte, error) {
	text, err := json.Marshal(listed)
	if err != nil || given == nil {
		return text, err
	}

	all := maps.Clone(given)
	for _, f := range reflect.VisibleFields(reflect.TypeOf(listed)) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		maps.DeleteFunc(all, func(k string, _ json.RawMessage) bool { return strings.EqualFold(k, key) })
	}

	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}

	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err = enc.Encode(all)
	return bytes.TrimSpace(out.Bytes()), err
}

// exact decodes an object and leaves numbers as they are written.
func exact(text []byte) (object map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&object)
	return object, err
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
