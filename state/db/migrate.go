package db

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"
)

// dialect names the database.
type dialect int

const (
	sqlite dialect = iota
	postgres
)

//go:embed migrations
var migrations embed.FS

// Migrate brings the tables up to date. It refuses a state that a newer millwright made, and one that check
// refuses, and leaves both untouched; check may be nil, and is not asked about a state that is new.
func (d *DB) Migrate(ctx context.Context, check func(context.Context) error) error {
	version, err := d.version(ctx)
	if err != nil {
		return err
	}

	if version > 0 && check != nil {
		if err := check(ctx); err != nil {
			return err
		}
	}

	p, err := d.migrations()
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate state: %w", classify(err))
	}

	return nil
}

func (d *DB) migrations() (*goose.Provider, error) {
	name, gd := "migrations/sqlite", database.DialectSQLite3
	opts := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if d.dialect == postgres {
		name, gd = "migrations/postgres", database.DialectPostgres
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return nil, err
		}

		opts = append(opts, goose.WithSessionLocker(locker))
	}

	files, err := fs.Sub(migrations, name)
	if err != nil {
		return nil, err
	}

	return goose.NewProvider(gd, d.write, files, opts...)
}

// Statements that count the tables that every state has.
const (
	sqliteTablesSQL = `SELECT count(*)
FROM sqlite_master
WHERE type = 'table' AND name IN ('goose_db_version', 'facts')`

	postgresTablesSQL = `SELECT count(*)
FROM information_schema.tables
WHERE table_schema = current_schema() AND table_name IN ('goose_db_version', 'facts')`
)

// version returns the version of the tables; 0 while there are none. It refuses one that is not known here.
func (d *DB) version(ctx context.Context) (version int64, err error) {
	query := sqliteTablesSQL
	if d.dialect == postgres {
		query = postgresTablesSQL
	}

	var tables int
	if err := d.write.QueryRowContext(ctx, query).Scan(&tables); err != nil {
		return 0, classify(err)
	}
	if tables < 2 {
		return 0, nil
	}

	const newest = `SELECT max(version_id) FROM goose_db_version WHERE version_id > 0`
	if err := d.write.QueryRowContext(ctx, newest).Scan(&version); err != nil {
		return 0, classify(err)
	}

	p, err := d.migrations()
	if err != nil {
		return 0, err
	}

	sources := p.ListSources()
	if known := sources[len(sources)-1].Version; version > known {
		return 0, fmt.Errorf("this state has schema version %d, and this millwright knows versions up to %d: "+
			"a newer millwright made it, or one from before the first release, whose states are not read",
			version, known)
	}

	return version, nil
}

// Version returns the version of the tables in a SQLite file; 0 when it is no state. It refuses one that is
// not known here.
func Version(ctx context.Context, file *sql.DB) (int64, error) {
	return (&DB{write: file}).version(ctx)
}
