package db

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/gofrs/flock"
	"github.com/jackc/pgx/v5"

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
	version, newest, err := d.versions(ctx)
	if err != nil {
		return err
	}

	if version > 0 && check != nil {
		if err := check(ctx); err != nil {
			return err
		}
	}

	if version == newest { // migrations are applied in order: none is left
		return nil
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

// versions returns the version of the tables, 0 while there are none, and the newest that is known here. It refuses
// tables that are newer.
func (d *DB) versions(ctx context.Context) (version, newest int64, err error) {
	p, err := d.migrations()
	if err != nil {
		return 0, 0, err
	}

	sources := p.ListSources()
	newest = sources[len(sources)-1].Version

	query := sqliteTablesSQL
	if d.dialect == postgres {
		query = postgresTablesSQL
	}

	var tables int
	if err := d.write.QueryRowContext(ctx, query).Scan(&tables); err != nil {
		return 0, 0, classify(err)
	}
	if tables < 2 {
		return 0, newest, nil
	}

	const applied = `SELECT max(version_id) FROM goose_db_version WHERE version_id > 0`
	if err := d.write.QueryRowContext(ctx, applied).Scan(&version); err != nil {
		return 0, 0, classify(err)
	}

	if version > newest {
		return 0, 0, fmt.Errorf("this state has schema version %d, and this millwright knows versions up to %d: "+
			"a newer millwright made it, or one from before the first release, whose states are not read",
			version, newest)
	}

	return version, newest, nil
}

// Version returns the version of the tables in a SQLite file; 0 when it is no state. It refuses one that is
// not known here.
func Version(ctx context.Context, file *sql.DB) (int64, error) {
	version, _, err := (&DB{write: file}).versions(ctx)
	return version, err
}

// DB is an open database.
type DB struct {
	Reader // outside of a transaction

	write    *sql.DB
	dialect  dialect
	log      *slog.Logger
	lock     *flock.Flock
	postgres *pgx.ConnConfig
	built    *prepared
	group    group
	clock    clock
	refused  atomic.Pointer[error]

	stop       context.CancelFunc
	background sync.WaitGroup
}

// group lets concurrent changes of a SQLite state share one transaction, and so one sync of the disk.
// There is no timer and no goroutine: whoever comes first makes its change together with all that came
// meanwhile, then hands over to the next who waits. The zero value is ready.
type group struct {
	mu       sync.Mutex
	busy     bool
	waiting  []*grouped
	prepared prepared
}

// grouped is one change that waits for its commit.
type grouped struct {
	ctx  context.Context
	f    func(context.Context, *Tx) error
	done chan error    // the change's own outcome
	lead chan struct{} // closed when this one is to make the next batch
}

// Tx is a transaction that changes the database.
type Tx struct {
	Reader
	db *DB
}

func (t *Tx) execContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if t.conn != nil {
		return t.conn.ExecContext(ctx, query, args...)
	}
	return t.tx.ExecContext(ctx, query, args...)
}
