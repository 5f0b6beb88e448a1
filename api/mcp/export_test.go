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

// Written returns facts as an agent gets them, in at most most bytes.
func Written(facts any, most int) (string, error) { return written(facts, most) }

// Fenced returns a quote as an agent gets it.
func Fenced(text string, most int) string { return quote{"a text", text}.fenced(most) }

// Variables returns the values of a template's variables in a URI.
func Variables(template, uri string) ([]string, bool) { return variables(template, uri) }
