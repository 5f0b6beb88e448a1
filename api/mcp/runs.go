package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"millwright/state"
)

type listRunsInput struct {
	Factory       string   `json:"factory,omitempty" jsonschema:"name or UID of the factory; absent: all"`
	State         []string `json:"state,omitempty" jsonschema:"only runs in one of these states"`
	Source        []string `json:"source,omitempty" jsonschema:"only runs of one of these sources, such as API, CLI, WEB_APP, CUSTOM_WEBHOOK, SCHEDULED_AGENT, GITHUB_WEBHOOK"`
	Query         string   `json:"query,omitempty" jsonschema:"text in the title or prompt"`
	AutomationID  string   `json:"automation_id,omitempty" jsonschema:"only runs of this automation (auto_…)"`
	WebhookID     string   `json:"webhook_id,omitempty" jsonschema:"only runs that a delivery to this webhook started (wh_…)"`
	DeliveryID    string   `json:"delivery_id,omitempty" jsonschema:"only runs that this delivery started (dlv_…)"`
	CreatedAfter  string   `json:"created_after,omitempty" jsonschema:"only runs created after this time (RFC 3339)"`
	CreatedBefore string   `json:"created_before,omitempty" jsonschema:"only runs created before this time (RFC 3339)"`
	Paging
}

func listRuns() (tool, error) {
	return define(about{
		"list_runs", "List runs",
		"Lists the runs of agents, the last changed first, also those that automations start. A page " +
			"may have fewer runs than limit; the list goes on while there is a next_cursor." + quoted,
		state.RoleViewer, reads,
	}, func(c *caller, ctx context.Context, in listRunsInput) (answer, error) {
		q := in.query()
		set(q, "state", in.State...)
		set(q, "source", in.Source...)
		for name, value := range map[string]string{
			"q": in.Query, "automation_id": in.AutomationID, "webhook_id": in.WebhookID,
			"delivery_id": in.DeliveryID, "created_after": in.CreatedAfter, "created_before": in.CreatedBefore,
		} {
			set(q, name, value)
		}
		if err := c.limits(ctx, q, in.Factory); err != nil {
			return answer{}, err
		}

		page, err := c.get(ctx, "/agent/runs", q)
		return answer{facts: pageOf(page, "runs", runFacts)}, err
	}, atMost(mostItems), oneOf(
		"state", "QUEUED", "CLAIMED", "INPROGRESS", "SUCCEEDED", "FAILED", "ERROR", "BLOCKED", "CANCELLED",
	))
}

type runInput struct {
	RunID string `json:"run_id" jsonschema:"the run's ID"`
}

func getRun() (tool, error) {
	return define(about{
		"get_run", "Show a run",
		"Shows a run in full: prompt, resolved configuration, cause, attachments, artifacts, usage." + quoted,
		state.RoleViewer, reads,
	}, func(c *caller, ctx context.Context, in runInput) (answer, error) {
		r, err := c.run(ctx, in.RunID)
		return answer{facts: without(r, "task_id", "session_id", "is_run_type_cancellable")}, err
	})
}

func cancelRun() (tool, error) {
	return define(about{
		"cancel_run", "Cancel a run",
		"Cancels a run or task. A queued one ends at once; one in progress is stopped, and killed " +
			"after 5 seconds. An ended one cannot be cancelled.",
		state.RoleRunner, destroys,
	}, func(c *caller, ctx context.Context, in runInput) (answer, error) {
		if c.Factory != "" {
			if _, err := c.run(ctx, in.RunID); err != nil {
				return answer{}, err
			}
		}
		body, err := c.Call(ctx, http.MethodPost, runPath(in.RunID)+"/cancel", nil)
		if err != nil {
			return answer{}, err
		}

		var id string
		if err := json.Unmarshal(body, &id); err != nil {
			return answer{}, errors.New("the server answered with something that is not the API's")
		}
		r, err := c.get(ctx, runPath(id), nil)
		return answer{facts: pick(r, "run_id", "state", "cancel_requested_at")}, err
	})
}
