package state_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
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
		c, err := state.Backup(t.Context(), dsn, to)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 || info.Size() != c.Bytes {
			t.Errorf("copy: %v, %v, want mode 0600 and %d bytes", info, err, c.Bytes)
		}
		restored := filepath.Join(t.TempDir(), "new", "state.db")
		if _, err := state.Restore(t.Context(), to, restored, false); err != nil {
			t.Fatal(err)
		}
		r := statetest.Open(t, restored)
		all, err := r.Secrets(t.Context())
		if err != nil || len(all) < before {
			t.Fatalf("the copy has %d secrets of at least %d, %v", len(all), before, err)
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
	if _, err := state.Backup(t.Context(), dsn, good); err != nil {
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
			if _, err := state.Restore(t.Context(), c.file, dsn, true); err == nil || !strings.Contains(err.Error(), c.want) {
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

// TestEverySealedValueIsRotated finds what is sealed in the source, so that no new kind is forgotten.
func TestEverySealedValueIsRotated(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	rotated, kinds := read(t, "rotate.go"), 0
	for _, file := range files {
		if file == "rotate.go" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`\.seal\.seal\((\S+)`).FindAllStringSubmatch(read(t, file), -1) {
			if kinds++; !strings.Contains(rotated, strings.TrimSuffix(m[1], ",")) {
				t.Errorf("%s seals %s, which RotateMasterKey leaves under the old key", file, m[1])
			}
		}
	}
	if kinds < 5 {
		t.Errorf("only %d places that seal", kinds)
	}
}

// TestRotateMasterKey looks into every kind of sealed value after a rotation.
func TestRotateMasterKey(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		s, err := state.Open(t.Context(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey()})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1100 { // more than are in memory at once
			if _, err := s.SetSecret(t.Context(), fmt.Sprintf("S%04d", i), fmt.Appendf(nil, "value %d", i)); err != nil {
				t.Fatal(err)
			}
		}
		f, err := s.EnsureFactory(t.Context(), "default", state.Source{}, false)
		if err != nil {
			t.Fatal(err)
		}
		run := state.NewRun{ID: state.NewRunID(), Source: "API", Creator: state.Creator{Type: "user"}, Sealed: []byte(`{"a":{}}`), At: time.Now()}
		run.RootRunID = run.ID
		if _, err := s.CreateRun(t.Context(), run, nil, state.Idempotency{}); err != nil {
			t.Fatal(err)
		}
		hook := state.WebhookChange{UID: state.NewID(state.PrefixWebhook), Spec: schema.Webhook{Name: "later", SecretName: "S0000"}, SecretVersion: 1}
		if err := s.Apply(t.Context(), state.Application{FactoryUID: f.UID, Base: f.Generation, Webhooks: []state.WebhookChange{hook}}); err != nil {
			t.Fatal(err)
		}
		if err := s.OfferSecret(t.Context(), f.UID, hook.UID, state.OfferedSecret{Value: "offered"}); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "new-key")
		cfg := state.Config{DSN: dsn, MasterKey: statetest.MasterKey()}
		if s.Shared() { // a server that lives
			replica, err := s.Join(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := state.RotateMasterKey(t.Context(), cfg, "", file); !errors.Is(err, state.ErrConflict) {
				t.Fatalf("rotation under a server: %v", err)
			}
			if err := replica.Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
			// One that was stopped for longer than its lease, or whose clock is behind, uses it too.
			if _, err := state.RotateMasterKey(t.Context(), cfg, "", file); !errors.Is(err, state.ErrConflict) {
				t.Fatalf("rotation under a server without a lease: %v", err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := state.RotateMasterKey(t.Context(), cfg, "", file)
		if err != nil || r.Values != 1103 {
			t.Fatalf("%d values, %v; want 1103", r.Values, err)
		}
		if _, err := state.Open(t.Context(), cfg); !errors.Is(err, state.ErrWrongMasterKey) {
			t.Fatalf("open with the old key: %v", err)
		}
		key, err := state.LoadMasterKey(dsn, "", file)
		if err != nil {
			t.Fatal(err)
		}
		if s, err = state.Open(t.Context(), state.Config{DSN: dsn, MasterKey: key}); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if v, err := s.SecretValue(t.Context(), "S1099"); err != nil || string(v) != "value 1099" {
			t.Errorf("secret: %q, %v", v, err)
		}
		got, err := s.Run(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := s.Servers(t.Context(), got); err != nil || string(v) != `{"a":{}}` {
			t.Errorf("run: %s, %v", v, err)
		}
		if o, err := s.OfferedSecret(t.Context(), f.UID, hook.UID); err != nil || o.Value != "offered" {
			t.Errorf("offered secret: %+v, %v", o, err)
		}
		if again, err := s.EnsureFactory(t.Context(), "default", state.Source{}, false); err != nil || again.UID != f.UID {
			t.Errorf("factory: %v, %v", again, err)
		}
	})
}

// TestRotatedBehindAServer rotates the master key in the moment in which a server has no connection: it
// does not go on with the old one.
func TestRotatedBehindAServer(t *testing.T) {
	dsn := statetest.Postgres(t)
	s := statetest.Open(t, dsn)
	replica, err := s.Join(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	file := filepath.Join(t.TempDir(), "new-key")
	for rotated := false; !rotated; {
		for _, query := range []string{
			`UPDATE replicas SET lease_until = 0`,
			`SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid
				WHERE l.locktype = 'advisory' AND l.mode = 'ShareLock' AND (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended('millwright uses ' || current_schema(), 0)`,
		} {
			if _, err := admin.Exec(query); err != nil {
				t.Fatal(err)
			}
		}
		_, err := state.RotateMasterKey(t.Context(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey()}, "", file)
		if rotated = err == nil; !rotated && !errors.Is(err, state.ErrConflict) {
			t.Fatal(err)
		}
	}
	for s.Ping(t.Context()) == nil { // until it has looked
		if t.Context().Err() != nil {
			return
		}
	}
	if _, err := s.SetSecret(t.Context(), "T", []byte("value")); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("a secret sealed under the old key: %v", err)
	}
	if err := replica.Renew(t.Context()); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("the replica goes on: %v", err)
	}
}
