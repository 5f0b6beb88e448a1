package dispatch_test

import (
	"database/sql"
	"strings"
	"testing"

	"millwright/runs/dispatch"
	"millwright/state"
	"millwright/state/statetest"
)

// TestPoisonedRunsAreHandedOut queues runs that cannot be executed as they are stored before one that can: they
// end as ERROR, and the other is handed out.
func TestPoisonedRunsAreHandedOut(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		s := statetest.Open(t, dsn)
		driver := "pgx"
		if _, lite := state.SQLitePath(dsn); lite {
			driver = "sqlite"
		}
		db, err := sql.Open(driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()

		var bad []string
		for _, query := range []string{
			`UPDATE runs SET metadata = 'x' WHERE id = $1`,
			`UPDATE runs SET config = '{"mcp_servers":' WHERE id = $1`,
			`INSERT INTO run_entries (run_id, seq, execution, kind, content, at) VALUES ($1, 100, 1, 'assistant', 'x', 1)`,
			`UPDATE runs SET secrets = '["NOT_THERE"]' WHERE id = $1`,
		} {
			id := create(t, s, func(n *state.NewRun) { n.FactoryUID = "fac_bad" }).ID
			if _, err := db.Exec(query, id); err != nil {
				t.Fatal(err)
			}
			bad = append(bad, id)
		}
		good := create(t, s, func(n *state.NewRun) { n.FactoryUID = "fac_bad" }).ID // behind them

		d := startDispatch(t, dispatch.Config{Store: s})
		if o := order(t, localClient(t, d)); o.RunID != good {
			t.Errorf("handed out %s, want %s", o.RunID, good)
		}
		for i, id := range bad {
			if r := run(t, s, id); r.State != state.RunError || r.ErrorCode == "" || strings.TrimSpace(r.StatusMessage) == "" {
				t.Errorf("run %d is %s: %s %q", i, r.State, r.ErrorCode, r.StatusMessage)
			}
		}
	})
}
