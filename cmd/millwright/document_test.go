package main

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"millwright/admin"
	"millwright/api"
	"millwright/runs"
	"millwright/state/statetest"
)

var update = flag.Bool("update", false, "write api/openapi.yaml anew")

const documentFile = "../../api/openapi.yaml"

// TestDocument holds api/openapi.yaml against the endpoints, and against the OpenAPI specification.
func TestDocument(t *testing.T) {
	store := statetest.Open(t, statetest.SQLite(t))
	a := api.New(api.Config{Store: store})
	runs.Register(a, runs.Config{Store: store})
	admin.Register(a, admin.Config{Store: store})
	got, err := a.Document()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(documentFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("api/openapi.yaml is stale: run make docs")
	}
	doc, err := openapi3.NewLoader().LoadFromData(want)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.AllowExtraSiblingFields("patternDescription")); err != nil {
		t.Error(err)
	}
	for _, name := range []string{
		"RunAgentRequest", "RunAgentResponse", "ListRunsResponse", "RunItem", "PageInfo", "RunStatusMessage", "RunCreatorInfo",
		"RunState", "RunSourceType", "RunFollowupRequest", "AmbientAgentConfig", "MCPServerConfig", "Error",
	} {
		if doc.Components.Schemas[name] == nil {
			t.Errorf("no model named %s", name)
		}
	}
}
