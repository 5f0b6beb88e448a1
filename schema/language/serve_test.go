package language_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millwright/schema/editortest"
	"millwright/schema/language"
)

// raw sends bytes to a server and returns what it answers, and how it ends.
func raw(t *testing.T, in string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := language.Serve(t.Context(), strings.NewReader(in), &out, language.Config{})
	return out.String(), err
}

func message(text string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(text), text) }

const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`

// TestHostileMessages sends what no editor should. The server answers with an error or ends; it never panics,
// and a message that is refused keeps no other from being read.
func TestHostileMessages(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"no JSON":              {message("{") + message(begin), `"code":-32700`},
		"not a message":        {message(`{"jsonrpc":"2.0"}`) + message(begin), `"code":-32600`},
		"a batch":              {message("["+begin+"]") + message(begin), `"code":-32600`},
		"both kinds":           {message(`{"method":"x","result":1,"id":1}`) + message(begin), `"code":-32600`},
		"odd ID":               {message(`{"jsonrpc":"2.0","id":{},"method":"x"}`) + message(begin), `"code":-32600`},
		"deep":                 {message(strings.Repeat("[", 1<<20)) + message(begin), `"code":-32700`},
		"too large":            {message(strings.Repeat(" ", 9<<20)) + message(begin), `"code":-32600`},
		"before initialize":    {message(`{"jsonrpc":"2.0","id":7,"method":"textDocument/hover"}`) + message(begin), `"code":-32002`},
		"initialize twice":     {message(begin) + message(begin), "has begun already"},
		"odd parameters":       {message(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":[7]}`), "capabilities"},
		"unknown answer":       {message(`{"jsonrpc":"2.0","id":99,"result":1}`) + message(begin), "capabilities"},
		"unknown notification": {message(`{"jsonrpc":"2.0","method":"$/x","params":3}`) + message(begin), "capabilities"},
		"cancel of nothing":    {message(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":[]}}`) + message(begin), "capabilities"},
		"lower case":           {"content-length: " + strings.TrimPrefix(message(begin), "Content-Length: "), "capabilities"},
		"no length":            {"\r\n" + message(begin), ""},
		"negative length":      {"Content-Length: -5\r\n\r\n" + begin, ""},
		"endless header":       {strings.Repeat("x", 1<<20), ""},
		"endless message":      {"Content-Length: 9223372036854775807\r\n\r\n" + begin, ""},
		"cut off":              {"Content-Length: 500\r\n\r\n" + begin, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := raw(t, c.in)
			if err == nil {
				t.Error("a client that left without shutdown is taken for a good one")
			}
			if c.want == "" && out != "" || !strings.Contains(out, c.want) {
				t.Errorf("the answer is %q, want %q", out, c.want)
			}
		})
	}
}

// TestHostileDocuments opens documents that nobody should. Every request about them is answered.
func TestHostileDocuments(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "webhooks/ci.yaml", "secretName: CI_TOKEN\n")
	c := session(t, language.Config{})
	uris := []string{
		"", "x", "file:", "file://", "file:///", "untitled:Untitled-1", "file://elsewhere/webhooks/a.yaml",
		"file:///%00/webhooks/a.yaml", "file:///webhooks/../../../a", "http://[::1", "file://" + dir + "/webhooks/%F0%9F%98%80.yaml",
		"file://" + dir + "/webhooks/ci.yaml", "file://" + dir + "/automations/a/automation.md", "file://" + dir + "/factory.yaml/x",
		"file://" + dir + "/webhooks", "file://" + dir + "/automations/a/b/c/d/automation.md",
	}
	texts := []string{
		"", "\x00", "---\n", "---\na: [", "\ufeffa: 1", "a:\n\t- b", strings.Repeat("[", 1<<14), strings.Repeat("a: ", 1<<13),
		"? ", "- - - -", "&a [*a]", "a: 😀\r\rb: \u2028", "---\ntriggers:\n- provider: webhook\n  filter: {webhook_ids: [ci", "%YAML 1.1\n",
	}

	version := int32(0)
	for i, uri := range uris {
		for j, text := range texts {
			if (i+j)%7 > 0 {
				continue
			}
			version++
			if err := c.Open(t.Context(), uri, text, version); err != nil {
				t.Fatal(err)
			}
			at := map[string]any{"line": (i + j) % 3 * 1000, "character": j}
			for _, name := range requests {
				params := map[string]any{
					"textDocument": map[string]any{"uri": uri}, "position": at, "newName": text,
					"range": map[string]any{"start": at, "end": map[string]any{"line": 0, "character": 0}},
				}
				var result json.RawMessage
				if err := c.Call(t.Context(), name, params, &result); err != nil && !strings.Contains(err.Error(), "-32803") {
					t.Errorf("%s on %q with %q: %v", name, uri, text, err)
				}
			}
		}
	}
}

// requests are those about a document.
var requests = []string{
	"textDocument/codeAction", "textDocument/codeLens", "textDocument/completion", "textDocument/definition",
	"textDocument/documentSymbol", "textDocument/foldingRange", "textDocument/hover", "textDocument/prepareRename",
	"textDocument/references", "textDocument/rename",
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	to := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// session begins a session of a client with a server in this process.
func session(t *testing.T, config language.Config, folders ...string) *editortest.Client {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- language.Serve(context.WithoutCancel(t.Context()), in, out, config)
		out.Close()
	}()

	c := editortest.NewClient(context.WithoutCancel(t.Context()), toServer, fromServer)
	t.Cleanup(func() {
		if err := c.End(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	uris := make([]string, len(folders))
	for i, dir := range folders {
		uris[i] = "file://" + dir
	}
	if err := c.Begin(t.Context(), uris...); err != nil {
		t.Fatal(err)
	}
	return c
}
