package state_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millwright/state"
	"millwright/state/backup"
	"millwright/state/seal"
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
		if !errors.Is(err, seal.ErrWrongKey) {
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
	if _, err := backup.Make(t.Context(), link, copied); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(t.Context(), copied, link, true); err == nil || !strings.Contains(err.Error(), "in use") {
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
