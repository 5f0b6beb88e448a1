package worker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// generate answers as Gemini's interface does, streamed or not.
func (m *model) generate(w http.ResponseWriter, r *http.Request, body []byte, seen modelRequest) {
	var asked struct {
		SystemInstruction json.RawMessage
		Tools             []struct {
			FunctionDeclarations []struct{ Name string }
		}
		Contents []struct{ Parts json.RawMessage }
	}
	if json.Unmarshal(body, &asked) != nil {
		http.Error(w, "want JSON", http.StatusBadRequest)
		return
	}

	if seen.Key == "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error": {"code": 401, "message": "the API key is missing", "status": "UNAUTHENTICATED"}}`)
		return
	}

	_, model, _ := strings.Cut(r.URL.Path, "/models/")
	seen.Model, _, _ = strings.Cut(model, ":")
	seen.System = flat(asked.SystemInstruction)
	for _, t := range asked.Tools {
		for _, f := range t.FunctionDeclarations {
			seen.Tools = append(seen.Tools, f.Name)
		}
	}
	m.note(seen)

	called := false
	if n := len(asked.Contents); n > 0 {
		called = strings.Contains(string(asked.Contents[n-1].Parts), `"functionResponse"`)
	}

	part := object{"text": answer}
	if tool := m.offered(seen, called); tool != "" {
		part = object{"functionCall": object{"name": tool, "args": json.RawMessage(m.args)}}
	}

	reply := object{
		"candidates": []any{object{
			"index": 0, "finishReason": "STOP", "content": object{"role": "model", "parts": []any{part}},
		}},
		"usageMetadata": object{
			"promptTokenCount": inputTokens, "cachedContentTokenCount": cachedTokens,
			"candidatesTokenCount": outputTokens, "totalTokenCount": inputTokens + outputTokens,
		},
		"modelVersion": seen.Model,
	}
	if strings.Contains(r.URL.Path, "stream") {
		events(w, reply)
		return
	}

	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(reply)
}
