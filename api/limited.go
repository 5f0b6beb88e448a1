package api

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millwright/state"
)

// filters is the key of an operation's Metadata that marks it as one for limited keys.
const filters = "filters"

// Filtered marks an operation that concerns several factories, and whose handler leaves out those that the
// caller's key does not reach. Without the mark a key that is limited to factories may use only operations below
// a factory or a run.
func Filtered(op huma.Operation) huma.Operation {
	op.Metadata[filters] = true
	return op
}

// reach returns nil if a key may use what a request names. To a limited key, other factories and their runs do
// not exist.
func (a *API) reach(ctx huma.Context, key state.Key) *Error {
	if !key.Limited() {
		return nil
	}

	op := ctx.Operation()
	switch path := strings.TrimPrefix(op.Path, Base); {
	case path == "/factory/{uid}" || strings.HasPrefix(path, "/factory/{uid}/"):
		if uid := ctx.Param("uid"); !key.Reaches(uid) {
			return Problem("resource_not_found", "factory %q does not exist", uid)
		}
		return nil
	case strings.HasPrefix(path, "/agent/runs/{runId}"):
		return a.reachRun(ctx, key, ctx.Param("runId"))
	case strings.HasPrefix(path, "/agent/tasks/{taskId}"):
		return a.reachRun(ctx, key, ctx.Param("taskId"))
	case op.Metadata[filters] == true:
		return nil
	}

	return concernsAll(key)
}

// reachRun returns nil if a key may use a run. It leaves it to the endpoint to report a run that does not exist.
func (a *API) reachRun(ctx huma.Context, key state.Key, id string) *Error {
	r, err := a.cfg.Store.Run(ctx.Context(), id)
	switch {
	case IsNotFound(err):
		return nil
	case err != nil:
		a.cfg.Log.Error("run look-up", "request_id", RequestID(ctx.Context()), "error", err)
		return Problem("resource_unavailable", "the state cannot be reached just now")
	case !key.Reaches(r.FactoryUID):
		return Problem("resource_not_found", "run %q does not exist", id)
	}

	return nil
}

func concernsAll(key state.Key) *Error {
	return Problem("not_authorized", "the key %q is limited to factories, and this concerns all", key.Name)
}
