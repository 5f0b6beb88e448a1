package notice

import (
	"sync"
	"time"
)

// followFor is for how long one call of Follow has the headers of deliveries kept.
const followFor = time.Minute

// followed are the webhooks whose deliveries somebody follows. The zero value is ready.
type followed struct {
	mu    sync.RWMutex
	until map[string]time.Time // by webhook UID
}

func (f *followed) note(webhookUID string) {
	f.mu.Lock()
	defer f.mu.Unlock()

	now := time.Now()
	for uid, until := range f.until {
		if now.After(until) {
			delete(f.until, uid)
		}
	}

	if f.until == nil {
		f.until = map[string]time.Time{}
	}

	f.until[webhookUID] = now.Add(followFor)
}

// Follow marks the deliveries of a webhook as followed: for a minute their headers are kept with their
// payloads. It takes effect here before it returns, and on other replicas a moment later.
func (b *Bus) Follow(webhookUID string) {
	b.followed.note(webhookUID)
	b.Notify(Follow, webhookUID)
}

// Followed reports whether to store the headers of a webhook's deliveries.
func (b *Bus) Followed(webhookUID string) bool {
	b.followed.mu.RLock()
	defer b.followed.mu.RUnlock()
	until, ok := b.followed.until[webhookUID]
	return ok && time.Now().Before(until)
}
