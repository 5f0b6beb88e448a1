package db

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
)

// Examination describes a database that an installation uses.
type Examination struct {
	Engine  string   // SQLite or PostgreSQL, with its version
	Version int64    // of the tables; 0: there are none yet
	Damage  string   // of a SQLite file; empty: none was found
	Partial bool     // the file was too large to be read wholly in time
	Unsafe  []string // settings with which a crash loses what was committed, or nothing can be written
	Skew    time.Duration
}

// examineFor bounds the time for reading a SQLite file.
const examineFor = 10 * time.Second

// OpenReading opens the database that dsn names for reading, also while a server uses it. It creates no file.
func OpenReading(ctx context.Context, dsn string) (*DB, error) {
	d := &DB{log: slog.New(slog.DiscardHandler)}
	path, file := SQLitePath(dsn)
	if !file {
		if err := d.openPostgres(ctx, dsn); err != nil {
			d.Close()
			return nil, err
		}
		return d, nil
	}

	if _, err := os.Stat(path); err != nil {
		return nil, err
	}

	pool, err := OpenFile(path, "mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)")
	if err != nil {
		return nil, err
	}
	d.dialect, d.write, d.Reader = sqlite, pool, Reader{pool: pool}
	return d, nil
}

// Examine looks for what is wrong with the database. It changes nothing.
func (d *DB) Examine(ctx context.Context) (Examination, error) {
	var e Examination
	var err error
	if d.dialect == sqlite {
		err = d.examineSQLite(ctx, &e)
	} else {
		err = d.examinePostgres(ctx, &e)
	}
	if err != nil || e.Damage != "" {
		return e, err
	}

	e.Version, _, err = d.versions(ctx)
	return e, err
}

func (d *DB) examineSQLite(ctx context.Context, e *Examination) error {
	err := d.QueryRow(ctx, `SELECT 'SQLite ' || sqlite_version()`).Scan(&e.Engine)
	if err != nil {
		return e.damaged(err)
	}

	timed, stop := context.WithTimeout(ctx, examineFor)
	defer stop()

	var verdict string
	err = d.QueryRow(timed, `PRAGMA quick_check(1)`).Scan(&verdict)
	switch {
	case err != nil && ctx.Err() == nil && timed.Err() != nil:
		e.Partial = true
	case err != nil:
		return e.damaged(err)
	case verdict != "ok":
		e.Damage = strings.ToValidUTF8(verdict, "?")
	}
	return nil
}

// damaged notes the error of a file that is damaged, and returns any other.
func (e *Examination) damaged(err error) error {
	if !IsDamaged(err) {
		return err
	}
	e.Damage = err.Error()
	return nil
}

const examinePostgresSQL = `SELECT
	'PostgreSQL ' || current_setting('server_version'),
	current_setting('fsync'),
	current_setting('full_page_writes'),
	current_setting('max_connections')::int,
	pg_is_in_recovery()`

// needConnections is how many connections a server may open: its two pools, and sessions of their own.
const needConnections = 34

func (d *DB) examinePostgres(ctx context.Context, e *Examination) error {
	var fsync, pages string
	var connections int
	var standby bool
	err := d.QueryRow(ctx, examinePostgresSQL).Scan(&e.Engine, &fsync, &pages, &connections, &standby)
	if err != nil {
		return err
	}

	if fsync == "off" {
		e.Unsafe = append(e.Unsafe, "fsync is off: a crash may lose or damage what was committed")
	}
	if pages == "off" {
		e.Unsafe = append(e.Unsafe, "full_page_writes is off: a crash may damage what was committed")
	}
	if standby {
		e.Unsafe = append(e.Unsafe, "it is a standby, which takes no writes")
	}
	if connections < needConnections {
		e.Unsafe = append(e.Unsafe, fmt.Sprintf("max_connections is %d: each server may open %d",
			connections, needConnections))
	}

	e.Skew = d.ClockSkew()
	return nil
}
