package state

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"millwright/state/db"
)

// ArtifactType is what clients know an artifact as.
type ArtifactType string

// The types of artifacts.
const (
	ArtifactFile        ArtifactType = "FILE"
	ArtifactScreenshot  ArtifactType = "SCREENSHOT" // a FILE that is an image
	ArtifactPlan        ArtifactType = "PLAN"
	ArtifactPullRequest ArtifactType = "PULL_REQUEST"
	ArtifactReference   ArtifactType = "EXTERNAL_REFERENCE"
)

// ArtifactTypes returns every type.
func ArtifactTypes() []ArtifactType {
	return []ArtifactType{ArtifactFile, ArtifactScreenshot, ArtifactPlan, ArtifactPullRequest, ArtifactReference}
}

// The kinds of artifacts.
const (
	KindFile   = "file"   // that the agent left
	KindPatch  = "patch"  // the changes of a repository, for people
	KindBundle = "bundle" // the same, for git
	KindLink   = "link"   // has no content
)

// Bounds of the artifacts of one execution.
const (
	MaxArtifacts      = 64
	MaxArtifactFiles  = 20
	MaxFileBytes      = 64 << 20 // of all files together
	MaxChangeBytes    = 50 << 20 // of one patch or bundle
	MaxExecutionBytes = 256 << 20
	ArtifactPart      = 512 << 10 // of each part but the last
)

// maxArtifactPath bounds the texts of an artifact, in characters.
const maxArtifactPath = 1000

// Artifact is a file or link that a run left for people.
type Artifact struct {
	UID, RunID, FactoryUID string
	Execution              int
	Type                   ArtifactType
	Kind                   string
	Repository             string // owner/name of a change; else empty
	Path                   string // of a file, below the directory of artifacts; of a link, its URL
	MimeType               string
	Digest                 string // SHA-256 of the content, in hexadecimal
	Size                   int64
	Facts                  ArtifactFacts
	Created                time.Time
}

// ArtifactFacts has what only some artifacts have.
type ArtifactFacts struct {
	Head          string `json:"head,omitempty"`  // of a bundle: the commit that a server checked
	Base          string `json:"base,omitempty"`  // of a bundle: the commit that Head descends from
	Shown         bool   `json:"shown,omitempty"` // of a bundle: its patch shows exactly what it changes
	Branch        string `json:"branch,omitempty"`
	Status        string `json:"status,omitempty"`
	Forge         string `json:"forge,omitempty"`  // of a pull request; empty: the default one
	Number        int    `json:"number,omitempty"` // of a pull request
	ReferenceType string `json:"reference_type,omitempty"`
	Title         string `json:"title,omitempty"`
}

const artifactColumns = `
	uid, run_id, factory_uid, execution, type, kind, repository, path, mime_type, digest, size, facts, created_at`

func scanArtifact(row db.Row) (a Artifact, err error) {
	var facts string
	var created int64
	err = row.Scan(&a.UID, &a.RunID, &a.FactoryUID, &a.Execution, &a.Type, &a.Kind, &a.Repository, &a.Path,
		&a.MimeType, &a.Digest, &a.Size, &facts, &created)
	if err != nil {
		return a, err
	}

	a.Created = db.Time(created)
	if json.Unmarshal([]byte(facts), &a.Facts) != nil {
		a.Facts = ArtifactFacts{} // the content is there all the same
	}
	return a, nil
}

const insertArtifactSQL = `INSERT INTO run_artifacts (
	uid, run_id, execution, attempt, number, factory_uid, state, type, kind, repository, path, mime_type, digest,
	size, facts, created_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`

// insertArtifact adds an artifact of the run's execution.
func insertArtifact(ctx context.Context, tx *db.Tx, r Run, attempt, number int, in string, a Artifact) error {
	facts, err := json.Marshal(a.Facts)
	if err != nil {
		return err
	}

	_, err = tx.Exec(ctx, insertArtifactSQL, NewID(PrefixArtifact), r.ID, r.Execution, attempt, number, r.FactoryUID,
		in, string(a.Type), a.Kind, db.Bounded(a.Repository, maxArtifactPath), db.Bounded(a.Path, maxArtifactPath),
		db.Bounded(a.MimeType, maxArtifactPath), a.Digest, a.Size, string(facts), db.Micros(time.Now()))
	return err
}

const (
	dropDeclaredSQL = `DELETE FROM run_artifacts
		WHERE run_id = $1 AND execution = $2 AND attempt = $3 AND number = $4`

	sumArtifactsSQL = `SELECT count(*), coalesce(CAST(sum(size) AS BIGINT), 0),
			coalesce(CAST(sum(CASE kind WHEN 'file' THEN 1 ELSE 0 END) AS BIGINT), 0),
			coalesce(CAST(sum(CASE kind WHEN 'file' THEN size ELSE 0 END) AS BIGINT), 0)
		FROM run_artifacts
		WHERE run_id = $1 AND execution = $2 AND attempt = $3`
)

// DeclareArtifact announces a file that the worker of a claim is about to send, as one of the numbers of this
// attempt. A repeat begins the file anew. ErrConflict when it is too much; ErrLost when the claim no longer holds.
func (s *Store) DeclareArtifact(ctx context.Context, c Claim, number int, a Artifact) error {
	if number < 0 || number >= MaxArtifacts || a.Size < 0 {
		return refuse(ErrConflict, "artifact %d of %d bytes: an execution leaves at most %d", number, a.Size,
			MaxArtifacts)
	}
	if a.Kind != KindFile && a.Size > MaxChangeBytes {
		return refuse(ErrConflict, "a %s of %d bytes: at most %d are stored", a.Kind, a.Size, MaxChangeBytes)
	}

	return s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		r, err := s.lockHeld(ctx, tx, c)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, dropDeclaredSQL, r.ID, r.Execution, r.Attempt, number); err != nil {
			return err
		}

		var count, size, files, fileBytes int64
		err = tx.QueryRow(ctx, sumArtifactsSQL, r.ID, r.Execution, r.Attempt).Scan(&count, &size, &files, &fileBytes)
		if err != nil {
			return err
		}

		switch {
		case a.Kind == KindFile && files == MaxArtifactFiles:
			return refuse(ErrConflict, "an execution leaves at most %d files", MaxArtifactFiles)
		case a.Kind == KindFile && fileBytes+a.Size > MaxFileBytes:
			return refuse(ErrConflict, "the files of an execution have at most %d bytes together", MaxFileBytes)
		case size+a.Size > MaxExecutionBytes:
			return refuse(ErrConflict, "the artifacts of an execution have at most %d bytes together",
				MaxExecutionBytes)
		}

		a.Type = ArtifactFile
		return insertArtifact(ctx, tx, r, r.Attempt, number, "sent", a)
	})
}

const sentArtifactSQL = `SELECT ` + artifactColumns + `
FROM run_artifacts
WHERE run_id = $1 AND execution = $2 AND attempt = $3 AND number = $4 AND (state = 'sent' OR state = 'complete')`

// parts is how many parts the content of an artifact has.
func (a Artifact) parts() int64 { return (a.Size + ArtifactPart - 1) / ArtifactPart }

// partSize is how many bytes a part of the content has.
func (a Artifact) partSize(part int) int64 { return min(ArtifactPart, a.Size-int64(part)*ArtifactPart) }

// PutArtifactPart stores a part of a declared file. A repeat changes nothing. ErrConflict when the file has no such
// part; ErrLost when the claim no longer holds.
func (s *Store) PutArtifactPart(ctx context.Context, c Claim, number, part int, body []byte) error {
	return s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		a, err := s.sentArtifact(ctx, tx, c, number)
		if err != nil {
			return err
		}
		if part < 0 || int64(part) >= a.parts() || int64(len(body)) != a.partSize(part) {
			return refuse(ErrConflict, "part %d of %d bytes of artifact %d", part, len(body), number)
		}

		_, err = tx.Exec(ctx, `
			INSERT INTO run_artifact_parts (artifact_uid, part, factory_uid, body)
			VALUES ($1, $2, $3, $4)
			ON CONFLICT (artifact_uid, part) DO UPDATE SET body = excluded.body`,
			a.UID, part, a.FactoryUID, body)
		return err
	})
}

// sentArtifact returns a declared file of the claim's attempt, and holds the run.
func (s *Store) sentArtifact(ctx context.Context, tx *db.Tx, c Claim, number int) (Artifact, error) {
	r, err := s.lockHeld(ctx, tx, c)
	if err != nil {
		return Artifact{}, err
	}

	a, err := scanArtifact(tx.QueryRow(ctx, sentArtifactSQL, r.ID, r.Execution, r.Attempt, number))
	return a, orNotFound(err, "artifact %d of run %s", number, r.ID)
}

// SentArtifact returns a declared file of which all parts are there. ErrConflict when some are missing; ErrLost when
// the claim no longer holds.
func (s *Store) SentArtifact(ctx context.Context, c Claim, number int) (a Artifact, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		if a, err = s.sentArtifact(ctx, tx, c, number); err != nil {
			return err
		}

		var have int64
		err := tx.QueryRow(ctx, `SELECT count(*) FROM run_artifact_parts WHERE artifact_uid = $1`, a.UID).Scan(&have)
		if err == nil && have != a.parts() {
			return refuse(ErrConflict, "artifact %d has %d parts of %d", number, have, a.parts())
		}
		return err
	})
	return a, err
}

// CompleteArtifacts returns the files of the claim's attempt that are complete. ErrLost when the claim no longer
// holds.
func (s *Store) CompleteArtifacts(ctx context.Context, c Claim) (all []Artifact, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		r, err := s.lockHeld(ctx, tx, c)
		if err != nil {
			return err
		}

		all, err = db.All(ctx, tx.Reader, scanArtifact, `
			SELECT `+artifactColumns+`
			FROM run_artifacts
			WHERE run_id = $1 AND execution = $2 AND attempt = $3 AND state = 'complete'
			ORDER BY number`, r.ID, r.Execution, r.Attempt)
		return err
	})
	return all, err
}

// CompleteArtifact marks a file, as SentArtifact or CompleteArtifacts returned it, as complete, with its
// type, media type and facts. It
// becomes visible with FinishRun. ErrLost when the claim no longer holds.
func (s *Store) CompleteArtifact(ctx context.Context, c Claim, a Artifact) error {
	facts, err := json.Marshal(a.Facts)
	if err != nil {
		return err
	}

	return s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		if _, err := s.lockHeld(ctx, tx, c); err != nil {
			return err
		}

		err := tx.ExecOne(ctx, `
			UPDATE run_artifacts
			SET state = 'complete', type = $3, mime_type = $4, facts = $5
			WHERE uid = $1 AND run_id = $2`,
			a.UID, c.RunID, string(a.Type), db.Bounded(a.MimeType, maxArtifactPath), string(facts))
		return orNotFound(err, "artifact %s", a.UID)
	})
}

// DropArtifact deletes a declared file. ErrLost when the claim no longer holds.
func (s *Store) DropArtifact(ctx context.Context, c Claim, number int) error {
	return s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		a, err := s.sentArtifact(ctx, tx, c, number)
		if err != nil {
			return err
		}

		_, err = tx.Exec(ctx, `DELETE FROM run_artifacts WHERE uid = $1`, a.UID)
		return err
	})
}

const (
	replaceArtifactsSQL = `UPDATE run_artifacts
		SET state = 'replaced'
		WHERE run_id = $1
			AND state = 'current'
			AND EXISTS (
				SELECT 1
				FROM run_artifacts later
				WHERE later.run_id = $1
					AND later.execution = $2
					AND later.attempt = $3
					AND later.state = 'complete'
					AND later.kind = run_artifacts.kind
					AND later.repository = run_artifacts.repository
					AND later.path = run_artifacts.path
			)`

	publishArtifactsSQL = `UPDATE run_artifacts
		SET state = 'current'
		WHERE run_id = $1 AND execution = $2 AND attempt = $3 AND state = 'complete'`

	dropUnfinishedSQL = `DELETE FROM run_artifacts
		WHERE run_id = $1 AND (state = 'sent' OR state = 'complete')`
)

// publishArtifacts makes the complete files of the present attempt visible, in place of those of the same name.
func (r *Run) publishArtifacts(ctx context.Context, tx *db.Tx) error {
	if _, err := tx.Exec(ctx, replaceArtifactsSQL, r.ID, r.Execution, r.Attempt); err != nil {
		return err
	}

	_, err := tx.Exec(ctx, publishArtifactsSQL, r.ID, r.Execution, r.Attempt)
	return err
}

// dropUnfinished deletes what workers sent of a run that nobody holds any more.
func dropUnfinished(ctx context.Context, tx *db.Tx, runID string) error {
	_, err := tx.Exec(ctx, dropUnfinishedSQL, runID)
	return err
}

// Artifacts lists the visible artifacts of runs, by run ID: in the order of their executions and numbers.
func (s *Store) Artifacts(ctx context.Context, runIDs ...string) (map[string][]Artifact, error) {
	all := map[string][]Artifact{}
	if len(runIDs) == 0 {
		return all, nil
	}

	marks, args := db.Placeholders(padded(runIDs))
	query := `SELECT ` + artifactColumns + `
FROM run_artifacts
WHERE run_id IN (` + marks + `) AND state = 'current'
ORDER BY run_id, execution, attempt, number`
	err := db.Each(ctx, s.db.Built(), func(row db.Row) error {
		a, err := scanArtifact(row)
		all[a.RunID] = append(all[a.RunID], a)
		return err
	}, query, args...)
	return all, err
}

// CompleteBundles returns the changes that the worker of the run's present attempt sent.
func (s *Store) CompleteBundles(ctx context.Context, r Run) ([]Artifact, error) {
	return db.All(ctx, s.db.Reader, scanArtifact, `
		SELECT `+artifactColumns+`
		FROM run_artifacts
		WHERE run_id = $1 AND execution = $2 AND attempt = $3 AND state = 'complete' AND kind = 'bundle'
		ORDER BY number`, r.ID, r.Execution, r.Attempt)
}

// Artifact returns a visible artifact, or one that was replaced. ErrNotFound if there is none.
func (s *Store) Artifact(ctx context.Context, uid string) (Artifact, error) {
	a, err := scanArtifact(s.db.QueryRow(ctx, `
		SELECT `+artifactColumns+`
		FROM run_artifacts
		WHERE uid = $1 AND (state = 'current' OR state = 'replaced')`, uid))
	return a, orNotFound(err, "artifact %q", uid)
}

// ArtifactContent returns a reader of an artifact's content, which has one part of it in memory. It fails with
// ErrNotFound when the artifact is deleted meanwhile.
func (s *Store) ArtifactContent(ctx context.Context, a Artifact) io.Reader {
	return &artifactReader{ctx: ctx, store: s, artifact: a}
}

// artifactReader reads the parts of an artifact, one after the other.
type artifactReader struct {
	ctx      context.Context
	store    *Store
	artifact Artifact
	part     int
	rest     []byte
}

// Read reads the next bytes.
func (r *artifactReader) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		if int64(r.part) >= r.artifact.parts() {
			return 0, io.EOF
		}

		err := r.store.db.QueryRow(r.ctx, `
			SELECT body
			FROM run_artifact_parts
			WHERE artifact_uid = $1 AND part = $2`, r.artifact.UID, r.part).Scan(&r.rest)
		if err != nil {
			return 0, orNotFound(err, "part %d of artifact %s", r.part, r.artifact.UID)
		}
		if int64(len(r.rest)) != r.artifact.partSize(r.part) {
			return 0, fmt.Errorf("part %d of artifact %s: %w", r.part, r.artifact.UID, ErrUnreadable)
		}
		r.part++
	}

	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// putLink adds a link to what a run left, or changes the facts of the one with this URL.
func putLink(ctx context.Context, tx *db.Tx, r Run, a Artifact) error {
	facts, err := json.Marshal(a.Facts)
	if err != nil {
		return err
	}

	changed, err := tx.Exec(ctx, `
		UPDATE run_artifacts
		SET facts = $4
		WHERE run_id = $1 AND type = $2 AND path = $3 AND kind = 'link'`,
		r.ID, string(a.Type), db.Bounded(a.Path, maxArtifactPath), string(facts))
	if err != nil || changed > 0 {
		return err
	}

	var number int
	err = tx.QueryRow(ctx, `
		SELECT coalesce(max(number) + 1, 0)
		FROM run_artifacts
		WHERE run_id = $1 AND execution = $2 AND attempt = 0`, r.ID, r.Execution).Scan(&number)
	if err != nil {
		return err
	}
	if number >= MaxArtifacts {
		return refuse(ErrConflict, "run %s has %d links already", r.ID, number)
	}

	a.Kind, a.Size = KindLink, 0
	return insertArtifact(ctx, tx, r, 0, number, "current", a)
}

// PutLink adds a PULL_REQUEST or EXTERNAL_REFERENCE to what a run left, or changes the facts of the one whose Path,
// its URL, is the same. ErrNotFound when there is no such run.
func (s *Store) PutLink(ctx context.Context, runID string, a Artifact) error {
	return s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		r, err := s.lockRun(ctx, tx, runID)
		if err != nil {
			return err
		}
		return putLink(ctx, tx, r, a)
	})
}
