package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Role says what the holder of an API key may do (docs/contract.md, section 2).
type Role string

// The roles. Each of the first three may do all that the one before it may.
const (
	RoleViewer Role = "viewer"
	RoleRunner Role = "runner"
	RoleAdmin  Role = "admin"
	RoleWorker Role = "worker" // no API: executes runs
)

var rank = map[Role]int{RoleViewer: 1, RoleRunner: 2, RoleAdmin: 3}

// Allows reports whether a holder of role r may do what needs role need.
func (r Role) Allows(need Role) bool { return rank[r] > 0 && rank[r] >= rank[need] }

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return r == RoleWorker || rank[r] > 0 }

// Key is an API key, without its secret.
type Key struct {
	UID     string
	Name    string
	Role    Role
	Created time.Time
	Expires *time.Time
	Revoked *time.Time
}

// KeyPrefix begins every API key.
const KeyPrefix = "mw_"

const keyColumns = `uid, name, role, created_at, expires_at, revoked_at`

func scanKey(row scanner) (Key, error) {
	var k Key
	var created int64
	var expires, revoked sql.NullInt64
	err := row.Scan(&k.UID, &k.Name, &k.Role, &created, &expires, &revoked)
	k.Created, k.Expires, k.Revoked = timeOf(created), timeOrNil(expires), timeOrNil(revoked)
	return k, err
}

const insertKeySQL = `INSERT INTO api_keys (uid, name, role, hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`

// CreateKey makes an API key and returns it with its secret, which is not stored and cannot be had again.
func (s *Store) CreateKey(ctx context.Context, name string, role Role, expires *time.Time) (Key, string, error) {
	secret := NewToken(KeyPrefix)
	k := Key{UID: NewID(PrefixKey), Name: name, Role: role, Created: time.Now().UTC(), Expires: expires}
	_, err := s.write.ExecContext(
		ctx,
		insertKeySQL,
		k.UID,
		k.Name,
		string(k.Role),
		HashToken(secret),
		micros(k.Created),
		microsOrNull(k.Expires),
	)

	return k, secret, s.classify(err)
}

// Bootstrap makes an admin key of the given secret if no key exists yet, and reports whether it did.
func (s *Store) Bootstrap(ctx context.Context, secret string) (bool, error) {
	made := false
	err := s.tx(ctx, func(tx *sql.Tx) error {
		made = false
		if s.dialect == postgres {
			if _, err := tx.ExecContext(ctx, `LOCK TABLE api_keys IN SHARE ROW EXCLUSIVE MODE`); err != nil {
				return err
			}
		}

		var n int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM api_keys`).Scan(&n); err != nil || n > 0 {
			return err
		}

		made = true
		_, err := tx.ExecContext(
			ctx,
			insertKeySQL,
			NewID(PrefixKey),
			"bootstrap",
			string(RoleAdmin),
			HashToken(secret),
			micros(time.Now()),
			nil,
		)

		return err
	})

	return made, err
}

// KeyBySecret returns the key with this secret. ErrNotFound when there is none, or it is revoked or has
// expired. The look-up is by the secret's hash, so that its time tells nothing of other secrets.
func (s *Store) KeyBySecret(ctx context.Context, secret string) (Key, error) {
	k, err := scanKey(
		s.read.QueryRowContext(ctx, `SELECT `+keyColumns+` FROM api_keys WHERE hash = $1`, HashToken(secret)),
	)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !k.Live(time.Now()) {
		return Key{}, fmt.Errorf("API key: %w", ErrNotFound)
	}
	return k, s.classify(err)
}

// Live reports whether the key may be used at the given time: it is not revoked and has not expired.
func (k Key) Live(at time.Time) bool {
	return k.Revoked == nil && (k.Expires == nil || k.Expires.After(at))
}

// Key returns the key with this UID, revoked or expired ones included. ErrNotFound when there is none.
func (s *Store) Key(ctx context.Context, uid string) (Key, error) {
	k, err := scanKey(s.read.QueryRowContext(ctx, `SELECT `+keyColumns+` FROM api_keys WHERE uid = $1`, uid))
	if errors.Is(err, sql.ErrNoRows) {
		return Key{}, fmt.Errorf("API key %q: %w", uid, ErrNotFound)
	}
	return k, s.classify(err)
}

// Keys returns every key, newest first, revoked ones included.
func (s *Store) Keys(ctx context.Context) ([]Key, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT `+keyColumns+` FROM api_keys ORDER BY uid DESC`)
	if err != nil {
		return nil, s.classify(err)
	}
	all, err := scanAll(rows, scanKey)
	return all, s.classify(err)
}

// RevokeKey ends a key. ErrNotFound when there is none that is not revoked already.
func (s *Store) RevokeKey(ctx context.Context, uid string) error {
	err := one(
		s.write.ExecContext(
			ctx,
			`UPDATE api_keys SET revoked_at = $1 WHERE uid = $2 AND revoked_at IS NULL`,
			micros(time.Now()),
			uid,
		),
	)
	if errors.Is(err, errNoRow) {
		return fmt.Errorf("API key %q: %w", uid, ErrNotFound)
	}

	return s.classify(err)
}
