package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
	sqlitedriver "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

var (
	// ErrUnavailable says that the database cannot be reached or written just now; a retry may help.
	ErrUnavailable = errors.New("state unavailable")
	// ErrNoRow says that a statement changed nothing.
	ErrNoRow = errors.New("no such row")
)

// NoRows returns err, unless that is the error of a statement that found no row.
func NoRows(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// retryable reports a deadlock or serialization failure.
func retryable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40P01" || pg.Code == "40001")
}

// classify wraps errors that mean "the database cannot be reached or written" in ErrUnavailable.
func classify(err error) error {
	if err == nil || errors.Is(err, ErrUnavailable) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if !unavailable(err) {
		return err
	}

	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

func unavailable(err error) bool {
	if lite, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		switch lite.Code() & 0xff {
		case sqlitelib.SQLITE_FULL, sqlitelib.SQLITE_IOERR, sqlitelib.SQLITE_READONLY, sqlitelib.SQLITE_BUSY,
			sqlitelib.SQLITE_CANTOPEN:
			return true
		}

		return false
	}

	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code[:2] {
		case "08", "53", "57", "58", "25", "40": // connection, resources, operator, system, read-only, rollback
			return true
		}

		return false
	}

	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, sql.ErrConnDone)
}

// IsForeignKey reports a violated FOREIGN KEY constraint.
func IsForeignKey(err error) bool {
	if lite, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		return lite.Code() == sqlitelib.SQLITE_CONSTRAINT_FOREIGNKEY
	}
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23503"
}

// IsDamaged reports that SQLite finds a file damaged, or no database.
func IsDamaged(err error) bool {
	var lite *sqlitedriver.Error
	if !errors.As(err, &lite) {
		return false
	}
	code := lite.Code() & 0xff
	return code == sqlitelib.SQLITE_NOTADB || code == sqlitelib.SQLITE_CORRUPT
}
