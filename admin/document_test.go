package admin_test

import (
	"slices"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"millwright/admin"
	"millwright/api"
)

// TestDocument keeps the document fit to generate a client from.
func TestDocument(t *testing.T) {
	a := api.New(api.Config{Version: "test", PublicURL: "https://hooks.example.com"})
	admin.Register(a, admin.Config{})
	doc := a.Huma().OpenAPI()
	seen := map[string]bool{}
	for path, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete, item.Patch} {
			if op == nil {
				continue
			}
			if op.OperationID == "" || seen[op.OperationID] || op.Summary == "" || op.Description == "" && op.Security != nil {
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
			needsKey := op.Security != nil
			for _, status := range []string{"401", "403"} {
				if _, ok := op.Responses[status]; ok != needsKey && op.OperationID != "notifyPush" {
					t.Errorf("%s: status %s listed: %v", op.OperationID, status, ok)
				}
			}
			if _, ok := op.Responses["413"]; ok != (op.RequestBody != nil) {
				t.Errorf("%s: status 413 listed: %v", op.OperationID, ok)
			}
			if _, ok := op.Responses["422"]; ok && !slices.Contains([]string{
				"syncFactory", "planFactory", "replayDelivery", "createWebhook", "updateWebhook", "deleteWebhook", "rotateSecret", "putFile", "deleteFile",
				"listFiles", "getFile", "importFiles", "exportFiles", "importTar", "listRevisions", "getRevision", "restoreRevision",
			}, op.OperationID) {
				t.Errorf("%s: status 422 is listed", op.OperationID)
			}
		}
	}
	if len(seen) < 37 {
		t.Errorf("%d operations", len(seen))
	}
	for name, schema := range doc.Components.Schemas.Map() {
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
