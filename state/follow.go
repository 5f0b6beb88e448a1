package state

import (
	"context"
	"sync"
	"time"
)

// listenFor is for how long one call of Listen has the headers of deliveries kept.
const listenFor = time.Minute

// listened are the webhooks whose deliveries somebody follows. The zero value is ready.
type listened struct {
	mu    sync.RWMutex
	until map[string]time.Time // by webhook UID
}

func (l *listened) note(webhookUID string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	now := time.Now()
	for uid, until := range l.until {
		if now.After(until) {
			delete(l.until, uid)
		}
	}

	if l.until == nil {
		l.until = map[string]time.Time{}
	}

	l.until[webhookUID] = now.Add(listenFor)
}

// Listen says that somebody follows the deliveries of a webhook: for a minute their headers are kept with
// their payloads. It takes effect here before it returns, and on other replicas a moment later.
func (s *Store) Listen(ctx context.Context, webhookUID string) {
	s.listened.note(webhookUID)
	s.notify(ctx, Notice{Topic: TopicListen, ID: webhookUID})
}

// Listened reports whether the headers of a webhook's deliveries are to be kept now.
func (s *Store) Listened(webhookUID string) bool {
	s.listened.mu.RLock()
	defer s.listened.mu.RUnlock()
	until, ok := s.listened.until[webhookUID]
	return ok && time.Now().Before(until)
}
