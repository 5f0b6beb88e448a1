package schema

import (
	"encoding/json"

	"millwright/schema/provider"
)

// Checkout selects the commit that runs of an automation start in.
type Checkout struct {
	Ref string `json:"ref,omitempty"` // a branch or tag of the first repository
}

// Automation is automations/<name>/automation.md, defaults filled in. It
// survives a round trip through JSON.
type Automation struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Line    int    `json:"line,omitempty"` // of the first key in the file, from 1
	Enabled bool   `json:"enabled"`
	// Agent names an agent of the tree; empty means the foreman, or none.
	Agent    string    `json:"agent,omitempty"`
	Triggers []Trigger `json:"triggers"`
	Flow
	Checkout *Checkout `json:"checkout,omitempty"`
	// Outputs is nil when nothing leaves the runs by itself.
	Outputs *Outputs `json:"outputs,omitempty"`
	Execution
	Prompt string `json:"prompt"`
}

// Trigger is what starts an automation.
type Trigger struct {
	Provider string `json:"provider"`
	Event    string `json:"event"`
	// WebhookIDs are the UIDs of filter.webhook_ids of a webhook trigger.
	WebhookIDs []string `json:"webhookIds,omitempty"`
	// Payload is filter.payload of a webhook trigger as JSON, nil when there is
	// none; CompileFilter takes it and finds no problem.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Headers is filter.headers of a webhook trigger as JSON, nil when there is none; CompileHeaders takes it.
	Headers json.RawMessage `json:"headers,omitempty"`
	// Schedule is set on a schedule trigger.
	Schedule *Schedule `json:"schedule,omitempty"`
	// Filter is the whole filter of any other trigger as JSON, kept unchanged.
	Filter json.RawMessage `json:"filter,omitempty"`
	// Checkout is CheckoutHead if runs start in the commit of a delivery, even of a fork.
	Checkout string `json:"checkout,omitempty"`
}

// CheckoutHead is the Checkout of triggers whose runs start in the commits of forks.
const CheckoutHead = "head"

// Fires reports whether this system fires the trigger: webhook/received, schedule/cron_fired with a schedule of
// its own, and the events of providers that deliveries tell of. Other triggers are kept and do nothing.
func (t Trigger) Fires() bool {
	switch t.Provider {
	case providerWebhook:
		return t.Event == eventReceived
	case providerSchedule:
		return t.Event == eventCronFired && t.Schedule != nil
	}

	event, known := provider.Lookup(t.Provider, t.Event)
	return known && event.Never == ""
}

// Schedule is the schedule of a schedule/cron_fired trigger, always in UTC.
type Schedule struct {
	Cron string `json:"cron"`
	Name string `json:"name,omitempty"`
}

// The providers and events that this system fires.
const (
	providerWebhook  = "webhook"
	providerSchedule = "schedule"
	eventReceived    = "received"
	eventCronFired   = "cron_fired"
)
