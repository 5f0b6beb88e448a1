// Package state is what millwright remembers, and which changes to it are legal. It holds the only SQL.
//
// One [Store] serves SQLite (embedded, the default) and PostgreSQL (many replicas). Times are stored as
// microseconds since the Unix epoch, UTC, and are written by Go; illegal states are refused by the schema
// itself. Every method is safe for concurrent use. A method that changes something either changes all of
// it, durably, or nothing.
package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"
	"github.com/jackc/pgx/v5"
)

var (
	// ErrNotFound says that the named thing does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict says that the change contradicts what is stored; the wrapping error says how.
	ErrConflict = errors.New("conflict")
	// ErrLost says that a worker no longer holds the run it writes to.
	ErrLost = errors.New("the claim on this run is lost")
	// ErrMoved says that the factory's definition changed since it was read.
	ErrMoved = errors.New("the definition changed meanwhile")
	// ErrUnreadable says that a row cannot be read as it is stored; the wrapping error names it.
	ErrUnreadable = errors.New("it cannot be read as it is stored")
	// ErrUnavailable says that the database cannot be reached or written just now; a retry may help.
	ErrUnavailable = errors.New("state unavailable")
)

// Config says how to open a state. MasterKey is required: see [LoadMasterKey].
type Config struct {
	// DSN is a path, sqlite:PATH, or postgres://…
	DSN string
	// MasterKey seals secrets at rest: 32 bytes, or the 64 of two keys, of which the state is sealed under one.
	MasterKey []byte
	// Log receives notices of background work; nil discards them.
	Log *slog.Logger
}

// Store is an open state.
type Store struct {
	read, write *sql.DB
	dialect     dialect
	seal        *sealer
	otherKeys   []*sealer // that the state may be sealed under, until that is known
	log         *slog.Logger
	lock        *flock.Flock
	accept      *acceptor
	group       group
	reads       prepared
	lists       prepared
	bus         bus
	instance    string      // names this process among the replicas
	outgoing    chan Notice // for the other replicas
	local       localReplicas
	definitions definitions
	listened    listened
	postgres    *pgx.ConnConfig
	clock       clock
	skips       skips
	rotated     atomic.Bool // the state is sealed under another master key than ours now
	stop        context.CancelFunc
	background  sync.WaitGroup
}

// SQLitePath returns the database file that dsn names, and false when dsn names a PostgreSQL state.
func SQLitePath(dsn string) (string, bool) {
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		return "", false
	}
	return strings.TrimPrefix(dsn, "sqlite:"), true
}

// Open opens the state that cfg names, creating and migrating it as needed. It refuses, and changes
// nothing, when the state is of a newer version, is sealed under another master key, or is a SQLite
// file that another process holds.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	return open(ctx, cfg, true)
}

// open is Open. Without use others are not told that we use a PostgreSQL state, nor we of their notices.
func open(ctx context.Context, cfg Config, use bool) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}

	s := &Store{log: cfg.Log, instance: NewID(PrefixReplica), outgoing: make(chan Notice, 10_000)}
	err := s.setMasterKey(cfg.MasterKey)
	if err != nil {
		return nil, err
	}

	if path, ok := SQLitePath(cfg.DSN); ok {
		err = s.openSQLite(path)
	} else {
		err = s.openPostgres(cfg.DSN)
	}

	if err != nil {
		return nil, err
	}

	var session *pgx.Conn
	if use && s.dialect == postgres { // before the master key is checked
		if session, err = s.use(ctx); err != nil {
			s.closeDatabases()
			return nil, err
		}
	}

	if err := s.prepare(ctx); err != nil {
		if session != nil {
			session.Close(context.WithoutCancel(ctx))
		}

		s.closeDatabases()
		return nil, err
	}

	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.bus.init()
	s.accept = newAcceptor(s)
	s.background.Go(func() { s.accept.run(background) })
	if s.dialect == postgres {
		s.background.Go(func() { s.tell(background) })
		s.background.Go(func() { s.followClock(background) })
	}
	if session != nil {
		s.background.Go(func() { s.listen(background, session) })
	}

	return s, nil
}

func (s *Store) openSQLite(path string) error {
	if dir := filepath.Dir(path); dir != "." {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("state directory: %w", err)
		}
	}

	var err error
	if s.lock, err = lockState(path); err != nil {
		return err
	}

	s.dialect = sqlite
	if f, err := os.OpenFile(path, os.O_CREATE, 0o600); err == nil { // it holds payloads: nobody else's business
		f.Close()
	}
	if err := s.openSQLitePools(path); err != nil {
		s.closeDatabases()
		return fmt.Errorf("state %s: %w", path, err)
	}

	return nil
}

// prepare checks the state before it touches it, then migrates it.
func (s *Store) prepare(ctx context.Context) error {
	fresh, err := s.checkVersion(ctx)
	if err != nil {
		return err
	}

	if !fresh {
		if err := s.checkMasterKey(ctx); err != nil {
			return err
		}
	}

	if err := s.migrate(ctx); err != nil {
		return err
	}
	if err := s.warnOfServer(ctx); err != nil {
		return err
	}
	if err := s.readClock(ctx); err != nil {
		return err
	}

	return s.rememberMasterKey(ctx)
}

// Close ends the background work and closes the database. Accepts in flight are answered first.
func (s *Store) Close() error {
	if s.stop != nil {
		s.stop()
		s.background.Wait()
	}
	return s.closeDatabases()
}

func (s *Store) closeDatabases() error {
	var errs []error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Unlock())
	}
	return errors.Join(errs...)
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.checkRotated(); err != nil {
		return err
	}
	return s.classify(s.read.PingContext(ctx))
}

// Shared reports whether several processes may serve this state at once (PostgreSQL).
func (s *Store) Shared() bool { return s.dialect == postgres }

// tx runs f in one write transaction and commits it. It is run again when the database asks for that
// (deadlock, serialization failure), so f must have no other effects.
func (s *Store) tx(ctx context.Context, f func(*sql.Tx) error) error {
	if err := s.checkRotated(); err != nil {
		return err
	}
	for try := 0; ; try++ {
		err := s.txOnce(ctx, f)
		if err == nil || try == 4 || !s.retryable(err) {
			return s.classify(err)
		}
	}
}

func (s *Store) txOnce(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func micros(t time.Time) int64 { return t.UnixMicro() }

func microsOrNull(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.UnixMicro()
}

func timeOf(us int64) time.Time { return time.UnixMicro(us).UTC() }

func timeOrNil(us sql.NullInt64) *time.Time {
	if !us.Valid {
		return nil
	}
	t := timeOf(us.Int64)
	return &t
}

var errNoRow = errors.New("no such row")

// one returns errNoRow when a statement changed nothing.
func one(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return errNoRow
}

func orMoved(err error) error {
	if errors.Is(err, errNoRow) {
		return ErrMoved
	}
	return err
}

type scanner interface{ Scan(...any) error }

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// scanAll reads every row, closes rows, and returns what scan makes of them.
func scanAll[T any](rows *sql.Rows, scan func(scanner) (T, error)) ([]T, error) {
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// storable returns text that both databases take: valid UTF-8 without NUL.
func storable(text string) string {
	if !strings.Contains(text, "\x00") && utf8.ValidString(text) {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// bounded is storable of at most so many characters, for columns that an index has: PostgreSQL refuses a row
// whose part of an index is larger than 2,704 bytes.
func bounded(text string, characters int) string {
	text = storable(text)
	if len(text) <= characters {
		return text
	}

	for i := range text {
		if characters == 0 {
			return text[:i]
		}
		characters--
	}

	return text
}

func noRows(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// placeholders returns "$1, $2, …" for values, and the values as arguments.
func placeholders(values []string) (string, []any) {
	marks, args := make([]string, len(values)), make([]any, len(values))
	for i, v := range values {
		marks[i], args[i] = "$"+strconv.Itoa(i+1), v
	}
	return strings.Join(marks, ", "), args
}
