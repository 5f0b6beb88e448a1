package seal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"millwright/state/audit"
	"millwright/state/db"
)

// ErrInUse says that servers use the state.
var ErrInUse = errors.New(
	"servers use this state: stop them all first (one that was killed counts for some seconds more)")

// Rotation is what [Rotate] did.
type Rotation struct {
	// Values is how many sealed values there are.
	Values int
	// Unreadable names those that cannot be opened with the old key either. They stay as they were.
	Unreadable []string
	// Kept is the file that holds the old key, for backups made before; empty when the key file was not
	// replaced.
	Kept string
}

// Rotate reseals every sealed value of the state at dsn under a new key, in one transaction. ErrInUse
// while a server uses the state.
//
// With newFile the new key is the one in that file, made when there is none, and the old key file is left
// alone. Without, a new key takes the place of the old one in keyFile: from before the transaction until
// after it the file holds both, so that the state opens with it whenever the process is killed.
func Rotate(ctx context.Context, dsn string, master []byte, keyFile, newFile string) (Rotation, error) {
	s, err := New(master)
	if err != nil {
		return Rotation{}, err
	}

	d, err := db.Open(ctx, dsn, slog.New(slog.DiscardHandler))
	if err != nil {
		return Rotation{}, err
	}
	defer d.Close()

	if err := d.Migrate(ctx, func(ctx context.Context) error { return s.Check(ctx, d) }); err != nil {
		return Rotation{}, err
	}
	if err := s.Bind(ctx, d); err != nil {
		return Rotation{}, err
	}

	if newFile != "" {
		return s.rotateTo(ctx, d, newFile)
	}
	return s.rotateIn(ctx, d, keyFile)
}

// rotateTo rotates to the key in a file.
func (s *Sealer) rotateTo(ctx context.Context, d *db.DB, newFile string) (Rotation, error) {
	next, err := readOrMakeKey(newFile)
	if err != nil {
		return Rotation{}, err
	}
	if bytes.Equal(next, s.used.Load().master) {
		return Rotation{}, fmt.Errorf(
			"the state is sealed under the key in %s already: name a file that does not exist to get a new key",
			newFile,
		)
	}

	return s.reseal(ctx, d, newKey(next))
}

// rotateIn rotates to a new key in the file of the old one.
func (s *Sealer) rotateIn(ctx context.Context, d *db.DB, keyFile string) (Rotation, error) {
	keyFile, err := filepath.EvalSymlinks(keyFile)
	if err != nil {
		return Rotation{}, fmt.Errorf("master key: %w", err)
	}
	if err := db.RemovePartials(keyFile); err != nil {
		return Rotation{}, err
	}

	old, next := s.used.Load(), newKey(randomKey())
	kept := keyFile + ".until-" + time.Now().UTC().Format("20060102T150405.000Z")
	if err := writeNew(kept, keyText(old.master)); err != nil {
		return Rotation{}, err
	}
	if err := replaceKeys(keyFile, old.master, next.master); err != nil {
		os.Remove(kept)
		return Rotation{}, err
	}

	r, err := s.reseal(ctx, d, next)
	if err != nil { // whether it was committed is for the state to say
		s.keys = []*key{old, next}
		if s.Check(context.WithoutCancel(ctx), d) == nil {
			err = errors.Join(err, replaceKeys(keyFile, s.used.Load().master))
		}

		return Rotation{}, err
	}

	r.Kept = kept
	return r, replaceKeys(keyFile, next.master)
}

// sealedColumn is a column of sealed values: how to list those after a key, what each is sealed as, and how
// to replace one.
type sealedColumn struct{ list, purpose, update string }

// sealedColumns are all columns that hold sealed values.
func sealedColumns() []sealedColumn {
	return []sealedColumn{
		{
			purpose: "secret ",
			list: `SELECT name, version, sealed
FROM secret_versions
WHERE sealed IS NOT NULL AND (name, version) > ($1, $2)
ORDER BY name, version
LIMIT $3`,
			update: `UPDATE secret_versions SET sealed = $3 WHERE name = $1 AND version = $2`,
		},
		{
			purpose: "factory ",
			list: `SELECT uid, 0, uid_key
FROM factories
WHERE (uid, 0) > ($1, $2)
ORDER BY uid
LIMIT $3`,
			update: `UPDATE factories SET uid_key = $3 WHERE uid = $1 AND $2 = 0`,
		},
		{
			purpose: "identity ",
			list: `SELECT uid, 0, identity
FROM factories
WHERE (uid, 0) > ($1, $2)
ORDER BY uid
LIMIT $3`,
			update: `UPDATE factories SET identity = $3 WHERE uid = $1 AND $2 = 0`,
		},
		{
			purpose: "run ",
			list: `SELECT id, 0, sealed
FROM runs
WHERE sealed IS NOT NULL AND (id, 0) > ($1, $2)
ORDER BY id
LIMIT $3`,
			update: `UPDATE runs SET sealed = $3 WHERE id = $1 AND $2 = 0`,
		},
		{
			purpose: "offered ",
			list: `SELECT webhook_uid, 0, sealed
FROM offered_secrets
WHERE (webhook_uid, 0) > ($1, $2)
ORDER BY webhook_uid
LIMIT $3`,
			update: `UPDATE offered_secrets SET sealed = $3 WHERE webhook_uid = $1 AND $2 = 0`,
		},
	}
}

// resealBatch is how many sealed values are in memory at once.
const resealBatch = 500

// reseal seals every sealed value under another key, in one transaction, and uses that key from then on.
func (s *Sealer) reseal(ctx context.Context, d *db.DB, next *key) (r Rotation, err error) {
	err = d.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		r = Rotation{}
		if err := mustBeAlone(ctx, d, tx); err != nil {
			return err
		}

		if !d.Postgres() { // what is replaced is not to be found in the file
			if _, err := tx.Exec(ctx, `PRAGMA secure_delete = 1`); err != nil {
				return err
			}
		}

		for _, query := range []string{`DELETE FROM run_snapshots`, `DELETE FROM run_snapshot_parts`} {
			if _, err := tx.Exec(ctx, query); err != nil { // they are large, and runs go on without them
				return err
			}
		}

		for _, column := range sealedColumns() {
			if err := s.resealColumn(ctx, tx, next, column, &r); err != nil {
				return err
			}
		}

		row := audit.Entry{
			Action:  audit.KeyRotate,
			Subject: "master key",
			Detail:  fmt.Sprintf("%d values are sealed under a new key", r.Values),
		}.Complete(ctx)
		if _, err := tx.Exec(ctx, audit.InsertSQL, row.Row()...); err != nil {
			return err
		}

		return tx.ExecOne(ctx, `UPDATE facts SET value = $2 WHERE name = $1`,
			checkName, next.seal(checkName, []byte(checkText)))
	})
	if err == nil {
		s.used.Store(next)
	}

	return r, err
}

// mustBeAlone refuses while another process uses the state, and holds off those that come. One that lost
// its session, as when the database is restarted, is known by its lease.
func mustBeAlone(ctx context.Context, d *db.DB, tx *db.Tx) error {
	alone, err := tx.Alone(ctx)
	if err != nil {
		return err
	}

	var leases int
	if d.Postgres() {
		err := tx.QueryRow(ctx, `SELECT count(*) FROM replicas WHERE lease_until > $1`, db.Micros(d.Now())).
			Scan(&leases)
		if err != nil {
			return err
		}
	}

	if !alone || leases > 0 {
		return ErrInUse
	}

	return nil
}

// sealed is a sealed value with its key.
type sealed struct {
	name    string
	version int64
	value   []byte
}

func scanSealed(row db.Row) (v sealed, err error) { return v, row.Scan(&v.name, &v.version, &v.value) }

func (s *Sealer) resealColumn(ctx context.Context, tx *db.Tx, next *key, c sealedColumn, r *Rotation) error {
	last := sealed{version: -1}
	for {
		values, err := db.All(ctx, tx.Reader, scanSealed, c.list, last.name, last.version, resealBatch)
		if err != nil {
			return err
		}

		for _, v := range values {
			last = v
			plain, err := s.Open(c.purpose+v.name, v.value)
			if err != nil { // by no key any more: it must not keep the others under the old one
				r.Unreadable = append(r.Unreadable, c.purpose+v.name)
				continue
			}
			if err := tx.ExecOne(ctx, c.update, v.name, v.version, next.seal(c.purpose+v.name, plain)); err != nil {
				return err
			}

			r.Values++
		}

		if len(values) < resealBatch {
			return nil
		}
	}
}
