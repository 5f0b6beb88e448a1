package checks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"millwright/state/db"
)

// MaxPulls bounds the open pull requests of a factory that are checked.
const MaxPulls = 1000

// pullsKept is how long a closed pull request is remembered, with its comment.
const pullsKept = 30 * 24 * time.Hour

const pullsSQL = `SELECT ` + columns + `
FROM checks
WHERE factory_uid = $1 AND number > 0
ORDER BY is_open DESC, number DESC
LIMIT $2`

// Pulls returns the checked pull requests of a factory, open ones first, the newest first.
func (t Table) Pulls(ctx context.Context, factoryUID string, limit int) ([]Check, error) {
	return db.All(ctx, t.db.Reader, scan, pullsSQL, factoryUID, limit)
}

const subjectSQL = `SELECT ` + columns + `
FROM checks
WHERE factory_uid = $1 AND subject = $2`

// Subject returns the check of a subject of a factory, if there is one.
func (t Table) Subject(ctx context.Context, factoryUID, subject string) ([]Check, error) {
	return db.All(ctx, t.db.Reader, scan, subjectSQL, factoryUID, subject)
}

const commitSQL = `SELECT ` + columns + `
FROM checks
WHERE factory_uid = $1 AND commit_id = $2
LIMIT 100`

// Commit returns the checks of a commit of a factory, at most 100.
func (t Table) Commit(ctx context.Context, factoryUID, commit string) ([]Check, error) {
	return db.All(ctx, t.db.Reader, scan, commitSQL, factoryUID, commit)
}

const closeSQL = `UPDATE checks
SET
	is_open = 0,
	state = CASE WHEN state = 'waiting' THEN 'dropped' ELSE state END,
	updated_at = $3
WHERE factory_uid = $1 AND subject = $2`

const forgetSQL = `DELETE FROM checks
WHERE factory_uid = $1 AND number > 0 AND is_open = 0 AND updated_at < $2`

// See records the open pull requests of a factory as its forge lists them, and returns all that are open, the
// newest first. One that is new, open again, or has another head is pending. whole says that the list has all:
// the others are closed. Of a list that was cut, the newest MaxPulls of the others stay open.
func (t Table) See(ctx context.Context, factoryUID string, open []Check, whole bool) (all []Check, err error) {
	err = t.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		all = nil
		now := time.Now()
		known, err := db.All(ctx, tx.Reader, scan, pullsSQL, factoryUID, 2*MaxPulls)
		if err != nil {
			return err
		}

		had := map[int]Check{}
		for _, c := range known {
			had[c.Number] = c
		}

		for _, c := range open {
			was, old := had[c.Number]
			delete(had, c.Number)
			if old && was.Open && was.Commit == c.Commit && was.URL == c.URL {
				all = append(all, was)
				continue
			}

			c.FactoryUID, c.Open, c.Result = factoryUID, true, Pending
			c.Description, c.Public = "checking the pull request", "checking the pull request"
			c.Comment = was.Comment
			if _, err := put(ctx, tx, c, now); err != nil {
				return fmt.Errorf("pull request %d: %w", c.Number, err)
			}

			all = append(all, c)
		}

		unlisted := slices.SortedFunc(maps.Values(had), func(a, b Check) int { return b.Number - a.Number })
		unlisted = slices.DeleteFunc(unlisted, func(c Check) bool { return !c.Open })
		if !whole {
			unlisted = unlisted[min(len(unlisted), MaxPulls):]
		}
		for _, c := range unlisted {
			if _, err := tx.Exec(ctx, closeSQL, factoryUID, c.Subject(), db.Micros(now)); err != nil {
				return err
			}
		}

		_, err = tx.Exec(ctx, forgetSQL, factoryUID, db.Micros(now.Add(-pullsKept)))
		return err
	})
	return all, err
}

const headSQL = `SELECT commit_id
FROM checks
WHERE factory_uid = $1 AND subject = $2 AND is_open = 1`

const basisSQL = `UPDATE checks
SET basis = $3
WHERE factory_uid = $1 AND subject = $2`

// Checked records the result of a check of a pull request. ErrConflict when the pull request is closed, or has
// another head by now.
func (t Table) Checked(ctx context.Context, c Check) error {
	return t.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		var head string
		err := tx.QueryRow(ctx, headSQL+t.db.ForUpdate(), c.FactoryUID, c.Subject()).Scan(&head)
		if db.NoRows(err) != nil {
			return err
		}
		if err != nil || head != c.Commit {
			return ErrConflict
		}

		c.Open = true
		if _, err := put(ctx, tx, c, time.Now()); err != nil {
			return err
		}

		_, err = tx.Exec(ctx, basisSQL, c.FactoryUID, c.Subject(), c.Basis)
		return err
	})
}
