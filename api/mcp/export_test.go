package mcp

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// RegisterWith is Register with what a test adds to each server.
func RegisterWith(cfg HTTPConfig, fixtures func(*sdk.Server)) error {
	catalog, err := newCatalog()
	if err != nil {
		return err
	}

	catalog.tools = append(catalog.tools, tool{anyone, func(s *sdk.Server, _ *caller) { fixtures(s) }})
	return register(cfg, catalog)
}
