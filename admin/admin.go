// Package admin is the management API: factories and their history, webhooks and their deliveries, team
// secrets, API keys, and definition files. docs/contract.md, sections 5 to 8, describes it, and
// openapi.yaml is generated from the types here.
//
// Config has functions for work of other packages, such as applying a definition. So this package depends
// on the state and not on its siblings.
package admin

import (
	"context"
	"log/slog"

	"millwright/api"
	"millwright/reconcile/plan"
	"millwright/state"
)

// SyncRequest allows destructive changes of an apply, for one revision.
type SyncRequest struct {
	AllowPrune  bool   `json:"allow_prune,omitempty" doc:"Allow an apply that deletes all webhooks, or more than half of them"`
	AllowRename bool   `json:"allow_rename,omitempty" doc:"Allow a renamed webhook, which gets a new URL"`
	Revision    string `json:"revision,omitempty" maxLength:"200" doc:"The revision to apply, or its first 7 characters or more; 409 if the source has another one. If absent, the permissions count for the revision that was refused last, and for no other"`
}

// Config configures the endpoints. Store is required. An endpoint whose function is nil answers
// operation_not_supported.
type Config struct {
	Store *state.Store
	// PublicURL is the origin under which senders and clients reach the server.
	PublicURL string
	// Version is the program's version.
	Version string
	// HarnessTypes are the server's harnesses, for the rules that need them; nil means unknown.
	HarnessTypes []string
	// ForgeKinds returns the kinds of the server's forges; nil means unknown.
	ForgeKinds func() []string
	// SourceSecrets returns the secrets that sources use, with the use of each, and those among them that
	// definitions may not name; nil means unknown.
	SourceSecrets func() (used, reserved map[string]string)
	// MaxDeliveries returns the most that deliveriesPerMinute of a webhook may be; nil means unknown.
	MaxDeliveries func() int
	// Log receives internal errors; nil discards them.
	Log *slog.Logger

	// Sync applies the current head of a factory's source and returns when it is applied and served, or
	// refused. A definition that is refused is an outcome of the attempt and no error; so is an unreadable
	// source. A source that has moved on from allow.Revision is state.ErrConflict.
	Sync func(ctx context.Context, factoryUID string, allow SyncRequest) (state.Attempt, error)
	// PlanHead plans the current head of a factory's source.
	PlanHead func(ctx context.Context, factoryUID string, allow plan.Allowed) (plan.Plan, error)
	// Allowed returns the destructive changes that the settings of a factory's source allow; nil means
	// none.
	Allowed func(factoryUID string) (prune, rename bool)
	// PushSecret returns the scheme and team secret that verify push notices of a factory's source. ok is
	// false if its settings name none.
	PushSecret func(factoryUID string) (scheme, secretName string, ok bool)
	// Notice makes a factory read its source, after a verified push notice. It does not wait.
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
