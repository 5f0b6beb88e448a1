package state

import (
	"context"
	"errors"
	"time"

	"millwright/state/db"
)

// RestoreWindow is how long a deleted webhook is the same one again when its file comes back.
const RestoreWindow = 30 * 24 * time.Hour

const (
	maxGone     = 1000               // deleted webhooks of a factory that a plan knows
	useWindow   = 7 * 24 * time.Hour // in which a delivery shows that a webhook is in use
	maxUseLook  = 10_000             // rows of a log that are looked at for one
	deletedByAt = `
		SELECT ` + webhookColumns + webhookTables + `
		WHERE w.factory_uid = $1 AND w.deleted_at IS NOT NULL
		ORDER BY w.deleted_at DESC, w.ordinal DESC
		LIMIT $2`
)

// readDeleted reads the webhooks that were deleted last. One that cannot be read is left out.
func (c *Current) readDeleted(ctx context.Context, r db.Reader) error {
	deleted, err := db.All(ctx, r, func(row db.Row) (Webhook, error) {
		w, err := scanWebhook(row)
		if errors.Is(err, ErrUnreadable) {
			return Webhook{}, nil
		}
		return w, err
	}, deletedByAt, c.Factory.UID, maxGone)

	now := time.Now()
	c.Restorable, c.Gone = map[string]Webhook{}, make(map[string]string, len(deleted))
	for _, w := range deleted {
		if w.UID == "" {
			continue
		}

		c.Gone[w.UID] = w.Spec.Name
		_, newer := c.Restorable[w.Spec.Name]
		if !newer && w.Restorable != nil && w.Restorable.After(now) {
			c.Restorable[w.Spec.Name] = w
		}
	}

	return err
}

const inUseSQL = `
	SELECT 1
	FROM (
		SELECT outcome
		FROM deliveries
		WHERE webhook_id = $1 AND uid >= $2
		ORDER BY uid DESC
		LIMIT $3
	) AS newest
	WHERE outcome = 'accepted'
	LIMIT 1`

// inUse reports whether a webhook accepted a delivery within a week, as far as the newest rows of its log say.
func inUse(ctx context.Context, r db.Reader, webhook int64) (bool, error) {
	since := DeliveryUIDAt(time.Now().Add(-useWindow))
	var one int
	err := r.QueryRow(ctx, inUseSQL, webhook, since, maxUseLook).Scan(&one)
	return err == nil, db.NoRows(err)
}
