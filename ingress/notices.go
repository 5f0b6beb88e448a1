package ingress

import "time"

// Notice is a condition that the operator should know of and can change.
type Notice struct {
	Code    string
	Message string
	Since   time.Time
}

func (in *Ingress) noteForwarded(peer string) {
	in.metrics.forwarded.Inc()
	f := &in.forwarded
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.since.IsZero() {
		f.since, f.peer = time.Now(), peer
		in.log.Warn(forwardedMessage, "peer", peer)
	}
}

const forwardedMessage = "an untrusted peer sends X-Forwarded-For, so its requests count as one sender: " +
	"if it is your proxy, add it to trustedProxies"

// Notices returns the current notices for the operator.
func (in *Ingress) Notices() []Notice {
	f := &in.forwarded
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.since.IsZero() {
		return nil
	}
	return []Notice{{Code: "trusted-proxies", Message: forwardedMessage + " (peer " + f.peer + ")", Since: f.since}}
}
