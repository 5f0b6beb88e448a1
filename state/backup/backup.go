// Package backup copies the SQLite state of a server to a file, checks such copies, and makes a state from one.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"millwright/state/audit"
	"millwright/state/db"
)

// Copy describes a copy that was checked.
type Copy struct {
	Bytes   int64
	Version int64 // of the schema
	// Replaced is where Restore put the state that was there before; empty when there was none.
	Replaced string
}

// ErrExists says that a file is in the way.
var ErrExists = errors.New("the file exists already")

// Make writes a consistent copy of the SQLite state at path to the file to, also while a server uses
// that state: it sees what was committed when it began, and holds up nobody. The copy is checked, and
// appears under its name, with mode 0600, only when it is good and on disk. It does not hold the master
// key. ErrExists when to exists.
func Make(ctx context.Context, path, to string) (_ Copy, err error) {
	if _, err := os.Stat(path); err != nil {
		return Copy{}, fmt.Errorf("state: %w", err)
	}
	if _, err := os.Lstat(to); err == nil {
		return Copy{}, fmt.Errorf("%s: %w", to, ErrExists)
	}

	part, err := db.Partial(to)
	if err != nil {
		return Copy{}, err
	}
	defer os.Remove(part)

	source, err := db.OpenFile(path, "mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		return Copy{}, err
	}
	defer source.Close()

	if _, err := source.ExecContext(ctx, `VACUUM INTO $1`, part); err != nil {
		return Copy{}, fmt.Errorf("state %s: copy: %w", path, err)
	}

	if err := dropSnapshots(ctx, part); err != nil {
		return Copy{}, fmt.Errorf("state %s: copy: %w", path, err)
	}

	c, err := Check(ctx, part)
	if err != nil {
		return Copy{}, fmt.Errorf("state %s: the copy is not good: %w", path, err)
	}
	if err := setChecksum(part); err != nil {
		return Copy{}, err
	}

	err = db.PublishNew(part, to)
	if errors.Is(err, os.ErrExist) {
		return Copy{}, fmt.Errorf("%s: %w", to, ErrExists)
	}
	if err != nil {
		return Copy{}, err
	}
	return c, nil
}

// dropSnapshots deletes the snapshots of runs from a copy: they are large, and runs go on without them.
func dropSnapshots(ctx context.Context, file string) error {
	database, err := db.OpenFile(file, "_pragma=journal_mode(off)")
	if err != nil {
		return err
	}
	defer database.Close()

	var parts int
	err = database.QueryRowContext(ctx, `SELECT count(*) FROM run_snapshot_parts`).Scan(&parts)
	if err != nil || parts == 0 {
		return nil // a file without them is no state of ours: Check tells
	}

	for _, query := range []string{`DELETE FROM run_snapshots`, `DELETE FROM run_snapshot_parts`, `VACUUM`} {
		if _, err := database.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// Check reads a copy of a state wholly and describes it. It returns an error about a file that is no SQLite
// database, damaged, no state of millwright, or of a version that this millwright does not know.
func Check(ctx context.Context, file string) (Copy, error) {
	info, err := os.Stat(file)
	if err != nil {
		return Copy{}, err
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return Copy{}, fmt.Errorf("%s is empty or no file", file)
	}

	for _, suffix := range []string{"-wal", "-journal"} {
		if rest, err := os.Stat(file + suffix); err == nil && rest.Size() > 0 {
			return Copy{}, fmt.Errorf("%s lies beside it: this is the database of a server, not a backup of it "+
				"(millwright backup makes one)", filepath.Base(file)+suffix)
		}
	}

	database, err := db.OpenFile(file, "mode=ro&immutable=1")
	if err != nil {
		return Copy{}, err
	}
	defer database.Close()

	var verdict string
	if err := database.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&verdict); err != nil {
		return Copy{}, fmt.Errorf("%s is no SQLite database that can be read: %w", file, err)
	}
	if verdict != "ok" {
		return Copy{}, fmt.Errorf("%s is damaged: %s", file, verdict)
	}

	c := Copy{Bytes: info.Size()}
	if c.Version, err = db.Version(ctx, database); err != nil {
		return Copy{}, err
	}
	if c.Version == 0 {
		return Copy{}, fmt.Errorf("%s is a SQLite database and no state of millwright", file)
	}

	return c, checkChecksum(file)
}

// Restore makes the copy in file from the SQLite state at path. The copy is checked before anything is
// touched. A state that is in use is refused. One that is there already is ErrExists or, with replace,
// kept under another name, see Copy.Replaced. The audit log of the new state has a row about it, by the actor
// of ctx. Whenever the process is killed, the state at path is the old
// one or the new one.
func Restore(ctx context.Context, from, path string, replace bool) (Copy, error) {
	if _, err := Check(ctx, from); err != nil {
		return Copy{}, err
	}

	path = db.Resolved(path)
	if err := db.MakeDir(filepath.Dir(path)); err != nil {
		return Copy{}, fmt.Errorf("state directory: %w", err)
	}

	lock, err := db.Lock(path)
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

	part, err := db.Partial(path)
	if err != nil {
		return Copy{}, err
	}
	defer os.Remove(part)

	if err := copyFile(from, part); err != nil {
		return Copy{}, err
	}

	c, err := Check(ctx, part) // what was written, not what was read
	if err == nil {
		err = record(ctx, part, from)
	}
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

	// One that is left would be taken for the new state's.
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return Copy{}, err
		}
	}

	if err := db.Publish(part, path); err != nil {
		return Copy{}, err
	}
	return c, nil
}

// record adds to the audit log of a copy that it becomes the state.
func record(ctx context.Context, part, from string) error {
	database, err := db.OpenFile(part, "_pragma=synchronous(full)")
	if err != nil {
		return err
	}

	e := audit.Entry{Action: audit.StateRestore, Subject: filepath.Base(from)}.Complete(ctx)
	_, err = database.ExecContext(ctx, audit.InsertSQL, e.Row()...)
	if err = errors.Join(err, database.Close()); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

// keepAside gives the state at path a second name. What its log holds is brought into its file first, so
// that one rename can put another state in its place: whenever the process is killed there is the old one
// or the new one. A file that SQLite cannot read is kept with the files beside it.
func keepAside(ctx context.Context, path, kept string) error {
	database, err := db.OpenFile(path, "_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}

	var busy, pages, written int
	err = database.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &written)
	err = errors.Join(err, database.Close())
	switch {
	case err == nil && busy != 0:
		err = errors.New("another program reads it")
	case db.IsDamaged(err):
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
