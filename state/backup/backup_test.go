package backup_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"millwright/state/audit"
	"millwright/state/backup"
	"millwright/state/statetest"
)

// TestBackupUnderLoad copies a state while it is written: each copy is whole, and has all that was
// answered before it began.
func TestBackupUnderLoad(t *testing.T) {
	dsn := statetest.SQLite(t)
	s := statetest.Open(t, dsn)
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	defer writer.Wait()
	defer stop()
	written := make(chan int, 1)
	written <- 0
	writer.Go(func() {
		for i := 1; ctx.Err() == nil; i++ {
			if _, err := s.SetSecret(ctx, fmt.Sprintf("S%06d", i), []byte("value")); err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			<-written
			written <- i
		}
	})
	for i := range 5 {
		var before int
		statetest.Drain(t, "enough secrets are written", func() int {
			before = <-written
			written <- before
			return i*20 + 1 - before
		})
		to := filepath.Join(t.TempDir(), "copy.db")
		c, err := backup.Make(t.Context(), dsn, to)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 || info.Size() != c.Bytes {
			t.Errorf("copy: %v, %v, want mode 0600 and %d bytes", info, err, c.Bytes)
		}
		restored := filepath.Join(t.TempDir(), "new", "state.db")
		if _, err := backup.Restore(t.Context(), to, restored, false); err != nil {
			t.Fatal(err)
		}
		r := statetest.Open(t, restored)
		all, err := r.Secrets(t.Context())
		if err != nil || len(all) < before {
			t.Fatalf("the copy has %d secrets of at least %d, %v", len(all), before, err)
		}
		rows, err := r.Audit().List(t.Context(), audit.Filter{Action: audit.StateRestore}, audit.Position{}, 10)
		if err != nil || len(rows) != 1 || rows[0].Subject != "copy.db" {
			t.Errorf("the audit log has %v of the restore, %v", rows, err)
		}
		if v, err := r.SecretValue(t.Context(), fmt.Sprintf("S%06d", before)); err != nil || string(v) != "value" {
			t.Errorf("a secret of the copy is %q, %v", v, err)
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	dsn := statetest.SQLite(t)
	s := statetest.Open(t, dsn)
	good := filepath.Join(t.TempDir(), "good.db")
	if _, err := backup.Make(t.Context(), dsn, good); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, body []byte) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, body, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	newer := write("newer.db", body)
	execute(t, newer, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, 1)`)
	other := filepath.Join(t.TempDir(), "other.db")
	execute(t, other, `CREATE TABLE t (a)`)
	damaged := append([]byte{}, body...)
	for i := 8192; i < len(damaged); i += 4096 {
		damaged[i] ^= 0xff
	}
	flipped := append([]byte{}, body...)
	flipped[len(flipped)-1] ^= 1 // the last byte of a row, of which SQLite knows nothing
	for name, c := range map[string]struct{ file, want string }{
		"flipped": {write("flipped.db", flipped), "checksum"},
		"newer":   {newer, "9000"},
		"foreign": {other, "no state of millwright"},
		"empty":   {write("empty.db", nil), "empty"},
		"damaged": {write("damaged.db", damaged), "damaged"},
		"short":   {write("short.db", body[:len(body)/2]), "short.db"},
		"folder":  {t.TempDir(), "no file"},
	} {
		t.Run(name, func(t *testing.T) {
			before := read(t, dsn)
			if _, err := backup.Restore(t.Context(), c.file, dsn, true); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("restore: %v, want one that says %q", err, c.want)
			}
			if read(t, dsn) != before {
				t.Error("the state was touched")
			}
		})
	}
}

func execute(t *testing.T, file, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
