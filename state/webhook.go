package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"millwright/schema"
	"millwright/state/db"
)

// Webhook is a webhook of a factory, live or deleted.
type Webhook struct {
	ID            int64
	UID           string
	FactoryUID    string
	Spec          schema.Webhook
	FirstName     string // that it had when it was made
	Ordinal       int    // how many webhooks had that name first, before it
	SecretVersion int64  // that was applied; 0 when deleted
	SecretStale   bool   // the secret has a newer version, which waits for the next apply
	SecretPending bool   // the applied version has no value yet
	Created       time.Time
	Updated       time.Time
	Deleted       *time.Time
	Restorable    *time.Time // until when a webhook of its name is this one again; nil: never
}

const webhookColumns = `
	w.id, w.uid, w.factory_uid, w.spec, w.first_name, w.ordinal, coalesce(w.secret_version, 0),
	coalesce(s.version, 0), coalesce(v.sealed IS NULL AND v.name IS NOT NULL, FALSE), w.created_at, w.updated_at,
	w.deleted_at, w.restorable_until`

const webhookTables = `
FROM webhooks w
LEFT JOIN secrets s ON s.name = w.secret_name
LEFT JOIN secret_versions v ON v.name = w.secret_name AND v.version = w.secret_version
`

func scanWebhook(row db.Row) (Webhook, error) {
	var w Webhook
	var spec string
	var latest, created, updated int64
	var deleted, restorable sql.NullInt64
	err := row.Scan(&w.ID, &w.UID, &w.FactoryUID, &spec, &w.FirstName, &w.Ordinal, &w.SecretVersion, &latest,
		&w.SecretPending, &created, &updated, &deleted, &restorable)
	if err != nil {
		return Webhook{}, err
	}

	w.SecretStale = w.SecretVersion != 0 && latest > w.SecretVersion
	w.Created, w.Updated, w.Deleted = db.Time(created), db.Time(updated), db.TimeOrNil(deleted)
	w.Restorable = db.TimeOrNil(restorable)
	if err := json.Unmarshal([]byte(spec), &w.Spec); err != nil {
		return w, fmt.Errorf("webhook %s: %w: %w", w.UID, ErrUnreadable, err)
	}

	return w, nil
}

const liveWebhooksSQL = `SELECT ` + webhookColumns + webhookTables + `WHERE w.factory_uid = $1 AND w.deleted_at IS NULL
ORDER BY w.name`

func liveWebhooks(ctx context.Context, tx db.Reader, factoryUID string) ([]Webhook, error) {
	return db.All(ctx, tx, scanWebhook, liveWebhooksSQL, factoryUID)
}

// Webhooks returns a factory's webhooks by name, deleted ones too when asked for.
func (s *Store) Webhooks(ctx context.Context, factoryUID string, deleted bool) ([]Webhook, error) {
	query := `SELECT ` + webhookColumns + webhookTables + `WHERE w.factory_uid = $1`
	if !deleted {
		query += ` AND w.deleted_at IS NULL`
	}
	all, err := db.All(ctx, s.db.Reader, scanWebhook, query+` ORDER BY w.name, w.ordinal`, factoryUID)
	return all, err
}

// Webhook returns one webhook of a factory, live or deleted. ErrNotFound if there is none.
func (s *Store) Webhook(ctx context.Context, factoryUID, uid string) (Webhook, error) {
	w, err := scanWebhook(
		s.db.QueryRow(
			ctx,
			`SELECT `+webhookColumns+webhookTables+`WHERE w.factory_uid = $1 AND w.uid = $2`,
			factoryUID,
			uid,
		),
	)
	return w, orNotFound(err, "webhook %q", uid)
}
