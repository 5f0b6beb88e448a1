package checks

import (
	"context"
	"fmt"
	"strings"
	"time"

	"millwright/schema"
	"millwright/state/db"
)

// Revision is an attempt to apply a commit of a watched branch.
type Revision struct {
	FactoryUID string
	URL        string // of the git source
	Commit     string
	Attempt    int64 // ID of the attempt
	Created    int   // resources
	Updated    int
	Deleted    int
	Problems   []schema.Problem
}

// kept is how many commits of a watched branch are kept for each factory.
const kept = 200

// expireSQL deletes the oldest commits of a factory that are published, beyond those that are kept.
const expireSQL = `DELETE FROM checks
WHERE factory_uid = $1
	AND number = 0
	AND state IN ('done', 'failed', 'dropped')
	AND subject IN (
		SELECT subject
		FROM checks
		WHERE factory_uid = $1 AND number = 0
		ORDER BY updated_at DESC
		LIMIT 1000 OFFSET $2
	)`

// supersedeSQL ends the pending statuses of other commits: they will not be attempted any more.
const supersedeSQL = `UPDATE checks
SET
	result = 'error',
	description = $3,
	public = $3,
	revision = revision + 1,
	state = CASE WHEN state = 'doing' THEN 'doing' ELSE 'waiting' END,
	attempts = CASE WHEN state = 'doing' THEN attempts ELSE 0 END,
	next_at = CASE WHEN state = 'doing' THEN next_at ELSE $4 END,
	updated_at = $4
WHERE factory_uid = $1
	AND number = 0
	AND result = 'pending'
	AND subject <> $2`

const beginSQL = `INSERT INTO checks (
	factory_uid, subject, number, url, commit_id, result, description, public, next_at, created_at, updated_at
)
VALUES ($1, $2, 0, $3, $2, 'pending', $4, $4, $5, $6, $6)
ON CONFLICT (factory_uid, subject) DO NOTHING`

// Begin records that a commit of a watched branch is attempted, unless there is a check of it.
func (t Table) Begin(ctx context.Context, factoryUID, url, commit string) error {
	now := time.Now()
	return t.db.Exec(ctx, beginSQL,
		factoryUID, commit, url, "checking the definition", db.Micros(now.Add(grace)), db.Micros(now))
}

// Applied records, in the transaction of an apply, that the forge is owed its success.
func Applied(ctx context.Context, tx *db.Tx, r Revision, now time.Time) error {
	text := "applied: no changes"
	var parts []string
	for _, n := range []struct {
		count int
		word  string
	}{{r.Created, "created"}, {r.Updated, "updated"}, {r.Deleted, "deleted"}} {
		if n.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n.count, n.word))
		}
	}
	if len(parts) > 0 {
		text = "applied: " + strings.Join(parts, ", ")
	}

	return attempted(ctx, tx, r, Success, text, text, now)
}

// Refused records, in the transaction of a refusal, that the forge is owed its first problem.
func Refused(ctx context.Context, tx *db.Tx, r Revision, now time.Time) error {
	return attempted(ctx, tx, r, Failure, Refusal(r.Problems, false), Refusal(r.Problems, true), now)
}

// Delayed records that a commit could not be applied yet, and is attempted again.
func Delayed(ctx context.Context, tx *db.Tx, r Revision, now time.Time) error {
	const text = "not applied yet: the server tries again"
	return attempted(ctx, tx, r, Pending, text, text, now)
}

// Suspended records that a commit is valid and waits, since its factory was rolled back.
func Suspended(ctx context.Context, tx *db.Tx, r Revision, now time.Time) error {
	const text = "valid, and not applied while the factory is suspended by a rollback"
	return attempted(ctx, tx, r, Pending, text, text, now)
}

func attempted(
	ctx context.Context, tx *db.Tx, r Revision, result Result, text, public string, now time.Time,
) error {
	c := Check{
		FactoryUID:  r.FactoryUID,
		URL:         r.URL,
		Commit:      r.Commit,
		Result:      result,
		Description: text,
		Public:      public,
		Attempt:     r.Attempt,
	}
	changed, err := put(ctx, tx, c, now)
	if err != nil || !changed {
		return err
	}

	_, err = tx.Exec(ctx, supersedeSQL,
		r.FactoryUID, r.Commit, "a newer revision took its place", db.Micros(now))
	if err != nil {
		return err
	}

	_, err = tx.Exec(ctx, expireSQL, r.FactoryUID, kept)
	return err
}

// Refusal describes a refusal in one line: the first error with its place, and the number of others. For a
// public repository it leaves out the rules that need the state, which reveal whether a secret exists.
func Refusal(problems []schema.Problem, public bool) string {
	first, n := "", 0
	for _, p := range problems {
		if p.Severity != schema.SeverityError {
			continue
		}

		n++
		rule, known := schema.LookupRule(p.Code)
		if first == "" && (!public || known && !rule.NeedsState) {
			first = fmt.Sprintf("%s:%d: %s [%s]", p.Path, p.Line, p.Message, p.Code)
		}
	}

	switch {
	case first == "" && n == 1:
		return "refused: 1 problem, which the server's page has"
	case first == "":
		return fmt.Sprintf("refused: %d problems, which the server's page has", n)
	case n > 1:
		return fmt.Sprintf("refused: %s and %d more", first, n-1)
	}
	return "refused: " + first
}
