package state

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"millwright/schema"
	"millwright/state/audit"
	"millwright/state/db"
	"millwright/state/events"
	"millwright/state/trees"
)

// ErrSuperseded says that a managed definition got a newer revision than the one that was
// to be applied. It is an ErrMoved.
var ErrSuperseded = fmt.Errorf("a newer revision was made: %w", ErrMoved)

const (
	// managedRevisions is how many revisions are kept of each definition that the server holds, and
	managedRevisions = 200
	// managedBytes how many bytes of files that the newest one no longer has.
	managedBytes = 64 << 20
)

// ManagedRevision is a revision of a managed definition.
type ManagedRevision struct {
	Revision
	Number int64 // from 1 in the order of making; 0 for the empty one before the first
	Files  int   // that it wrote or deleted
}

// ManagedChange is what a revision did to one file: nil stands for no file.
type ManagedChange struct {
	Path     string
	Old, New *string
}

// ManagedID returns the ID of a held revision by its number: r0, r1 and so on.
func ManagedID(number int64) string { return "r" + strconv.FormatInt(number, 10) }

// ParseManagedID returns the number of a held revision by its ID, in the one form that ManagedID gives it.
func ParseManagedID(id string) (number int64, ok bool) {
	number, err := strconv.ParseInt(strings.TrimPrefix(id, "r"), 10, 64)
	return number, err == nil && number >= 0 && ManagedID(number) == id
}

// ManagedTree names the content of files, independent of their order.
func ManagedTree(files []schema.File) string {
	sorted := slices.SortedFunc(
		slices.Values(files),
		func(a, b schema.File) int { return strings.Compare(a.Path, b.Path) },
	)
	h := sha256.New()
	for _, f := range sorted {
		fmt.Fprintf(h, "%q %x\n", f.Path, sha256.Sum256([]byte(f.Content)))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

const revisionColumns = `number, tree, author, subject, files, created_at`

func scanManaged(row db.Row) (ManagedRevision, error) {
	var h ManagedRevision
	var created int64
	err := row.Scan(&h.Number, &h.Tree, &h.Author, &h.Subject, &h.Files, &created)
	at := db.Time(created)
	h.ID, h.At, h.Managed = ManagedID(h.Number), &at, true
	return h, err
}

// ManagedHead returns the newest stored revision of a managed factory. If the factory has none, it returns an
// empty revision of number 0.
func (s *Store) ManagedHead(ctx context.Context, factoryUID string) (ManagedRevision, error) {
	h, err := managedHead(ctx, s.db.Reader, factoryUID)
	return h, err
}

const newestRevisionSQL = `SELECT ` + revisionColumns + `
FROM file_revisions
WHERE factory_uid = $1
ORDER BY number DESC
LIMIT 1`

func managedHead(ctx context.Context, r db.Reader, factoryUID string) (ManagedRevision, error) {
	h, err := scanManaged(r.QueryRow(ctx, newestRevisionSQL, factoryUID))
	if errors.Is(err, sql.ErrNoRows) {
		return ManagedRevision{Revision: Revision{ID: ManagedID(0), Tree: ManagedTree(nil), Managed: true}}, nil
	}

	return h, err
}

// ManagedCurrent reads in one view what an edit of a managed definition begins with: the newest
// revision with its files, by path, and what a plan compares with.
func (s *Store) ManagedCurrent(
	ctx context.Context,
	factoryUID string,
) (c Current, head ManagedRevision, files []schema.File, err error) {
	err = s.db.View(ctx, func(tx db.View) (err error) {
		if c, err = s.current(ctx, tx.Reader, factoryUID); err != nil {
			return err
		}
		if head, err = managedHead(ctx, tx.Reader, factoryUID); err != nil {
			return err
		}

		files, err = managedFiles(ctx, tx.Reader, factoryUID, head.Number)
		return err
	})

	c.PlannedAt = time.Now()
	return c, head, files, err
}

const revisionSQL = `SELECT ` + revisionColumns + `
FROM file_revisions
WHERE factory_uid = $1 AND number = $2`

// ManagedRevision returns one of the revisions that the server holds. ErrNotFound when it does not, or no
// longer.
func (s *Store) ManagedRevision(ctx context.Context, factoryUID string, number int64) (ManagedRevision, error) {
	h, err := scanManaged(s.db.QueryRow(ctx, revisionSQL, factoryUID, number))
	return h, orNotFound(err, "revision %s", ManagedID(number))
}

const revisionsSQL = `SELECT ` + revisionColumns + `
FROM file_revisions
WHERE factory_uid = $1 AND number < $2
ORDER BY number DESC
LIMIT $3`

// ManagedRevisions returns the revisions that the server holds of a factory's definition, newest first, those
// before the given number if it is not 0.
func (s *Store) ManagedRevisions(
	ctx context.Context,
	factoryUID string,
	before int64,
	limit int,
) ([]ManagedRevision, error) {
	if before == 0 {
		before = 1 << 62
	}

	all, err := db.All(ctx, s.db.Reader, scanManaged, revisionsSQL, factoryUID, before, limit)
	return all, err
}

// ManagedFiles returns the files of a revision that the server holds, by path. Revision 0 has none.
// ErrNotFound when there is no such revision, or no longer.
func (s *Store) ManagedFiles(ctx context.Context, factoryUID string, number int64) ([]schema.File, error) {
	if number == 0 {
		return nil, nil
	}
	var files []schema.File
	err := s.managedView(ctx, factoryUID, number, func(tx db.Reader) (err error) {
		files, err = managedFiles(ctx, tx, factoryUID, number)
		return err
	})
	return files, err
}

const revisionFilesSQL = `SELECT path, content
FROM revision_files
WHERE factory_uid = $1 AND since <= $2 AND (until IS NULL OR until > $2)`

func managedFiles(ctx context.Context, tx db.Reader, factoryUID string, number int64) ([]schema.File, error) {
	files, err := db.All(ctx, tx, func(row db.Row) (f schema.File, err error) {
		var content []byte
		err = row.Scan(&f.Path, &content)
		f.Content = string(content)
		return f, err
	}, revisionFilesSQL,
		factoryUID,
		number)

	slices.SortFunc(files, func(a, b schema.File) int { return strings.Compare(a.Path, b.Path) })
	return files, err
}

const revisionChangesSQL = `SELECT path, since, content
FROM revision_files
WHERE factory_uid = $1 AND (since = $2 OR until = $2)
ORDER BY since`

// ManagedChanges returns what a revision did to the files of the one before it, by path. ErrNotFound when
// there is no such revision, or no longer.
func (s *Store) ManagedChanges(ctx context.Context, factoryUID string, number int64) ([]ManagedChange, error) {
	var all []ManagedChange
	err := s.managedView(ctx, factoryUID, number, func(tx db.Reader) error {
		all = nil
		rows, err := tx.Query(ctx, revisionChangesSQL, factoryUID, number)
		if err != nil {
			return err
		}
		defer rows.Close()

		at := map[string]int{}
		for rows.Next() {
			var path string
			var since int64
			var content []byte
			if err := rows.Scan(&path, &since, &content); err != nil {
				return err
			}

			i, known := at[path]
			if !known {
				i, all = len(all), append(all, ManagedChange{Path: path})
				at[path] = i
			}

			text := string(content)
			if since == number {
				all[i].New = &text
			} else {
				all[i].Old = &text
			}
		}

		return rows.Err()
	})

	slices.SortFunc(all, func(a, b ManagedChange) int { return cmp.Compare(a.Path, b.Path) })
	return all, err
}

const revisionExistsSQL = `SELECT 1
FROM file_revisions
WHERE factory_uid = $1 AND number = $2`

// managedView runs f in one view that has the revision.
func (s *Store) managedView(ctx context.Context, factoryUID string, number int64, f func(db.Reader) error) error {
	err := s.db.View(ctx, func(tx db.View) error {
		var one int
		if err := tx.QueryRow(ctx, revisionExistsSQL, factoryUID, number).Scan(&one); err != nil {
			return err
		}

		return f(tx.Reader)
	})
	return orNotFound(err, "revision %s", ManagedID(number))
}

const newestNumberSQL = `SELECT coalesce(max(number), 0)
FROM file_revisions
WHERE factory_uid = $1`

// checkNewest makes sure that a revision is the newest one that the server holds, or what edit makes of that.
func checkNewest(ctx context.Context, tx *db.Tx, factoryUID string, revision Revision, edit *ManagedEdit) error {
	if !revision.Managed && edit == nil {
		return nil
	}

	var newest int64
	if err := tx.QueryRow(ctx, newestNumberSQL, factoryUID).Scan(&newest); err != nil {
		return err
	}

	of := revision.ID
	if edit != nil {
		if of != ManagedID(edit.Base+1) || !revision.Managed {
			return fmt.Errorf("revision %q does not follow revision %s", of, ManagedID(edit.Base))
		}
		of = ManagedID(edit.Base)
	}

	if of != ManagedID(newest) {
		return ErrSuperseded
	}

	return nil
}

const insertRevisionSQL = `INSERT INTO file_revisions (factory_uid, number, tree, author, subject, files, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)`

const insertFileSQL = `INSERT INTO revision_files (factory_uid, path, since, size, content)
VALUES ($1, $2, $3, $4, $5)`

// addRevision stores the next revision of a definition.
func addRevision(
	ctx context.Context, tx *db.Tx, factoryUID string, revision Revision, edit *ManagedEdit, now time.Time,
) error {
	number := edit.Base + 1
	if _, err := tx.Exec(ctx, insertRevisionSQL,
		factoryUID, number, revision.Tree, db.Text(revision.Author), db.Text(revision.Subject),
		len(edit.Write)+len(edit.Delete), db.Micros(now)); err != nil {
		return err
	}

	for _, path := range edit.Delete {
		if err := endFile(ctx, tx, factoryUID, path, number); err != nil {
			return orMoved(err)
		}
	}

	for _, f := range edit.Write {
		err := endFile(ctx, tx, factoryUID, f.Path, number)
		if err != nil && !errors.Is(err, db.ErrNoRow) {
			return err
		}
		if _, err := tx.Exec(ctx, insertFileSQL,
			factoryUID, f.Path, number, len(f.Content), []byte(f.Content)); err != nil {
			return err
		}
	}

	return expireRevisions(ctx, tx, factoryUID, number)
}

const endFileSQL = `UPDATE revision_files
SET until = $1
WHERE factory_uid = $2 AND path = $3 AND until IS NULL`

func endFile(ctx context.Context, tx *db.Tx, factoryUID, path string, number int64) error {
	return tx.ExecOne(ctx, endFileSQL, number, factoryUID, path)
}

const endedFilesSQL = `SELECT until, CAST(sum(size) AS BIGINT)
FROM revision_files
WHERE factory_uid = $1 AND until IS NOT NULL
GROUP BY until
ORDER BY until DESC`

const expireRevisionsSQL = `DELETE
FROM file_revisions
WHERE factory_uid = $1 AND number < $2`

const expireFilesSQL = `DELETE
FROM revision_files
WHERE factory_uid = $1 AND until < $2`

// expireRevisions forgets revisions that are too old, or whose files would be too many. What the oldest one that
// is kept did to the one before can still be told.
func expireRevisions(ctx context.Context, tx *db.Tx, factoryUID string, newest int64) error {
	type ended struct{ at, bytes int64 }
	scan := func(row db.Row) (e ended, err error) { return e, row.Scan(&e.at, &e.bytes) }
	all, err := db.All(ctx, tx.Reader, scan, endedFilesSQL, factoryUID)
	if err != nil {
		return err
	}

	oldest, room := newest-managedRevisions+1, int64(managedBytes)
	for _, e := range all {
		if room -= e.bytes; room < 0 {
			oldest = max(oldest, min(e.at+1, newest))
			break
		}
	}

	if _, err := tx.Exec(ctx, expireRevisionsSQL, factoryUID, oldest); err != nil {
		return err
	}

	_, err = tx.Exec(ctx, expireFilesSQL, factoryUID, oldest)

	return err
}

const attemptsSQL = `SELECT id, started_at, finished_at, revision, outcome, counts, problems, message, source, '[]'
FROM syncs
WHERE factory_uid = $1
	AND id < $2
ORDER BY id DESC
LIMIT $3`

// Attempts returns a factory's attempts to apply, newest first, those before the given ID if it is not 0.
func (s *Store) Attempts(ctx context.Context, factoryUID string, before int64, limit int) ([]Attempt, error) {
	if before == 0 {
		before = 1 << 62
	}

	const list = attemptsSQL
	scan := func(row db.Row) (Attempt, error) { return scanAttempt(factoryUID, row) }
	return db.All(ctx, s.db.Reader, scan, list, factoryUID, before, limit)
}

const attemptSQL = `SELECT id, started_at, finished_at, revision, outcome, counts, problems, message, source, changes
FROM syncs
WHERE factory_uid = $1 AND id = $2`

// Attempt returns one attempt to apply, with its changes. ErrNotFound when it is not among those kept.
func (s *Store) Attempt(ctx context.Context, factoryUID string, id int64) (Attempt, error) {
	const one = attemptSQL
	a, err := scanAttempt(factoryUID, s.db.QueryRow(ctx, one, factoryUID, id))
	return a, orNotFound(err, "attempt %d of factory %s", id, factoryUID)
}

func scanAttempt(factoryUID string, row db.Row) (Attempt, error) {
	a := Attempt{FactoryUID: factoryUID}
	var started, finished int64
	var revision, counts, problems, source, changes string
	err := row.Scan(
		&a.ID, &started, &finished, &revision, &a.Outcome, &counts, &problems, &a.Message, &source, &changes,
	)
	if err != nil {
		return a, err
	}

	a.Started, a.Finished, a.Changes = db.Time(started), db.Time(finished), json.RawMessage(changes)
	return a, errors.Join(
		json.Unmarshal([]byte(revision), &a.Revision),
		json.Unmarshal([]byte(counts), &a.Counts),
		json.Unmarshal([]byte(problems), &a.Problems),
		json.Unmarshal([]byte(source), &a.Source),
	)
}

// tellApplied writes the events of an attempt that applied a definition, or that was refused.
func tellApplied(ctx context.Context, tx *db.Tx, a Attempt, counts []byte) error {
	if a.Outcome != OutcomeApplied && a.Outcome != OutcomeRefused {
		return nil
	}

	return events.Applied(ctx, tx, newEventID, a.FactoryUID, events.Apply{
		Outcome:  string(a.Outcome),
		Revision: a.Revision.ID,
		Author:   a.Revision.Author,
		Subject:  a.Revision.Subject,
		Counts:   counts,
		Message:  a.Message,
	}, a.Problems, a.Finished)
}

// keepFiles keeps the files that are applied, or notes which kept ones a rollback applies.
func (a *ChangeSet) keepFiles(ctx context.Context, tx *db.Tx, now time.Time) error {
	revision, err := json.Marshal(a.Revision)
	if err != nil {
		return err
	}

	switch {
	case a.Rollback != "":
		pin, err := json.Marshal(Pin{By: audit.ActorOf(ctx).Name, At: now.UTC()})
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, pinSQL, a.FactoryUID, db.Text(string(pin))); err != nil {
			return err
		}

		return trees.Serve(ctx, tx, a.FactoryUID, a.Rollback, now)
	case a.Files != nil:
		return trees.Keep(ctx, tx, a.FactoryUID, revision, a.Files, now)
	case a.Empty():
		return trees.Revise(ctx, tx, a.FactoryUID, revision)
	}

	return trees.Replace(ctx, tx, a.FactoryUID, now)
}
