package bounds

import "time"

// Rate bounds what a sender does in any minute. The senders of one IPv6 /48 network together may do
// networkTimes as much as one, so that they cannot fill the room in which senders are told apart.
type Rate struct {
	*Budget[string]
	networks *Budget[string]
}

const networkTimes = 8

func newRate(a about, limit, room int) *Rate {
	return &Rate{newBudget[string](a, limit, room), newBudget[string](about{}, networkTimes*limit, room)}
}

// Spent returns 0 while the sender may go on, else how long it has to wait.
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
