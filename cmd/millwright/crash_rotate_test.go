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
)

// TestRotationSurvivesKill kills rotations of the master key at ever later moments. After each of them
// the state opens with the key file as it is, and its secrets with it. MILLWRIGHT_TEST_KILLS says how
// many.
func TestRotationSurvivesKill(t *testing.T) {
	kills := 12
	if v := os.Getenv("MILLWRIGHT_TEST_KILLS"); v != "" {
		var err error
		if kills, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	dsn := filepath.Join(t.TempDir(), "state.db")
	open := func() *state.Store {
		t.Helper()
		key, err := state.LoadMasterKey(dsn, "", "")
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
	began := time.Now()
	if out, err := rotate().CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	whole := time.Since(began)
	for i := range kills {
		cmd := rotate()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(whole*time.Duration(i+1)/time.Duration(kills), func() { cmd.Process.Kill() })
		cmd.Wait() // killed, or done before
		kill.Stop()
		s := open()
		if v, err := s.SecretValue(t.Context(), "S299"); err != nil || string(v) != "value" {
			t.Fatalf("kill %d: the secret is %q, %v", i, v, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
