package flow

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"millwright/state/db"
)

// Keys are the keys of one automation.
type Keys struct {
	FactoryUID    string
	AutomationUID string
}

const lastPositionSQL = `SELECT coalesce(max(position), 0)
FROM flow_keys
WHERE automation_uid = $1 AND part = $2 AND waiting = $3 AND hash = $4`

const insertKeySQL = `INSERT INTO flow_keys (
	automation_uid, part, waiting, hash, position, run_id, factory_uid, used_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

// Add names a run by a key, behind the others.
func (k Keys) Add(ctx context.Context, tx *db.Tx, part, hash, runID string, waiting bool) error {
	last := int64(0)
	for _, w := range []bool{false, true} {
		var position int64
		err := tx.QueryRow(ctx, lastPositionSQL, k.AutomationUID, part, bit(w), hash).Scan(&position)
		if err != nil {
			return err
		}

		last = max(last, position)
	}

	_, err := tx.Exec(ctx, insertKeySQL, k.AutomationUID, part, bit(waiting), hash, last+1, runID, k.FactoryUID,
		db.Micros(time.Now()))
	return err
}

const removeKeySQL = `DELETE FROM flow_keys
WHERE automation_uid = $1 AND part = $2 AND waiting = $3 AND hash = $4 AND run_id = $5`

// Remove reports whether a key named the run and, if so, whether the run waited. The key does not name it any more.
func (k Keys) Remove(ctx context.Context, tx *db.Tx, part, hash, runID string) (removed, waited bool, err error) {
	for _, w := range []bool{false, true} {
		n, err := tx.Exec(ctx, removeKeySQL, k.AutomationUID, part, bit(w), hash, runID)
		if err != nil || n > 0 {
			return n > 0, w, err
		}
	}
	return false, false, nil
}

const removeRunSQL = `DELETE FROM flow_keys
WHERE automation_uid = $1 AND part <> 'conversation' AND run_id = $2
RETURNING part, hash`

// RemoveRun takes a run off all its keys but that of a conversation, and returns those of concurrency.
func (k Keys) RemoveRun(ctx context.Context, tx *db.Tx, runID string) (hashes []string, err error) {
	err = db.Each(ctx, tx.Reader, func(row db.Row) error {
		var part, hash string
		err := row.Scan(&part, &hash)
		if part == PartConcurrency {
			hashes = append(hashes, hash)
		}
		return err
	}, removeRunSQL, k.AutomationUID, runID)
	return hashes, err
}

const keyRunsSQL = `SELECT run_id
FROM flow_keys
WHERE automation_uid = $1 AND part = $2 AND waiting = $3 AND hash = $4
ORDER BY position
LIMIT $5`

// Runs returns the runs that a key names and that wait or do not, in order: at most limit of them.
func (k Keys) Runs(
	ctx context.Context, tx *db.Tx, part, hash string, waiting bool, limit int,
) ([]string, error) {
	return db.Strings(ctx, tx.Reader, keyRunsSQL, k.AutomationUID, part, bit(waiting), hash, limit)
}

// Run returns the first run that a key names; empty when it names none.
func (k Keys) Run(ctx context.Context, tx *db.Tx, part, hash string, waiting bool) (string, error) {
	var id string
	err := tx.QueryRow(ctx, keyRunsSQL, k.AutomationUID, part, bit(waiting), hash, 1).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return id, err
}

const usedKeySQL = `UPDATE flow_keys
SET used_at = $4
WHERE automation_uid = $1 AND part = $2 AND waiting = 0 AND hash = $3`

// Use notes that a key of a conversation was used now.
func (k Keys) Use(ctx context.Context, tx *db.Tx, part, hash string) error {
	_, err := tx.Exec(ctx, usedKeySQL, k.AutomationUID, part, hash, db.Micros(time.Now()))
	return err
}

// WaitingFull reports whether as many runs of the automation wait as may.
func (k Keys) WaitingFull(ctx context.Context, tx *db.Tx) (bool, error) {
	left := MaxWaiting
	for _, part := range []string{PartConcurrency, PartDebounce} {
		var n int
		err := tx.QueryRow(ctx, countKeysSQL, k.AutomationUID, part, 1, left).Scan(&n)
		if left -= n; err != nil || left <= 0 {
			return true, err
		}
	}
	return false, nil
}

const countKeysSQL = `SELECT count(*)
FROM (
	SELECT 1
	FROM flow_keys
	WHERE automation_uid = $1 AND part = $2 AND waiting = $3
	LIMIT $4
) AS found`

// Full reports whether as many keys of a part are remembered as may be. It forgets those of conversations whose
// runs have ended, the longest unused first.
func (k Keys) Full(ctx context.Context, tx *db.Tx, part string) (bool, error) {
	for range 2 {
		var n int
		err := tx.QueryRow(ctx, countKeysSQL, k.AutomationUID, part, 0, MaxKeys).Scan(&n)
		if err != nil || n < MaxKeys || part != PartConversation {
			return n >= MaxKeys, err
		}
		if err := k.forget(ctx, tx); err != nil {
			return true, err
		}
	}
	return true, nil
}

// forgottenAtOnce is how many keys of conversations are forgotten to make room.
const forgottenAtOnce = 100

const endedKeysSQL = `SELECT k.hash
FROM flow_keys k
WHERE k.automation_uid = $1
	AND k.part = 'conversation'
	AND k.waiting = 0
	AND NOT EXISTS (
		SELECT 1
		FROM runs r
		WHERE r.id = k.run_id AND r.finished_at IS NULL
	)
ORDER BY k.used_at
LIMIT $2`

const forgetKeySQL = `DELETE FROM flow_keys
WHERE automation_uid = $1 AND part = 'conversation' AND waiting = 0 AND hash = $2`

func (k Keys) forget(ctx context.Context, tx *db.Tx) error {
	hashes, err := db.Strings(ctx, tx.Reader, endedKeysSQL, k.AutomationUID, forgottenAtOnce)
	if err != nil {
		return err
	}

	for _, hash := range hashes {
		if _, err := tx.Exec(ctx, forgetKeySQL, k.AutomationUID, hash); err != nil {
			return err
		}
	}

	return nil
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
