package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"millwright/state"
	"millwright/state/statetest"
)

// TestSnapshots keeps what an execution leaves for the next one.
func TestSnapshots(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		id := create(t, s, newRun("first")).ID
		c := start(t, s, id)
		archive := bytes.Repeat([]byte("0123456789abcdef"), 40_000) // two parts
		parts := [][]byte{archive[:state.SnapshotPart], archive[state.SnapshotPart:]}
		left := state.Snapshot{Session: []byte(`{"id":"one"}`), Digest: "d1", Size: int64(len(archive))}

		if err := s.PutSnapshotPart(ctx, c, 0, parts[0]); err != nil {
			t.Fatal(err)
		}
		if err := s.PutSnapshot(ctx, c, left); !errors.Is(err, state.ErrConflict) {
			t.Errorf("a part is missing: %v", err)
		}
		if _, _, err := s.Followup(ctx, id, "go on", state.Idempotency{}); err != nil { // while it is written
			t.Fatal(err)
		}
		for range 2 { // an answer was lost
			if err := s.PutSnapshotPart(ctx, c, 1, parts[1]); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.PutSnapshot(ctx, c, left); err != nil {
			t.Fatal(err)
		}
		for part, body := range map[int][]byte{-1: {1}, state.MaxSnapshotParts: {1}, 0: nil, 1: make([]byte, state.SnapshotPart+1)} {
			if err := s.PutSnapshotPart(ctx, c, part, body); !errors.Is(err, state.ErrConflict) {
				t.Errorf("part %d of %d bytes: %v", part, len(body), err)
			}
		}
		if _, err := s.Snapshot(ctx, run(t, s, id)); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("the execution that leaves it begins with it: %v", err)
		}

		if _, err := s.FinishRun(ctx, c, state.Result{State: state.RunSucceeded}); err != nil {
			t.Fatal(err)
		}
		if err := s.PutSnapshotPart(ctx, c, 0, parts[0]); !errors.Is(err, state.ErrLost) {
			t.Errorf("a part after the claim: %v", err)
		}
		if err := s.PutSnapshot(ctx, c, left); !errors.Is(err, state.ErrLost) {
			t.Errorf("a snapshot after the claim: %v", err)
		}

		r := run(t, s, id)
		got, err := s.Snapshot(ctx, r)
		if err != nil || got.Execution != 1 || string(got.Session) != `{"id":"one"}` || got.Size != left.Size || got.Digest != "d1" {
			t.Fatalf("snapshot %+v, %v", got, err)
		}
		for i, want := range parts {
			if body, err := s.SnapshotPart(ctx, r, got, i); err != nil || !bytes.Equal(body, want) {
				t.Errorf("part %d has %d bytes, %v", i, len(body), err)
			}
		}
		if _, err := s.SnapshotPart(ctx, r, got, 2); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("a part that is not there: %v", err)
		}

		// The next execution leaves another one, without an archive.
		c = start(t, s, id)
		if err := s.PutSnapshot(ctx, c, state.Snapshot{Session: []byte(`{"id":"two"}`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SnapshotPart(ctx, r, got, 0); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("a part of the snapshot before: %v", err)
		}
		if err := s.ExpireSnapshots(ctx); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Followup(ctx, id, "go on", state.Idempotency{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.FinishRun(ctx, c, state.Result{State: state.RunFailed}); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Snapshot(ctx, run(t, s, id)); err != nil || string(got.Session) != `{"id":"two"}` {
			t.Errorf("snapshot %+v, %v", got, err)
		}
	})
}

// TestExpireSnapshots deletes old snapshots, and old parts of runs without one. Others stay.
func TestExpireSnapshots(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		s, ctx := statetest.Open(t, dsn), t.Context()
		leave := func(title string, whole bool) (state.Claim, string) {
			id := create(t, s, newRun(title)).ID
			c := start(t, s, id)
			if err := s.PutSnapshotPart(ctx, c, 0, []byte(title)); err != nil {
				t.Fatal(err)
			}

			if whole {
				left := state.Snapshot{Session: []byte(`{}`), Digest: title, Size: int64(len(title))}
				if err := s.PutSnapshot(ctx, c, left); err != nil {
					t.Fatal(err)
				}
			}
			return c, id
		}

		_, old := leave("old", true)
		_, torn := leave("torn", false)
		_, lasting := leave("lasting", true)
		_, fresh := leave("fresh", true)
		writing, begun := leave("begun", false)

		database := openDB(t, dsn)
		for _, change := range []string{
			fmt.Sprintf(`UPDATE run_snapshots SET created_at = 1 WHERE run_id = '%s'`, old),
			fmt.Sprintf(`UPDATE run_snapshot_parts SET created_at = 1 WHERE run_id IN ('%s', '%s', '%s')`, old, torn, lasting),
		} {
			if _, err := database.ExecContext(ctx, change); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.ExpireSnapshots(ctx); err != nil {
			t.Fatal(err)
		}

		for id, want := range map[string]int{old: 0, torn: 0, lasting: 1, fresh: 1, begun: 1} {
			var parts int
			query := fmt.Sprintf(`SELECT count(*) FROM run_snapshot_parts WHERE run_id = '%s'`, id)
			if err := database.QueryRowContext(ctx, query).Scan(&parts); err != nil || parts != want {
				t.Errorf("run %s has %d parts, %v, want %d", run(t, s, id).Title, parts, err, want)
			}
		}

		whole := state.Snapshot{Session: []byte(`{}`), Digest: "begun", Size: int64(len("begun"))}
		if err := s.PutSnapshot(ctx, writing, whole); err != nil {
			t.Errorf("a snapshot whose part is new: %v", err)
		}
	})
}

// TestUsage sums what the attempts of a run have used.
func TestUsage(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		ctx := t.Context()
		id := create(t, s, newRun("first")).ID
		c := start(t, s, id)
		if r := run(t, s, id); r.Usage != nil {
			t.Errorf("usage before any: %+v", r.Usage)
		}

		small := []state.ModelUsage{{Model: "small", InputTokens: 10, OutputTokens: 1, CachedTokens: 4}}
		large := state.ModelUsage{Model: "large", InputTokens: 100, OutputTokens: 5, CostUSD: new(0.5)}
		if added, _, err := s.SetUsage(ctx, c, small); err != nil || added.InputTokens != 10 || added.CachedTokens != 4 {
			t.Fatalf("added %+v, %v", added, err)
		}
		for range 2 { // told again
			if _, _, err := s.SetUsage(ctx, c, append(small, large)); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := s.Followup(ctx, id, "go on", state.Idempotency{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.FinishRun(ctx, c, state.Result{State: state.RunFailed}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.SetUsage(ctx, c, small); !errors.Is(err, state.ErrLost) {
			t.Errorf("usage after the claim: %v", err)
		}

		c = start(t, s, id)
		hostile := []state.ModelUsage{{Model: "a\x00", InputTokens: 1}, {Model: "a\uFFFD", InputTokens: 1}, {Model: "b\xff"}}
		if added, _, err := s.SetUsage(ctx, c, hostile); err != nil || added.InputTokens != 2 {
			t.Errorf("names that no database takes: added %+v, %v", added, err)
		}
		added, _, err := s.SetUsage(ctx, c, []state.ModelUsage{large})
		if err != nil || added.InputTokens != 98 || *added.CostUSD != 0.5 {
			t.Errorf("added %+v, %v", added, err)
		}
		u := run(t, s, id).Usage
		if u == nil || u.InputTokens != 210 || u.OutputTokens != 11 || u.CachedTokens != 4 || *u.CostUSD != 1 || len(u.Models) != 2 {
			t.Errorf("usage %+v", u)
		}
	})
}
