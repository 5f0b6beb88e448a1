package worker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// messages answers as Anthropic's Messages interface does, streamed or not.
func (m *model) messages(w http.ResponseWriter, body []byte, seen modelRequest) {
	var asked struct {
		Model    string
		System   json.RawMessage
		Stream   bool
		Tools    []struct{ Name string }
		Messages []struct{ Content json.RawMessage }
	}
	if json.Unmarshal(body, &asked) != nil {
		http.Error(w, "want JSON", http.StatusBadRequest)
		return
	}

	seen.Model, seen.System = asked.Model, flat(asked.System)
	for _, t := range asked.Tools {
		seen.Tools = append(seen.Tools, t.Name)
	}
	m.note(seen)

	called := false
	if n := len(asked.Messages); n > 0 {
		called = strings.Contains(string(asked.Messages[n-1].Content), `"tool_result"`)
	}

	id := fmt.Sprintf("msg_%d", len(asked.Messages))
	tool := m.offered(seen, called)
	block, stop := object{"type": "text", "text": answer}, "end_turn"
	delta := object{"type": "text_delta", "text": answer}
	empty := object{"type": "text", "text": ""}
	if tool != "" {
		call := "toolu_" + id
		block, stop = object{"type": "tool_use", "id": call, "name": tool, "input": json.RawMessage(m.args)}, "tool_use"
		delta = object{"type": "input_json_delta", "partial_json": m.args}
		empty = object{"type": "tool_use", "id": call, "name": tool, "input": object{}}
	}

	usage := object{
		"input_tokens": inputTokens - cachedTokens, "cache_read_input_tokens": cachedTokens,
		"cache_creation_input_tokens": 0, "output_tokens": outputTokens,
	}
	message := object{
		"id": id, "type": "message", "role": "assistant", "model": asked.Model, "content": []any{block},
		"stop_reason": stop, "stop_sequence": nil, "usage": usage,
	}
	if !asked.Stream {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(message)
		return
	}

	started := object{
		"id": id, "type": "message", "role": "assistant", "model": asked.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": object{
			"input_tokens": inputTokens - cachedTokens, "cache_read_input_tokens": cachedTokens,
			"cache_creation_input_tokens": 0, "output_tokens": 1,
		},
	}
	events(w,
		object{"type": "message_start", "message": started},
		object{"type": "content_block_start", "index": 0, "content_block": empty},
		object{"type": "content_block_delta", "index": 0, "delta": delta},
		object{"type": "content_block_stop", "index": 0},
		object{
			"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil},
			"usage": object{"output_tokens": outputTokens},
		},
		object{"type": "message_stop"},
	)
}
