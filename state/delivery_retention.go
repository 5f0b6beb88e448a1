package state

import (
	"context"
	"strconv"
	"time"

	"millwright/state/db"
)

// expireChunk is how many rows one transaction of a trim deletes, so that deliveries never wait long.
const expireChunk = 500

const deliveryLogsSQL = `SELECT
	id, uid, factory_uid, deleted_at IS NOT NULL AND coalesce(restorable_until, 0) <= $1
FROM webhooks
ORDER BY id`

// ExpireDeliveries forgets what the delivery logs need not keep, and returns how many rows that were. A row
// stays while it is among the newest keep rows of its webhook, or among the newest keep accepted ones, or
// is younger than age; so no flood of rejected requests pushes an accepted delivery out. A payload goes
// with its row, unless a run refers to it. Identities go when their webhook is deleted
// and cannot come back, offered secrets after age.
func (s *Store) ExpireDeliveries(ctx context.Context, keep int, age time.Duration) (int, error) {
	webhooks, err := db.All(ctx, s.db.Reader, func(row db.Row) (w deliveryLog, err error) {
		return w, row.Scan(&w.id, &w.uid, &w.factory, &w.deleted)
	}, deliveryLogsSQL, db.Micros(time.Now()))
	if err != nil {
		return 0, err
	}

	total := 0
	for _, w := range webhooks {
		n, err := s.expireLog(ctx, w, keep, time.Now().Add(-age))
		total += n
		if err == nil && w.deleted {
			err = s.expireIdentities(ctx, w.id)
		}

		if ofRow(err) {
			s.Skip(loopRetain, w.factory, "webhook "+w.uid, err)
		} else if err != nil {
			return total, err
		}
	}

	return total, s.expireOffered(ctx, time.Now().Add(-age))
}

// deliveryLog is a webhook whose log expires.
type deliveryLog struct {
	id           int64
	uid, factory string
	deleted      bool // for good
}

const newestDeliverySQL = `SELECT uid
FROM deliveries
WHERE webhook_id = $1
ORDER BY uid DESC
LIMIT 1 OFFSET $2`

const anyOldSQL = `SELECT 1
FROM deliveries
WHERE webhook_id = $1 AND uid < $2 AND uid < $3
LIMIT 1`

const newestAcceptedSQL = `SELECT uid
FROM deliveries
WHERE webhook_id = $1 AND outcome = 'accepted'
ORDER BY uid DESC
LIMIT 1 OFFSET $2`

const oldDeliveriesSQL = `SELECT uid
FROM deliveries
WHERE webhook_id = $1
	AND uid < $2
	AND uid < $3
	AND received_at < $4
	AND (outcome <> 'accepted' OR uid < $5)
	AND uid > $6
ORDER BY uid
LIMIT $7`

func (s *Store) expireLog(ctx context.Context, w deliveryLog, keep int, cutoff time.Time) (int, error) {
	webhook := w.id
	newest, err := s.nthNewest(ctx, webhook, keep, newestDeliverySQL)
	if err != nil || newest == "" {
		return 0, err
	}

	oldest := DeliveryUIDAt(cutoff.Add(clockSlack))
	var any int
	err = s.db.QueryRow(ctx, anyOldSQL, webhook, newest, oldest).
		Scan(&any)
	if err != nil {
		return 0, db.NoRows(err)
	}

	accepted, err := s.nthNewest(ctx, webhook, keep, newestAcceptedSQL)
	if err != nil {
		return 0, err
	}

	total, last := 0, ""
	for {
		uids, err := db.Strings(ctx, s.db.Reader, oldDeliveriesSQL,
			webhook,
			newest,
			oldest,
			db.Micros(cutoff),
			accepted,
			last,
			expireChunk)
		if err != nil || len(uids) == 0 {
			return total, err
		}

		n, err := s.expireRows(ctx, w, uids)
		total += n
		if err != nil {
			return total, err
		}

		last = uids[len(uids)-1]
	}
}

// expireRows deletes rows of a log, all at once or, when one of them keeps it from that, each alone.
func (s *Store) expireRows(ctx context.Context, w deliveryLog, uids []string) (int, error) {
	remove := func(uids []string) error {
		return s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
			return deleteDeliveries(ctx, tx, w.id, uids)
		})
	}
	err := remove(uids)
	if err == nil {
		return len(uids), nil
	}
	if !ofRow(err) {
		return 0, err
	}

	n := 0
	for _, uid := range uids {
		err := remove([]string{uid})
		switch {
		case err == nil:
			n++
		case ofRow(err):
			s.Skip(loopRetain, w.factory, "delivery "+uid, err)
		default:
			return n, err
		}
	}

	return n, nil
}

// nthNewest returns the UID of the oldest row that is kept for its rank, or "" when fewer than keep exist.
func (s *Store) nthNewest(ctx context.Context, webhook int64, keep int, query string) (string, error) {
	var uid string
	err := s.db.QueryRow(ctx, query, webhook, max(keep-1, 0)).Scan(&uid)
	return uid, db.NoRows(err)
}

func deleteDeliveries(ctx context.Context, tx *db.Tx, webhook int64, uids []string) error {
	marks, args := db.Placeholders(uids)
	err := tx.ExecBuilt(ctx, `DELETE FROM payloads
WHERE delivery_uid IN (`+marks+`)
	AND NOT EXISTS (
		SELECT 1
		FROM runs
		WHERE runs.delivery_uid = payloads.delivery_uid AND runs.delivery_uid <> ''
	)`, args...)
	if err != nil {
		return err
	}

	args = append(args, webhook)
	return tx.ExecBuilt(ctx, `DELETE FROM deliveries
WHERE uid IN (`+marks+`) AND webhook_id = $`+strconv.Itoa(len(args)), args...)
}

const expireIdentitiesSQL = `DELETE FROM identities
WHERE webhook_id = $1 AND hash IN (SELECT hash FROM identities WHERE webhook_id = $1 LIMIT $2)`

func (s *Store) expireIdentities(ctx context.Context, webhook int64) error {
	for {
		var n int64
		err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) (err error) {
			n, err = tx.Exec(ctx, expireIdentitiesSQL, webhook, expireChunk)
			return err
		})
		if err != nil || n == 0 {
			return err
		}
	}
}
