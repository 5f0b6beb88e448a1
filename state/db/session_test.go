package db_test

import (
	"bytes"
	"database/sql"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"millwright/state/statetest"
)

// TestUnsafeServerIsTold starts on a PostgreSQL server whose commits are not on disk.
func TestUnsafeServerIsTold(t *testing.T) {
	dsn := statetest.Postgres(t)
	if !strings.Contains(dsn, url.QueryEscape(os.TempDir()+"/")) {
		t.Skip("the server is not one that was made for tests alone")
	}
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	execAll(t, admin, `ALTER SYSTEM SET full_page_writes = off`, `SELECT pg_reload_conf()`)
	t.Cleanup(func() { execAll(t, admin, `ALTER SYSTEM RESET full_page_writes`, `SELECT pg_reload_conf()`) })
	deadline := time.Now().Add(statetest.Patience)
	for value := ""; value != "off"; {
		if err := admin.QueryRow(`SELECT current_setting('full_page_writes')`).Scan(&value); err != nil || time.Now().After(deadline) {
			t.Fatalf("waiting for full_page_writes to be off: %q %v", value, err)
		}
	}
	var log bytes.Buffer
	open(t, dsn, &log)
	if !strings.Contains(log.String(), "full_page_writes off") {
		t.Errorf("the log does not tell of it: %s", log.String())
	}
}

func execAll(t testing.TB, admin *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := admin.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
