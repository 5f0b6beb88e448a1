package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"millwright/state"
	"millwright/state/backup"
	"millwright/state/seal"
	"millwright/state/statetest"
)

// TestRotationSurvivesKill kills rotations of the master key at ever later moments. After each of them
// the state opens with the key file as it is, and its secrets with it. MILLWRIGHT_TEST_KILLS says how
// many.
func TestRotationSurvivesKill(t *testing.T) {
	dsn := filepath.Join(t.TempDir(), "state.db")
	open := func() *state.Store {
		t.Helper()
		key, err := seal.LoadKey(dsn, "", "")
		if err != nil {
			t.Fatal(err)
		}
		s, err := state.Open(t.Context(), state.Config{DSN: dsn, MasterKey: key})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	for i := range 300 {
		if _, err := s.SetSecret(t.Context(), fmt.Sprintf("S%03d", i), []byte("value")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rotate := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], "key", "rotate-master", "--state", dsn)
		cmd.Env = append(os.Environ(), runMain+"=1")
		return cmd
	}
	rest := filepath.Join(filepath.Dir(dsn), "master-key.partial-1") // as one leaves it that was killed before its rename
	copyTo(t, filepath.Join(filepath.Dir(dsn), "master-key"), rest)
	killAtMoments(t, rotate, func(i int) {
		if _, err := os.Stat(rest); err == nil {
			t.Fatal("a key that a killed rotation left is kept")
		}
		s := open()
		if v, err := s.SecretValue(t.Context(), "S299"); err != nil || string(v) != "value" {
			t.Fatalf("kill %d: the secret is %q, %v", i, v, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRestoreSurvivesKill kills restores over a state whose last change is in its log alone. After each
// of them there is the old state or the new one, whole.
func TestRestoreSurvivesKill(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	run := func(path string, names ...string) {
		t.Helper()
		s, err := state.Open(t.Context(), state.Config{DSN: path, MasterKey: statetest.MasterKey()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, name := range names {
			if _, err := s.SetSecret(t.Context(), name, []byte("value")); err != nil {
				t.Fatal(err)
			}
		}
		for _, suffix := range []string{"", "-wal"} { // as a server that is killed leaves them
			copyTo(t, path+suffix, path+".killed"+suffix)
		}
	}
	run(at("new.db"), "NEW")
	if _, err := backup.Make(t.Context(), at("new.db"), at("copy.db")); err != nil {
		t.Fatal(err)
	}
	run(at("old.db"), "OLD")
	restore := func() *exec.Cmd {
		for _, suffix := range []string{"", "-wal"} {
			copyTo(t, at("old.db.killed")+suffix, at("state.db")+suffix)
		}
		cmd := exec.Command(os.Args[0], "restore", "--force", "--state", at("state.db"), "--master-key-file", at("no-key"), at("copy.db"))
		cmd.Env = append(os.Environ(), runMain+"=1")
		return cmd
	}
	killAtMoments(t, restore, func(i int) {
		s, err := state.Open(t.Context(), state.Config{DSN: at("state.db"), MasterKey: statetest.MasterKey()})
		if err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		defer s.Close()
		all, err := s.Secrets(t.Context())
		_, old := all["OLD"]
		_, restored := all["NEW"]
		if err != nil || len(all) != 1 || old == restored {
			t.Fatalf("kill %d: %+v, %v", i, all, err)
		}
		if rests, _ := filepath.Glob(at("state.db.partial-*")); len(rests) > 0 {
			t.Errorf("kill %d: %s is left", i, rests)
		}
	})
}

// killAtMoments runs a command whole, then again and again, killed at ever later moments, and looks at
// what it left each time. MILLWRIGHT_TEST_KILLS says how often.
func killAtMoments(t *testing.T, command func() *exec.Cmd, look func(i int)) {
	t.Helper()
	kills := 12
	if v := os.Getenv("MILLWRIGHT_TEST_KILLS"); v != "" {
		var err error
		if kills, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	whole := command()
	began := time.Now()
	if out, err := whole.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	took := time.Since(began)
	for i := range kills {
		cmd := command()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(took*time.Duration(i+1)/time.Duration(kills), func() { cmd.Process.Kill() })
		cmd.Wait() // killed, or done before
		kill.Stop()
		look(i)
	}
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	body, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, body, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
