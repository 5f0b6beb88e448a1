package mcp

import (
	"context"
	"fmt"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// addPrompts adds the prompts that people choose in their client.
func (c *caller) addPrompts(s *sdk.Server) {
	s.AddPrompt(&sdk.Prompt{
		Name:        "write_automation",
		Title:       "Write an automation for a webhook",
		Description: "Writes an automation that starts a run when a webhook gets a certain delivery.",
		Arguments: []*sdk.PromptArgument{
			{Name: "webhook", Description: "Name or UID of the webhook", Required: true},
			{Name: "goal", Description: "When a run should start, and what its agent should do", Required: true},
			{Name: "factory", Description: "Name or UID of the factory; may be absent if there is one"},
		},
	}, c.writeAutomation)
}

// automationRequest is what a model reads, with the facts of a webhook and the goal.
const automationRequest = `Write an automation for this webhook of a millwright factory:

%s

What it is for: %s

Read the skill skill://factory-files/SKILL.md first. Then:
1. Write automations/<name>/automation.md with a trigger whose webhook_ids has the UID above, a payload filter as
   narrow as the goal allows, and a prompt that tells the agent what to read in event-payload.json, what to do, and
   when it is done.
2. Check it with validate_factory_files, and its filter with test_filter: one delivery that should match, one that
   should not.
3. Show the file and the results. Do not apply anything.`

// writeAutomation returns the request, the facts of the webhook, and its newest payload as an example.
func (c *caller) writeAutomation(
	ctx context.Context,
	req *sdk.GetPromptRequest,
) (*sdk.GetPromptResult, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()

	args := req.Params.Arguments
	for _, name := range []string{"webhook", "goal"} {
		if args[name] == "" {
			return nil, invalid(fmt.Errorf("%s: required", name))
		}
	}

	uid, err := c.factory(ctx, args["factory"])
	if err != nil {
		return nil, invalid(err)
	}
	path, err := c.webhook(ctx, uid, args["webhook"])
	if err != nil {
		return nil, invalid(err)
	}
	hook, err := c.get(ctx, path, nil)
	if err != nil {
		return nil, invalid(err)
	}

	about := pick(hook, "uid", "name", "auth_mode", "signature_scheme", "enabled", "file")
	facts, err := written(about, maxFacts)
	if err != nil {
		return nil, invalid(err)
	}

	goal, _ := cut(args["goal"], maxQuote)
	example, err := c.example(ctx, path)
	if err != nil {
		return nil, invalid(err)
	}

	return &sdk.GetPromptResult{
		Description: "Write an automation for " + text(hook, "name"),
		Messages:    []*sdk.PromptMessage{said(fmt.Sprintf(automationRequest, facts, goal)), said(example)},
	}, nil
}

// example returns the newest accepted payload of a webhook, for a prompt.
func (c *caller) example(ctx context.Context, webhook string) (string, error) {
	q := url.Values{"outcome": {"accepted"}, "limit": {"1"}}
	page, err := c.get(ctx, webhook+"/deliveries", q)
	if err != nil {
		return "", err
	}

	const none = "No payload of this webhook is stored: ask for an example before you write the filter."
	rows := list(page, "deliveries")
	if len(rows) == 0 {
		return none, nil
	}

	uid := text(rows[0], "delivery_id")
	body, err := c.Call(ctx, "GET", webhook+"/deliveries/"+url.PathEscape(uid), nil)
	if err != nil {
		return "", err
	}

	d, err := newDelivery(body)
	if err != nil || d.payload == "" {
		return none, err
	}
	return quote{"the payload of the newest delivery, " + uid, d.payload}.fenced(maxQuote), nil
}

func said(text string) *sdk.PromptMessage {
	return &sdk.PromptMessage{Role: "user", Content: &sdk.TextContent{Text: text}}
}

// invalid returns an error of a request that is not a tool call.
func invalid(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: shown(err).Error()}
}
