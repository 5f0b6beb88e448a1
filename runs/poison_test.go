package runs_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/runs"
	"millwright/schema"
	"millwright/state"
	"millwright/state/notice"
	"millwright/state/statetest"
)

// TestPoisonedSchedules lets schedules of several factories fire while those of some cannot: with a name that no
// index takes, a row that cannot be read, texts that a database refuses.
func TestPoisonedSchedules(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		s := statetest.Open(t, dsn)
		uids := map[string]string{}
		for name, a := range map[string]schema.Automation{
			"1 long":   {Prompt: "p", Triggers: ticks(random(8000))},
			"2 null":   {Prompt: "a\x00b", Triggers: ticks("a\x00b")},
			"3 prompt": {Prompt: "a\x00b", Triggers: ticks("tidy"), Execution: schema.Execution{Model: random(3000)}},
			"4 row":    {Prompt: "p", Triggers: ticks("tidy")},
			"5 spec":   {Prompt: "p", Triggers: ticks("tidy")},
			"9 good":   {Prompt: "p", Triggers: ticks("tidy")},
		} {
			a.Name, a.Enabled = "nightly", true
			f, err := s.EnsureFactory(t.Context(), name, state.Source{Kind: "dir"}, false)
			if err != nil {
				t.Fatal(err)
			}
			uids[name] = f.UID
			if err := s.Apply(t.Context(), state.ChangeSet{FactoryUID: f.UID, Base: f.Generation, Started: time.Now(), Resources: []state.ResourceChange{{Kind: "automation", Name: a.Name, Spec: a}}}); err != nil {
				t.Fatal(err)
			}
		}
		db := database(t, dsn)
		for _, query := range []string{
			`UPDATE resources SET spec = '{' WHERE factory_uid = $1`,
			`INSERT INTO schedules (automation_uid, schedule, factory_uid, last_at) SELECT uid, '@every 1s' || CAST('
tidy' AS TEXT), factory_uid, -9000000000000000000 FROM resources WHERE factory_uid = $1`,
		} {
			name := "5 spec"
			if strings.HasPrefix(query, "INSERT") {
				name = "4 row"
			}
			if _, err := db.Exec(query, uids[name]); err != nil {
				t.Fatal(err)
			}
		}
		s.Close()
		s = statetest.Open(t, dsn)

		ctx, cancel := context.WithCancel(t.Context())
		var clock sync.WaitGroup
		clock.Go(func() { runs.Clock(ctx, s, nil, nil) })
		notices, end := s.Subscribe(100, notice.Run)
		defer end()
		deadline := time.After(statetest.Patience)
		fired := map[string]int{}
		for fired[uids["9 good"]] < 2 || fired[uids["3 prompt"]] < 1 {
			select {
			case <-notices:
			case <-deadline:
				t.Fatalf("waiting for schedules to fire: %v; skipped: %+v", fired, s.Skipped())
			}
			clear(fired)
			for _, r := range all(t, s) {
				fired[r.FactoryUID]++
			}
		}
		cancel()
		clock.Wait()
		if text := fmt.Sprintf("%+v", s.Skipped()); !strings.Contains(text, uids["5 spec"]) || s.Shared() && !strings.Contains(text, uids["1 long"]) {
			t.Errorf("skipped: %s", text)
		}
	})
}

func ticks(name string) []schema.Trigger {
	return []schema.Trigger{{Provider: "schedule", Event: "cron_fired", Schedule: &schema.Schedule{Cron: "@every 1s", Name: name}}}
}

// random is text that a database cannot make shorter.
func random(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(state.NewRunID())
	}
	return b.String()[:n]
}

func database(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	driver := "pgx"
	if _, ok := state.SQLitePath(dsn); ok {
		driver, dsn = "sqlite", dsn+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
