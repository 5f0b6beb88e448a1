package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"millwright/api"
	"millwright/api/mcp"
	"millwright/state"
	"millwright/state/statetest"
)

// TestAcceptanceMCPConformance runs the official conformance suite of the Model Context Protocol against the
// endpoint. The suite calls tools of its own, which are added, and knows no keys: a proxy adds one.
// expected-failures.yml has the scenarios of capabilities that the server does not declare; the suite fails if one
// of them passes.
func TestAcceptanceMCPConformance(t *testing.T) {
	suite := os.Getenv("MILLWRIGHT_TEST_MCP")
	if suite == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no conformance suite: run .ci/conformance go test …")
		}
		t.Skip("there is no conformance suite: run .ci/conformance go test …")
	}
	node := statetest.Program(t, "node")
	expected := filepath.Join(suite, "expected-failures.yml")

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node,
		"--import", filepath.Join(suite, "hook.mjs"),
		filepath.Join(suite, "node_modules/@modelcontextprotocol/conformance/dist/index.js"),
		"server", "--url", serveFixtures(t)+mcp.Path, "--suite", "all", "--output-dir", t.TempDir(),
		"--expected-failures", expected,
	)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	text, err := os.ReadFile(expected)
	if err != nil {
		t.Fatal(err)
	}
	passed := len(regexp.MustCompile(`(?m)^✓ [a-z0-9-]+: [1-9]`).FindAll(out, -1))
	failed := strings.Count(string(text), "\n  - ")
	if passed < 20 || passed+failed != 32 {
		t.Errorf("%d scenarios passed, %d are expected to fail\n%s", passed, failed, out)
	}
}

// serveFixtures serves the endpoint behind a proxy with a key, and returns the proxy's origin.
func serveFixtures(t *testing.T) string {
	t.Helper()
	store := statetest.Open(t, statetest.SQLite(t))
	server := httptest.NewUnstartedServer(nil)
	origin := &url.URL{Scheme: "http", Host: server.Listener.Addr().String()}
	served := api.New(api.Config{Store: store, PublicURL: origin.String()})
	if err := mcp.RegisterWith(mcp.HTTPConfig{API: served, PublicURL: origin.String()}, fixtures); err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = served
	server.Start()
	t.Cleanup(server.Close)

	_, key, err := store.CreateKey(t.Context(), "suite", state.RoleRunner, nil)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(origin)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+key)
	}})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// fixtures adds the tools, resources and prompts that the suite asks for, by its names.
func fixtures(s *sdk.Server) {
	text := func(text string) sdk.Content { return &sdk.TextContent{Text: text} }
	image := &sdk.ImageContent{Data: []byte("\x89PNG\r\n\x1a\n"), MIMEType: "image/png"}
	resource := func(uri string) sdk.Content {
		return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{
			URI: uri, MIMEType: "text/plain", Text: "This is an embedded resource",
		}}
	}

	for name, content := range map[string][]sdk.Content{
		"test_simple_text":            {text("This is a simple text response for testing.")},
		"test_image_content":          {image},
		"test_audio_content":          {&sdk.AudioContent{Data: []byte("RIFF"), MIMEType: "audio/wav"}},
		"test_embedded_resource":      {resource("test://embedded-resource")},
		"test_multiple_content_types": {text("Some text"), image, resource("test://mixed-content-resource")},
		"test_error_handling":         nil,
	} {
		tool := &sdk.Tool{Name: name, Description: "A fixture"}
		sdk.AddTool(s, tool, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			if content == nil {
				return nil, nil, errors.New("this tool fails")
			}
			return &sdk.CallToolResult{Content: content}, nil, nil
		})
	}

	whole := json.RawMessage(`{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
		"$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
		"properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}}, "additionalProperties": false
	}`)
	s.AddTool(
		&sdk.Tool{Name: "json_schema_2020_12_tool", Description: "A fixture", InputSchema: whole},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{}, nil
		},
	)

	read := func(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		uri := req.Params.URI
		contents := &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "Text of " + uri}
		if strings.HasSuffix(uri, "binary") {
			contents = &sdk.ResourceContents{URI: uri, MIMEType: "image/png", Blob: image.Data}
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{contents}}, nil
	}
	s.AddResource(&sdk.Resource{Name: "text", URI: "test://static-text", MIMEType: "text/plain"}, read)
	s.AddResource(&sdk.Resource{Name: "binary", URI: "test://static-binary", MIMEType: "image/png"}, read)
	s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data"}, read)

	for name, arguments := range map[string][]string{
		"test_simple_prompt": nil, "test_prompt_with_arguments": {"arg1", "arg2"},
		"test_prompt_with_embedded_resource": {"resourceUri"}, "test_prompt_with_image": nil,
	} {
		prompt := &sdk.Prompt{Name: name, Description: "A fixture"}
		for _, a := range arguments {
			prompt.Arguments = append(prompt.Arguments, &sdk.PromptArgument{Name: a, Required: true})
		}
		s.AddPrompt(prompt, func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			said := []sdk.Content{text(fmt.Sprintf("Prompt with arguments: arg1=%q, arg2=%q", req.Params.Arguments["arg1"], req.Params.Arguments["arg2"]))}
			if slices.Contains(arguments, "resourceUri") {
				said = append(said, resource(req.Params.Arguments["resourceUri"]))
			}
			if strings.HasSuffix(name, "image") {
				said = append(said, image)
			}

			result := &sdk.GetPromptResult{}
			for _, c := range said {
				result.Messages = append(result.Messages, &sdk.PromptMessage{Role: "user", Content: c})
			}
			return result, nil
		})
	}
}
