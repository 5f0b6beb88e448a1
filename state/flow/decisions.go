package flow

import (
	"context"
	"time"

	"millwright/state/db"
)

// skipsKept is how many deliveries that started nothing are remembered of an automation. The log of each webhook
// has all.
const skipsKept = 100

const insertDecisionSQL = `INSERT INTO flow_decisions (
	automation_uid, run_id, delivery_uid, factory_uid, webhook_uid, decision, at
)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (automation_uid, run_id, delivery_uid) DO UPDATE SET decision = excluded.decision`

const expireSkipsSQL = `DELETE FROM flow_decisions
WHERE automation_uid = $1
	AND run_id = ''
	AND delivery_uid <= (
		SELECT delivery_uid
		FROM flow_decisions
		WHERE automation_uid = $1 AND run_id = ''
		ORDER BY delivery_uid DESC
		LIMIT 1 OFFSET $2
	)`

// Record notes a decision on a delivery.
func (d Decision) Record(
	ctx context.Context, tx *db.Tx, factoryUID, webhookUID, deliveryUID string, at time.Time,
) error {
	_, err := tx.Exec(ctx, insertDecisionSQL, d.AutomationUID, d.RunID, deliveryUID, factoryUID, webhookUID,
		d.Decision, db.Micros(at))
	if err != nil || d.RunID != "" {
		return err
	}

	_, err = tx.Exec(ctx, expireSkipsSQL, d.AutomationUID, skipsKept)
	return err
}

// Recorded is a decision with its delivery.
type Recorded struct {
	Decision
	DeliveryUID string
	WebhookUID  string
	At          time.Time
}

const decisionsSQL = `SELECT automation_uid, run_id, delivery_uid, webhook_uid, decision, at
FROM flow_decisions
WHERE automation_uid = $1 AND run_id = $2
ORDER BY delivery_uid DESC
LIMIT $3`

// Decisions returns the deliveries of an automation that went to a run or, where runID is empty, that started
// nothing: the newest first, at most limit of them.
func Decisions(ctx context.Context, r db.Reader, automationUID, runID string, limit int) ([]Recorded, error) {
	return db.All(ctx, r, func(row db.Row) (d Recorded, err error) {
		var at int64
		err = row.Scan(&d.AutomationUID, &d.RunID, &d.DeliveryUID, &d.WebhookUID, &d.Decision.Decision, &at)
		d.At = db.Time(at)
		return d, err
	}, decisionsSQL, automationUID, runID, limit)
}

const forgetDecisionsSQL = `DELETE FROM flow_decisions
WHERE automation_uid = $1 AND run_id = $2`

const forgetConversationSQL = `DELETE FROM flow_keys
WHERE automation_uid = $1 AND part = 'conversation' AND waiting = 0 AND hash = $2 AND run_id = $3`

// Forget deletes what is stored of a run that is deleted. conversation is its key, which may be empty.
func Forget(ctx context.Context, tx *db.Tx, automationUID, runID, conversation string) error {
	if _, err := tx.Exec(ctx, forgetDecisionsSQL, automationUID, runID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, forgetConversationSQL, automationUID, conversation, runID)
	return err
}
