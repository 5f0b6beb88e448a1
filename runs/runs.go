// Package runs is the runs API: creating, listing, steering and reading agent runs, and their
// conversations. docs/contract.md, section 4, describes it, and openapi.yaml is generated from the types
// here.
package runs

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"millwright/api"
	"millwright/forge"
	"millwright/runs/dispatch"
	"millwright/state"
	"millwright/trace"
)

// Config configures the endpoints. Store is required.
type Config struct {
	Store *state.Store
	// Dispatcher notifies workers of cancellations at once. Without it they learn of them at their next
	// heartbeat.
	Dispatcher *dispatch.Dispatcher
	// PublicURL is the origin of the dashboard, for links.
	PublicURL string
	// Harnesses are the names of the harnesses that a run may select; nil accepts any name.
	Harnesses []string
	// Models returns the language models that the settings of harnesses list, and the one that a run gets by
	// default, or ""; nil: none.
	Models func() (byDefault string, all []string)
	// Forges are the hosts of the repositories that runs may name; nil: there are none.
	Forges *forge.Set
	// Environments are those of the settings; nil accepts any name.
	Environments state.Environments
	// Looked is told of what a run left when somebody looks at it. It does not block. nil: nobody is told.
	Looked func(left []state.Artifact)
	// Log receives internal errors; nil discards them.
	Log *slog.Logger
	// Tracer begins the traces of runs; nil: none.
	Tracer *trace.Tracer
}

// service holds what the handlers share.
type service struct {
	Config
	api   *api.API
	began time.Time
}

// RunPath names a run in a path.
type RunPath struct {
	RunID string `path:"runId" doc:"The run's ID"`
}

// run returns the run that the path names. Text that is not a run ID names no run.
func (s *service) run(ctx context.Context, p RunPath) (state.Run, error) {
	id, ok := runID(p.RunID)
	if !ok {
		return state.Run{}, noRun(p.RunID)
	}
	return s.Store.Run(ctx, id)
}

// runID reports whether text has the form of a run ID: lower case, with dashes.
func runID(text string) (string, bool) {
	if len(text) != 36 {
		return "", false
	}
	id, err := uuid.Parse(text)
	return text, err == nil && id.String() == text
}

func noRun(id string) error {
	if len(id) > 64 {
		id = id[:64] + "…"
	}
	return api.Problem("resource_not_found", "run %q does not exist", id)
}

func (s *service) link(runID string) string { return s.PublicURL + "/runs/" + runID }
