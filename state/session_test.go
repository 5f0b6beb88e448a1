package state_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"millwright/state"
	"millwright/state/statetest"
)

// TestSessionSettings opens a state as a role whose own settings promise less than the state does. What
// its transactions run with is written down by triggers.
func TestSessionSettings(t *testing.T) {
	for name, c := range map[string]struct{ set, commit string }{
		"off":             {"synchronous_commit = off", "on"},
		"local":           {"synchronous_commit = local", "local"},
		"stronger":        {"synchronous_commit = remote_apply", "remote_apply"},
		"repeatable read": {"default_transaction_isolation = 'repeatable read'", "on"},
		"serializable":    {"default_transaction_isolation = 'serializable'", "on"},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := statetest.Postgres(t)
			statetest.Open(t, dsn).Close() // makes the tables
			db := openDB(t, dsn)
			role := fmt.Sprintf("role%d", time.Now().UnixNano())
			execAll(t, db,
				`CREATE ROLE `+role+` LOGIN SUPERUSER`, `ALTER ROLE `+role+` SET `+c.set,
				`CREATE TABLE seen (what TEXT, synchronous TEXT, isolation TEXT)`,
				`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					INSERT INTO seen VALUES (tg_table_name, current_setting('synchronous_commit'), current_setting('transaction_isolation'));
					RETURN NEW; END $$`)
			for _, table := range []string{"runs", "deliveries", "secrets", "replicas", "syncs"} {
				execAll(t, db, `CREATE TRIGGER note AFTER INSERT OR UPDATE ON `+table+` FOR EACH ROW EXECUTE FUNCTION note()`)
			}
			t.Cleanup(func() { execAll(t, db, `DROP OWNED BY `+role, `DROP ROLE `+role) })

			s := statetest.Open(t, asRole(t, dsn, role))
			h := newHooks(t, s, "ci") // applies
			if _, err := s.Accept(t.Context(), h.acceptance("ci", "one", 1)); err != nil {
				t.Fatal(err)
			}
			id := create(t, s, newRun("a prompt")).ID
			claim(t, s, id)
			r, err := s.Join(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			r.Leave(t.Context())
			s.Close()

			rows, err := db.Query(`SELECT DISTINCT what, synchronous, isolation FROM seen ORDER BY what`)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			tables := 0
			for rows.Next() {
				var what, synchronous, isolation string
				if err := rows.Scan(&what, &synchronous, &isolation); err != nil {
					t.Fatal(err)
				}
				tables++
				if synchronous != c.commit || isolation != "read committed" {
					t.Errorf("%s was written with synchronous_commit %s and isolation %s", what, synchronous, isolation)
				}
			}
			if err := rows.Err(); err != nil || tables != 5 {
				t.Errorf("writes of %d tables were seen: %v", tables, err)
			}
		})
	}
}

func execAll(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func asRole(t *testing.T, dsn, role string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return u.String()
}

// TestUnsafeServerIsTold starts on a PostgreSQL server whose commits are not on disk.
func TestUnsafeServerIsTold(t *testing.T) {
	dsn := statetest.Postgres(t)
	if !strings.Contains(dsn, url.QueryEscape(os.TempDir()+"/")) {
		t.Skip("the server is not one that was made for tests alone")
	}
	db := openDB(t, dsn)
	execAll(t, db, `ALTER SYSTEM SET full_page_writes = off`, `SELECT pg_reload_conf()`)
	t.Cleanup(func() { execAll(t, db, `ALTER SYSTEM RESET full_page_writes`, `SELECT pg_reload_conf()`) })
	deadline := time.Now().Add(time.Minute)
	for value := ""; value != "off"; {
		if err := db.QueryRow(`SELECT current_setting('full_page_writes')`).Scan(&value); err != nil || time.Now().After(deadline) {
			t.Fatalf("waiting for full_page_writes to be off: %q %v", value, err)
		}
	}
	var log bytes.Buffer
	s, err := state.Open(t.Context(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if !strings.Contains(log.String(), "full_page_writes off") {
		t.Errorf("the log does not tell of it: %s", log.String())
	}
}
