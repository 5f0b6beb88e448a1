// Package statetest gives tests a real state: SQLite always, PostgreSQL where MILLWRIGHT_TEST_POSTGRES
// names a server.
package statetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver that makes and drops the schemas
	"go.uber.org/goleak"
	"millwright/state"
)

// Variable names the environment variable with the address of a PostgreSQL server for tests.
const Variable = "MILLWRIGHT_TEST_POSTGRES"

// MasterKey is the master key of every state made here.
var masterKey = []byte("0123456789abcdef0123456789abcdef")

// MasterKey returns the master key of every state made here.
func MasterKey() []byte { return masterKey }

// VerifyNoLeaks returns a function that fails t if a goroutine runs which did not run before VerifyNoLeaks.
// Those of a state that is open do not count.
func VerifyNoLeaks(t testing.TB) func() {
	options := []goleak.Option{
		goleak.IgnoreCurrent(),
		goleak.IgnoreAnyFunction("millwright/state.(*Store).writeAccepted.func1"),
		goleak.IgnoreAnyFunction("millwright/state/batch.(*Queue).Run.func1"),
		goleak.IgnoreAnyFunction("database/sql.(*DB).connectionCleaner"),
	}

	return func() {
		t.Helper()
		goleak.VerifyNone(t, options...)
	}
}

// Each runs f once with an empty SQLite state and once with an empty PostgreSQL state.
func Each(t *testing.T, f func(t *testing.T, s *state.Store)) {
	t.Helper()
	EachDSN(t, func(t *testing.T, dsn string) { f(t, Open(t, dsn)) })
}

// EachDSN runs f with the address of a state that does not exist yet, once for each database.
func EachDSN(t *testing.T, f func(t *testing.T, dsn string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { f(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { f(t, Postgres(t)) })
}

// SQLite returns the address of a SQLite state that does not exist yet.
func SQLite(t testing.TB) string { return filepath.Join(t.TempDir(), "state.db") }

// Postgres returns the address of an empty schema of its own on the test server. Without a server the
// test is skipped, or fails where CI=true.
func Postgres(t testing.TB) string {
	t.Helper()
	base := os.Getenv(Variable)
	if base == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not set", Variable)
		}
		t.Skipf("%s is not set: no PostgreSQL to test with (make test starts one)", Variable)
	}

	admin, err := sql.Open("pgx", base)
	if err != nil {
		t.Fatal(err)
	}

	name := fmt.Sprintf("t%d", time.Now().UnixNano())
	if _, err := admin.Exec("CREATE SCHEMA " + name); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if _, err := admin.Exec("DROP SCHEMA " + name + " CASCADE"); err != nil {
			t.Error(err)
		}
		admin.Close()
	})

	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}

	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// prepared is an empty SQLite state, migrated once for all tests of a process.
var prepared = sync.OnceValues(func() (empty []byte, err error) {
	dir, err := os.MkdirTemp("", "statetest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "state.db")
	s, err := state.Open(context.Background(), state.Config{DSN: path, MasterKey: masterKey})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// Open opens the state at dsn until the test ends. One that does not exist yet is made.
func Open(t testing.TB, dsn string) *state.Store {
	t.Helper()
	if path, ok := state.SQLitePath(dsn); ok {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			empty, err := prepared()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, empty, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}

	s, err := state.Open(context.Background(), state.Config{DSN: dsn, MasterKey: masterKey})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Age makes the runs of a SQLite state that have ended look as if a worker had executed them when they were
// made. No server may use the state.
func Age(t testing.TB, dsn string) {
	t.Helper()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	for _, change := range []string{
		`UPDATE run_entries SET at = (SELECT created_at FROM runs WHERE id = run_id) + seq * 9000000`, // microseconds
		`UPDATE runs
SET updated_at = (SELECT max(at) FROM run_entries WHERE run_id = id)
WHERE finished_at IS NOT NULL`,
		`UPDATE runs SET finished_at = updated_at WHERE finished_at IS NOT NULL`,
	} {
		if _, err := db.Exec(change); err != nil {
			t.Fatal(err)
		}
	}
}
