package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"millwright/state"
)

// growth measures how a state grows by runs with snapshots that retention deletes, beside runs without them.
func growth(ctx context.Context, o options) error {
	var grown [2]int64
	for i, snapshots := range []bool{true, false} {
		file := filepath.Join(o.dir, fmt.Sprintf("growth-%d.db", i))
		s, err := state.Open(ctx, state.Config{DSN: file, MasterKey: make([]byte, 32)})
		if err != nil {
			return err
		}

		var sizes []int64
		for range 3 {
			for range o.runs {
				if err := leave(ctx, s, snapshots); err != nil {
					return err
				}
			}
			if err := weekLater(ctx, s, file); err != nil {
				return err
			}
			size, err := sizeOf(file)
			if err != nil {
				return err
			}
			sizes = append(sizes, size)
		}
		if err := s.Close(); err != nil {
			return err
		}

		grown[i] = sizes[2] - sizes[1]
		fmt.Printf("snapshots %v: %d bytes after each %d runs, a week later\n", snapshots, sizes, o.runs)
	}

	fmt.Printf(
		"growth by the third %d runs: %d bytes with snapshots, %d without, ratio %.2f\n",
		o.runs,
		grown[0],
		grown[1],
		float64(grown[0])/float64(grown[1]),
	)
	return nil
}

// leave executes a run that leaves a snapshot of 64 KiB.
func leave(ctx context.Context, s *state.Store, snapshot bool) error {
	r, err := s.CreateRun(ctx, state.NewRun{
		Title: "bench", Prompt: "go", Source: "API",
		Creator: state.Creator{Type: "service_account", UID: "key_1"},
	}, nil, state.Idempotency{})
	if err != nil {
		return err
	}

	c, _, err := s.ClaimRun(ctx, r.ID, "w", "w", time.Minute)
	if err != nil {
		return err
	}
	if _, err := s.StartRun(ctx, c, time.Minute); err != nil {
		return err
	}

	if snapshot {
		body := make([]byte, 64<<10)
		rand.Read(body)
		if err := s.PutSnapshotPart(ctx, c, 0, body); err != nil {
			return err
		}
		v := state.Snapshot{Session: json.RawMessage(`{}`), Digest: "d", Size: int64(len(body))}
		if err := s.PutSnapshot(ctx, c, v); err != nil {
			return err
		}
	}

	_, err = s.FinishRun(ctx, c, state.Result{State: state.RunSucceeded})
	return err
}

// weekLater makes all snapshots older than they are kept, and has them expire.
func weekLater(ctx context.Context, s *state.Store, file string) error {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer db.Close()

	for _, table := range []string{"run_snapshots", "run_snapshot_parts"} {
		week := (8 * 24 * time.Hour).Microseconds()
		_, err := db.ExecContext(ctx, `UPDATE `+table+` SET created_at = created_at - $1`, week)
		if err != nil {
			return err
		}
	}
	if err := s.ExpireSnapshots(ctx); err != nil {
		return err
	}

	_, err = db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return err
}

func sizeOf(file string) (int64, error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
