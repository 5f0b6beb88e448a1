package runs

import (
	"context"
	"net/http"

	"millwright/api"
	"millwright/state"
)

// TaskPath names a run by the older word.
type TaskPath struct {
	TaskID string `path:"taskId" doc:"The run's ID"`
}

// ListTasksResponse is a page of runs, by the older word.
type ListTasksResponse struct {
	Tasks    []RunItem    `json:"tasks" nullable:"false" doc:"The runs"`
	PageInfo api.PageInfo `json:"page_info" doc:"Whether there are more"`
}

// registerTasks answers the paths by which older clients read runs.
func (s *service) registerTasks() {
	list := api.Explained(
		api.Filtered(
			api.Operation(http.MethodGet, "/agent/tasks", "listTasks", state.RoleViewer, "List runs (older path)"),
		),
		"The same as GET /agent/runs, with tasks in place of runs.",
	)
	list.Deprecated = true
	list.Parameters = append(list.Parameters, metadataParam())
	api.Handle(s.api, list, func(ctx context.Context, in *listInput) (ListTasksResponse, error) {
		page, err := s.list(ctx, in)
		return ListTasksResponse{page.Runs, page.PageInfo}, err
	})
	s.describeTimes(list.Path)

	one := api.Explained(
		api.Operation(http.MethodGet, "/agent/tasks/{taskId}", "getTask", state.RoleViewer, "Show a run (older path)"),
		"The same as GET /agent/runs/{runId}.",
	)
	one.Deprecated = true
	api.Handle(s.api, one, func(ctx context.Context, in *TaskPath) (RunItem, error) {
		return s.get(ctx, &RunPath{in.TaskID})
	})
}
