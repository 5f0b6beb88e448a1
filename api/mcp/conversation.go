package mcp

import (
	"context"
	"errors"
	"slices"
	"strings"

	"millwright/api"
	"millwright/state"
)

// turn is a message of a conversation, with the step that it belongs to.
type turn struct {
	Step      string `json:"step"`
	Role      string `json:"role"`
	Timestamp string `json:"at"`
	Content   []any  `json:"content"`
}

// messages returns the conversation of a run, oldest message first.
func (c *caller) messages(ctx context.Context, runID string) ([]turn, error) {
	whole, err := c.get(ctx, runPath(runID)+"/conversation", nil)
	if err != nil {
		return nil, err
	}

	var all []turn
	var walk func(steps []map[string]any)
	walk = func(steps []map[string]any) {
		for _, step := range steps {
			walk(list(step, "steps")) // output of earlier attempts
			for _, m := range list(step, "messages") {
				content, _ := m["content"].([]any)
				all = append(all, turn{text(step, "id"), text(m, "role"), text(m, "timestamp"), content})
			}
		}
	}
	walk(list(whole, "steps"))
	return all, nil
}

// lastWords quotes the last text of the agent.
func lastWords(messages []turn) []quote {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role != "assistant" {
			continue
		}
		for j := len(messages[i].Content) - 1; j >= 0; j-- {
			block, _ := messages[i].Content[j].(map[string]any)
			if words := text(block, "text"); block["type"] == "text" && words != "" {
				return []quote{{"the last message of the agent", words}}
			}
		}
	}
	return nil
}

type conversationInput struct {
	TaskID string `json:"task_id" jsonschema:"the ID of the task or run"`
	Paging
}

// conversationCursor is where the page before began.
type conversationCursor struct {
	Run    string `json:"r"`
	Before int    `json:"b"`
}

var errNoCursor = errors.New("cursor: not a cursor of this conversation: take next_cursor of the page before")

func getConversation() (tool, error) {
	return define(about{
		"get_conversation", "Read a conversation",
		"Reads the conversation of a task or run: messages, actions of the agent and their results. " +
			"The first page has the newest messages; next_cursor leads to earlier ones. Within a page " +
			"the oldest is first." + quoted,
		state.RoleViewer, reads,
	}, func(c *caller, ctx context.Context, in conversationInput) (answer, error) {
		before := -1
		if in.Cursor != "" {
			var at conversationCursor
			err := api.DecodeCursor(in.Cursor, &at)
			if err != nil || at.Run != in.TaskID || at.Before < 0 {
				return answer{}, errNoCursor
			}
			before = at.Before
		}
		if _, err := c.run(ctx, in.TaskID); err != nil {
			return answer{}, err
		}

		all, err := c.messages(ctx, in.TaskID)
		if err != nil {
			return answer{}, err
		}

		end := len(all)
		if before >= 0 {
			end = min(before, end)
		}
		limit := in.Limit
		if limit == 0 {
			limit = 20
		}
		return conversationPage(in.TaskID, all[:end], limit)
	}, atMost(mostItems))
}

// conversationPage returns the last messages, as many as fit, up to limit.
func conversationPage(runID string, all []turn, limit int) (answer, error) {
	page, begin, err := newest(all, limit, maxQuote)
	if err != nil {
		return answer{}, err
	}

	facts := map[string]any{"task_id": runID, "messages": len(all) - begin}
	if begin > 0 {
		facts["next_cursor"] = api.EncodeCursor(conversationCursor{runID, begin})
	}
	if begin == len(all) {
		return answer{facts: facts}, nil
	}
	return answer{facts: facts, quotes: []quote{{"a part of the conversation, as JSON", page}}}, nil
}

// newest returns the last messages as JSON, as many as fit into most bytes, up to limit, and where they
// begin.
func newest(all []turn, limit, most int) (page string, begin int, err error) {
	var messages []string
	room := most
	for begin = len(all); begin > 0 && len(messages) < limit; begin-- {
		message, err := written(all[begin-1], most/2)
		if err != nil {
			return "", begin, err
		}
		if room -= len(message) + len(",\n"); room < 0 {
			break
		}
		messages = append(messages, message)
	}

	slices.Reverse(messages)
	return "[" + strings.Join(messages, ",\n") + "]", begin, nil
}
