package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"millwright/state/audit"
	"millwright/state/db"
)

// Role is what the holder of an API key may do (docs/contract.md, section 2).
type Role string

// The roles. Each of the first four includes the one before it.
const (
	RolePlanner Role = "planner"
	RoleViewer  Role = "viewer"
	RoleRunner  Role = "runner"
	RoleAdmin   Role = "admin"
	RoleWorker  Role = "worker" // no API: executes runs
)

var rank = map[Role]int{RolePlanner: 1, RoleViewer: 2, RoleRunner: 3, RoleAdmin: 4}

// Allows reports whether a holder of role r may do what needs role need.
func (r Role) Allows(need Role) bool { return rank[r] > 0 && rank[r] >= rank[need] }

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return r == RoleWorker || rank[r] > 0 }

// Key is an API key, without its secret.
type Key struct {
	UID       string
	Name      string
	Role      Role
	Person    bool     // somebody who signs in at an issuer; no secret is good for it
	Factories []string // UIDs of the factories that the key is limited to; nil: it is not limited
	Created   time.Time
	Expires   *time.Time
	Revoked   *time.Time
}

// Limited reports whether the key is limited to factories.
func (k Key) Limited() bool { return k.Factories != nil }

// Reaches reports whether the key may use the factory of this UID. A limited key does not reach the empty UID,
// which stands for what belongs to no factory.
func (k Key) Reaches(factoryUID string) bool {
	return !k.Limited() || slices.Contains(k.Factories, factoryUID)
}

// Unbounded reports whether the key may do everything, to every factory.
func (k Key) Unbounded() bool { return k.Role == RoleAdmin && !k.Limited() }

// KeyPrefix begins every API key.
const KeyPrefix = "mw_"

const keyColumns = `uid, name, role, kind, factories, created_at, expires_at, revoked_at`

func scanKey(row db.Row) (Key, error) {
	var k Key
	var kind, factories string
	var created int64
	var expires, revoked sql.NullInt64
	err := row.Scan(&k.UID, &k.Name, &k.Role, &kind, &factories, &created, &expires, &revoked)
	if err == nil && factories != "" {
		k.Factories = []string{}
		err = json.Unmarshal([]byte(factories), &k.Factories)
	}

	k.Person = kind == "person"
	k.Created, k.Expires, k.Revoked = db.Time(created), db.TimeOrNil(expires), db.TimeOrNil(revoked)
	return k, err
}

const insertKeySQL = `INSERT INTO api_keys (uid, name, role, hash, created_at, expires_at, factories)
VALUES ($1, $2, $3, $4, $5, $6, $7)`

// CreateKey makes an API key for all factories and returns it with its secret. The state stores only a hash of
// the secret, so nothing returns the secret later. nil means that the key does not expire.
func (s *Store) CreateKey(ctx context.Context, name string, role Role, expires *time.Time) (Key, string, error) {
	return s.CreateLimitedKey(ctx, name, role, expires, nil)
}

// CreateLimitedKey is CreateKey for a key that is limited to the factories of these UIDs. nil is no limit, an
// empty list is no factory.
func (s *Store) CreateLimitedKey(
	ctx context.Context,
	name string,
	role Role,
	expires *time.Time,
	factories []string,
) (Key, string, error) {
	secret := NewToken(KeyPrefix)
	k := Key{
		UID:       NewID(PrefixKey),
		Name:      name,
		Role:      role,
		Factories: factories,
		Created:   time.Now().UTC(),
		Expires:   expires,
	}

	limit, err := k.limit()
	if err != nil {
		return Key{}, "", err
	}

	err = s.audit.Write(ctx, func(ctx context.Context, tx *db.Tx) (audit.Entries, error) {
		_, err := tx.Exec(
			ctx,
			insertKeySQL,
			k.UID,
			k.Name,
			string(k.Role),
			HashToken(secret),
			db.Micros(k.Created),
			db.MicrosOrNull(k.Expires),
			limit,
		)
		return k.audited(audit.KeyCreate), err
	})

	return k, secret, err
}

// audited returns the row of the audit log about a change of the key.
func (k Key) audited(action string) audit.Entries {
	return audit.One(audit.Entry{Action: action, Subject: k.UID, Detail: k.Name + ", role " + string(k.Role)})
}

// limit returns the factories of a key as they are stored.
func (k Key) limit() (string, error) {
	if !k.Limited() {
		return "", nil
	}
	text, err := json.Marshal(k.Factories)
	return string(text), err
}

// Bootstrap makes an admin key of the given secret if no key exists yet, and reports whether it did.
func (s *Store) Bootstrap(ctx context.Context, secret string) (bool, error) {
	made := false
	k := Key{UID: NewID(PrefixKey), Name: "bootstrap", Role: RoleAdmin}
	err := s.audit.Write(ctx, func(ctx context.Context, tx *db.Tx) (audit.Entries, error) {
		made = false
		if s.db.Postgres() {
			if _, err := tx.Exec(ctx, `LOCK TABLE api_keys IN SHARE ROW EXCLUSIVE MODE`); err != nil {
				return nil, err
			}
		}

		var n int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM api_keys WHERE kind = 'key'`).Scan(&n); err != nil || n > 0 {
			return nil, err
		}

		made = true
		_, err := tx.Exec(
			ctx,
			insertKeySQL,
			k.UID,
			k.Name,
			string(k.Role),
			HashToken(secret),
			db.Micros(time.Now()),
			nil,
			"",
		)

		return k.audited(audit.KeyCreate), err
	})

	return made, err
}

// KeyBySecret returns the key with this secret. ErrNotFound if there is none, or it is revoked or has
// expired. The look-up is by the secret's hash, so its timing reveals nothing about other secrets.
func (s *Store) KeyBySecret(ctx context.Context, secret string) (Key, error) {
	k, err := scanKey(
		s.db.QueryRow(ctx, `SELECT `+keyColumns+` FROM api_keys WHERE hash = $1 AND kind = 'key'`, HashToken(secret)),
	)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !k.Live(time.Now()) {
		return Key{}, refuse(ErrNotFound, "API key")
	}
	return k, err
}

const signInPersonSQL = `INSERT INTO api_keys (uid, name, role, hash, created_at, factories, kind)
VALUES ($1, $2, $3, $4, $5, $6, 'person')
ON CONFLICT (hash) DO UPDATE
SET name = excluded.name,
	role = excluded.role,
	factories = excluded.factories
WHERE api_keys.kind = 'person' AND api_keys.revoked_at IS NULL
RETURNING ` + keyColumns

// SignInPerson returns the key of the subject of an issuer, with a present name, role and factories; it makes the
// key at the first sign-in, with a row of the audit log. ErrNotFound if the key is revoked.
func (s *Store) SignInPerson(ctx context.Context, issuer, subject string, present Key) (k Key, err error) {
	limit, err := present.limit()
	if err != nil {
		return Key{}, err
	}

	uid := NewID(PrefixKey)
	err = s.audit.Write(ctx, func(ctx context.Context, tx *db.Tx) (audit.Entries, error) {
		k, err = scanKey(tx.QueryRow(
			ctx,
			signInPersonSQL,
			uid,
			present.Name,
			string(present.Role),
			HashToken("person\n"+issuer+"\n"+subject),
			db.Micros(time.Now()),
			limit,
		))
		if err != nil || k.UID != uid {
			return nil, err
		}

		made := k.audited(audit.KeyCreate)
		made[0].Actor = audit.Actor{
			Kind:   "session",
			UID:    k.UID,
			Name:   k.Name,
			Source: audit.SourceOf(ctx),
		}
		return made, nil
	})
	return k, orNotFound(err, "the key of %q", present.Name)
}

// Live reports whether the key may be used at the given time: it is not revoked and has not expired.
func (k Key) Live(at time.Time) bool {
	return k.Revoked == nil && (k.Expires == nil || k.Expires.After(at))
}

const keySQL = `SELECT ` + keyColumns + `
FROM api_keys
WHERE uid = $1`

// Key returns the key with this UID, revoked or expired ones included. ErrNotFound if there is none.
func (s *Store) Key(ctx context.Context, uid string) (Key, error) {
	k, err := scanKey(s.db.QueryRow(ctx, keySQL, uid))
	return k, orNotFound(err, "API key %q", uid)
}

// Keys returns every key, newest first, revoked ones included.
func (s *Store) Keys(ctx context.Context) ([]Key, error) {
	all, err := db.All(ctx, s.db.Reader, scanKey, `SELECT `+keyColumns+` FROM api_keys ORDER BY uid DESC`)
	return all, err
}

const revokeKeySQL = `UPDATE api_keys
SET revoked_at = $1
WHERE uid = $2 AND revoked_at IS NULL`

// RevokeKey ends a key. ErrNotFound if there is none that is not revoked already.
func (s *Store) RevokeKey(ctx context.Context, uid string) error {
	err := s.audit.Write(ctx, func(ctx context.Context, tx *db.Tx) (audit.Entries, error) {
		if err := tx.ExecOne(ctx, revokeKeySQL, db.Micros(time.Now()), uid); err != nil {
			return nil, err
		}

		k, err := scanKey(tx.QueryRow(ctx, keySQL, uid))
		return k.audited(audit.KeyRevoke), err
	})
	return orNotFound(err, "API key %q", uid)
}

// SessionPrefix begins every session token.
const SessionPrefix = "mws_"

// maxSessions is how many sessions of one key are kept, the newest.
const maxSessions = 100

const expireSessionsSQL = `DELETE FROM sessions
WHERE expires_at <= $1
	OR key_uid = $2 AND hash NOT IN (
		SELECT hash
		FROM sessions
		WHERE key_uid = $2
		ORDER BY created_at DESC
		LIMIT $3
	)`

const insertSessionSQL = `INSERT INTO sessions (hash, key_uid, created_at, expires_at)
VALUES ($1, $2, $3, $4)`

// CreateSession signs a browser in with a key for ttl, and returns a random token, of which only a hash
// is stored. ErrNotFound when the key does not exist. Of a key with many sessions the oldest end.
func (s *Store) CreateSession(ctx context.Context, keyUID string, ttl time.Duration) (string, error) {
	token, now := NewToken(SessionPrefix), time.Now()
	err := s.audit.Write(ctx, func(ctx context.Context, tx *db.Tx) (audit.Entries, error) {
		if _, err := tx.Exec(ctx, expireSessionsSQL, db.Micros(now), keyUID, maxSessions-1); err != nil {
			return nil, err
		}
		if _, err := tx.Exec(
			ctx,
			insertSessionSQL,
			HashToken(token),
			keyUID,
			db.Micros(now),
			db.Micros(now.Add(ttl)),
		); err != nil {
			return nil, err
		}

		k, err := scanKey(tx.QueryRow(ctx, keySQL, keyUID))
		return audit.One(audit.Entry{
			Actor:   audit.Actor{Kind: "session", UID: k.UID, Name: k.Name, Source: audit.SourceOf(ctx)},
			Action:  audit.SignIn,
			Subject: k.UID,
			Detail:  "role " + string(k.Role),
		}), err
	})
	if db.IsForeignKey(err) {
		return "", refuse(ErrNotFound, "API key %q", keyUID)
	}

	return token, err
}

const sessionKeySQL = `SELECT k.uid, k.name, k.role, k.kind, k.factories, k.created_at, k.expires_at, k.revoked_at
FROM sessions s
JOIN api_keys k ON k.uid = s.key_uid
WHERE s.hash = $1
	AND s.expires_at > $2`

// SessionKey returns the key that the session of this token was made with. ErrNotFound when there is no
// such session, it has ended, or its key is revoked or has expired.
func (s *Store) SessionKey(ctx context.Context, token string) (Key, error) {
	now := time.Now()
	k, err := scanKey(s.db.QueryRow(ctx, sessionKeySQL, HashToken(token), db.Micros(now)))
	if errors.Is(err, sql.ErrNoRows) || err == nil && !k.Live(now) {
		return Key{}, refuse(ErrNotFound, "session")
	}
	return k, err
}

const endPersonSessionsSQL = `DELETE FROM sessions
WHERE key_uid IN (
	SELECT uid
	FROM api_keys
	WHERE kind = 'person'
)`

// EndPersonSessions ends the sessions of all people who signed in at an issuer.
func (s *Store) EndPersonSessions(ctx context.Context) error {
	return s.db.Exec(ctx, endPersonSessionsSQL)
}

// EndSession ends the session of this token. It is no error if there is none.
func (s *Store) EndSession(ctx context.Context, token string) error {
	err := s.db.Exec(ctx, `DELETE FROM sessions WHERE hash = $1`, HashToken(token))
	return err
}
