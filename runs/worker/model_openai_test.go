package worker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// openAITool is a tool in a request: a function, or a namespace of functions.
type openAITool struct {
	Type  string
	Name  string
	Tools []openAITool
}

// responses answers as OpenAI's Responses interface does.
func (m *model) responses(w http.ResponseWriter, body []byte, seen modelRequest) {
	var asked struct {
		Model        string
		Instructions string
		Tools        []openAITool
		Input        []struct {
			Type, Role string
			Content    json.RawMessage
		}
	}
	if json.Unmarshal(body, &asked) != nil {
		http.Error(w, "want JSON", http.StatusBadRequest)
		return
	}

	seen.Model, seen.System = asked.Model, asked.Instructions+"\n"
	for _, i := range asked.Input {
		if i.Role == "developer" || i.Role == "system" {
			seen.System += flat(i.Content)
		}
	}

	space := map[string]string{} // of a function
	for _, t := range asked.Tools {
		seen.Tools = append(seen.Tools, t.Name)
		for _, inner := range t.Tools {
			seen.Tools = append(seen.Tools, inner.Name)
			space[inner.Name] = t.Name
		}
	}
	m.note(seen)

	called := false
	if n := len(asked.Input); n > 0 {
		called = asked.Input[n-1].Type == "function_call_output"
	}

	item := object{
		"type": "message", "id": "msg_1", "role": "assistant",
		"content": []any{object{"type": "output_text", "text": answer}},
	}
	if tool := m.offered(seen, called); tool != "" {
		item = object{
			"type": "function_call", "id": "fc_1", "call_id": fmt.Sprintf("call_%d", len(asked.Input)),
			"name": tool, "arguments": m.args,
		}
		if space[tool] != "" {
			item["namespace"] = space[tool]
		}
	}

	usage := object{
		"input_tokens": inputTokens, "input_tokens_details": object{"cached_tokens": cachedTokens},
		"output_tokens": outputTokens, "output_tokens_details": object{"reasoning_tokens": 0},
		"total_tokens": inputTokens + outputTokens,
	}
	events(w,
		object{"type": "response.created", "response": object{"id": "resp_1"}},
		object{"type": "response.output_item.done", "output_index": 0, "item": item},
		object{"type": "response.completed", "response": object{"id": "resp_1", "usage": usage, "output": []any{item}}},
	)
}
