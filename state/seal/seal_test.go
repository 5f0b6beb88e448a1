package seal_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"millwright/schema"
	"millwright/state"
	"millwright/state/seal"
	"millwright/state/statetest"
)

// TestEverySealedValueIsRotated finds every kind of sealed value in the source.
func TestEverySealedValueIsRotated(t *testing.T) {
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	rotated, kinds := read(t, "rotate.go"), 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`\.seal\.Seal\((\S+)`).FindAllStringSubmatch(read(t, file), -1) {
			if strings.HasPrefix(m[1], "partPurpose(") && strings.Contains(rotated, "DELETE FROM run_snapshot_parts") {
				continue // of snapshots, which a rotation drops
			}
			if kinds++; !strings.Contains(rotated, strings.TrimSuffix(m[1], ",")) {
				t.Errorf("%s seals %s, which Rotate leaves under the old key", file, m[1])
			}
		}
	}
	if kinds < 4 {
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
		if err := s.Apply(t.Context(), state.ChangeSet{FactoryUID: f.UID, Base: f.Generation, Webhooks: []state.WebhookChange{hook}}); err != nil {
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
			if _, err := seal.Rotate(t.Context(), dsn, statetest.MasterKey(), "", file); !errors.Is(err, seal.ErrInUse) {
				t.Fatalf("rotation under a server: %v", err)
			}
			if err := replica.Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
			// One that was stopped for longer than its lease, or whose clock is behind, uses it too.
			if _, err := seal.Rotate(t.Context(), dsn, statetest.MasterKey(), "", file); !errors.Is(err, seal.ErrInUse) {
				t.Fatalf("rotation under a server without a lease: %v", err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := seal.Rotate(t.Context(), dsn, statetest.MasterKey(), "", file)
		if err != nil || r.Values != 1104 {
			t.Fatalf("%d values, %v; want 1104", r.Values, err)
		}
		if _, err := state.Open(t.Context(), cfg); !errors.Is(err, seal.ErrWrongKey) {
			t.Fatalf("open with the old key: %v", err)
		}
		key, err := seal.LoadKey(dsn, "", file)
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
		_, err := seal.Rotate(t.Context(), dsn, statetest.MasterKey(), "", file)
		if rotated = err == nil; !rotated && !errors.Is(err, seal.ErrInUse) {
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

	for what, change := range map[string]func() error{
		"renew":  func() error { return replica.Renew(t.Context()) },
		"lease":  func() error { _, err := s.Lease(t.Context(), "l", "h", time.Minute); return err },
		"reject": func() error { return s.RecordRejected(t.Context(), state.Rejection{Received: time.Now()}) },
		"offer":  func() error { return s.OfferSecret(t.Context(), "f", "w", state.OfferedSecret{Value: "v"}) },
		"accept": func() error { _, err := s.Accept(t.Context(), state.Acceptance{UID: "d"}); return err },
	} {
		if err := change(); !errors.Is(err, state.ErrUnavailable) {
			t.Errorf("%s goes on: %v", what, err)
		}
	}
}

func TestMasterKeyFile(t *testing.T) {
	dsn := filepath.Join(t.TempDir(), "deep", "state.db")
	key, err := seal.LoadKey(dsn, "", "")
	if err != nil || len(key) != 32 {
		t.Fatalf("%d bytes, %v", len(key), err)
	}
	again, err := seal.LoadKey("sqlite:"+dsn, "", "")
	if err != nil || !bytes.Equal(key, again) {
		t.Errorf("the key changed: %v", err)
	}
	info, err := os.Stat(filepath.Join(filepath.Dir(dsn), "master-key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(dsn, []byte("something"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(dsn), "master-key")); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.LoadKey(dsn, "", ""); !errors.Is(err, seal.ErrWrongKey) {
		t.Errorf("a state whose key file is lost: %v", err)
	}
	for _, dsn := range []string{"postgres://u@h/d", "postgresql://u@h/d"} {
		if _, err := seal.LoadKey(dsn, "", ""); err == nil {
			t.Errorf("%s: no key asked for", dsn)
		}
	}
	if _, err := seal.LoadKey(dsn, "short", ""); err == nil || strings.Contains(err.Error(), "short\"") {
		t.Errorf("a short key: %v", err)
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
