package state

import "time"

// Condition is one statement on a factory, as in Kubernetes: whether it holds, why, and since when.
type Condition struct {
	Type    string    `json:"type"`   // Ready, Reconciling or Stalled
	Status  string    `json:"status"` // True, False or Unknown
	Reason  string    `json:"reason"` // one word
	Message string    `json:"message"`
	Since   time.Time `json:"last_transition_time"`
}

// Conditions says where the factory stands. Ready: the state is what the source said last. Reconciling:
// it is not yet, and the server keeps trying. Stalled: it is not, and will not be before someone acts.
func (f Factory) Conditions() []Condition {
	var reason, message string
	var ready, reconciling, stalled bool
	switch f.SyncState {
	case SyncApplied:
		reason, message, ready = "Applied", "applied revision "+f.Applied.ID, true
	case SyncRefused:
		reason, message, stalled = "Refused", f.Message, true
	case SyncFailed:
		reason, message, reconciling = "Retrying", f.Message, true
	default:
		reason, message, reconciling = "Pending", "no attempt yet", true
	}

	if f.Suspended && reconciling {
		reconciling, stalled, reason = false, true, "Suspended"
	}

	status := map[bool]string{true: "True", false: "False"}
	return []Condition{
		{Type: "Ready", Status: status[ready], Reason: reason, Message: message, Since: f.SyncSince},
		{Type: "Reconciling", Status: status[reconciling], Reason: reason, Message: message, Since: f.SyncSince},
		{Type: "Stalled", Status: status[stalled], Reason: reason, Message: message, Since: f.SyncSince},
	}
}
