package bounds

import (
	"net/netip"
	"strings"
	"time"
)

// Rate bounds the events of a sender in any minute. The senders of an IPv6 /48 network together may have
// networkTimes as many as one, so that they cannot fill the table of senders.
type Rate struct {
	*Budget[string]
	networks *Budget[string]
}

const networkTimes = 8

func newRate(a about, limit, room int) *Rate {
	return &Rate{newBudget[string](a, limit, room), newBudget[string](about{}, networkTimes*limit, room)}
}

// Spent returns 0 if the sender may continue, else how long it must wait.
func (r *Rate) Spent(sender string, now time.Time) time.Duration {
	if network := networkOf(sender); network != "" {
		if wait := r.networks.Spent(network, now); wait > 0 {
			return wait
		}
	}
	return r.Budget.Spent(sender, now)
}

// Charge counts an event and returns 0, or counts nothing and returns what Spent would.
func (r *Rate) Charge(sender string, now time.Time) time.Duration {
	if network := networkOf(sender); network != "" {
		if wait := r.networks.Charge(network, now); wait > 0 {
			return wait
		}
	}
	return r.Budget.Charge(sender, now)
}

// networkOf returns the /48 network of a sender that is an IPv6 /64 network, and otherwise "".
func networkOf(sender string) string {
	if !strings.HasSuffix(sender, "/64") {
		return ""
	}

	prefix, err := netip.ParsePrefix(sender)
	if err != nil {
		return ""
	}

	wider, err := prefix.Addr().Prefix(48)
	if err != nil {
		return ""
	}

	return wider.String()
}
