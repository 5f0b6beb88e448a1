package audit_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"millwright/state"
	"millwright/state/audit"
	"millwright/state/db"
	"millwright/state/statetest"
)

// TestFlood has one actor write more rows than are kept: those of the others stay.
func TestFlood(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		write := func(key string, rows int) {
			t.Helper()
			var all audit.Entries
			for i := range rows {
				all = append(all, audit.Entry{
					Actor:   audit.Actor{Kind: "key", UID: key, Name: key},
					Action:  audit.RunCancel,
					Subject: fmt.Sprint(key, i),
				})
			}
			err := s.Audit().Write(t.Context(), func(context.Context, *db.Tx) (audit.Entries, error) {
				return all, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		write("ada", 5)
		write("flood", 60)
		write("eve", 10)
		for range 2 {
			if err := s.Audit().Expire(t.Context(), time.Hour, 40); err != nil {
				t.Fatal(err)
			}
		}

		for key, want := range map[string]int{"ada": 5, "flood": 25, "eve": 10} {
			rows, err := s.Audit().List(t.Context(), audit.Filter{Actor: key}, audit.Position{}, 100)
			if err != nil || len(rows) != want {
				t.Errorf("%s has %d rows, want %d: %v", key, len(rows), want, err)
			}
			if key == "flood" && len(rows) > 0 && rows[0].Subject != "flood59" {
				t.Errorf("the newest row of the flood is %s", rows[0].Subject)
			}
		}

		if err := s.Audit().Expire(t.Context(), -time.Hour, 40); err != nil {
			t.Fatal(err)
		}
		rows, err := s.Audit().List(t.Context(), audit.Filter{}, audit.Position{}, 100)
		if err != nil || len(rows) > 0 {
			t.Errorf("%d old rows stay: %v", len(rows), err)
		}
	})
}
