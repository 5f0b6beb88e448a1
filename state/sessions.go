package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// SessionPrefix begins every session token.
const SessionPrefix = "mws_"

// maxSessions is how many sessions of one key are kept, the newest.
const maxSessions = 100

// CreateSession signs a browser in with a key for ttl, and returns a random token, of which only a hash
// is stored. ErrNotFound when the key does not exist. Of a key with many sessions the oldest end.
func (s *Store) CreateSession(ctx context.Context, keyUID string, ttl time.Duration) (string, error) {
	token, now := NewToken(SessionPrefix), time.Now()
	err := s.tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE expires_at <= $1
			OR key_uid = $2 AND hash NOT IN (SELECT hash FROM sessions WHERE key_uid = $2 ORDER BY created_at DESC LIMIT $3)`, micros(now), keyUID, maxSessions-1); err != nil {
			return err
		}

		_, err := tx.ExecContext(
			ctx,
			`INSERT INTO sessions (hash, key_uid, created_at, expires_at) VALUES ($1, $2, $3, $4)`,
			HashToken(token),
			keyUID,
			micros(now),
			micros(now.Add(ttl)),
		)

		return err
	})
	if isForeignKey(err) {
		return "", fmt.Errorf("API key %q: %w", keyUID, ErrNotFound)
	}

	return token, err
}

// SessionKey returns the key that the session of this token was made with. ErrNotFound when there is no
// such session, it has ended, or its key is revoked or has expired.
func (s *Store) SessionKey(ctx context.Context, token string) (Key, error) {
	now := time.Now()
	k, err := scanKey(
		s.read.QueryRowContext(ctx, `SELECT k.uid, k.name, k.role, k.created_at, k.expires_at, k.revoked_at
		FROM sessions s JOIN api_keys k ON k.uid = s.key_uid WHERE s.hash = $1 AND s.expires_at > $2`, HashToken(token), micros(now)),
	)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !k.Live(now) {
		return Key{}, fmt.Errorf("session: %w", ErrNotFound)
	}
	return k, s.classify(err)
}

// EndSession ends the session of this token, if there is one.
func (s *Store) EndSession(ctx context.Context, token string) error {
	_, err := s.write.ExecContext(ctx, `DELETE FROM sessions WHERE hash = $1`, HashToken(token))
	return s.classify(err)
}
