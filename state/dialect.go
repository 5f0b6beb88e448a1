package state

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"
	sqlitedriver "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// dialect names the database. Only DDL, locking and notification differ between them.
type dialect int

const (
	sqlite dialect = iota
	postgres
)

//go:embed migrations
var migrations embed.FS

// forUpdate locks the rows that a SELECT reads. SQLite has one writer and needs it not.
func (d dialect) forUpdate() string {
	if d == postgres {
		return " FOR UPDATE"
	}
	return ""
}

func (s *Store) openSQLitePools(path string) error {
	dsn := func(extra string) string {
		return sqliteURL(path, "_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)&_pragma=cache_size(-16000)"+extra)
	}
	var err error
	if s.write, err = sql.Open("sqlite", dsn("&_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=wal_autocheckpoint(2000)")); err != nil {
		return err
	}

	s.write.SetMaxOpenConns(1)
	if err := s.write.Ping(); err != nil {
		return err
	}
	if s.read, err = sql.Open("sqlite", dsn("&_pragma=query_only(1)")); err != nil {
		return err
	}

	s.read.SetMaxOpenConns(8)
	s.read.SetMaxIdleConns(8)
	return nil
}

func (s *Store) openPostgres(dsn string) error {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return errors.New(
			"state: not a PostgreSQL address: want postgres://user@host/database",
		) // the parser's own error may quote the password
	}

	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 5 * time.Second
	}

	s.dialect, s.postgres = postgres, cfg
	s.write = stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(configureSession))
	s.write.SetMaxOpenConns(20)
	s.write.SetMaxIdleConns(20)
	s.write.SetConnMaxIdleTime(5 * time.Minute)
	s.read = stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(configureSession))
	s.read.SetMaxOpenConns(10)
	s.read.SetMaxIdleConns(10)
	s.read.SetConnMaxIdleTime(5 * time.Minute)
	return nil
}

func (s *Store) provider() (*goose.Provider, error) {
	name, gd := "migrations/sqlite", database.DialectSQLite3
	var opts []goose.ProviderOption
	if s.dialect == postgres {
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

	return goose.NewProvider(gd, s.write, files, append(opts, goose.WithDisableGlobalRegistry(true))...)
}

// checkVersion refuses a state that a newer millwright wrote. fresh says that there is no state yet.
func (s *Store) checkVersion(ctx context.Context) (fresh bool, err error) {
	query := `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('goose_db_version', 'facts')`
	if s.dialect == postgres {
		query = `SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name IN ('goose_db_version', 'facts')`
	}

	var tables int
	if err := s.write.QueryRowContext(ctx, query).Scan(&tables); err != nil {
		return false, s.classify(err)
	}
	if tables < 2 {
		return true, nil
	}

	var have int64
	if err := s.write.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version WHERE version_id > 0`).Scan(&have); err != nil {
		return false, s.classify(err)
	}

	p, err := s.provider()
	if err != nil {
		return false, err
	}

	sources := p.ListSources()
	if known := sources[len(sources)-1].Version; have > known {
		return false, fmt.Errorf("this state has schema version %d, and this millwright knows versions up to %d: "+
			"a newer millwright made it, or one from before the first release, whose states are not read", have, known)
	}

	return false, nil
}

func (s *Store) migrate(ctx context.Context) error {
	p, err := s.provider()
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate state: %w", s.classify(err))
	}
	return nil
}

// retryable reports a deadlock or serialization failure.
func (s *Store) retryable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40P01" || pg.Code == "40001")
}

// classify wraps errors that mean "the database cannot be reached or written" in ErrUnavailable.
func (s *Store) classify(err error) error {
	if err == nil || errors.Is(err, ErrUnavailable) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}

	var lite *sqlitedriver.Error
	if errors.As(err, &lite) {
		switch lite.Code() & 0xff {
		case sqlitelib.SQLITE_FULL,
			sqlitelib.SQLITE_IOERR,
			sqlitelib.SQLITE_READONLY,
			sqlitelib.SQLITE_BUSY,
			sqlitelib.SQLITE_CANTOPEN:
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}

		return err
	}

	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code[:2] {
		case "08", "53", "57", "58", "25", "40": // connection, resources, operator, system, read-only, rollback
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return err
	}

	var connect *pgconn.ConnectError
	var network net.Error
	if errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, sql.ErrConnDone) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}

	return err
}

// isForeignKey reports a violated FOREIGN KEY constraint.
func isForeignKey(err error) bool {
	var lite *sqlitedriver.Error
	if errors.As(err, &lite) {
		return lite.Code() == sqlitelib.SQLITE_CONSTRAINT_FOREIGNKEY
	}
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23503"
}

// channel is the PostgreSQL notification channel of a state.
const channel = "millwright"

// notify publishes notices here and, on PostgreSQL, on every other replica, a moment later. They are
// hints; a failure to send them is made good by the replicas' own polling.
func (s *Store) notify(_ context.Context, notices ...Notice) {
	s.Publish(notices...)
	if s.dialect != postgres {
		return
	}
	for _, n := range notices {
		select {
		case s.outgoing <- n:
		default: // too many wait
		}
	}
}

// tell sends notices to the other replicas until ctx ends, all that wait in one statement.
func (s *Store) tell(ctx context.Context) {
	for {
		var texts []string
		select {
		case <-ctx.Done():
			return
		case n := <-s.outgoing:
			texts = append(texts, s.instance+" "+string(n.Topic)+" "+n.ID)
		}

		for more := true; more && len(texts) < 1000; {
			select {
			case n := <-s.outgoing:
				texts = append(texts, s.instance+" "+string(n.Topic)+" "+n.ID)
			default:
				more = false
			}
		}

		if _, err := s.write.ExecContext(ctx, `SELECT pg_notify($1, t) FROM unnest($2::text[]) AS t`, channel, texts); err != nil &&
			ctx.Err() == nil {
			s.log.Debug("notify", "notices", len(texts), "error", err)
		}
	}
}

// useSQL says that this session's process uses the state, until the session ends. It waits while the master
// key is rotated, which takes the lock alone.
const (
	useSQL   = `SELECT pg_advisory_lock_shared(hashtextextended('millwright uses ' || current_schema(), 0))`
	aloneSQL = `SELECT pg_try_advisory_xact_lock(hashtextextended('millwright uses ' || current_schema(), 0))`
)

// use opens the session that says so.
func (s *Store) use(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, s.postgres.Copy())
	if err != nil {
		return nil, s.classify(err)
	}
	if _, err := conn.Exec(ctx, useSQL); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, s.classify(err)
	}
	return conn, nil
}

// listen hands the notices of other replicas to this process until ctx ends. conn is a session in which
// the state is used; when it breaks another one is opened.
func (s *Store) listen(ctx context.Context, conn *pgx.Conn) {
	for {
		err := s.listenOnce(ctx, conn)
		if ctx.Err() != nil {
			return
		}
		s.log.Warn("listening for notices of other replicas: trying again", "error", err)
		if conn, err = s.useAgain(ctx); err != nil {
			return
		}
	}
}

// useAgain opens another session as soon as it can be had. Meanwhile the master key may have been rotated:
// then this process must not go on.
func (s *Store) useAgain(ctx context.Context) (*pgx.Conn, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}

		conn, err := s.use(ctx)
		if err != nil {
			continue
		}
		if err = s.checkMasterKey(ctx); err == nil {
			return conn, nil
		}

		conn.Close(context.WithoutCancel(ctx))
		if errors.Is(err, ErrWrongMasterKey) {
			s.rotated.Store(true)
			s.log.Error(
				"the master key was rotated while this server had no connection to the database: start it again, with the new key",
			)
			return nil, err
		}
	}
}

// listenOnce hands on notices until the session ends.
func (s *Store) listenOnce(ctx context.Context, conn *pgx.Conn) error {
	defer conn.Close(context.WithoutCancel(ctx))

	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}

	s.Publish(Notice{Topic: TopicRouting}, Notice{Topic: TopicQueued}) // whatever was said meanwhile
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}

		from, what, _ := strings.Cut(n.Payload, " ")
		if topic, id, _ := strings.Cut(what, " "); from != s.instance {
			if Topic(topic) == TopicListen {
				s.listened.note(id)
			}
			s.Publish(Notice{Topic: Topic(topic), ID: id})
		}
	}
}
