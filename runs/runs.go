// Package runs is the runs API: creating, listing, steering and reading agent runs, and their
// conversations. The shapes are those of contract.md, section 4; the types here carry the names of
// service.md and make their part of openapi.yaml.
package runs

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"millwright/api"
	"millwright/runs/dispatch"
	"millwright/state"
)

// Config says what the endpoints work on. Store is required.
type Config struct {
	Store *state.Store
	// Dispatcher tells workers of cancellations at once. Without one they learn at their next heartbeat.
	Dispatcher *dispatch.Dispatcher
	// PublicURL is the origin of the dashboard, for links.
	PublicURL string
	// Harnesses are the names of the harnesses that a run may ask for; nil: not known, any name goes.
	Harnesses []string
	// Log receives what went wrong inside; nil discards it.
	Log *slog.Logger
}

// service holds what the handlers share.
type service struct {
	Config
	api     *api.API
	streams chan struct{} // slots for event streams
}

// maxStreams is how many event streams are open at once.
const maxStreams = 1000

// Register adds the endpoints of the runs API to a.
func Register(a *api.API, cfg Config) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.PublicURL = strings.TrimSuffix(cfg.PublicURL, "/")
	s := &service{Config: cfg, api: a, streams: make(chan struct{}, maxStreams)}
	s.registerCreate()
	s.registerRead()
	s.registerSteer()
	s.registerConversation()
	s.registerEvents()
	s.registerSkills()
}

// answer is a response with a JSON body.
type answer[T any] struct{ Body T }

// handle registers an endpoint that answers with a JSON value.
func handle[I, T any](s *service, op huma.Operation, f func(context.Context, *I) (T, error)) {
	register(s, op, func(ctx context.Context, in *I) (*answer[T], error) {
		v, err := f(ctx, in)
		return &answer[T]{v}, err
	})
}

// register registers an endpoint. Errors of package state become the problems that say them; whatever
// else goes wrong is logged and told to nobody.
func register[I, O any](s *service, op huma.Operation, f func(context.Context, *I) (*O, error)) {
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	huma.Register(s.api.Huma(), op, func(ctx context.Context, in *I) (*O, error) {
		out, err := f(ctx, in)
		if err != nil {
			return nil, s.problem(ctx, op, err)
		}
		return out, nil
	})
	s.document(op)
}

// document corrects which statuses the document lists: what is wrong with a request is 400 here and not
// 422, and what has a body may be too large.
func (s *service) document(op huma.Operation) {
	item := s.api.Huma().OpenAPI().Paths[op.Path]
	for _, listed := range []*huma.Operation{item.Get, item.Post} {
		if listed != nil && listed.Method == op.Method && listed.RequestBody != nil {
			op.Responses["413"] = &huma.Response{Description: http.StatusText(http.StatusRequestEntityTooLarge), Content: op.Responses["400"].Content}
		}
	}
	delete(op.Responses, "422")
	if !strings.Contains(op.Path, "{") {
		delete(op.Responses, "404")
	}
}

func (s *service) problem(ctx context.Context, op huma.Operation, err error) error {
	err = api.FromState(err)
	var known *api.Error
	if errors.As(err, &known) {
		return known
	}
	if ctx.Err() == nil {
		s.Log.Error("API request failed", "request_id", api.RequestID(ctx), "operation", op.OperationID, "error", err)
	}
	return api.Problem("internal_error", "")
}

// also adds statuses that an operation answers beyond those that all do.
func also(op huma.Operation, statuses ...int) huma.Operation {
	op.Errors = append(slices.Clip(op.Errors), statuses...)
	return op
}

// explained adds a sentence to what an operation's document says.
func explained(op huma.Operation, text string) huma.Operation {
	op.Description = strings.TrimSpace(text + " " + op.Description)
	return op
}

// RunPath names a run in a path.
type RunPath struct {
	RunID string `path:"runId" doc:"The run's ID"`
}

// run returns the run that the path names. What is no run ID names no run.
func (s *service) run(ctx context.Context, p RunPath) (state.Run, error) {
	id, ok := runID(p.RunID)
	if !ok {
		return state.Run{}, noRun(p.RunID)
	}
	return s.Store.Run(ctx, id)
}

// runID returns the canonical form of a run ID.
func runID(text string) (string, bool) {
	if len(text) != 36 {
		return "", false
	}
	id, err := uuid.Parse(text)
	return id.String(), err == nil
}

func noRun(id string) error {
	if len(id) > 64 {
		id = id[:64] + "…"
	}
	return api.Problem("resource_not_found", "run %q", id)
}

func (s *service) link(runID string) string { return s.PublicURL + "/runs/" + runID }
