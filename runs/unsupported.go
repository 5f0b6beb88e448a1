package runs

import (
	"net/http"

	"millwright/state"
)

// registerUnsupported answers what clients of other servers with this API call and this one does not do. The
// endpoints are no part of the document.
func (s *service) registerUnsupported() {
	const (
		agents    = "agents come from definition files: edit agents/<name>/agent.md"
		schedules = "schedules come from definition files: edit the schedule trigger of " +
			"automations/<name>/automation.md"
		interrupt = "a run cannot be interrupted: cancel it with POST /agent/runs/{runId}/cancel, and go on with " +
			"a follow-up"
		tasks     = "this server keeps no tasks: GET /agent/runs?factory_uid=… lists the runs of a factory"
		artifacts = "GET /agent/runs/{runId} lists the artifacts of a run, and GET " +
			"/agent/artifacts/{uid}/download has their content"
		links = "sessions are not shared: session_link of a run is its page"
	)

	for _, e := range []struct {
		method, path string
		role         state.Role
		instead      string
	}{
		{http.MethodPost, "/agent/identities", state.RoleAdmin, agents},
		{http.MethodPut, "/agent/identities/{uid}", state.RoleAdmin, agents},
		{http.MethodDelete, "/agent/identities/{uid}", state.RoleAdmin, agents},
		{http.MethodPost, "/agent/schedules", state.RoleAdmin, schedules},
		{http.MethodPut, "/agent/schedules/{scheduleId}", state.RoleAdmin, schedules},
		{http.MethodDelete, "/agent/schedules/{scheduleId}", state.RoleAdmin, schedules},
		{http.MethodPost, "/agent/schedules/{scheduleId}/pause", state.RoleAdmin, schedules},
		{http.MethodPost, "/agent/schedules/{scheduleId}/resume", state.RoleAdmin, schedules},
		{http.MethodPost, "/agent/runs/{runId}/interrupt", state.RoleRunner, interrupt},
		{http.MethodPost, "/agent/conversations/{id}/interrupt", state.RoleRunner, interrupt},
		{http.MethodGet, "/agent/runs/{runId}/handoff/attachments", state.RoleViewer, artifacts},
		{
			http.MethodPost, "/agent/runs/{runId}/attachments/prepare", state.RoleRunner,
			"give attachments when the run is made",
		},
		{
			http.MethodGet, "/agent/runs/{runId}/harness-usage", state.RoleViewer,
			"what a harness used is not kept in this form",
		},
		{http.MethodGet, "/agent/run-by-external-reference", state.RoleViewer, artifacts},
		{http.MethodGet, "/agent/conversations/{id}/redirect", state.RoleViewer, links},
		{http.MethodGet, "/agent/sessions/{id}/redirect", state.RoleViewer, links},
		{http.MethodGet, "/agent/conversations/{id}/screenshots/{uid}/download", state.RoleViewer, artifacts},
		{http.MethodGet, "/factory/{uid}/tasks", state.RoleViewer, tasks},
		{http.MethodPost, "/factory/{uid}/tasks", state.RoleRunner, tasks},
		{http.MethodGet, "/factory/{uid}/tasks/{task}", state.RoleViewer, tasks},
		{http.MethodPatch, "/factory/{uid}/tasks/{task}", state.RoleRunner, tasks},
		{http.MethodDelete, "/factory/{uid}/tasks/{task}", state.RoleRunner, tasks},
		{http.MethodPost, "/factory/{uid}/tasks/{task}/cancel", state.RoleRunner, tasks},
		{http.MethodGet, "/factory/{uid}/task-by-conversation", state.RoleViewer, tasks},
		{http.MethodGet, "/factory/{uid}/task-by-run", state.RoleViewer, tasks},
		{http.MethodGet, "/networking/egress-ranges", state.RoleViewer, "runs go out from where their workers are"},
	} {
		s.api.Unsupported(e.method, e.path, e.role, e.instead)
	}
}
