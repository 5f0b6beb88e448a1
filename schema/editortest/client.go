// Package editortest has a client of the language server, for tests and measurements.
package editortest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"millwright/schema/language"
)

// waitTime bounds every wait for the server.
const waitTime = time.Minute

// Client is an editor that speaks with a language server.
type Client struct {
	// Options are what the client's settings tell the server when a session begins.
	Options any

	conn *jsonrpc2.Conn

	mu    sync.Mutex
	found map[string]Published
	news  chan struct{} // closed when something is published
}

// Published is what a server told last of a document.
type Published struct {
	URI         string
	Version     int32
	Diagnostics []language.Diagnostic
}

// NewClient returns a client that writes to a server's input and reads its output. It answers every request
// of the server with null.
func NewClient(ctx context.Context, in io.WriteCloser, out io.Reader) *Client {
	c := &Client{found: map[string]Published{}, news: make(chan struct{})}
	stream := jsonrpc2.NewBufferedStream(pipe{in, out}, jsonrpc2.VSCodeObjectCodec{})
	c.conn = jsonrpc2.NewConn(ctx, stream, c, jsonrpc2.SetLogger(log.New(io.Discard, "", 0)))
	return c
}

type pipe struct {
	io.WriteCloser
	io.Reader
}

// Handle notes diagnostics.
func (c *Client) Handle(ctx context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request) {
	if !req.Notif {
		_ = conn.Reply(ctx, req.ID, nil)
		return
	}

	var p Published
	if req.Method != "textDocument/publishDiagnostics" || json.Unmarshal(*req.Params, &p) != nil {
		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.found[p.URI] = p
	close(c.news)
	c.news = make(chan struct{})
}

// Begin begins a session with these folders.
func (c *Client) Begin(ctx context.Context, folders ...string) error {
	all := []any{}
	for _, uri := range folders {
		all = append(all, map[string]string{"uri": uri, "name": "folder"})
	}

	params := map[string]any{
		"processId": nil, "workspaceFolders": all, "initializationOptions": c.Options,
		"capabilities": map[string]any{
			"workspace": map[string]any{
				"workspaceEdit": map[string]any{
					"documentChanges": true, "resourceOperations": []string{"rename"},
				},
				"didChangeWatchedFiles": map[string]any{"dynamicRegistration": true},
			},
		},
	}
	if err := c.Call(ctx, "initialize", params, nil); err != nil {
		return err
	}
	return c.Notify(ctx, "initialized", map[string]any{})
}

// End ends the session.
func (c *Client) End(ctx context.Context) error {
	if err := c.Call(ctx, "shutdown", nil, nil); err != nil {
		return err
	}
	return c.Notify(ctx, "exit", nil)
}

// Close leaves without a word.
func (c *Client) Close() error { return c.conn.Close() }

// Call sends a request and reads its result.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()

	return c.conn.Call(ctx, method, params, result)
}

// Notify sends a notification.
func (c *Client) Notify(ctx context.Context, method string, params any) error {
	return c.conn.Notify(ctx, method, params)
}

// Open opens a document.
func (c *Client) Open(ctx context.Context, uri, text string, version int32) error {
	return c.Notify(ctx, "textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": uri, "languageId": "yaml", "version": version, "text": text,
	}})
}

// Change replaces the text of a document.
func (c *Client) Change(ctx context.Context, uri, text string, version int32) error {
	return c.Notify(ctx, "textDocument/didChange", map[string]any{
		"textDocument":   map[string]any{"uri": uri, "version": version},
		"contentChanges": []any{map[string]any{"text": text}},
	})
}

// Await waits until what was published meets a condition, which has a text for people.
func (c *Client) Await(
	ctx context.Context, condition func(map[string]Published) (met bool, missing string),
) error {
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()

	for {
		c.mu.Lock()
		met, missing := condition(maps.Clone(c.found))
		news := c.news
		c.mu.Unlock()

		if met {
			return nil
		}

		select {
		case <-news:
		case <-c.conn.DisconnectNotify():
			return fmt.Errorf("the server left, before %s", missing)
		case <-ctx.Done():
			return fmt.Errorf("the server was silent: %s", missing)
		}
	}
}

// AwaitVersion waits for the problems of a version of a document.
func (c *Client) AwaitVersion(ctx context.Context, uri string, version int32) ([]language.Diagnostic, error) {
	var found []language.Diagnostic
	err := c.Await(ctx, func(all map[string]Published) (bool, string) {
		p := all[uri]
		found = p.Diagnostics
		return p.Version == version, fmt.Sprintf("version %d of %s has no diagnostics", version, uri)
	})
	return found, err
}
