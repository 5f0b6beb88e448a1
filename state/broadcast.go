package state

import (
	"errors"
	"fmt"
)

// TopicBudgets carries what senders used of their budgets between replicas; ID is of package ingress.
const TopicBudgets Topic = "budgets"

// maxBroadcast is how long the ID of a notice may be that is broadcast, in bytes: PostgreSQL's limit of a
// notification, less our own words.
const maxBroadcast = 7500

// Broadcast hands a notice to the other replicas, and not to this process. It returns before they have it.
// Two equal notices may arrive as one.
func (s *Store) Broadcast(n Notice) error {
	if s.dialect != postgres {
		return nil
	}
	if len(n.ID) > maxBroadcast {
		return fmt.Errorf("a notice of %d bytes is too long", len(n.ID))
	}

	select {
	case s.outgoing <- n:
		return nil
	default:
		return errors.New("too many notices wait")
	}
}
