package db

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// configureSessionSQL makes what this package relies on true for a session, whatever the role, the
// database or the address says: a commit that returns is on disk, and a transaction sees what others
// committed before each of its statements. A stronger synchronous_commit stays.
const configureSessionSQL = `SELECT
	set_config(
		'synchronous_commit',
		CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END,
		false
	),
	set_config('default_transaction_isolation', 'read committed', false)`

func configureSession(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, configureSessionSQL)
	return err
}

// warnOfServer logs the settings of a PostgreSQL server with which a crash may lose or damage what was
// committed. A session cannot change them.
func (d *DB) warnOfServer(ctx context.Context) error {
	for _, name := range []string{"fsync", "full_page_writes"} {
		var value string
		if err := d.QueryRow(ctx, `SELECT current_setting($1)`, name).Scan(&value); err != nil {
			return err
		}

		if value == "off" {
			d.log.Warn("the PostgreSQL server runs with "+name+" off: a crash of its machine may lose or damage "+
				"deliveries that were answered 202", "setting", name)
		}
	}

	return nil
}

// A process that uses a PostgreSQL state holds a lock in common with the others; who must be alone takes it.
const (
	useSQL   = `SELECT pg_advisory_lock_shared(hashtextextended('millwright uses ' || current_schema(), 0))`
	aloneSQL = `SELECT pg_try_advisory_xact_lock(hashtextextended('millwright uses ' || current_schema(), 0))`
)

// Use opens a PostgreSQL session that shows, until it is closed, that this process uses the state. It waits
// while another process is alone with it.
func (d *DB) Use(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, d.postgres.Copy())
	if err != nil {
		return nil, classify(err)
	}

	if _, err := conn.Exec(ctx, useSQL); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, classify(err)
	}

	return conn, nil
}

// Alone reports whether no other process uses the state, and holds those off that come, until the
// transaction ends. A SQLite state has one process.
func (t *Tx) Alone(ctx context.Context) (alone bool, err error) {
	if t.db.dialect == sqlite {
		return true, nil
	}
	err = t.QueryRow(ctx, aloneSQL).Scan(&alone)
	return alone, err
}
