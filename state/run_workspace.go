package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"millwright/state/db"
)

// Bounds of snapshots.
const (
	// SnapshotPart is how many bytes each part of a snapshot has, but for the last.
	SnapshotPart = 512 << 10
	// MaxSnapshotParts is how many parts a snapshot has at most.
	MaxSnapshotParts = 160

	snapshotKept      = 7 * 24 * time.Hour
	maxSnapshotBytes  = 5 << 30 // of one factory
	partsOfAttempt    = 1000    // numbers of parts that belong to one attempt
	attemptsOfNumbers = 10
)

// Snapshot is what the last execution of a run left for the next one: the session of its agent, and its work
// tree.
type Snapshot struct {
	Execution int             // that left it
	Session   json.RawMessage // as the worker describes it
	Digest    string          // of the archive
	Size      int64           // of the archive, in bytes; 0: none
	first     int64           // number of the first part
}

// firstPart is the number of the first part of what an attempt sends.
func firstPart(r Run) int64 {
	return (int64(r.Execution)*attemptsOfNumbers + int64(r.Attempt)) * partsOfAttempt
}

func partPurpose(runID string, number int64) string {
	return fmt.Sprintf("snapshot %s %d", runID, number)
}

// PutSnapshotPart keeps a part of the archive that the worker of a claim sends. A repeat changes nothing. ErrLost
// when the claim no longer holds.
func (s *Store) PutSnapshotPart(ctx context.Context, c Claim, part int, body []byte) error {
	if part < 0 || part >= MaxSnapshotParts || len(body) == 0 || len(body) > SnapshotPart {
		return refuse(ErrConflict, "part %d of %d bytes of a snapshot", part, len(body))
	}

	return s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		r, err := s.lockHeld(ctx, tx, c)
		if err != nil {
			return err
		}

		number := firstPart(r) + int64(part)
		_, err = tx.Exec(ctx, `
			INSERT INTO run_snapshot_parts (run_id, part, factory_uid, sealed, created_at)
			VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (run_id, part) DO UPDATE SET sealed = excluded.sealed`,
			r.ID, number, r.FactoryUID, s.seal.Seal(partPurpose(r.ID, number), body), db.Micros(time.Now()))
		return err
	})
}

// PutSnapshot makes the parts that were sent under the claim the run's snapshot, in place of the one before, and
// deletes the oldest snapshots of the factory beyond its share. ErrLost when the claim no longer holds,
// ErrConflict when a part is missing.
func (s *Store) PutSnapshot(ctx context.Context, c Claim, v Snapshot) error {
	return s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		r, err := s.lockHeld(ctx, tx, c)
		if err != nil {
			return err
		}

		first := firstPart(r)
		parts := (v.Size + SnapshotPart - 1) / SnapshotPart
		var have int64
		err = tx.QueryRow(ctx, `
			SELECT count(*)
			FROM run_snapshot_parts
			WHERE run_id = $1 AND part >= $2 AND part < $3`, r.ID, first, first+parts).Scan(&have)
		if err != nil {
			return err
		}
		if have != parts || parts > MaxSnapshotParts {
			return refuse(ErrConflict, "run %s has %d parts of %d of its snapshot", r.ID, have, parts)
		}

		_, err = tx.Exec(ctx, `
			DELETE FROM run_snapshot_parts
			WHERE run_id = $1 AND (part < $2 OR part >= $3)`, r.ID, first, first+parts)
		if err != nil {
			return err
		}

		_, err = tx.Exec(ctx, `
			INSERT INTO run_snapshots (run_id, factory_uid, execution, session, digest, size, first_part, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (run_id) DO UPDATE
			SET execution = excluded.execution,
				session = excluded.session,
				digest = excluded.digest,
				size = excluded.size,
				first_part = excluded.first_part,
				created_at = excluded.created_at`,
			r.ID, r.FactoryUID, r.Execution, string(v.Session), v.Digest, v.Size, first, db.Micros(time.Now()))
		if err != nil {
			return err
		}

		return s.boundSnapshots(ctx, tx, r.FactoryUID, maxSnapshotBytes)
	})
}

// boundSnapshots deletes the oldest snapshots of a factory beyond max bytes.
func (s *Store) boundSnapshots(ctx context.Context, tx *db.Tx, factoryUID string, max int64) error {
	var held int64
	err := tx.QueryRow(ctx, `
		SELECT coalesce(sum(size), 0)
		FROM run_snapshots
		WHERE factory_uid = $1`, factoryUID).Scan(&held)
	if err != nil || held <= max {
		return err
	}

	type oldest struct {
		id   string
		size int64
	}
	scan := func(row db.Row) (v oldest, err error) { return v, row.Scan(&v.id, &v.size) }
	all, err := db.All(ctx, tx.Reader, scan, `
		SELECT run_id, size
		FROM run_snapshots
		WHERE factory_uid = $1
		ORDER BY created_at, run_id
		LIMIT 1000`, factoryUID)
	for _, v := range all {
		if err != nil || held <= max {
			break
		}
		err = dropSnapshot(ctx, tx, v.id)
		held -= v.size
	}

	return err
}

func dropSnapshot(ctx context.Context, tx *db.Tx, runID string) error {
	for _, query := range []string{
		`DELETE FROM run_snapshots WHERE run_id = $1`,
		`DELETE FROM run_snapshot_parts WHERE run_id = $1`,
	} {
		if _, err := tx.Exec(ctx, query, runID); err != nil {
			return err
		}
	}
	return nil
}

// Snapshot returns what the executions before the present one left. ErrNotFound when they left nothing, or it was
// deleted meanwhile.
func (s *Store) Snapshot(ctx context.Context, r Run) (Snapshot, error) {
	var v Snapshot
	var session string
	err := s.db.QueryRow(ctx, `
		SELECT execution, session, digest, size, first_part
		FROM run_snapshots
		WHERE run_id = $1 AND execution < $2`, r.ID, r.Execution).
		Scan(&v.Execution, &session, &v.Digest, &v.Size, &v.first)
	if errors.Is(err, sql.ErrNoRows) {
		return v, refuse(ErrNotFound, "snapshot of run %s", r.ID)
	}

	v.Session = json.RawMessage(session)
	return v, err
}

// SnapshotPart returns a part of a snapshot's archive, decrypted. Parts count from 0. ErrNotFound if the snapshot
// has no such part.
func (s *Store) SnapshotPart(ctx context.Context, r Run, v Snapshot, part int) ([]byte, error) {
	number := v.first + int64(part)
	var sealed []byte
	err := s.db.QueryRow(ctx, `
		SELECT sealed
		FROM run_snapshot_parts
		WHERE run_id = $1 AND part = $2`, r.ID, number).Scan(&sealed)
	if errors.Is(err, sql.ErrNoRows) || err == nil && (part < 0 || part >= MaxSnapshotParts) {
		return nil, refuse(ErrNotFound, "part %d of the snapshot of run %s", part, r.ID)
	}
	if err != nil {
		return nil, err
	}

	return s.seal.Open(partPurpose(r.ID, number), sealed)
}

// ExpireSnapshots deletes the snapshots that are older than they are kept, and old parts of runs without one.
func (s *Store) ExpireSnapshots(ctx context.Context) error {
	before := db.Micros(time.Now().Add(-snapshotKept))
	return s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		for _, query := range []string{
			`DELETE FROM run_snapshots WHERE created_at < $1`,
			`DELETE FROM run_snapshot_parts
			WHERE created_at < $1
			AND run_id IN (
				SELECT run_id FROM run_snapshot_parts
				EXCEPT SELECT run_id FROM run_snapshots
			)`,
		} {
			if _, err := tx.Exec(ctx, query, before); err != nil {
				return err
			}
		}
		return nil
	})
}

// RunRepository is a repository that a run is checked out from.
type RunRepository struct {
	Position   int // among those of the run, from 0
	Forge      string
	Owner      string
	Name       string
	BaseCommit string // that the run began with; empty until a worker told
	BaseBranch string // that BaseCommit was on; empty: none that is known by name
	Untrusted  bool   // what started the run names a commit that no branch of the repository has
	Foreign    bool   // the run starts in this commit all the same; implies Untrusted
}

// FullName returns owner/name.
func (r RunRepository) FullName() string { return r.Owner + "/" + r.Name }

const repositoriesSQL = `SELECT position, forge, owner, name, base_commit, base_branch, untrusted, foreign_head
FROM run_repositories
WHERE run_id = $1
ORDER BY position`

// Repositories returns the repositories of a run, in their order.
func (s *Store) Repositories(ctx context.Context, runID string) ([]RunRepository, error) {
	return db.All(ctx, s.db.Reader, func(row db.Row) (r RunRepository, err error) {
		err = row.Scan(&r.Position, &r.Forge, &r.Owner, &r.Name, &r.BaseCommit, &r.BaseBranch, &r.Untrusted, &r.Foreign)
		r.Untrusted = r.Untrusted || r.Foreign
		return r, err
	}, repositoriesSQL, runID)
}

const insertRepositorySQL = `INSERT INTO run_repositories (run_id, position, forge, owner, name, foreign_head)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (run_id, position) DO NOTHING`

// SetRepositories records the repositories of a run that is claimed. Those of an earlier claim stay. ErrLost
// when the claim no longer holds.
func (s *Store) SetRepositories(ctx context.Context, c Claim, all []RunRepository) error {
	return s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		if err := s.lockClaimed(ctx, tx, c); err != nil {
			return err
		}

		for i, r := range all {
			_, err := tx.Exec(ctx, insertRepositorySQL, c.RunID, i, r.Forge, r.Owner, r.Name, db.Flag(r.Foreign))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

const setBaseSQL = `UPDATE run_repositories
SET base_commit = $3, base_branch = $4, untrusted = $5
WHERE run_id = $1 AND position = $2 AND base_commit = ''`

// SetBases records the commits that a run began with, by the positions of its repositories. Those that are
// known stay. ErrLost when the claim no longer holds.
func (s *Store) SetBases(ctx context.Context, c Claim, bases []RunRepository) error {
	return s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		if err := s.lockClaimed(ctx, tx, c); err != nil {
			return err
		}

		for _, b := range bases {
			_, err := tx.Exec(ctx, setBaseSQL, c.RunID, b.Position, b.BaseCommit, b.BaseBranch, db.Flag(b.Untrusted))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// lockClaimed locks a run that the claim holds, also before its start.
func (s *Store) lockClaimed(ctx context.Context, tx *db.Tx, c Claim) error {
	var id string
	err := tx.QueryRow(ctx, `SELECT id FROM runs WHERE`+held+s.db.ForUpdate(), c.RunID, c.Worker, c.hash()).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrLost
	}
	return err
}

// contentsSQL has the bytes of files and snapshots that runs left.
const contentsSQL = `SELECT run_id, CAST(sum(size) AS BIGINT)
FROM (
	SELECT run_id, size
	FROM run_artifacts
	WHERE run_id IN (%[1]s)
	UNION ALL
	SELECT run_id, %[2]d
	FROM run_snapshot_parts
	WHERE run_id IN (%[1]s)
) AS contents
GROUP BY run_id`

// maxContents is how many bytes of the contents of one run go with its row.
const maxContents = expireBytes / expireBatch

// expireContents deletes what is large of runs that are about to expire, in transactions of bounded size.
func (s *Store) expireContents(ctx context.Context, runs []endedRun, before int64) error {
	ids := make([]string, len(runs))
	for i, r := range runs {
		ids[i] = r.id
	}
	marks, args := db.Placeholders(padded(ids))

	var large []string
	err := db.Each(ctx, s.db.Built(), func(row db.Row) error {
		var id string
		var size int64
		err := row.Scan(&id, &size)
		if size > maxContents {
			large = append(large, id)
		}
		return err
	}, fmt.Sprintf(contentsSQL, marks, SnapshotPart), args...)
	if err != nil {
		return err
	}

	for _, id := range large {
		for {
			n, err := s.dropContents(ctx, id, before)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
		}
	}

	return nil
}

// expireParts is how many parts of contents one transaction deletes.
const expireParts = expireBytes / ArtifactPart

const dropArtifactPartsSQL = `DELETE FROM run_artifact_parts
WHERE (artifact_uid, part) IN (
	SELECT p.artifact_uid, p.part
	FROM run_artifact_parts p
	JOIN run_artifacts a ON a.uid = p.artifact_uid
	JOIN runs r ON r.id = a.run_id
	WHERE r.id = $1 AND r.finished_at IS NOT NULL AND r.updated_at < $2
	LIMIT $3
)`

const dropSnapshotPartsSQL = `DELETE FROM run_snapshot_parts
WHERE (run_id, part) IN (
	SELECT p.run_id, p.part
	FROM run_snapshot_parts p
	JOIN runs r ON r.id = p.run_id
	WHERE r.id = $1 AND r.finished_at IS NOT NULL AND r.updated_at < $2
	LIMIT $3
)`

// dropContents deletes parts of the contents of a run that ended before a time, as many as one transaction
// may, and returns how many.
func (s *Store) dropContents(ctx context.Context, id string, before int64) (n int64, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		if n, err = tx.Exec(ctx, dropArtifactPartsSQL, id, before, expireParts); err != nil || n > 0 {
			return err
		}

		n, err = tx.Exec(ctx, dropSnapshotPartsSQL, id, before, expireParts)
		return err
	})
	return n, err
}

// expireBatch is how many runs are expired in one transaction.
const expireBatch = 200

// endedRun names a run that has ended.
type endedRun struct {
	id, factory, delivery, webhook string
	automation, flow               string
	updated                        int64
}

// expireBytes is how many bytes of artifacts one transaction deletes, so that deliveries never wait long.
const expireBytes = 32 << 20
