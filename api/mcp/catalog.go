package mcp

import (
	"context"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func newCatalog() (*catalog, error) {
	c := &catalog{schemas: sdk.NewSchemaCache()}
	for _, newTool := range []func() (tool, error){
		listFactories, sendTask, listTasks, getTask, getConversation, messageForeman,
		validateFiles, getSchema, planFiles,
		listDeliveries, explainDelivery, testFilter,
		listRuns, getRun, cancelRun,
	} {
		t, err := newTool()
		if err != nil {
			return nil, err
		}
		c.tools = append(c.tools, t)
	}

	var err error
	c.skills, err = Skills()
	return c, err
}

// server returns a server for a caller.
func (c *catalog) server(cfg Config) *sdk.Server {
	capabilities := &sdk.ServerCapabilities{
		Tools:     &sdk.ToolCapabilities{},
		Resources: &sdk.ResourceCapabilities{},
		Prompts:   &sdk.PromptCapabilities{},
	}
	capabilities.AddExtension("io.modelcontextprotocol/skills", nil)

	s := sdk.NewServer(
		&sdk.Implementation{Name: "millwright", Title: "millwright", Version: cfg.Version},
		&sdk.ServerOptions{
			Instructions: instructions,
			Capabilities: capabilities,
			SchemaCache:  c.schemas,
			Logger:       slog.New(slog.DiscardHandler), // it would quote the client
		},
	)
	s.AddReceivingMiddleware(withoutSubscriptions)

	who := &caller{cfg}
	for _, t := range c.tools {
		if cfg.Role.Allows(t.need) {
			t.add(s, who)
		}
	}
	who.addResources(s, c.skills)
	who.addPrompts(s)
	return s
}

// withoutSubscriptions refuses requests that would stay open: lists do not change, and nothing is announced.
func withoutSubscriptions(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method == "subscriptions/listen" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no notifications are sent"}
		}

		return next(ctx, method, req)
	}
}
