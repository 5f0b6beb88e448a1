// Package language is a language server for definition files. It shows the problems of package schema while
// they are typed, and judges nothing by itself. It reads the directories that an editor opens, writes none,
// and takes what only a server of the program knows from a [Lookup].
package language

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/sourcegraph/jsonrpc2"
)

// Bounds of a session.
const (
	maxRunning = 64 // requests at once
)

var (
	errNotBegun  = &jsonrpc2.Error{Code: codeNotInitialized, Message: "the session has not begun: send initialize"}
	errShutDown  = invalid("the session was shut down")
	errBegun     = invalid("the session has begun already")
	errTwice     = invalid("a request of this ID is running")
	errTooMany   = &jsonrpc2.Error{Code: codeServerCancelled, Message: "too many requests are running"}
	errNoMethod  = &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "no such method"}
	errCancelled = &jsonrpc2.Error{Code: codeCancelled, Message: "cancelled"}
)

func invalid(text string) *jsonrpc2.Error {
	return &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidRequest, Message: text}
}

// Codes of errors beyond those of JSON-RPC.
const (
	codeNotInitialized  = -32002
	codeServerCancelled = -32802
	codeCancelled       = -32800
)

// errNoShutdown is the error of a client that leaves without a word.
var errNoShutdown = errors.New("the client left without shutdown")

// Serve speaks with one client until it leaves, ctx ends, or what it sends can no longer be read. The error
// is nil when the client asked for the end.
func Serve(ctx context.Context, in io.Reader, out io.Writer, config Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	s := newSession(config)
	closing := func() error {
		cancel()
		if c, ok := in.(io.Closer); ok {
			return c.Close()
		}
		return nil
	}

	quiet := jsonrpc2.SetLogger(discard{})
	s.conn = jsonrpc2.NewConn(ctx, newStream(in, out, closing), s, quiet)
	close(s.ready)

	var background sync.WaitGroup
	background.Go(func() { s.diagnose(ctx) })
	background.Go(func() { s.ask(ctx) })

	select {
	case <-s.conn.DisconnectNotify():
	case <-s.exit:
	case <-ctx.Done():
	}

	_ = s.conn.Close()
	cancel()

	s.mu.Lock()
	s.ended = true
	down := s.down
	s.mu.Unlock()

	s.requests.Wait()
	background.Wait()
	if !down {
		return errNoShutdown
	}
	return nil
}

// discard is a logger for what the connection has to say, which may quote what the client sent.
type discard struct{}

func (discard) Printf(string, ...any) {}

// method answers a request. doc is the document that the parameters name, nil if it is not open.
type method func(s *session, ctx context.Context, doc *document, params json.RawMessage) (any, error)

// methods are the requests that this server answers, but for those that begin and end a session.
func methods() map[string]method {
	return map[string]method{
		"textDocument/codeAction":     (*session).codeAction,
		"textDocument/codeLens":       (*session).lenses,
		"textDocument/completion":     (*session).complete,
		"textDocument/definition":     (*session).definition,
		"textDocument/documentSymbol": (*session).symbols,
		"textDocument/foldingRange":   (*session).folding,
		"textDocument/hover":          (*session).hover,
		"textDocument/prepareRename":  (*session).prepareRename,
		"textDocument/references":     (*session).references,
		"textDocument/rename":         (*session).rename,
	}
}

// Handle handles one message. Notifications are handled in their order, requests beside one another.
func (s *session) Handle(ctx context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request) {
	<-s.ready
	params := json.RawMessage("null")
	if req.Params != nil {
		params = *req.Params
	}

	if req.Notif {
		_, _ = protected(func() (any, error) { return nil, s.notified(req.Method, params) })
		return
	}

	switch req.Method {
	case "initialize", "shutdown":
		s.reply(ctx, req.ID, func() (any, error) { return s.lifecycle(req.Method, params) })
		return
	}

	answer, known := methods()[req.Method]
	running, ctx, err := s.begin(ctx, req.ID, known)
	if err != nil {
		_ = conn.ReplyWithError(ctx, req.ID, err)
		return
	}

	doc := s.named(params)
	s.beside(func() {
		defer running()
		s.reply(ctx, req.ID, func() (any, error) { return answer(s, ctx, doc, params) })
	})
}

// begin notes a running request. The function that it returns ends it.
func (s *session) begin(
	ctx context.Context,
	id jsonrpc2.ID,
	known bool,
) (func(), context.Context, *jsonrpc2.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	_, twice := s.running[id]
	switch {
	case !s.initialized:
		return nil, ctx, errNotBegun
	case s.down:
		return nil, ctx, errShutDown
	case !known:
		return nil, ctx, errNoMethod
	case twice:
		return nil, ctx, errTwice
	case len(s.running) >= maxRunning:
		return nil, ctx, errTooMany
	}

	ctx, cancel := context.WithCancel(ctx)
	s.running[id] = cancel
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()

		cancel()
		delete(s.running, id)
	}, ctx, nil
}

// reply answers a request by what answer returns.
func (s *session) reply(ctx context.Context, id jsonrpc2.ID, answer func() (any, error)) {
	result, err := protected(answer)

	var as *jsonrpc2.Error
	switch {
	case ctx.Err() != nil:
		as = errCancelled
	case err == nil:
		_ = s.conn.Reply(ctx, id, result)
		return
	case !errors.As(err, &as):
		as = &jsonrpc2.Error{Code: codeRequestFailed, Message: err.Error()}
	}

	_ = s.conn.ReplyWithError(ctx, id, as)
}

// lifecycle begins a session, and ends what it answers.
func (s *session) lifecycle(name string, params json.RawMessage) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if name == "shutdown" {
		if !s.initialized {
			return nil, errNotBegun
		}

		s.down = true
		return nil, nil
	}

	if s.initialized {
		return nil, errBegun
	}

	// What one client sends in an odd shape must not keep it from the rest.
	_ = json.Unmarshal(params, &s.client)
	s.initialized = true
	s.begun()
	return map[string]any{
		"capabilities": capabilities(),
		"serverInfo":   map[string]string{"name": "millwright", "version": s.config.Version},
	}, nil
}

// capabilities are what this server offers.
func capabilities() map[string]any {
	return map[string]any{
		"positionEncoding": "utf-16",
		"textDocumentSync": map[string]any{"openClose": true, "change": 2, "save": true},
		"codeActionProvider": map[string]any{
			"codeActionKinds": []string{kindQuickFix, kindFixAll},
		},
		"completionProvider":     map[string]any{"triggerCharacters": []string{":", " ", "-", "[", ",", "@"}},
		"codeLensProvider":       map[string]any{},
		"definitionProvider":     true,
		"documentSymbolProvider": true,
		"foldingRangeProvider":   true,
		"hoverProvider":          true,
		"referencesProvider":     true,
		"renameProvider":         map[string]any{"prepareProvider": true},
		"workspace": map[string]any{
			"workspaceFolders": map[string]any{"supported": true, "changeNotifications": true},
		},
	}
}

// notified handles a notification. Unknown ones are ignored.
func (s *session) notified(name string, params json.RawMessage) error {
	switch name {
	case "exit":
		s.mu.Lock()
		defer s.mu.Unlock()

		select {
		case <-s.exit:
		default:
			close(s.exit)
		}
		return nil

	case "$/cancelRequest":
		var p cancelParams
		var id jsonrpc2.ID
		if err := errors.Join(decode(params, &p), json.Unmarshal(p.ID, &id)); err != nil {
			return err
		}

		s.mu.Lock()
		defer s.mu.Unlock()

		if cancel := s.running[id]; cancel != nil {
			cancel()
		}
		return nil

	case "initialized":
		s.watchFiles()
		return nil
	case "textDocument/didOpen":
		return s.didOpen(params)
	case "textDocument/didChange":
		return s.didChange(params)
	case "textDocument/didClose":
		return s.didClose(params)
	case "textDocument/didSave", "workspace/didChangeWatchedFiles":
		s.touch()
	case "workspace/didChangeWorkspaceFolders":
		return s.didChangeFolders(params)
	}

	return nil
}
