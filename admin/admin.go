// Package admin is the management API: factories and their history, webhooks and their deliveries, team
// secrets, API keys, and definition files. The shapes are those of docs/contract.md, sections 5 to 8; the
// types here carry their names and make their part of openapi.yaml.
//
// What another part of the program has to do, such as applying a definition, comes in as a function of
// Config, so that this package depends on the state and not on its siblings.
package admin

import (
	"context"
	"log/slog"
	"strings"

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
	// SourceSecrets returns the secrets that the sources of factories use, with what each is used for, and
	// those of them that no definition may name; nil means not known.
	SourceSecrets func() (used, reserved map[string]string)
	// Log receives what went wrong inside; nil discards it.
	Log *slog.Logger

	// Sync applies the current head of a factory's source and returns when it is applied and served, or
	// refused. A definition that is refused is an outcome of the attempt and no error; so is a source that
	// cannot be read, whatever the error is then. A source that has moved on from allow.Revision is
	// state.ErrConflict.
	Sync func(ctx context.Context, factoryUID string, allow SyncRequest) (state.Attempt, error)
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
	api   *api.API
	turns turns
}

// Register adds the endpoints of the management API to a.
func Register(a *api.API, cfg Config) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}

	cfg.PublicURL = strings.TrimSuffix(cfg.PublicURL, "/")
	s := &service{Config: cfg, api: a}
	s.describe()
	s.registerFactories()
	s.registerSecrets()
	s.registerKeys()
	s.registerWebhooks()
	s.registerDeliveries()
	s.registerListen()
	s.registerAutomations()
	s.registerFilters()
	s.registerPlans()
	s.registerSchemas()
	s.registerPush()
	s.registerManaged()
	s.registerWorkers()
}
