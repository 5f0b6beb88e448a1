package state

import (
	"context"
	"database/sql"
	"errors"

	"millwright/state/db"
)

// RunRepository is a repository that a run is checked out from.
type RunRepository struct {
	Position   int // among those of the run, from 0
	Forge      string
	Owner      string
	Name       string
	BaseCommit string // that the run began with; empty until a worker told
	BaseBranch string // that BaseCommit was on; empty: none that is known by name
	Untrusted  bool   // what started the run names a commit that no branch of the repository has
}

// FullName returns owner/name.
func (r RunRepository) FullName() string { return r.Owner + "/" + r.Name }

const repositoriesSQL = `SELECT position, forge, owner, name, base_commit, base_branch, untrusted
FROM run_repositories
WHERE run_id = $1
ORDER BY position`

// Repositories returns the repositories of a run, in their order.
func (s *Store) Repositories(ctx context.Context, runID string) ([]RunRepository, error) {
	return db.All(ctx, s.db.Reader, func(row db.Row) (r RunRepository, err error) {
		err = row.Scan(&r.Position, &r.Forge, &r.Owner, &r.Name, &r.BaseCommit, &r.BaseBranch, &r.Untrusted)
		return r, err
	}, repositoriesSQL, runID)
}

const insertRepositorySQL = `INSERT INTO run_repositories (run_id, position, forge, owner, name)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (run_id, position) DO NOTHING`

// SetRepositories records the repositories of a run that is claimed. Those of an earlier claim stay. ErrLost when the
// claim no longer holds.
func (s *Store) SetRepositories(ctx context.Context, c Claim, all []RunRepository) error {
	return s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		if err := s.lockClaimed(ctx, tx, c); err != nil {
			return err
		}

		for i, r := range all {
			if _, err := tx.Exec(ctx, insertRepositorySQL, c.RunID, i, r.Forge, r.Owner, r.Name); err != nil {
				return err
			}
		}
		return nil
	})
}

const setBaseSQL = `UPDATE run_repositories
SET base_commit = $3, base_branch = $4, untrusted = $5
WHERE run_id = $1 AND position = $2 AND base_commit = ''`

// SetBases records the commits that a run began with, by the positions of its repositories. Those that are known stay.
// ErrLost when the claim no longer holds.
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
