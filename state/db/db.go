// Package db is the door to the two databases of a state, SQLite and PostgreSQL. It opens and migrates them,
// and knows all in which they differ but the texts of the hot path.
//
// Everything is read through a [Reader]: the one of the [DB], or one of [DB.View], which sees a single moment.
// Everything is changed by [DB.Write], whose transaction is retried, recovered from panics and refused once
// the state is out of bounds (see [DB.Refuse]); [DB.Exec] is Write of one statement, and [DB.Pipeline] is the
// same on PostgreSQL for statements that share a round trip. Times are stored as microseconds since the Unix
// epoch, and no statement reads the database's clock but [DB.ReadClock].
package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Open opens the database that dsn names: a path, sqlite:PATH, or postgres://…. It creates a SQLite file, and
// refuses one that another process has open. It does not touch what is stored: see [DB.Migrate].
func Open(ctx context.Context, dsn string, log *slog.Logger) (*DB, error) {
	d := &DB{log: log}

	var err error
	if path, ok := SQLitePath(dsn); ok {
		err = d.openSQLite(path)
	} else {
		err = d.openPostgres(ctx, dsn)
	}
	if err != nil {
		d.Close()
		return nil, err
	}

	return d, nil
}

func (d *DB) openSQLite(path string) error {
	if err := MakeDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}

	var err error
	if d.lock, err = Lock(path); err != nil {
		return err
	}

	// The file holds payloads: it is nobody else's business.
	if f, err := os.OpenFile(path, os.O_CREATE, 0o600); err == nil {
		f.Close()
	}

	d.dialect = sqlite
	if err := d.openSQLitePools(path); err != nil {
		return fmt.Errorf("state %s: %w", path, err)
	}

	return nil
}

// Options of the SQLite connections: of all, and of those that write.
const (
	sqliteOptions      = "_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)&_pragma=cache_size(-16000)"
	sqliteWriteOptions = sqliteOptions + "&_txlock=immediate&_pragma=journal_mode(WAL)" +
		"&_pragma=synchronous(FULL)&_pragma=wal_autocheckpoint(2000)"
)

func (d *DB) openSQLitePools(path string) error {
	var err error
	if d.write, err = OpenFile(path, sqliteWriteOptions); err != nil {
		return err
	}

	d.write.SetMaxOpenConns(1)
	if err := d.write.Ping(); err != nil {
		return err
	}

	read, err := OpenFile(path, sqliteOptions+"&_pragma=query_only(1)")
	if err != nil {
		return err
	}

	read.SetMaxOpenConns(8)
	read.SetMaxIdleConns(8)
	d.Reader = Reader{pool: read, cache: &prepared{}}
	d.built = &prepared{}
	return nil
}

func (d *DB) openPostgres(ctx context.Context, dsn string) error {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil { // the parser's own error may quote the password
		return errors.New("state: not a PostgreSQL address: want postgres://user@host/database")
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 5 * time.Second
	}

	pool := func(size int) *sql.DB {
		p := stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(configureSession))
		p.SetMaxOpenConns(size)
		p.SetMaxIdleConns(size)
		p.SetConnMaxIdleTime(5 * time.Minute)
		return p
	}
	d.dialect, d.postgres = postgres, cfg
	d.write, d.Reader = pool(20), Reader{pool: pool(10)}

	if err := d.warnOfServer(ctx); err != nil {
		return err
	}
	if err := d.ReadClock(ctx); err != nil {
		return err
	}

	background, stop := context.WithCancel(context.Background())
	d.stop = stop
	d.background.Go(func() { d.followClock(background) })
	return nil
}

// Close closes the database.
func (d *DB) Close() error {
	if d.stop != nil {
		d.stop()
		d.background.Wait()
	}

	var errs []error
	for _, pool := range []*sql.DB{d.pool, d.write} {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Unlock())
	}

	return errors.Join(errs...)
}

// Ping reports whether the database answers, and changes are not refused.
func (d *DB) Ping(ctx context.Context) error {
	if err := d.Refused(); err != nil {
		return err
	}
	return classify(d.pool.PingContext(ctx))
}

// Postgres reports whether the database is PostgreSQL, so that several processes may use it at once.
func (d *DB) Postgres() bool { return d.dialect == postgres }

// ForUpdate returns the clause that locks the rows that a SELECT reads until the transaction ends. SQLite
// has one writer and needs none.
func (d *DB) ForUpdate() string {
	if d.dialect == postgres {
		return " FOR UPDATE"
	}
	return ""
}

// Refuse makes err the answer to every later change and to Ping.
func (d *DB) Refuse(err error) { d.refused.Store(&err) }

// Refused returns the error that Refuse was given last; nil if there is none.
func (d *DB) Refused() error {
	if err := d.refused.Load(); err != nil {
		return *err
	}
	return nil
}
