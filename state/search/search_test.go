package search_test

import (
	"log/slog"
	"slices"
	"testing"

	"millwright/state"
	"millwright/state/db"
	"millwright/state/search"
	"millwright/state/statetest"
)

const manyAgents = `INSERT INTO resources (uid, factory_uid, kind, name, spec, created_at, updated_at)
WITH RECURSIVE n(i) AS (
	SELECT 1
	UNION ALL
	SELECT i + 1
	FROM n
	WHERE i < 10050
)
SELECT 'agent_' || i, $1, 'agent', 'agent' || i, '{}', 0, 0
FROM n`

const automation = `INSERT INTO resources (uid, factory_uid, kind, name, spec, created_at, updated_at)
VALUES ('auto_' || $1, $1, 'automation', 'triage', '{}', 0, 0)`

// TestAutomations finds automations beside more agents than a search reads of automations.
func TestAutomations(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		s, err := state.Open(ctx, state.Config{DSN: dsn, MasterKey: statetest.MasterKey()})
		if err != nil {
			t.Fatal(err)
		}
		one, err := s.EnsureFactory(ctx, "one", state.Source{Kind: "managed"}, false)
		if err != nil {
			t.Fatal(err)
		}
		other, err := s.EnsureFactory(ctx, "other", state.Source{Kind: "managed"}, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}

		d, err := db.Open(ctx, dsn, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := d.Exec(ctx, manyAgents, min(one.UID, other.UID)); err != nil {
			t.Fatal(err)
		}
		for _, uid := range []string{one.UID, other.UID} {
			if err := d.Exec(ctx, automation, uid); err != nil {
				t.Fatal(err)
			}
		}

		for _, within := range [][]string{nil, {one.UID}, {one.UID, other.UID}, {}} {
			want := slices.Sorted(slices.Values(within))
			if within == nil {
				want = slices.Sorted(slices.Values([]string{one.UID, other.UID}))
			}

			var got []string
			cut, err := search.New(d).Automations(ctx, within, func(n search.Named) { got = append(got, n.FactoryUID) })
			if err != nil || cut || !slices.Equal(got, want) {
				t.Errorf("within %q: %q, cut %v, %v; want %q", within, got, cut, err, want)
			}
		}
	})
}
