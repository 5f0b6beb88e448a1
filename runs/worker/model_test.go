package worker_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// The tokens that the model reports for each of its answers, and the words of the last one.
const (
	inputTokens  = 100 // cached ones included
	cachedTokens = 40
	outputTokens = 7
	answer       = "the scripted work is done"
)

// maxRequest bounds a request to the model, in bytes.
const maxRequest = 32 << 20

// model is a scripted language model: it speaks the Anthropic Messages, OpenAI Responses and Gemini interfaces,
// each as far as the agents of the presets use it. To a request that offers the tool it answers with one call of
// the tool, and to the result of the call with the answer. To any other it answers with the answer.
type model struct {
	URL  string
	tool string // a part of its name
	args string // of the call, as JSON

	mu   sync.Mutex
	seen []modelRequest
}

// modelRequest is what an agent sent to the model.
type modelRequest struct {
	Path   string
	Model  string
	System string   // the system text
	Tools  []string // their names
	Body   string   // the whole request, as JSON
	Key    string   // how the agent signed in
}

// serveModel starts a model that ends with the test.
func serveModel(t testing.TB, tool string) *model {
	t.Helper()
	m := &model{tool: tool, args: `{"text":"hello"}`}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.URL = server.URL
	return m
}

// requests returns the requests that offered tools, in the order in which they came: agents send others too,
// for titles and the like.
func (m *model) requests() []modelRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []modelRequest
	for _, r := range m.seen {
		if len(r.Tools) > 0 {
			all = append(all, r)
		}
	}
	return all
}

// ServeHTTP answers as the interface does that the path belongs to.
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return
	}

	seen := modelRequest{
		Path: r.URL.Path, Body: string(body),
		Key: r.Header.Get("X-Api-Key") + r.Header.Get("Authorization") + r.Header.Get("X-Goog-Api-Key"),
	}
	switch {
	case r.Header.Get("Upgrade") != "": // Codex tries a WebSocket first
		http.Error(w, "no WebSockets", http.StatusUpgradeRequired)
	case strings.HasSuffix(r.URL.Path, "/messages"):
		m.messages(w, body, seen)
	case strings.HasSuffix(r.URL.Path, "/responses"):
		m.responses(w, body, seen)
	case strings.Contains(r.URL.Path, "enerateContent"):
		m.generate(w, r, body, seen)
	default:
		m.note(seen)
		http.NotFound(w, r)
	}
}

func (m *model) note(r modelRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, r)
}

// offered returns the name of the tool to call, unless it was called already.
func (m *model) offered(r modelRequest, called bool) string {
	for _, name := range r.Tools {
		if !called && m.tool != "" && strings.Contains(name, m.tool) {
			return name
		}
	}
	return ""
}

// events writes server-sent events. Each is an object whose type, if it has one, names the event.
func events(w http.ResponseWriter, all ...map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range all {
		text, err := json.Marshal(e)
		if err != nil {
			return
		}

		if name, ok := e["type"]; ok {
			fmt.Fprintf(w, "event: %s\n", name)
		}
		fmt.Fprintf(w, "data: %s\n\n", text)
	}
}

// flat returns the texts in a JSON value, one a line.
func flat(raw json.RawMessage) string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return ""
	}

	var out strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out.WriteString(v + "\n")
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(value)

	return out.String()
}

type object = map[string]any
