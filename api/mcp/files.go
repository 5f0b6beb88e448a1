package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"millwright/state"
)

// File is a definition file.
type File struct {
	Path    string `json:"path" jsonschema:"path in the definition tree, such as automations/triage/automation.md"`
	Content string `json:"content" jsonschema:"the whole text of the file"`
}

type validateInput struct {
	Files []File `json:"files" jsonschema:"the whole definition tree, not only the changed files: names are checked across files"`
}

func validateFiles() (tool, error) {
	return define(about{
		"validate_factory_files", "Validate definition files",
		"Checks definition files without looking at the server's state: keys, values, filters, " +
			"references. Each diagnostic has a place, a rule and a hint. plan_factory_files also " +
			"checks what needs the state.",
		anyone, reads,
	}, func(c *caller, ctx context.Context, in validateInput) (answer, error) {
		found, err := c.ask(ctx, http.MethodPost, "/factory-files/validate", in)
		return answer{facts: without(found, "deferred_resolutions", "validation_scope")}, err
	})
}

type schemaInput struct {
	Document string `json:"document,omitempty" jsonschema:"the kind of file, such as webhook or automation; absent: the names of all kinds"`
}

func getSchema() (tool, error) {
	return define(about{
		"get_factory_file_schema", "Get the schema of a definition file",
		"Returns the JSON Schema of a kind of definition file; of a Markdown file, of its front " +
			"matter. Without document it lists the kinds.",
		anyone, reads,
	}, func(c *caller, ctx context.Context, in schemaInput) (answer, error) {
		path, err := c.schemas(ctx)
		if err != nil {
			return answer{}, err
		}
		if in.Document == "" {
			all, err := c.get(ctx, path, nil)
			documents, _ := all["documents"].(map[string]any)
			names := map[string]any{}
			for name, document := range documents {
				about, _ := document.(map[string]any)
				names[name] = about["description"]
			}
			facts := map[string]any{"schema_version": all["schema_version"], "documents": names}
			return answer{facts: facts}, err
		}

		document, err := c.Call(ctx, http.MethodGet, path+"/"+url.PathEscape(in.Document), nil)
		return answer{exact: strings.TrimSpace(string(document))}, err
	})
}

// schemas returns the path of the current schemas.
func (c *caller) schemas(ctx context.Context) (string, error) {
	versions, err := c.get(ctx, "/factory-files/schemas", nil)
	return "/factory-files/schemas/" + url.PathEscape(text(versions, "current_version")), err
}

type planInput struct {
	Factory     string `json:"factory,omitempty" jsonschema:"name or UID of the factory; may be absent if there is one"`
	Files       []File `json:"files,omitempty" jsonschema:"the whole definition tree; absent: the head of the factory's source, which needs a key of role runner"`
	AllowPrune  bool   `json:"allow_prune,omitempty" jsonschema:"plan as if deleting all webhooks, or more than half, were allowed"`
	AllowRename bool   `json:"allow_rename,omitempty" jsonschema:"plan as if renaming a webhook, which gets a new URL, were allowed"`
}

func planFiles() (tool, error) {
	return define(about{
		"plan_factory_files", "Plan definition files",
		"Compares a definition tree with the applied one: the changes of an apply, or the problems " +
			"that would refuse it, and for changed triggers how many stored deliveries would have " +
			"fired. It changes nothing. webhook_uids has the UID of each webhook of the tree, for " +
			"webhook_ids of automations.",
		state.RolePlanner, reads,
	}, func(c *caller, ctx context.Context, in planInput) (answer, error) {
		uid, err := c.factory(ctx, in.Factory)
		if err != nil {
			return answer{}, err
		}

		body := map[string]any{"allow_prune": in.AllowPrune, "allow_rename": in.AllowRename}
		if in.Files != nil {
			body["files"] = in.Files
		}
		plan, err := c.ask(ctx, http.MethodPost, factoryPath(uid)+"/plan", body)
		if err != nil {
			return answer{}, err
		}

		changes, unchanged := []any{}, 0
		for _, change := range list(plan, "changes") {
			if change["action"] == "unchanged" {
				unchanged++
				continue
			}
			changes = append(changes, change)
		}
		plan["changes"], plan["unchanged"] = changes, unchanged
		return answer{facts: plan}, nil
	})
}

// definitionFile returns a definition file of a managed factory.
func (c *caller) definitionFile(ctx context.Context, factory, path string) (string, error) {
	uid, err := c.factory(ctx, factory)
	if err != nil {
		return "", err
	}

	file, err := c.get(ctx, factoryPath(uid)+"/files/"+url.PathEscape(path), nil)
	if err != nil {
		return "", err
	}
	content, ok := file["content"].(string)
	if !ok {
		return "", errors.New("the server answered with something that is not the API's")
	}
	return content, nil
}
