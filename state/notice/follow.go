package notice

import (
	"time"
)

// followFor is for how long one call of Follow has the headers of deliveries kept.
const followFor = time.Minute

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

// Followed reports whether to store the headers of a webhook's deliveries.
func (b *Bus) Followed(webhookUID string) bool {
	b.followed.mu.RLock()
	defer b.followed.mu.RUnlock()
	until, ok := b.followed.until[webhookUID]
	return ok && time.Now().Before(until)
}
