package state

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"millwright/state/budget"
	"millwright/state/db"
	"millwright/state/flow"
)

// expireChunk is how many rows one transaction of a trim deletes, so that deliveries never wait long.
const expireChunk = 500

const deliveryLogsSQL = `SELECT
	id, uid, factory_uid, deleted_at IS NOT NULL AND coalesce(restorable_until, 0) <= $1
FROM webhooks
ORDER BY id`

// ExpireDeliveries deletes old rows of the delivery logs, and returns how many it deleted. A row stays while it is
// among the newest keep rows of its webhook, is among the newest keep accepted ones, or is younger than age. So a
// flood of rejected requests pushes no accepted delivery out. The payload of a row is deleted with it, unless a
// run refers to it. Identities are deleted when their webhook is deleted and cannot return, offered secrets after
// age.
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

// ExpireRuns expires idempotency keys that are older than they are kept and, unless age is 0, the runs that
// ended longer than age ago, with all that belongs to them: conversation, attachments, and the payload of
// the delivery when the delivery's row is gone too. It returns how many runs it expired.
func (s *Store) ExpireRuns(ctx context.Context, age time.Duration) (int, error) {
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		_, err := tx.Exec(
			ctx,
			`DELETE FROM idempotency WHERE created_at <= $1`,
			db.Micros(time.Now().Add(-idempotencyKept)),
		)
		return err
	})
	if err != nil || age == 0 {
		return 0, err
	}

	before, total := db.Micros(time.Now().Add(-age)), 0
	for _, st := range RunStates() {
		var last endedRun
		for st.Ended() && ctx.Err() == nil {
			was := last
			var n int
			last, n, err = s.expireEnded(ctx, st, before, last)
			if total += n; err != nil {
				return total, err
			}
			if last == was {
				break
			}
		}
	}

	return total, ctx.Err()
}

// expireEnded expires one batch of the runs that ended in state st and come after one of them. When a run keeps
// the batch from that, each is expired alone, and those that cannot be are skipped.
func (s *Store) expireEnded(
	ctx context.Context,
	st RunState,
	before int64,
	after endedRun,
) (last endedRun, n int, err error) {
	runs, err := s.endedRuns(ctx, st, before, after)
	if err != nil || len(runs) == 0 {
		return after, 0, err
	}

	last = runs[len(runs)-1]
	if err := s.expireContents(ctx, runs, before); err != nil {
		return last, 0, err
	}
	n, err = s.deleteRuns(ctx, runs, before)
	if !ofRow(err) {
		return last, n, err
	}

	for _, r := range runs {
		one, err := s.deleteRuns(ctx, []endedRun{r}, before)
		n += one
		if ofRow(err) {
			s.Skip(loopRetain, r.factory, "run "+r.id, err)
		} else if err != nil {
			return last, n, err
		}
	}

	return last, n, nil
}

const endedRunsSQL = `SELECT id, factory_uid, delivery_uid, webhook_uid, automation_uid, flow, updated_at
FROM runs
WHERE state = $1
	AND updated_at < $2
	AND (updated_at, id) > ($3, $4)
	AND finished_at IS NOT NULL
ORDER BY updated_at, id
LIMIT $5`

// endedRuns returns a batch of runs that ended in state st and come after one of them.
func (s *Store) endedRuns(ctx context.Context, st RunState, before int64, after endedRun) ([]endedRun, error) {
	all, err := db.All(ctx, s.db.Reader, func(row db.Row) (e endedRun, err error) {
		return e, row.Scan(&e.id, &e.factory, &e.delivery, &e.webhook, &e.automation, &e.flow, &e.updated)
	}, endedRunsSQL, string(st), before, after.updated, after.id, expireBatch)
	return all, err
}

const deleteRunSQL = `DELETE
FROM runs
WHERE id = $1 AND finished_at IS NOT NULL AND updated_at < $2`

// deletePayloadSQL deletes the payload of a delivery that no run and no row of a log refers to.
const deletePayloadSQL = `DELETE FROM payloads
WHERE delivery_uid = $1
	AND NOT EXISTS (
		SELECT 1
		FROM runs
		WHERE runs.delivery_uid = $1 AND runs.delivery_uid <> ''
	)
	AND NOT EXISTS (
		SELECT 1
		FROM deliveries d
		JOIN webhooks w ON w.id = d.webhook_id
		WHERE w.uid = $2 AND d.uid = $1
	)`

// deleteRuns expires those of the runs, in one transaction, that have not begun again meanwhile.
func (s *Store) deleteRuns(ctx context.Context, runs []endedRun, before int64) (n int, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		n = 0
		for _, r := range runs {
			err := tx.ExecOne(ctx, deleteRunSQL, r.id, before)
			if errors.Is(err, db.ErrNoRow) {
				continue
			}
			if err != nil {
				return err
			}

			n++
			if r.flow != "" {
				if err := flow.Forget(ctx, tx, r.automation, r.id, conversationOf(r.flow)); err != nil {
					return err
				}
			}
			if r.delivery == "" {
				continue
			}

			if _, err := tx.Exec(ctx, deletePayloadSQL, r.delivery, r.webhook); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		n = 0
	}

	return n, err
}

// conversationOf returns the key of the conversation in a flow as it is stored; empty when there is none.
func conversationOf(text string) string {
	var f Flow
	if json.Unmarshal([]byte(text), &f) != nil {
		return ""
	}
	return f.Conversation
}

// ExpireUse deletes the counts of tokens, dollars and runs of days that budgets and charts no longer show.
func (s *Store) ExpireUse(ctx context.Context) error { return budget.Expire(ctx, s.db, time.Now()) }

// artifactCost is how many bytes the smallest artifact counts as.
const artifactCost = 4 << 10

const (
	heldArtifactsSQL = `SELECT factory_uid, CAST(sum(CASE WHEN size < $1 THEN $1 ELSE size END) AS BIGINT)
		FROM run_artifacts
		GROUP BY factory_uid`

	oldestArtifactsSQL = `SELECT uid, size
		FROM run_artifacts
		WHERE factory_uid = $1
		ORDER BY created_at, uid
		LIMIT $2`
)

// ExpireArtifacts deletes the oldest artifacts of each factory that has more than most bytes of them, and
// returns how many it deleted. An artifact counts as at least 4 KiB.
func (s *Store) ExpireArtifacts(ctx context.Context, most int64) (total int, err error) {
	held := map[string]int64{}
	err = db.Each(ctx, s.db.Reader, func(row db.Row) error {
		var factory string
		var size int64
		err := row.Scan(&factory, &size)
		held[factory] = size
		return err
	}, heldArtifactsSQL, artifactCost)
	if err != nil {
		return 0, err
	}

	for factory, size := range held {
		for size > most && ctx.Err() == nil {
			freed, n, err := s.expireArtifacts(ctx, factory, size-most)
			if total += n; err != nil {
				return total, err
			}
			if n == 0 {
				break
			}
			size -= freed
		}
	}

	return total, ctx.Err()
}

// expireArtifacts deletes the oldest artifacts of a factory: as many as have at least so many bytes, in a
// transaction of bounded size.
func (s *Store) expireArtifacts(
	ctx context.Context,
	factory string,
	over int64,
) (freed int64, n int, err error) {
	type oldest struct {
		uid  string
		size int64
	}
	scan := func(row db.Row) (v oldest, err error) { return v, row.Scan(&v.uid, &v.size) }

	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		freed, n = 0, 0
		all, err := db.All(ctx, tx.Reader, scan, oldestArtifactsSQL, factory, expireChunk)
		if err != nil {
			return err
		}

		for _, v := range all {
			if freed >= min(over, expireBytes) {
				break
			}
			if _, err := tx.Exec(ctx, `DELETE FROM run_artifacts WHERE uid = $1`, v.uid); err != nil {
				return err
			}
			freed += max(v.size, artifactCost)
			n++
		}
		return nil
	})
	return freed, n, err
}
