package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/textproto"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"millwright/schema"
	"millwright/schema/provider"
)

// tested is the delivery that triggers are tested with, as the flags give it.
type tested struct {
	payloadFile, scheme, event string
	headers                    []string
	webhook, delivery          string
}

// explainer returns what explains triggers on the delivery.
func (g *tested) explainer(
	cmd *cobra.Command,
	c *Client,
) (explain func(schema.Trigger) (schema.Explanation, error), err error) {
	given := 0
	for _, flag := range []string{g.payloadFile, g.event, g.delivery} {
		if flag != "" {
			given++
		}
	}
	if given != 1 {
		return nil, Usagef("give the payload: --payload FILE, --event EVENT, or --webhook NAME --delivery UID")
	}
	if g.delivery != "" {
		return g.onServer(cmd, c)
	}

	d := schema.Delivered{Header: map[string][]string{}}
	for _, line := range g.headers {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, Usagef("--header: want 'Name: value', not %q", line)
		}
		d.Header[textproto.CanonicalMIMEHeaderKey(name)] = []string{strings.TrimSpace(value)}
	}

	if g.payloadFile != "" {
		if d.Body, err = os.ReadFile(g.payloadFile); err != nil {
			return nil, Usagef("--payload: %w", err)
		}
		if d.Payload, err = schema.ParsePayload(d.Body); err != nil {
			return nil, &Exit{ExitUsage, fmt.Errorf("payload: %w", err)}
		}
	}

	return func(t schema.Trigger) (schema.Explanation, error) { return g.explain(t, d) }, nil
}

// explain explains a trigger on a copy of the delivery.
func (g *tested) explain(t schema.Trigger, d schema.Delivered) (e schema.Explanation, err error) {
	if d.Scheme = g.scheme; d.Scheme == "" && provider.Known(t.Provider) {
		d.Scheme = provider.Schemes(t.Provider)[0]
	}

	if header := provider.EventHeader(d.Scheme); len(d.Header[header]) > 0 {
		d.Event = d.Header[header][0]
	}
	if g.event != "" {
		var ok bool
		if d.Event, d.Body, ok = provider.Example(d.Scheme, g.event); !ok {
			return e, Usagef("there is no example of the event %q of the scheme %q: it has %s", g.event, d.Scheme,
				strings.Join(provider.Examples(d.Scheme), ", "))
		}
		if d.Payload, err = schema.ParsePayload(d.Body); err != nil {
			return e, err
		}
	}

	matcher, err := schema.CompileTrigger(t)
	if err != nil {
		return e, Usagef("filter: %w", err)
	}
	return matcher.Explain(&d), nil
}

// onServer has the server explain triggers on a stored delivery.
func (g *tested) onServer(
	cmd *cobra.Command,
	c *Client,
) (func(schema.Trigger) (schema.Explanation, error), error) {
	f, _, err := c.webhook(cmd.Context(), g.webhook)
	if err != nil {
		return nil, err
	}

	return func(t schema.Trigger) (schema.Explanation, error) {
		req := map[string]any{"delivery_id": g.delivery, "provider": t.Provider, "event": t.Event}
		filter := t.Filter
		if t.Provider == "webhook" {
			filter = t.Payload
			if len(t.Headers) > 0 {
				req["headers"] = t.Headers
			}
			if t.WebhookIDs != nil {
				req["webhook_ids"] = t.WebhookIDs
			}
		}
		if len(filter) > 0 {
			req["filter"] = filter
		}

		var out struct {
			WebhookCheck  bool   `json:"webhook_check"`
			WebhookReason string `json:"webhook_reason"`
			Explanation   schema.Explanation
		}
		body, err := c.call(cmd.Context(), http.MethodPost, "/factory/"+f.UID+"/filter-tests", req)
		if err == nil {
			err = json.Unmarshal(body, &out)
		}
		if !out.WebhookCheck && err == nil {
			out.Explanation.Matched, out.Explanation.Reason = false, out.WebhookReason
		}
		return out.Explanation, err
	}, nil
}
