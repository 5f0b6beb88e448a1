package mcp

import (
	"context"
	"net/http"

	"millwright/state"
)

type listFactoriesInput struct {
	Search string `json:"search,omitempty" jsonschema:"part of the name or alias, in any case"`
	Paging
}

func listFactories() (tool, error) {
	return define(about{
		"list_factories", "List factories",
		"Lists the factories: their UID, name, source, whether the last definition was applied, their " +
			"agents, and how many webhooks and automations they have.",
		state.RolePlanner, reads,
	}, func(c *caller, ctx context.Context, in listFactoriesInput) (answer, error) {
		q := in.query()
		set(q, "search", in.Search)
		if c.Factory != "" {
			uid, err := c.factory(ctx, "")
			if err != nil {
				return answer{}, err
			}

			one, err := c.get(ctx, factoryPath(uid), nil)
			return answer{facts: map[string]any{"factories": []any{factoryFacts(one)}}}, err
		}

		page, err := c.get(ctx, "/factory", q)
		return answer{facts: pageOf(page, "factories", factoryFacts)}, err
	}, atMost(mostItems))
}

func factoryFacts(f map[string]any) map[string]any {
	out := pick(f, "uid", "name", "alias", "description", "agents", "counts", "repositories")
	source, _ := f["source"].(map[string]any)
	out["source"] = pick(source, "kind", "url", "branch")
	sync, _ := f["sync"].(map[string]any)
	out["sync"] = pick(sync, "state", "applied_revision", "message")
	for _, flag := range []string{"suspended", "detached"} {
		if f[flag] == true {
			out[flag] = true
		}
	}
	return out
}

// pageOf returns a page of a list of the API, with the facts of each item.
func pageOf(page map[string]any, plural string, facts func(map[string]any) map[string]any) map[string]any {
	items := []any{}
	for _, item := range list(page, plural) {
		items = append(items, facts(item))
	}

	out := map[string]any{plural: items}
	info, _ := page["page_info"].(map[string]any)
	if next := text(info, "next_cursor"); next != "" {
		out["next_cursor"] = next
	}
	return out
}

type sendTaskInput struct {
	Factory        string `json:"factory,omitempty" jsonschema:"name or UID of the factory; may be absent if there is one"`
	Prompt         string `json:"prompt" jsonschema:"the task, with all that the foreman must know: it does not see this conversation"`
	Title          string `json:"title,omitempty" jsonschema:"title for people, at most 120 characters"`
	TicketRef      string `json:"ticket_ref,omitempty" jsonschema:"the ticket of the task, such as SHOP-12"`
	TicketURL      string `json:"ticket_url,omitempty" jsonschema:"http or https address of the ticket"`
	IdempotencyKey string `json:"idempotency_key,omitempty" jsonschema:"a value of your own: a repeat with the same value and task within 24 hours sends nothing and gets the first answer"`
}

func sendTask() (tool, error) {
	return define(about{
		"send_task", "Send a task to a factory",
		"Sends work to a factory: starts a run of its foreman agent and answers at once with the " +
			"task's ID. Follow it with get_task; steer it with message_foreman.",
		state.RoleRunner, adds,
	}, func(c *caller, ctx context.Context, in sendTaskInput) (answer, error) {
		uid, err := c.factory(ctx, in.Factory)
		if err != nil {
			return answer{}, err
		}

		body := map[string]any{
			"prompt": in.Prompt, "title": in.Title, "ticket_ref": in.TicketRef, "ticket_url": in.TicketURL,
		}
		sent, err := c.ask(ctx, http.MethodPost, factoryPath(uid)+"/runs", body, once(in.IdempotencyKey)...)
		if err != nil {
			return answer{}, err
		}

		out := pick(sent, "factory_uid", "foreman_agent", "state", "ticket_ref", "run_url")
		out["task_id"] = sent["run_id"]
		return answer{facts: out}, nil
	})
}

// once returns the header by which a repeat has no effect.
func once(key string) []string {
	if key == "" {
		return nil
	}
	return []string{"Idempotency-Key", key}
}

type listTasksInput struct {
	Factory string   `json:"factory,omitempty" jsonschema:"name or UID of the factory; absent: all"`
	Status  []string `json:"status,omitempty" jsonschema:"only tasks of one of these"`
	Query   string   `json:"query,omitempty" jsonschema:"text in the title or prompt"`
	Paging
}

func listTasks() (tool, error) {
	return define(about{
		"list_tasks", "List tasks",
		"Lists the tasks that were sent to factories by people and programs, the last changed first. " +
			"The runs that automations start are not among them: list_runs has all." + quoted,
		state.RoleViewer, reads,
	}, func(c *caller, ctx context.Context, in listTasksInput) (answer, error) {
		q := in.query()
		set(q, "source", "API", "CLI", "WEB_APP")
		set(q, "factory_only", "true")
		set(q, "task_status", in.Status...)
		set(q, "q", in.Query)
		if err := c.limits(ctx, q, in.Factory); err != nil {
			return answer{}, err
		}

		page, err := c.get(ctx, "/agent/runs", q)
		out := pageOf(page, "runs", taskFacts)
		out["tasks"] = out["runs"]
		return answer{facts: without(out, "runs")}, err
	}, atMost(mostItems), oneOf("status", "running", "failed", "blocked", "cancelled", "complete"))
}

// runFacts are what lists have of a run.
func runFacts(r map[string]any) map[string]any {
	out := pick(r, "run_id", "title", "state", "waits_for", "source", "factory_uid", "created_at", "updated_at",
		"finished_at", "run_time", "metadata", "session_link")
	if status, _ := r["status_message"].(map[string]any); status != nil {
		out["status_message"] = pick(status, "message", "error_code")
	}
	return out
}

// taskFacts are what lists have of a task, which is a run of a factory.
func taskFacts(r map[string]any) map[string]any {
	out := runFacts(r)
	out["task_id"] = out["run_id"]
	return without(out, "run_id")
}

type taskInput struct {
	TaskID string `json:"task_id" jsonschema:"the task's ID: the ID of its run"`
}

func getTask() (tool, error) {
	return define(about{
		"get_task", "Show a task",
		"Shows a task: its state, what the foreman asks, what it left (artifacts such as pull " +
			"requests), and its last words once it ended or waits. States: QUEUED, CLAIMED, " +
			"INPROGRESS; BLOCKED waits for an answer by message_foreman; SUCCEEDED, FAILED, ERROR, " +
			"CANCELLED ended." + quoted,
		state.RoleViewer, reads,
	}, func(c *caller, ctx context.Context, in taskInput) (answer, error) {
		r, err := c.run(ctx, in.TaskID)
		if err != nil {
			return answer{}, err
		}

		out := taskFacts(r)
		for name, v := range pick(r, "prompt", "questions", "artifacts", "conversation_id", "request_usage") {
			out[name] = v
		}
		if r["finished_at"] == nil && r["state"] != "BLOCKED" {
			return answer{facts: out}, nil
		}

		messages, err := c.messages(ctx, in.TaskID)
		if err != nil {
			return answer{}, err
		}
		return answer{facts: out, quotes: lastWords(messages)}, nil
	})
}

type messageInput struct {
	TaskID         string `json:"task_id" jsonschema:"the task's ID"`
	Message        string `json:"message" jsonschema:"the message: an answer, a correction, or further work"`
	IdempotencyKey string `json:"idempotency_key,omitempty" jsonschema:"a value of your own: a repeat with the same value and message within 24 hours sends nothing"`
}

func messageForeman() (tool, error) {
	return define(about{
		"message_foreman", "Message the foreman",
		"Sends a message to the agent of a task. outcome tells what happens: queued_prompt (it joins " +
			"the prompt of the queued task), queue_pending (the agent gets it when its present " +
			"execution ends), live_session (the agent gets it after its present turn), " +
			"handoff_execution (the task had ended and is queued again).",
		state.RoleRunner, adds,
	}, func(c *caller, ctx context.Context, in messageInput) (answer, error) {
		if c.Factory != "" {
			if _, err := c.run(ctx, in.TaskID); err != nil {
				return answer{}, err
			}
		}

		path := runPath(in.TaskID) + "/followups"
		body := map[string]any{"message": in.Message}
		sent, err := c.ask(ctx, http.MethodPost, path, body, once(in.IdempotencyKey)...)
		return answer{facts: pick(sent, "followup_id", "outcome")}, err
	})
}
