package state

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Rotation is what RotateMasterKey did.
type Rotation struct {
	// Values is how many sealed values there are.
	Values int
	// Unreadable names those that cannot be opened with the old key either. They stay as they were.
	Unreadable []string
	// Kept is the file that holds the old key, for backups made before; empty when the key file was not
	// replaced.
	Kept string
}

// RotateMasterKey seals all that the state of cfg has sealed under a new key, in one transaction. No
// server may use the state.
//
// With newFile the new key is the one in that file, made when there is none, and the old key file is left
// alone. Without, a new key takes the place of the old one in keyFile: from before the transaction until
// after it the file holds both, so that the state opens with it whenever the process is killed.
func RotateMasterKey(ctx context.Context, cfg Config, keyFile, newFile string) (Rotation, error) {
	s, err := open(ctx, cfg, false)
	if err != nil {
		return Rotation{}, err
	}
	defer s.Close()

	if newFile != "" {
		next, err := readOrMakeKey(newFile)
		if err != nil {
			return Rotation{}, err
		}

		if bytes.Equal(next, s.seal.master) {
			return Rotation{}, fmt.Errorf(
				"the state is sealed under the key in %s already: name a file that does not exist to get a new key",
				newFile,
			)
		}

		return s.reseal(ctx, next)
	}

	if keyFile, err = filepath.EvalSymlinks(keyFile); err != nil {
		return Rotation{}, fmt.Errorf("master key: %w", err)
	}
	if err := removeBeside(keyFile, ".partial-", nil); err != nil {
		return Rotation{}, err
	}

	old, next := s.seal.master, newMasterKey()
	r := Rotation{Kept: keyFile + ".until-" + time.Now().UTC().Format("20060102T150405.000Z")}
	if err := writeNew(r.Kept, keyText(old)); err != nil {
		return Rotation{}, err
	}
	if err := replaceKeys(keyFile, old, next); err != nil {
		os.Remove(r.Kept)
		return Rotation{}, err
	}

	done, err := s.reseal(ctx, next)
	r.Values, r.Unreadable = done.Values, done.Unreadable
	if err != nil {
		// Whether it was committed is for the state to say.
		s.otherKeys = []*sealer{newSealer(next)}
		if s.checkMasterKey(context.WithoutCancel(ctx)) == nil {
			err = errors.Join(err, replaceKeys(keyFile, s.seal.master))
		}

		return Rotation{}, err
	}

	return r, replaceKeys(keyFile, next)
}

func readOrMakeKey(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		key := newMasterKey()
		return key, writeNew(file, keyText(key))
	}
	if err != nil {
		return nil, fmt.Errorf("new master key: %w", err)
	}

	key, err := parseMasterKey(strings.TrimSpace(string(text)), file)
	if err == nil && len(key) != masterKeySize {
		err = fmt.Errorf("%s holds two keys: want one", file)
	}

	return key, err
}

// replaceKeys makes the key file hold these keys, at once or not at all, for those who could read it.
func replaceKeys(file string, keys ...[]byte) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("master key: %w", err)
	}

	part, err := partial(file)
	if err != nil {
		return fmt.Errorf("master key: its directory must be writable, or give --new-key-file: %w", err)
	}
	defer os.Remove(part)

	if err := os.WriteFile(part, keyText(keys...), 0o600); err != nil {
		return fmt.Errorf("master key: %w", err)
	}

	if owner, ok := info.Sys().(*syscall.Stat_t); ok &&
		(int(owner.Uid) != os.Getuid() || int(owner.Gid) != os.Getgid()) {
		if err := os.Chown(part, int(owner.Uid), int(owner.Gid)); err != nil {
			return fmt.Errorf("master key: run this as the owner of %s: %w", file, err)
		}
	}

	if err := errors.Join(os.Chmod(part, info.Mode().Perm()), syncFile(part), os.Rename(part, file)); err != nil {
		return fmt.Errorf("master key: %w", err)
	}

	return syncFile(filepath.Dir(file))
}

// sealedColumns are all the columns that hold sealed values: how to list those after a key, what each is
// sealed as, and how to replace one.
var sealedColumns = [...]struct{ list, purpose, update string }{
	{
		`SELECT name, version, sealed FROM secret_versions WHERE sealed IS NOT NULL AND (name, version) > ($1, $2) ORDER BY name, version LIMIT $3`,
		"secret ",
		`UPDATE secret_versions SET sealed = $3 WHERE name = $1 AND version = $2`,
	},
	{
		`SELECT uid, 0, uid_key FROM factories WHERE (uid, 0) > ($1, $2) ORDER BY uid LIMIT $3`,
		"factory ",
		`UPDATE factories SET uid_key = $3 WHERE uid = $1 AND $2 = 0`,
	},
	{
		`SELECT id, 0, sealed FROM runs WHERE sealed IS NOT NULL AND (id, 0) > ($1, $2) ORDER BY id LIMIT $3`,
		"run ",
		`UPDATE runs SET sealed = $3 WHERE id = $1 AND $2 = 0`,
	},
	{
		`SELECT webhook_uid, 0, sealed FROM offered_secrets WHERE (webhook_uid, 0) > ($1, $2) ORDER BY webhook_uid LIMIT $3`,
		"offered ",
		`UPDATE offered_secrets SET sealed = $3 WHERE webhook_uid = $1 AND $2 = 0`,
	},
}

// resealBatch is how many sealed values are in memory at once.
const resealBatch = 500

// reseal seals every sealed value under another key, in one transaction, and goes on with that key. It
// returns how many there are, and which it left. ErrConflict while a server uses the state.
func (s *Store) reseal(ctx context.Context, key []byte) (r Rotation, err error) {
	next := newSealer(key)
	if s.dialect == sqlite { // what is replaced is not to be found in the file
		if _, err := s.write.ExecContext(ctx, `PRAGMA secure_delete = 1`); err != nil {
			return r, err
		}
	}

	err = s.tx(ctx, func(tx *sql.Tx) error {
		r = Rotation{}
		if err := s.nobodyServes(ctx, tx); err != nil {
			return err
		}

		for _, column := range sealedColumns {
			if err := s.resealColumn(ctx, tx, next, column.list, column.purpose, column.update, &r); err != nil {
				return err
			}
		}

		return one(
			tx.ExecContext(
				ctx,
				`UPDATE facts SET value = $2 WHERE name = $1`,
				masterKeyFact,
				next.seal(masterKeyFact, []byte("millwright")),
			),
		)
	})
	if err == nil {
		s.seal = next
	}

	return r, err
}

// nobodyServes refuses while another process uses the state, and holds off those that come. One that lost
// its session, as when the database is restarted, is known by its lease.
func (s *Store) nobodyServes(ctx context.Context, tx *sql.Tx) error {
	if !s.Shared() { // we hold the lock of the state
		return nil
	}

	var alone bool
	if err := tx.QueryRowContext(ctx, aloneSQL).Scan(&alone); err != nil {
		return err
	}

	var leases int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM replicas WHERE lease_until > $1`, micros(s.clock.now())).Scan(&leases); err != nil {
		return err
	}

	if !alone || leases > 0 {
		return fmt.Errorf(
			"servers use this state: stop them all first (one that was killed counts for some seconds more): %w",
			ErrConflict,
		)
	}

	return nil
}

// checkRotated refuses to go on once the master key was rotated behind our back.
func (s *Store) checkRotated() error {
	if s.rotated.Load() {
		return fmt.Errorf("%w: the master key was rotated: start this server again, with the new one", ErrUnavailable)
	}
	return nil
}

func (s *Store) resealColumn(
	ctx context.Context,
	tx *sql.Tx,
	next *sealer,
	list, purpose, update string,
	r *Rotation,
) error {
	type value struct {
		name    string
		version int64
		sealed  []byte
	}
	last := value{version: -1}
	for {
		rows, err := tx.QueryContext(ctx, list, last.name, last.version, resealBatch)
		if err != nil {
			return err
		}

		values, err := scanAll(
			rows,
			func(row scanner) (v value, err error) { return v, row.Scan(&v.name, &v.version, &v.sealed) },
		)
		if err != nil {
			return err
		}

		for _, v := range values {
			last = v
			plain, err := s.seal.open(purpose+v.name, v.sealed)
			if err != nil { // by no key any more: it must not keep the others under the old one
				r.Unreadable = append(r.Unreadable, purpose+v.name)
				continue
			}
			if err := one(tx.ExecContext(ctx, update, v.name, v.version, next.seal(purpose+v.name, plain))); err != nil {
				return err
			}

			r.Values++
		}

		if len(values) < resealBatch {
			return nil
		}
	}
}
