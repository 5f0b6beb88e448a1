package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	sqlitedriver "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// Copy is what is known of a checked copy of a SQLite state.
type Copy struct {
	Bytes   int64
	Version int64 // of the schema
	// Replaced is where Restore put the state that was there before; empty when there was none.
	Replaced string
}

// ErrExists says that a file is in the way.
var ErrExists = errors.New("the file exists already")

// Backup writes a consistent copy of the SQLite state at path to the file to, also while a server uses
// that state: it sees what was committed when it began, and holds up nobody. The copy is checked, and
// appears under its name, with mode 0600, only when it is good and on disk. It does not hold the master
// key. ErrExists when to exists.
func Backup(ctx context.Context, path, to string) (_ Copy, err error) {
	if _, err := os.Stat(path); err != nil {
		return Copy{}, fmt.Errorf("state: %w", err)
	}
	if _, err := os.Lstat(to); err == nil {
		return Copy{}, fmt.Errorf("%s: %w", to, ErrExists)
	}

	part, err := partial(to)
	if err != nil {
		return Copy{}, err
	}
	defer os.Remove(part)

	db, err := sql.Open("sqlite", sqliteURL(path, "mode=ro&_pragma=busy_timeout(10000)"))
	if err != nil {
		return Copy{}, err
	}
	defer db.Close()

	if _, err := db.ExecContext(ctx, `VACUUM INTO $1`, part); err != nil {
		return Copy{}, fmt.Errorf("state %s: copy: %w", path, err)
	}

	c, err := CheckCopy(ctx, part)
	if err != nil {
		return Copy{}, fmt.Errorf("state %s: the copy is not good: %w", path, err)
	}
	if err := setChecksum(part); err != nil {
		return Copy{}, err
	}
	if err := syncFile(part); err != nil {
		return Copy{}, err
	}

	if err := os.Link(part, to); errors.Is(err, os.ErrExist) { // unlike a rename it replaces nothing
		return Copy{}, fmt.Errorf("%s: %w", to, ErrExists)
	} else if err != nil { // a file system without links
		if err := os.Rename(part, to); err != nil {
			return Copy{}, err
		}
	}

	return c, syncFile(filepath.Dir(to))
}

// CheckCopy reads a copy of a state wholly and says what it is, or what is wrong with it: no SQLite
// database, damaged, no state of millwright, or of a version that this millwright does not know.
func CheckCopy(ctx context.Context, file string) (Copy, error) {
	info, err := os.Stat(file)
	if err != nil {
		return Copy{}, err
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return Copy{}, fmt.Errorf("%s is empty or no file", file)
	}

	for _, suffix := range []string{"-wal", "-journal"} {
		if rest, err := os.Stat(file + suffix); err == nil && rest.Size() > 0 {
			return Copy{}, fmt.Errorf(
				"%s lies beside it: this is the database of a server, not a backup of it (millwright backup makes one)",
				filepath.Base(file)+suffix,
			)
		}
	}

	db, err := sql.Open("sqlite", sqliteURL(file, "mode=ro&immutable=1"))
	if err != nil {
		return Copy{}, err
	}
	defer db.Close()

	var verdict string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&verdict); err != nil {
		return Copy{}, fmt.Errorf("%s is no SQLite database that can be read: %w", file, err)
	}
	if verdict != "ok" {
		return Copy{}, fmt.Errorf("%s is damaged: %s", file, verdict)
	}

	s := &Store{read: db, write: db, dialect: sqlite}
	fresh, err := s.checkVersion(ctx)
	if err != nil {
		return Copy{}, err
	}
	if fresh {
		return Copy{}, fmt.Errorf("%s is a SQLite database and no state of millwright", file)
	}
	if err := checkChecksum(file); err != nil {
		return Copy{}, err
	}

	c := Copy{Bytes: info.Size()}
	err = db.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version`).Scan(&c.Version)
	return c, err
}

// Restore makes the copy in file from the SQLite state at path. The copy is checked before anything is
// touched. A state that is in use is refused. One that is there already is ErrExists or, with replace,
// kept under another name, see Copy.Replaced. Whenever the process is killed, the state at path is the old
// one or the new one.
func Restore(ctx context.Context, from, path string, replace bool) (Copy, error) {
	if _, err := CheckCopy(ctx, from); err != nil {
		return Copy{}, err
	}

	path = resolved(path)
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Copy{}, fmt.Errorf("state directory: %w", err)
	}

	lock, err := lockState(path)
	if err != nil {
		return Copy{}, err
	}
	defer lock.Unlock()

	there := false
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(path + suffix)
		there = there || err == nil && info.Size() > 0
	}

	if there && !replace {
		return Copy{}, fmt.Errorf("state %s: %w", path, ErrExists)
	}

	part, err := partial(path)
	if err != nil {
		return Copy{}, err
	}
	defer os.Remove(part)

	if err := copyFile(from, part); err != nil {
		return Copy{}, err
	}

	c, err := CheckCopy(ctx, part) // what was written, not what was read
	if err == nil {
		err = writeChecksum(part, checksum{}) // a state has none: it changes
	}
	if err != nil {
		return Copy{}, err
	}

	if there {
		c.Replaced = path + ".replaced-" + time.Now().UTC().Format("20060102T150405.000Z")
		if err := keepAside(ctx, path, c.Replaced); err != nil {
			return Copy{}, err
		}
	}

	for _, suffix := range []string{"-wal", "-shm", "-journal"} { // one that is left would be taken for the new state's
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return Copy{}, err
		}
	}

	if err := os.Rename(part, path); err != nil {
		return Copy{}, err
	}

	return c, syncFile(dir)
}

// keepAside gives the state at path a second name. What its log holds is brought into its file first, so
// that one rename can put another state in its place: whenever the process is killed there is the old one
// or the new one. A file that SQLite cannot read is kept with all that lies beside it.
func keepAside(ctx context.Context, path, kept string) error {
	db, err := sql.Open("sqlite", sqliteURL(path, "_pragma=busy_timeout(5000)"))
	if err != nil {
		return err
	}

	var busy, pages, moved int
	err = db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &moved)
	err = errors.Join(err, db.Close())
	var lite *sqlitedriver.Error
	switch {
	case err == nil && busy != 0:
		err = errors.New("another program reads it")
	case errors.As(err, &lite) && (lite.Code()&0xff == sqlitelib.SQLITE_NOTADB || lite.Code()&0xff == sqlitelib.SQLITE_CORRUPT):
		err = nil
		for _, suffix := range []string{"-wal", "-journal"} {
			if e := os.Rename(path+suffix, kept+suffix); e != nil && !errors.Is(e, os.ErrNotExist) {
				err = e
			}
		}
	}

	if err != nil {
		return fmt.Errorf("state %s: it cannot be put aside: %w", path, err)
	}
	if err := os.Link(path, kept); err != nil { // a file system without links
		return copyFile(path, kept)
	}

	return nil
}

// OpensWith reports whether the SQLite state at path is sealed under the key. Nothing may use it.
func OpensWith(ctx context.Context, path string, masterKey []byte) bool {
	db, err := sql.Open("sqlite", sqliteURL(path, "mode=ro&immutable=1"))
	if err != nil {
		return false
	}
	defer db.Close()
	s := &Store{write: db, dialect: sqlite}
	return s.setMasterKey(masterKey) == nil && s.checkMasterKey(ctx) == nil
}

// resolved follows the symbolic links of a path to the file that SQLite opens, or makes.
func resolved(path string) string {
	for range 40 { // as many as the kernel follows
		if file, err := filepath.EvalSymlinks(path); err == nil {
			return file
		}

		target, err := os.Readlink(path)
		if err != nil { // no link, and no file yet
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}

		path = target
	}

	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}

	return path
}

// lockState makes the SQLite state at path ours alone until it is unlocked or the process ends, whatever
// name others know it by. What a restore that was killed left beside it is removed.
func lockState(path string) (*flock.Flock, error) {
	path = resolved(path)
	lock := flock.New(path + ".lock")
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("state %s: lock: %w", path, err)
	}

	if !ok {
		return nil, fmt.Errorf(
			"state %s is in use by another millwright process: stop it, or choose another --state",
			path,
		)
	}

	if err := removeRests(path); err != nil {
		lock.Unlock()
		return nil, fmt.Errorf("state %s: what a restore left: %w", path, err)
	}

	return lock, nil
}

// removeRests removes copies that were not finished, and second names of the state that were to become
// its only ones: a database must not be known by two.
func removeRests(path string) error {
	err := removeBeside(path, ".partial-", nil)
	if now, e := os.Stat(path); e == nil {
		err = errors.Join(err, removeBeside(path, ".replaced-", now))
	}
	return err
}

// removeBeside removes the files whose names continue that of path so: all of them, or those alone that
// are the same file.
func removeBeside(path, suffix string, same os.FileInfo) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filepath.Base(path)+suffix) {
			continue
		}

		name := filepath.Join(filepath.Dir(path), e.Name())
		if info, e := os.Stat(name); same == nil || e == nil && os.SameFile(same, info) {
			err = errors.Join(err, os.Remove(name))
		}
	}

	return err
}

func sqliteURL(path, query string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query
}

// partial makes an empty file that only its owner may read, beside the file that it is to become.
func partial(name string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".partial-*")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()

	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}

	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Sync(), dst.Close())
}

// syncFile brings a file, or the names in a directory, to disk.
func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
