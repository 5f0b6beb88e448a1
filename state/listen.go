package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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

// AcceptedAfter returns the accepted deliveries of a webhook with UIDs greater than after, in their order,
// which is that of the time at which they were judged; they are stored in a slightly different one.
func (s *Store) AcceptedAfter(
	ctx context.Context,
	factoryUID, webhookUID, after string,
	limit int,
) ([]Delivery, error) {
	webhook, err := s.webhookRow(ctx, factoryUID, webhookUID)
	if err != nil {
		return nil, err
	}

	rows, err := s.read.QueryContext(
		ctx,
		`SELECT `+deliveryColumns+` FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
		WHERE d.webhook_id = $1 AND d.uid > $2 AND d.outcome = 'accepted' ORDER BY d.uid LIMIT $3`,
		webhook,
		after,
		limit,
	)
	if err != nil {
		return nil, s.classify(err)
	}

	all, err := scanAll(rows, scanDelivery)
	return all, s.classify(err)
}

// Request returns the body of an accepted delivery, byte for byte, and the headers that were kept of it, as
// lines "Name: value" that end in CR LF; nil when none were. ErrNotFound as of Payload.
func (s *Store) Request(ctx context.Context, factoryUID, deliveryUID string) (headers, body []byte, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT headers, body FROM payloads WHERE delivery_uid = $1 AND factory_uid = $2`, deliveryUID, factoryUID).
		Scan(&headers, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil, fmt.Errorf("payload of delivery %q: %w", deliveryUID, ErrNotFound)
	}
	return headers, body, s.classify(err)
}
