// Package trees stores the files of definitions that were applied, so that an earlier one can serve again.
package trees

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"millwright/schema"
	"millwright/state/db"
)

const (
	// Kept is how long the files of a definition are kept after another one took its place.
	Kept = 30 * 24 * time.Hour
	// maxTrees and maxBytes bound what is kept of one factory, in definitions and in stored bytes.
	maxTrees = 50
	maxBytes = 64 << 20
)

// ErrNotFound reports files that are not kept.
var ErrNotFound = errors.New("the files are not kept")

// Tree is a definition that was applied. Revisions with the same files are one tree.
type Tree struct {
	Digest   string          // names the files
	Revision json.RawMessage // the last one that was applied with these files
	Applied  time.Time       // when it was last applied, other than by a rollback
	Replaced *time.Time      // when another one took its place; nil for the one in force
}

// Table is the stored definitions.
type Table struct{ db *db.DB }

// New returns the definitions in a database.
func New(d *db.DB) Table { return Table{d} }

// file is the stored form of a file. Its content may be any bytes.
type file struct {
	Path    string `json:"p"`
	Content []byte `json:"c"`
}

func encode(files []schema.File) (digest string, text []byte, err error) {
	all := make([]file, 0, len(files))
	for _, f := range files {
		all = append(all, file{f.Path, []byte(f.Content)})
	}

	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.Path, b.Path) })
	if text, err = json.Marshal(all); err != nil {
		return "", nil, err
	}

	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), text, nil
}

const keepSQL = `INSERT INTO applied_trees (factory_uid, digest, revision, applied_at, size, files)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (factory_uid, digest) DO UPDATE SET
	revision = excluded.revision,
	applied_at = excluded.applied_at,
	replaced_at = NULL`

const replaceSQL = `UPDATE applied_trees
SET replaced_at = $3
WHERE factory_uid = $1 AND digest <> $2 AND replaced_at IS NULL`

// Keep stores the files of a definition that is applied in tx.
func Keep(
	ctx context.Context, tx *db.Tx, factoryUID string, revision []byte, files []schema.File, now time.Time,
) error {
	digest, text, err := encode(files)
	if err != nil {
		return err
	}

	stored := db.Compress(text)
	if _, err := tx.Exec(ctx, replaceSQL, factoryUID, digest, db.Micros(now)); err != nil {
		return err
	}
	if len(stored) <= maxBytes {
		if _, err := tx.Exec(ctx, keepSQL,
			factoryUID, digest, string(revision), db.Micros(now), len(text), stored); err != nil {
			return err
		}
	}

	return expire(ctx, tx, factoryUID, now)
}

const serveSQL = `UPDATE applied_trees
SET replaced_at = NULL
WHERE factory_uid = $1 AND digest = $2`

// Serve notes that a kept definition is in force again. ErrNotFound when it is not kept any more.
func Serve(ctx context.Context, tx *db.Tx, factoryUID, digest string, now time.Time) error {
	if err := tx.ExecOne(ctx, serveSQL, factoryUID, digest); errors.Is(err, db.ErrNoRow) {
		return ErrNotFound
	} else if err != nil {
		return err
	}

	_, err := tx.Exec(ctx, replaceSQL, factoryUID, digest, db.Micros(now))
	return err
}

// Replace notes that a definition is in force whose files are not kept.
func Replace(ctx context.Context, tx *db.Tx, factoryUID string, now time.Time) error {
	_, err := tx.Exec(ctx, replaceSQL, factoryUID, "", db.Micros(now))
	return err
}

const reviseSQL = `UPDATE applied_trees
SET revision = $2
WHERE factory_uid = $1 AND replaced_at IS NULL`

// Revise notes a new revision with the files of the definition in force.
func Revise(ctx context.Context, tx *db.Tx, factoryUID string, revision []byte) error {
	_, err := tx.Exec(ctx, reviseSQL, factoryUID, string(revision))
	return err
}

const sizesSQL = `SELECT digest, replaced_at, length(files)
FROM applied_trees
WHERE factory_uid = $1
ORDER BY applied_at DESC, digest`

const expireSQL = `DELETE FROM applied_trees
WHERE factory_uid = $1 AND digest = $2`

// expire deletes the definitions that are too old or too many. It keeps the one in force.
func expire(ctx context.Context, tx *db.Tx, factoryUID string, now time.Time) error {
	type row struct {
		digest   string
		replaced sql.NullInt64
		bytes    int64
	}
	all, err := db.All(ctx, tx.Reader, func(r db.Row) (t row, err error) {
		return t, r.Scan(&t.digest, &t.replaced, &t.bytes)
	}, sizesSQL, factoryUID)
	if err != nil {
		return err
	}

	kept, room := 0, int64(maxBytes)
	for _, t := range all {
		kept++
		room -= t.bytes
		old := db.Time(t.replaced.Int64).Before(now.Add(-Kept))
		if !t.replaced.Valid || !old && kept <= maxTrees && room >= 0 {
			continue
		}

		if _, err := tx.Exec(ctx, expireSQL, factoryUID, t.digest); err != nil {
			return err
		}
	}

	return nil
}

const allSQL = `SELECT digest, revision, applied_at, replaced_at
FROM applied_trees
WHERE factory_uid = $1
	AND (replaced_at IS NULL OR replaced_at >= $2)
ORDER BY applied_at DESC, digest`

// All returns the definitions of a factory that are kept, the last applied first.
func (t Table) All(ctx context.Context, factoryUID string) ([]Tree, error) {
	since := db.Micros(time.Now().Add(-Kept))
	return db.All(ctx, t.db.Reader, func(row db.Row) (tree Tree, err error) {
		var revision string
		var applied int64
		var replaced sql.NullInt64
		err = row.Scan(&tree.Digest, &revision, &applied, &replaced)
		tree.Revision = json.RawMessage(revision)
		tree.Applied, tree.Replaced = db.Time(applied), db.TimeOrNil(replaced)
		return tree, err
	}, allSQL, factoryUID, since)
}

const filesSQL = `SELECT size, files
FROM applied_trees
WHERE factory_uid = $1 AND digest = $2`

// Files returns the files of a definition. ErrNotFound when they are not kept.
func (t Table) Files(ctx context.Context, factoryUID, digest string) ([]schema.File, error) {
	var size int64
	var stored []byte
	err := t.db.QueryRow(ctx, filesSQL, factoryUID, digest).Scan(&size, &stored)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}

	text, err := db.Decompress(nil, stored, size)
	if err != nil {
		return nil, err
	}

	var all []file
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}

	files := make([]schema.File, 0, len(all))
	for _, f := range all {
		files = append(files, schema.File{Path: f.Path, Content: string(f.Content)})
	}

	return files, nil
}
