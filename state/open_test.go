package state_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millwright/state"
	"millwright/state/statetest"
)

func TestWrongMasterKeyIsRefused(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		s, err := state.Open(t.Context(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.SetSecret(t.Context(), "TOKEN", []byte("value")); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = state.Open(t.Context(), state.Config{DSN: dsn, MasterKey: bytes.Repeat([]byte("x"), 32)})
		if !errors.Is(err, state.ErrWrongMasterKey) {
			t.Fatalf("open with another key: %v", err)
		}
		s = statetest.Open(t, dsn)
		if v, err := s.SecretValue(t.Context(), "TOKEN"); err != nil || string(v) != "value" {
			t.Errorf("secret = %q, %v", v, err)
		}
	})
}

// TestForeignVersionIsRefused opens states whose schema a newer millwright made, or one before the first release, which
// had more migrations.
func TestForeignVersionIsRefused(t *testing.T) {
	for _, version := range []string{"12", "9000"} {
		statetest.EachDSN(t, func(t *testing.T, dsn string) {
			s, err := state.Open(t.Context(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey()})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}

			db := openDB(t, dsn)
			if _, err := db.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (`+version+`, true)`); err != nil {
				t.Fatal(err)
			}
			_, err = state.Open(t.Context(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey()})
			if err == nil || !strings.Contains(err.Error(), "schema version "+version+",") || !strings.Contains(err.Error(), "before the first release") {
				t.Errorf("open of a state of version %s: %v, want its version and who made it", version, err)
			}
		})
	}
}

func TestSQLiteStateHasOneServer(t *testing.T) {
	dsn := statetest.SQLite(t)
	statetest.Open(t, dsn)
	_, err := state.Open(t.Context(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey()})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second open: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(dsn, link); err != nil {
		t.Fatal(err)
	}
	if _, err := state.Open(t.Context(), state.Config{DSN: link, MasterKey: statetest.MasterKey()}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second open by another name: %v", err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if _, err := state.Backup(t.Context(), link, copied); err != nil {
		t.Fatal(err)
	}
	if _, err := state.Restore(t.Context(), copied, link, true); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("restore by another name: %v", err)
	}
}

// TestLinkToNoStateYet opens a state by a symbolic link to where it will be: from then on it is one state,
// by both names.
func TestLinkToNoStateYet(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "disk"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.db")
	for name, target := range map[string]string{link: "hop.db", filepath.Join(dir, "hop.db"): filepath.Join("disk", "state.db")} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	s, err := state.Open(t.Context(), state.Config{DSN: link, MasterKey: statetest.MasterKey()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range []string{link, filepath.Join(dir, "disk", "state.db")} {
		if _, err := state.Open(t.Context(), state.Config{DSN: name, MasterKey: statetest.MasterKey()}); err == nil || !strings.Contains(err.Error(), "in use") {
			t.Errorf("second open as %s: %v", name, err)
		}
	}
}

func TestSecretsAreSealed(t *testing.T) {
	dsn := statetest.SQLite(t)
	s, err := state.Open(t.Context(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetSecret(t.Context(), "TOKEN", []byte("canary-7f3a9c")); err != nil {
		t.Fatal(err)
	}
	_, key, err := s.CreateKey(t.Context(), "ci", state.RoleViewer, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(dsn), "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, clear := range []string{"canary-7f3a9c", key} {
			if bytes.Contains(content, []byte(clear)) {
				t.Errorf("%s holds a secret in clear", filepath.Base(file))
			}
		}
	}
}

func TestMasterKeyFile(t *testing.T) {
	dsn := filepath.Join(t.TempDir(), "deep", "state.db")
	key, err := state.LoadMasterKey(dsn, "", "")
	if err != nil || len(key) != 32 {
		t.Fatalf("%d bytes, %v", len(key), err)
	}
	again, err := state.LoadMasterKey("sqlite:"+dsn, "", "")
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
	if _, err := state.LoadMasterKey(dsn, "", ""); !errors.Is(err, state.ErrWrongMasterKey) {
		t.Errorf("a state whose key file is lost: %v", err)
	}
	for _, dsn := range []string{"postgres://u@h/d", "postgresql://u@h/d"} {
		if _, err := state.LoadMasterKey(dsn, "", ""); err == nil {
			t.Errorf("%s: no key asked for", dsn)
		}
	}
	if _, err := state.LoadMasterKey(dsn, "short", ""); err == nil || strings.Contains(err.Error(), "short\"") {
		t.Errorf("a short key: %v", err)
	}
}

func TestPostgresAddressIsNotShown(t *testing.T) {
	_, err := state.Open(t.Context(), state.Config{DSN: "postgres://u:canary-pw@[bad", MasterKey: statetest.MasterKey()})
	if err == nil || strings.Contains(err.Error(), "canary-pw") {
		t.Errorf("error %v", err)
	}
}

func TestIDs(t *testing.T) {
	a, b := state.NewID(state.PrefixWebhook), state.NewID(state.PrefixWebhook)
	if a == b || !state.ValidID("wh", a) || state.ValidID("dlv", a) || state.ValidID("wh", a+"0") || state.ValidID("wh", "wh_8"+a[4:]) {
		t.Errorf("ids %s %s", a, b)
	}
	key := []byte("key")
	x := state.WebhookUID(key, "ci", 0)
	for _, other := range []string{state.WebhookUID(key, "ci", 1), state.WebhookUID(key, "cd", 0), state.WebhookUID([]byte("other"), "ci", 0)} {
		if other == x {
			t.Errorf("two webhooks share the UID %s", x)
		}
	}
	if x != state.WebhookUID(key, "ci", 0) || !state.ValidID("wh", x) {
		t.Errorf("UID %s", x)
	}
}
