package state

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// configureSessionSQL makes what this package relies on true for a session, whatever the role, the
// database or the address says: a commit that returns is on disk, and a transaction sees what others
// committed before each of its statements. A stronger synchronous_commit stays.
const configureSessionSQL = `SELECT
	set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false),
	set_config('default_transaction_isolation', 'read committed', false)`

func configureSession(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, configureSessionSQL)
	return err
}

// warnOfServer logs the settings of a PostgreSQL server with which a crash may lose or damage what was
// committed. A session cannot change them.
func (s *Store) warnOfServer(ctx context.Context) error {
	if s.dialect != postgres {
		return nil
	}

	for _, name := range []string{"fsync", "full_page_writes"} {
		var value string
		if err := s.read.QueryRowContext(ctx, `SELECT current_setting($1)`, name).Scan(&value); err != nil {
			return s.classify(err)
		}

		if value == "off" {
			s.log.Warn(
				"the PostgreSQL server runs with "+name+" off: a crash of its machine may lose or damage deliveries that were answered 202",
				"setting",
				name,
			)
		}
	}

	return nil
}
