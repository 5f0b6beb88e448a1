package runs_test

import (
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"millwright/api"
	"millwright/runs"
)

// TestDocument keeps the document fit to generate a client from.
func TestDocument(t *testing.T) {
	a := api.New(api.Config{Version: "test", PublicURL: "https://mill.example.com"})
	runs.Register(a, runs.Config{})
	doc := a.Huma().OpenAPI()
	seen := map[string]bool{}
	for path, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post} {
			if op == nil {
				continue
			}
			if op.OperationID == "" || seen[op.OperationID] || op.Summary == "" || op.Description == "" {
				t.Errorf("%s %s: operation ID %q, summary %q, description %q", op.Method, path, op.OperationID, op.Summary, op.Description)
			}
			seen[op.OperationID] = true
			for _, p := range op.Parameters {
				if p.Description == "" {
					t.Errorf("%s: parameter %s is not described", op.OperationID, p.Name)
				}
			}
			for status, r := range op.Responses {
				if status < "400" {
					continue
				}
				if c := r.Content["application/problem+json"]; c == nil || c.Schema.Ref != "#/components/schemas/Error" {
					t.Errorf("%s: status %s is no Error", op.OperationID, status)
				}
			}
			for status, want := range map[string]bool{"401": true, "403": true, "413": op.RequestBody != nil, "422": false} {
				if _, ok := op.Responses[status]; ok != want {
					t.Errorf("%s: status %s listed: %t", op.OperationID, status, ok)
				}
			}
		}
	}
	if len(seen) != 34 {
		t.Errorf("%d operations", len(seen))
	}
	schemas := doc.Components.Schemas.Map()
	for _, name := range []string{"RunAgentRequest", "RunAgentResponse", "ListRunsResponse", "RunItem", "PageInfo", "RunStatusMessage", "RunCreatorInfo", "RunState", "RunSourceType", "RunFollowupRequest", "AmbientAgentConfig", "MCPServerConfig", "Error"} {
		if schemas[name] == nil {
			t.Errorf("model %s is missing", name)
		}
	}
	for name, schema := range schemas {
		for field, s := range schema.Properties {
			if s.Description == "" {
				t.Errorf("%s.%s is not described", name, field)
			}
		}
	}
	if _, err := a.Document(); err != nil {
		t.Error(err)
	}
}
