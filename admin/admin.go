// Package admin is the management API: factories and their history, webhooks and their deliveries, team
// secrets, API keys, and definition files. The shapes are those of contract.md, sections 5 to 8; the
// types here carry their names and make their part of openapi.yaml.
//
// What another part of the program has to do, such as applying a definition, comes in as a function of
// Config, so that this package depends on the state and not on its siblings.
package admin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millwright/api"
	"millwright/reconcile/plan"
	"millwright/state"
)

// Config says what the endpoints work on. Store is required; an endpoint whose function is nil answers
// operation_not_supported.
type Config struct {
	Store *state.Store
	// PublicURL is the origin under which senders and clients reach the server.
	PublicURL string
	// Version is the program's version.
	Version string
	// HarnessTypes are the harnesses the server has, for the rules that look at them; nil means not known.
	HarnessTypes []string
	// TrustedProxies are believed when they say who the sender is.
	TrustedProxies []netip.Prefix
	// Log receives what went wrong inside; nil discards it.
	Log *slog.Logger

	// Sync applies the current head of a factory's source and returns when it is applied and served, or
	// refused. A definition that is refused is an outcome of the attempt and no error; so is a source that
	// cannot be read, whatever the error is then.
	Sync func(ctx context.Context, factoryUID string, allowPrune, allowRename bool) (state.Attempt, error)
	// PlanHead plans the current head of a factory's source.
	PlanHead func(ctx context.Context, factoryUID string) (plan.Plan, error)
	// Allowed says what the settings of a factory's source allow an apply to do; nil means nothing.
	Allowed func(factoryUID string) (prune, rename bool)
	// PushSecret returns the scheme and the name of the team secret that verify push notices of a
	// factory's source; ok is false when its settings name none.
	PushSecret func(factoryUID string) (scheme, secretName string, ok bool)
	// Notice wakes a factory's source after a verified push notice. It returns at once.
	Notice func(factoryUID string)
	// Replay starts the runs of a stored delivery again, as a new delivery, and returns its UID. by is the
	// key that asked.
	Replay func(ctx context.Context, factoryUID, webhookUID, deliveryUID string, by state.Key) (string, error)
}

// service holds what the handlers share.
type service struct {
	Config
	api     *api.API
	reading chan struct{} // slots for requests without a key whose body is being read
	loading chan struct{} // slots for trees without a key that are being validated
	turns   turns
}

// Register adds the endpoints of the management API to a.
func Register(a *api.API, cfg Config) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.PublicURL = strings.TrimSuffix(cfg.PublicURL, "/")
	s := &service{Config: cfg, api: a, reading: make(chan struct{}, 8), loading: make(chan struct{}, 2)}
	s.describe()
	s.registerFactories()
	s.registerSecrets()
	s.registerKeys()
	s.registerWebhooks()
	s.registerDeliveries()
	s.registerAutomations()
	s.registerFilters()
	s.registerPlans()
	s.registerSchemas()
	s.registerPush()
	s.registerManaged()
}

// answer is a response with a JSON body.
type answer[T any] struct{ Body T }

// nothing is a response without a body.
type nothing struct{}

// handle registers an endpoint that answers with a JSON value.
func handle[I, T any](s *service, op huma.Operation, f func(context.Context, *I) (T, error)) {
	register(s, op, func(ctx context.Context, in *I) (*answer[T], error) {
		v, err := f(ctx, in)
		return &answer[T]{v}, err
	})
}

// handleEmpty registers an endpoint that answers 204 No Content.
func handleEmpty[I any](s *service, op huma.Operation, f func(context.Context, *I) error) {
	op.DefaultStatus = http.StatusNoContent
	register(s, op, func(ctx context.Context, in *I) (*nothing, error) { return nil, f(ctx, in) })
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
	for _, listed := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete, item.Patch} {
		if listed != nil && listed.Method == op.Method && listed.RequestBody != nil {
			op.Responses["413"] = &huma.Response{Description: http.StatusText(http.StatusRequestEntityTooLarge), Content: op.Responses["400"].Content}
		}
	}
	if !slices.Contains(op.Errors, http.StatusUnprocessableEntity) {
		delete(op.Responses, "422")
	}
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

// isNotFound reports whether err says that the named thing does not exist.
func isNotFound(err error) bool {
	var e *api.Error
	return errors.Is(err, state.ErrNotFound) || errors.As(err, &e) && e.Code == "resource_not_found"
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
