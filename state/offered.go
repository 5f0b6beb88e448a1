package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// OfferedSecret is what a request brought as the secret of a webhook that waits for one. The request proved
// nothing: whoever knows the webhook's URL may have sent it.
type OfferedSecret struct {
	Value    string
	Sender   string
	Received time.Time
	Count    int64 // of the requests that brought one; this is the last of them
}

// OfferSecret keeps what a request brought as the secret of a webhook, sealed, in place of what was kept
// before. ErrNotFound when the factory has no such webhook. It is forgotten when the delivery log forgets
// rows as old.
func (s *Store) OfferSecret(ctx context.Context, factoryUID, webhookUID string, o OfferedSecret) error {
	_, err := s.write.ExecContext(
		ctx,
		`INSERT INTO offered_secrets (webhook_uid, factory_uid, sealed, sender, received_at, count) VALUES ($1, $2, $3, $4, $5, 1)
		ON CONFLICT (webhook_uid) DO UPDATE SET sealed = excluded.sealed, sender = excluded.sender, received_at = excluded.received_at, count = offered_secrets.count + 1`,
		webhookUID,
		factoryUID,
		s.seal.seal("offered "+webhookUID, []byte(o.Value)),
		o.Sender,
		micros(o.Received),
	)
	if isForeignKey(err) {
		return fmt.Errorf("webhook %q: %w", webhookUID, ErrNotFound)
	}

	return s.classify(err)
}

// OfferedSecret returns what OfferSecret kept last. ErrNotFound when there is nothing.
func (s *Store) OfferedSecret(ctx context.Context, factoryUID, webhookUID string) (OfferedSecret, error) {
	var o OfferedSecret
	var sealed []byte
	var received int64
	err := s.read.QueryRowContext(ctx, `SELECT sealed, sender, received_at, count FROM offered_secrets WHERE webhook_uid = $1 AND factory_uid = $2`, webhookUID, factoryUID).
		Scan(&sealed, &o.Sender, &received, &o.Count)
	if errors.Is(err, sql.ErrNoRows) {
		return o, fmt.Errorf("offered secret of %q: %w", webhookUID, ErrNotFound)
	} else if err != nil {
		return o, s.classify(err)
	}

	value, err := s.seal.open("offered "+webhookUID, sealed)
	o.Value, o.Received = string(value), timeOf(received)
	return o, err
}

// forgetOffered forgets the secrets that were offered before a time.
func (s *Store) forgetOffered(ctx context.Context, before time.Time) error {
	_, err := s.write.ExecContext(ctx, `DELETE FROM offered_secrets WHERE received_at < $1`, micros(before))
	return s.classify(err)
}
