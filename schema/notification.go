package schema

import "slices"

// MaxNotifications is how many notifications a factory may have: each may get a row for every event.
const MaxNotifications = 20

// The events that a notification may ask for.
const (
	EventRunSucceeded   = "run.succeeded"
	EventRunFailed      = "run.failed"
	EventRunError       = "run.error"
	EventRunBlocked     = "run.blocked"
	EventRunCancelled   = "run.cancelled"
	EventOutputFailed   = "output.failed"
	EventFactoryRefused = "factory.refused"
	EventFactoryApplied = "factory.applied"
	EventBudgetExceeded = "budget.exceeded"
)

// The formats of a notification.
const (
	FormatStandard = "standard" // Standard Webhooks
	FormatSlack    = "slack"    // a message for an incoming webhook of Slack
)

// Notification is notifications/<name>.yaml: where events of the factory are sent to. It survives a round trip
// through JSON.
type Notification struct {
	Name          string             `json:"name,omitempty"`
	Path          string             `json:"path,omitempty"`
	Line          int                `json:"line,omitempty"` // of the first key in the file, from 1
	Description   string             `json:"description,omitempty"`
	URL           string             `json:"url,omitempty"`
	URLSecretName string             `json:"urlSecretName,omitempty"` // in place of URL: the team secret that holds it
	SecretName    string             `json:"secretName,omitempty"`    // signs; empty only with format slack
	Events        []string           `json:"events"`
	Filter        NotificationFilter `json:"filter,omitzero"`
	Format        string             `json:"format"`
	Enabled       bool               `json:"enabled"`
}

// NotificationFilter narrows the events of runs. An empty list admits all.
type NotificationFilter struct {
	Automation []string `json:"automation,omitempty"`
	State      []string `json:"state,omitempty"`
}

// Wants reports whether the notification asks for an event. automation is the name of the automation of the run
// that the event concerns, state the state in which the run ended; both are empty for an event of no run.
func (n Notification) Wants(event, automation, state string, ofRun bool) bool {
	switch f := n.Filter; {
	case !n.Enabled || !slices.Contains(n.Events, event):
		return false
	case !ofRun:
		return true
	case len(f.Automation) > 0 && !slices.Contains(f.Automation, automation):
		return false
	case len(f.State) > 0 && state != "" && !slices.Contains(f.State, state):
		return false
	}
	return true
}
