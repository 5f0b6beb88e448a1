package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"millwright/schema"
	"millwright/state/audit"
	"millwright/state/db"
	"millwright/state/notice"
)

// SecretInfo is what may be told of a secret; never its value.
type SecretInfo struct {
	FactoryUID string // that alone sees it, since its definition holds it; empty: the team's
	Revision   string // of the definition that brought the value; empty for the team's
	Digest     string // of the file that holds it; empty for the team's

	Name     string
	Version  int64
	Pending  bool     // its latest version has no value yet
	URLSafe  bool     // its latest value consists of letters, digits, "-", ".", "_" and "~" only
	ASCII    bool     // its latest value is visible ASCII
	Webhooks []string // UIDs of the live ones that use it
	Users    []string // what uses it, in words
	Created  time.Time
	Updated  time.Time
}

// Fact returns what the rules of a definition may know of the secret.
func (i SecretInfo) Fact() schema.SecretFact {
	if i.Pending {
		return schema.SecretFact{Pending: true}
	}
	return schema.SecretFact{URLSafe: &i.URLSafe, VisibleASCII: &i.ASCII}
}

const secretsSQL = `SELECT s.name, s.factory_uid, s.version, v.sealed IS NULL, v.url_safe, v.visible_ascii,
	v.revision, v.digest, s.created_at, s.updated_at
FROM secrets s
JOIN secret_versions v ON v.name = s.name
	AND v.version = s.version`

// SecretKey is the key of a secret in [Store.Secrets]: the name of one of the team, and for one of a factory the
// UID of that, a slash and the name.
func SecretKey(factoryUID, name string) string {
	if factoryUID == "" {
		return name
	}
	return factoryUID + "/" + name
}

func secretInfos(ctx context.Context, tx db.Reader) (map[string]SecretInfo, error) {
	infos, err := db.All(ctx, tx, func(row db.Row) (SecretInfo, error) {
		var i SecretInfo
		var created, updated int64
		err := row.Scan(&i.Name, &i.FactoryUID, &i.Version, &i.Pending, &i.URLSafe, &i.ASCII, &i.Revision, &i.Digest,
			&created, &updated)
		if i.FactoryUID != "" {
			i.Name = strings.TrimPrefix(i.Name, i.FactoryUID+"/")
		}
		i.Created, i.Updated = db.Time(created), db.Time(updated)
		return i, err
	}, secretsSQL)

	all := make(map[string]SecretInfo, len(infos))
	for _, i := range infos {
		all[SecretKey(i.FactoryUID, i.Name)] = i
	}

	return all, err
}

const secretWebhooksSQL = `SELECT secret_name, uid
FROM webhooks
WHERE deleted_at IS NULL
ORDER BY factory_uid, name`

// Secrets returns what may be told of every secret by [SecretKey], with the UIDs of the live webhooks that use it.
func (s *Store) Secrets(ctx context.Context) (map[string]SecretInfo, error) {
	var all map[string]SecretInfo
	err := s.db.View(ctx, func(tx db.View) error {
		var err error
		if all, err = secretInfos(ctx, tx.Reader); err != nil {
			return err
		}

		rows, err := tx.Query(ctx, secretWebhooksSQL)
		if err != nil {
			return err
		}
		defer rows.Close()

		for rows.Next() {
			var name, uid string
			if err := rows.Scan(&name, &uid); err != nil {
				return err
			}

			info := all[name]
			info.Webhooks = append(info.Webhooks, uid)
			all[name] = info
		}

		if err := rows.Err(); err != nil {
			return err
		}

		users, err := s.secretUsers(ctx, tx.Reader)
		for name, info := range all {
			info.Users = users[name]
			all[name] = info
		}

		return err
	})

	return all, err
}

// maxSecret bounds a secret's value, in bytes.
const maxSecret = 64 << 10

// SetSecret creates the secret or gives it a new value, and returns its new version. A nil value makes
// it pending: a name whose value the provider has yet to issue. Webhooks go on with the version that was
// applied.
func (s *Store) SetSecret(ctx context.Context, name string, value []byte) (SecretInfo, error) {
	var info SecretInfo
	err := s.audit.Write(ctx, func(ctx context.Context, tx *db.Tx) (rows audit.Entries, err error) {
		if info, err = s.setSecret(ctx, tx, name, value, time.Now()); err != nil {
			return nil, err
		}

		detail := fmt.Sprintf("version %d", info.Version)
		if info.Pending {
			detail += ", without a value yet"
		}

		rows = audit.One(audit.Entry{Action: audit.SecretSet, Subject: name, Detail: detail})
		return rows, s.expireSecretVersions(ctx, tx)
	})
	if err != nil {
		return SecretInfo{}, err
	}

	s.Notify(notice.Secret, name)
	return info, nil
}

const setSecretSQL = `INSERT INTO secrets (name, factory_uid, version, created_at, updated_at)
VALUES ($1, $3, 1, $2, $2)
ON CONFLICT (name) DO UPDATE SET version = secrets.version + 1, updated_at = excluded.updated_at
RETURNING version, created_at`

const insertSecretVersionSQL = `INSERT INTO secret_versions (
	name, version, sealed, url_safe, visible_ascii, created_at, factory_uid, revision, digest
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

// setSecret gives a secret of the team a new value.
func (s *Store) setSecret(
	ctx context.Context,
	tx *db.Tx,
	name string,
	value []byte,
	now time.Time,
) (SecretInfo, error) {
	return s.writeSecret(ctx, tx, NewSecretInfo(name, value), value, now)
}

// untaken returns an error if the team got a secret of the name of a new one of a definition after the plan.
func untaken(ctx context.Context, tx *db.Tx, c OwnSecret) error {
	if c.Version > 1 {
		return nil
	}

	var team int
	err := tx.QueryRow(ctx, `SELECT 1 FROM secrets WHERE name = $1`, c.Name).Scan(&team)
	switch {
	case err == nil:
		return fmt.Errorf("the team has a secret %q: %w", c.Name, ErrMoved)
	case errors.Is(err, sql.ErrNoRows):
		return nil
	}
	return err
}

// writeSecret stores a value as the next version of a secret.
func (s *Store) writeSecret(
	ctx context.Context,
	tx *db.Tx,
	info SecretInfo,
	value []byte,
	now time.Time,
) (SecretInfo, error) {
	name := info.Name
	if value == nil && info.FactoryUID != "" {
		return SecretInfo{}, fmt.Errorf("secret %q: its file was not opened", name)
	}
	if value != nil && len(value) == 0 {
		return SecretInfo{}, fmt.Errorf("secret %q: the value is empty", name)
	}

	if len(value) > maxSecret {
		return SecretInfo{}, fmt.Errorf(
			"secret %q: the value has %d bytes; at most %d are kept",
			name,
			len(value),
			maxSecret,
		)
	}

	key := SecretKey(info.FactoryUID, name)
	var sealed []byte
	if value != nil {
		sealed = s.seal.Seal("secret "+key, value)
	}

	var created int64
	err := tx.QueryRow(ctx, setSecretSQL, key, db.Micros(now), info.FactoryUID).Scan(&info.Version, &created)
	if err != nil {
		return SecretInfo{}, err
	}

	info.Created, info.Updated = db.Time(created), now.UTC()
	_, err = tx.Exec(
		ctx,
		insertSecretVersionSQL,
		key,
		info.Version,
		sealed,
		db.Flag(info.URLSafe),
		db.Flag(info.ASCII),
		db.Micros(now),
		info.FactoryUID,
		info.Revision,
		info.Digest,
	)

	return info, err
}

// NewSecretInfo returns what may be told of a secret of this value, nil for a pending one, before it is
// stored: what a plan needs for a secret that is to come.
func NewSecretInfo(name string, value []byte) SecretInfo {
	return SecretInfo{
		Name:    name,
		Pending: value == nil,
		URLSafe: schema.URLSafe(string(value)),
		ASCII:   schema.VisibleASCII(string(value)),
	}
}

const expireSecretVersionsSQL = `DELETE FROM secret_versions
WHERE NOT EXISTS (
		SELECT 1
		FROM secrets s
		WHERE s.name = secret_versions.name AND s.version = secret_versions.version
	)
	AND NOT EXISTS (
		SELECT 1
		FROM webhooks w
		WHERE w.secret_name = secret_versions.name AND w.secret_version = secret_versions.version
	)`

// expireSecretVersions forgets the versions that are neither the latest of their secret nor applied.
func (s *Store) expireSecretVersions(ctx context.Context, tx *db.Tx) error {
	_, err := tx.Exec(ctx, expireSecretVersionsSQL)
	return err
}

const deleteSecretSQL = `DELETE FROM secrets
WHERE name = $1`

// DeleteSecret forgets a secret of the team. ErrNotFound if there is none, ErrConflict with its users while a
// webhook, a definition or one of the others, in words, uses it.
func (s *Store) DeleteSecret(ctx context.Context, name string, others ...string) error {
	err := s.audit.Write(ctx, func(ctx context.Context, tx *db.Tx) (audit.Entries, error) {
		users, err := s.secretUsers(ctx, tx.Reader)
		if err != nil {
			return nil, err
		}
		if used := append(users[name], others...); len(used) > 0 {
			return nil, refuse(ErrConflict, "secret %q is in use by %s", name, listed(used))
		}

		err = tx.ExecOne(ctx, deleteSecretSQL, name)
		if errors.Is(err, db.ErrNoRow) {
			return nil, refuse(ErrNotFound, "secret %q", name)
		}

		return audit.One(audit.Entry{Action: audit.SecretDelete, Subject: name}), err
	})
	if db.IsForeignKey(err) {
		return refuse(ErrConflict, "secret %q is used by a webhook", name)
	}

	return err
}

const secretValueSQL = `SELECT s.name, v.sealed
FROM secrets s
JOIN secret_versions v ON v.name = s.name AND v.version = s.version
WHERE s.name IN ($1, $2)
	AND v.sealed IS NOT NULL
ORDER BY s.factory_uid DESC
LIMIT 1`

// SecretValue returns the latest value of a secret of the team, for what belongs to no factory: a source's
// credential. ErrNotFound if there is none or it is pending.
func (s *Store) SecretValue(ctx context.Context, name string) ([]byte, error) {
	return s.SecretValueFor(ctx, "", name)
}

// SecretValueFor returns the latest value of a secret as a factory sees it: its own one, which its definition
// holds, or else the team's. ErrNotFound if there is none or it is pending.
func (s *Store) SecretValueFor(ctx context.Context, factoryUID, name string) ([]byte, error) {
	var key string
	var sealed []byte
	if strings.Contains(name, "/") { // not a name, and not to be taken for a key
		return nil, refuse(ErrNotFound, "secret %q", name)
	}

	err := s.db.QueryRow(ctx, secretValueSQL, name, SecretKey(factoryUID, name)).Scan(&key, &sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, refuse(ErrNotFound, "secret %q", name)
	}
	if err != nil {
		return nil, err
	}

	return s.seal.Open("secret "+key, sealed)
}

const webhookSecretSQL = `SELECT v.name, v.sealed
FROM webhooks w
JOIN secret_versions v ON v.name = w.secret_name AND v.version = w.secret_version
WHERE w.uid = $1`

// WebhookSecret returns the value of the secret that a webhook uses. ErrNotFound if it is deleted, or the secret
// is pending.
func (s *Store) WebhookSecret(ctx context.Context, webhookUID string) ([]byte, error) {
	var name string
	var sealed []byte
	err := s.db.QueryRow(ctx, webhookSecretSQL, webhookUID).Scan(&name, &sealed)
	if errors.Is(err, sql.ErrNoRows) || err == nil && sealed == nil {
		return nil, refuse(ErrNotFound, "the secret of webhook %q", webhookUID)
	}
	if err != nil {
		return nil, err
	}
	return s.seal.Open("secret "+name, sealed)
}

const webhookSecretsSQL = `SELECT w.secret_name, w.name, f.name
FROM webhooks w
JOIN factories f ON f.uid = w.factory_uid
WHERE w.secret_name IS NOT NULL
ORDER BY f.name, w.name`

// secretUsers returns what uses each secret, in words: webhooks, and what in the applied definitions of
// attached factories gives it to runs. It passes over a definition that cannot be read.
func (s *Store) secretUsers(ctx context.Context, tx db.Reader) (map[string][]string, error) {
	users := map[string][]string{}
	_, err := db.All(ctx, tx, func(row db.Row) (struct{}, error) {
		var secret, webhook, factory string
		err := row.Scan(&secret, &webhook, &factory)
		users[secret] = append(users[secret], fmt.Sprintf("webhook %s of factory %s", webhook, factory))
		return struct{}{}, err
	}, webhookSecretsSQL)
	if err != nil {
		return nil, err
	}

	own := map[string]bool{}
	_, err = db.All(ctx, tx, func(row db.Row) (struct{}, error) {
		var key string
		err := row.Scan(&key)
		own[key] = true
		return struct{}{}, err
	}, `SELECT name FROM secrets WHERE factory_uid <> ''`)
	if err != nil {
		return nil, err
	}

	attached, err := db.All(ctx, tx, scanFactory, `
		SELECT `+factoryColumns+`
		FROM factories
		WHERE detached = 0
		ORDER BY name`)
	if err != nil {
		return nil, err
	}

	for _, f := range attached {
		applied, err := s.applied(ctx, tx, f.UID, f.Generation)
		if ofRow(err) {
			s.Skip("secret users", f.UID, "factory "+f.UID, err)
			continue
		}
		if err != nil {
			return nil, err
		}

		grants(f, applied.tree, own, users)
	}

	return users, nil
}

// grants adds what gives each secret to runs of a factory. own has the keys of secrets of factories.
func grants(f Factory, tree schema.Factory, own map[string]bool, users map[string][]string) {
	add := func(user string, granted ...schema.Execution) {
		names := map[string]bool{}
		for _, exec := range granted {
			for _, secret := range exec.Secrets {
				names[secret] = true
			}

			if h := exec.Harness; h != nil && h.Auth != nil && h.Auth.SecretName != "" {
				names[h.Auth.SecretName] = true
			}

			for _, server := range exec.MCPServers {
				for _, secret := range schema.ServerSecrets(server) {
					names[secret] = true
				}
			}
		}

		delete(names, "")
		for secret := range names {
			key := SecretKey(f.UID, secret)
			if !own[key] {
				key = secret
			}
			users[key] = append(users[key], user+" of factory "+f.Name)
		}
	}

	if file := f.Spec; file != nil {
		add("factory.yaml", schema.Execution{Secrets: file.Secrets, MCPServers: file.MCPServers}, file.AgentDefaults)
	}

	for _, a := range tree.Agents {
		add("agent "+a.Name, a.Execution)
	}

	for _, a := range tree.Automations {
		add("automation "+a.Name, a.Execution)
	}

	for _, n := range tree.Notifications {
		add("notification "+n.Name, schema.Execution{Secrets: []string{n.SecretName, n.URLSecretName}})
	}
}

// listed joins users of a secret for an error, the first twenty of them.
func listed(users []string) string {
	const most = 20
	if more := len(users) - most; more > 0 {
		users = append(users[:most:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(users, ", ")
}

// OwnSecret is a secret of the factory's definition.
type OwnSecret struct {
	Name    string
	Value   []byte // never nil
	Digest  string // of the file
	Version int64  // that this value gets
}
