package state_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millwright/state"
	"millwright/state/statetest"
)

// TestClockSkew lets two servers share a state whose clocks are decades apart: the one in a bubble begins in
// the year 2000. Neither takes a run from a worker of the other that lives, each takes one whose lease ran
// out, and neither takes the other for gone.
func TestClockSkew(t *testing.T) {
	dsn := statetest.Postgres(t)
	right := statetest.Open(t, dsn)
	expired := create(t, right, newRun("expired")).ID
	if _, _, err := right.ClaimRun(t.Context(), expired, "key_w", "worker", -time.Minute); err != nil {
		t.Fatal(err)
	}
	living := create(t, right, newRun("living")).ID
	claim(t, right, living)
	if ok, err := right.Lease(t.Context(), "a lease", "right", time.Minute); err != nil || !ok {
		t.Fatalf("lease: %v %v", ok, err)
	}
	replica, err := right.Join(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}

	theirs := make([]string, 2)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		wrong, err := state.Open(t.Context(), state.Config{DSN: dsn, MasterKey: statetest.MasterKey(), Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer wrong.Close()
		if skew := wrong.ClockSkew(); skew > -24*time.Hour {
			t.Errorf("skew of a clock in %d: %s", time.Now().Year(), skew)
		}
		if !strings.Contains(log.String(), "differs from the database's") {
			t.Errorf("the log does not tell of the skew: %s", log.String())
		}
		if ids := reaped(t, wrong, time.Now()); ids != fmt.Sprint([]string{expired}) {
			t.Errorf("a clock that is behind reaped %s, want %s", ids, expired)
		}
		if ok, err := wrong.Lease(t.Context(), "a lease", "wrong", time.Minute); err != nil || ok {
			t.Errorf("a lease that another holds: %v %v", ok, err)
		}
		for i, lease := range []time.Duration{time.Minute, -time.Minute} {
			theirs[i] = create(t, wrong, newRun("theirs")).ID
			if _, _, err := wrong.ClaimRun(t.Context(), theirs[i], "key_x", "worker", lease); err != nil {
				t.Fatal(err)
			}
		}
	})

	if skew := right.ClockSkew().Abs(); skew > time.Minute {
		t.Errorf("skew of a clock that is right: %s", skew)
	}
	if ids := reaped(t, right, time.Now()); ids != fmt.Sprint(theirs[1:]) {
		t.Errorf("a clock that is right reaped %s, want %s", ids, theirs[1])
	}
	if err := replica.Leave(t.Context()); err != nil {
		t.Error(err)
	}
}

func reaped(t *testing.T, s *state.Store, deadline time.Time) string {
	t.Helper()
	runs, err := s.ReapRuns(t.Context(), deadline, 100)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	return fmt.Sprint(ids)
}

// TestClockJump sets the database's clock, as when another server takes its place: leases that were given by
// the old time are not taken for ended.
func TestClockJump(t *testing.T) {
	dsn := statetest.Postgres(t)
	schema, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	query := schema.Query()
	query.Set("search_path", query.Get("search_path")+",pg_catalog") // the schema's functions go before the system's
	schema.RawQuery = query.Encode()
	db := openDB(t, dsn)
	execAll(t, db, `CREATE TABLE ahead (seconds INT)`, `INSERT INTO ahead VALUES (0)`,
		`CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT pg_catalog.clock_timestamp() + make_interval(secs => seconds) FROM ahead $$`)

	s := statetest.Open(t, schema.String())
	id := create(t, s, newRun("a prompt")).ID
	claim(t, s, id)
	for _, seconds := range []int{600, -600} {
		execAll(t, db, fmt.Sprintf(`UPDATE ahead SET seconds = %d`, seconds))
		if err := s.ReadClock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if skew := s.ClockSkew().Round(time.Minute); skew != -time.Duration(seconds)*time.Second {
			t.Errorf("skew %s from a clock that is %d s ahead", skew, seconds)
		}
		if ids := reaped(t, s, time.Now()); ids != "[]" {
			t.Errorf("after a jump of %d s it reaped %s", seconds, ids)
		}
	}
	if r := run(t, s, id); r.State != state.RunClaimed {
		t.Errorf("the run is %s", r.State)
	}
}
