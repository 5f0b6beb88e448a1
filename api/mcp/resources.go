package mcp

import (
	"context"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"millwright/state"
)

// scheme begins the URIs of resources.
const scheme = "millwright://"

// maxResource bounds a resource, in bytes.
const maxResource = 256 << 10

// Types of resources.
const (
	plainText = "text/plain"
)

// resource is a kind of resource.
type resource struct {
	uri, name, description, mime string
	need                         state.Role
	untrusted                    bool
	// read returns the text of a resource for the values of the URI's variables, in their order.
	read func(c *caller, ctx context.Context, v []string) (string, error)
}

const inWebhook = "factories/{factory}/webhooks/{webhook}/deliveries/{delivery_id}"

var resources = [...]resource{
	{
		"factories", "Factories", "The factories: sources, what is applied, agents", jsonText,
		state.RolePlanner, false,
		func(c *caller, ctx context.Context, _ []string) (string, error) {
			all, err := c.factories(ctx)
			facts := []any{}
			for _, f := range all {
				facts = append(facts, factoryFacts(f))
			}
			return factsText(map[string]any{"factories": facts}, err)
		},
	},
	{
		"factories/{factory}/automations", "Automations",
		"The applied automations of a factory: triggers, webhooks, why they do not fire", jsonText,
		state.RoleViewer, false,
		func(c *caller, ctx context.Context, v []string) (string, error) {
			return c.listed(ctx, v[0], "automations")
		},
	},
	{
		"factories/{factory}/webhooks", "Webhooks", "The webhooks of a factory: UID, mode, URL, counts",
		jsonText, state.RoleViewer, false,
		func(c *caller, ctx context.Context, v []string) (string, error) {
			return c.listed(ctx, v[0], "webhooks")
		},
	},
	{
		"factories/{factory}/files", "Definition files", "The paths of the definition files of a managed factory",
		jsonText, state.RoleViewer, false,
		func(c *caller, ctx context.Context, v []string) (string, error) { return c.listed(ctx, v[0], "files") },
	},
	{
		"factories/{factory}/files/{+path}", "Definition file", "A definition file of a managed factory",
		plainText, state.RoleAdmin, false,
		func(c *caller, ctx context.Context, v []string) (string, error) {
			return c.definitionFile(ctx, v[0], v[1])
		},
	},
	{
		inWebhook, "Delivery", "A delivery: outcome, and the verdict of each automation", jsonText,
		state.RoleViewer, false,
		func(c *caller, ctx context.Context, v []string) (string, error) {
			d, err := c.delivery(ctx, v[0], v[1], v[2])
			return factsText(without(d.facts, "payload", "label"), err)
		},
	},
	{
		inWebhook + "/payload", "Payload", "The payload of an accepted delivery: untrusted text of its sender",
		plainText, state.RoleViewer, true,
		func(c *caller, ctx context.Context, v []string) (string, error) {
			d, err := c.delivery(ctx, v[0], v[1], v[2])
			return quote{"the payload of the delivery", d.payload}.fenced(maxResource), err
		},
	},
	{
		"runs/{run_id}", "Run", "A run: state, prompt, cause, artifacts, usage", jsonText,
		state.RoleViewer, false,
		func(c *caller, ctx context.Context, v []string) (string, error) {
			r, err := c.run(ctx, v[0])
			return factsText(r, err)
		},
	},
	{
		"runs/{run_id}/conversation", "Conversation", "The newest part of a run's conversation: untrusted text",
		plainText, state.RoleViewer, true,
		func(c *caller, ctx context.Context, v []string) (string, error) {
			if _, err := c.run(ctx, v[0]); err != nil {
				return "", err
			}

			all, err := c.messages(ctx, v[0])
			if err != nil {
				return "", err
			}
			page, _, err := newest(all, mostMessages, maxResource)
			return quote{"the newest part of the conversation, as JSON", page}.fenced(maxResource), err
		},
	},
	{
		"schemas/{document}", "Schema", "The JSON Schema of a kind of definition file", jsonText,
		state.RoleViewer, false,
		func(c *caller, ctx context.Context, v []string) (string, error) {
			path, err := c.schemas(ctx)
			if err != nil {
				return "", err
			}
			document, err := c.Call(ctx, "GET", path+"/"+url.PathEscape(v[0]), nil)
			return strings.TrimSpace(string(document)), err
		},
	},
}

// mostMessages bounds the messages of the resource of a conversation.
const mostMessages = 200

func factsText(facts any, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return written(facts, maxResource)
}

// listed returns the first page of a list of a factory.
func (c *caller) listed(ctx context.Context, factory, plural string) (string, error) {
	uid, err := c.factory(ctx, factory)
	if err != nil {
		return "", err
	}
	page, err := c.get(ctx, factoryPath(uid)+"/"+plural, url.Values{"limit": {"500"}})
	return factsText(page, err)
}

// addResources adds what the caller's role may read.
func (c *caller) addResources(s *sdk.Server, skills []Skill) {
	for _, r := range resources {
		if !c.Role.Allows(r.need) {
			continue
		}

		read := c.reader(r)
		if !strings.Contains(r.uri, "{") {
			s.AddResource(&sdk.Resource{
				URI: scheme + r.uri, Name: r.name, Description: r.description, MIMEType: r.mime,
			}, read)
			continue
		}
		s.AddResourceTemplate(&sdk.ResourceTemplate{
			URITemplate: scheme + r.uri, Name: r.name, Description: r.description, MIMEType: r.mime,
		}, read)
	}

	addSkills(s, skills)
}

// reader returns the handler of a resource.
func (c *caller) reader(r resource) sdk.ResourceHandler {
	return func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()

		values, ok := variables(scheme+r.uri, req.Params.URI)
		if !ok {
			return nil, sdk.ResourceNotFoundError(req.Params.URI)
		}

		text, err := r.read(c, ctx, values)
		switch {
		case err != nil && missing(err):
			return nil, sdk.ResourceNotFoundError(req.Params.URI)
		case err != nil:
			return nil, invalid(err)
		}

		contents := &sdk.ResourceContents{URI: req.Params.URI, MIMEType: r.mime, Text: text}
		if r.untrusted {
			contents.Meta = sdk.Meta{"millwright/untrusted": true}
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{contents}}, nil
	}
}

// variables returns the values of a template's variables in a URI. A variable with a plus takes the rest.
func variables(template, uri string) (values []string, ok bool) {
	names, parts := strings.Split(template, "/"), strings.Split(uri, "/")
	for i, name := range names {
		rest := strings.HasPrefix(name, "{+")
		if i >= len(parts) || !rest && i == len(names)-1 && len(parts) > len(names) {
			return nil, false
		}

		part := parts[i]
		if rest {
			part = strings.Join(parts[i:], "/")
		}
		value, err := url.PathUnescape(part)
		switch {
		case err != nil || !strings.HasPrefix(name, "{") && part != name:
			return nil, false
		case strings.HasPrefix(name, "{"):
			values = append(values, value)
		}
	}
	return values, true
}
