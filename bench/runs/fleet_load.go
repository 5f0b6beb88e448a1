package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
)

// send posts n deliveries to the servers of these ports in turns, at so many a second or, at 0, as fast as
// they are taken. It returns how many were accepted. at, unless it is nil, is called half-way.
func (f *fleet) send(ctx context.Context, n, rate int, ports func() []string, at func()) int {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()

	var senders sync.WaitGroup
	var accepted atomic.Int64
	free := make(chan struct{}, 64)
	tick := time.NewTicker(time.Second / time.Duration(cmp.Or(rate, 1_000_000)))
	defer tick.Stop()

	for i := range n {
		if i == n/2 && at != nil {
			senders.Go(at)
		}
		if rate > 0 {
			<-tick.C
		}

		free <- struct{}{}
		senders.Go(func() {
			defer func() { <-free }()

			to := ports()
			if _, err := deliver(ctx, client, "http://"+to[i%len(to)]+"/webhooks/w/"+f.webhook, i); err == nil {
				accepted.Add(1)
			}
		})
	}

	senders.Wait()
	return int(accepted.Load())
}

// ran is what the state has of a run.
type ran struct{ queued, started, finished, attempt int64 }

// drained waits until every run has ended, and returns them. It counts what was lost, was executed again,
// or ended twice.
func (f *fleet) drained(ctx context.Context, accepted int) ([]ran, error) {
	db, err := sql.Open(f.driver, f.dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()

	var left int
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := db.QueryRowContext(ctx, `SELECT count(*) FROM runs WHERE finished_at IS NULL`).Scan(&left)
		if err == nil && left == 0 {
			break
		}
		if time.Since(began) > 5*time.Minute {
			return nil, fmt.Errorf("%d runs are left: %w", left, err)
		}
	}

	rows, err := db.QueryContext(
		ctx,
		`SELECT queued_at, coalesce(started_at, 0), finished_at, attempt, state FROM runs`,
	)
	if err != nil {
		return nil, err
	}
	defer rows.Close()

	var all []ran
	f.found["runs lost"] = 0
	for rows.Next() {
		var r ran
		var state string
		if err := rows.Scan(&r.queued, &r.started, &r.finished, &r.attempt, &state); err != nil {
			return nil, err
		}
		if state != "SUCCEEDED" {
			f.found["runs lost"]++
		}

		all = append(all, r)
	}

	f.found["runs lost"] += math.Max(0, float64(accepted-len(all)))
	var twice int
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT run_id FROM run_entries
		WHERE kind = 'state' AND content LIKE '%SUCCEEDED%' GROUP BY run_id HAVING count(*) > 1) AS t`).Scan(&twice)
	f.found["runs doubled"] = float64(twice)
	return all, errors.Join(rows.Err(), err)
}

// pickups notes how long the runs waited, in milliseconds, from queued to started.
func (f *fleet) pickups(name string, all []ran) {
	var took []float64
	for _, r := range all {
		took = append(took, float64(r.started-r.queued)/1000)
	}
	slices.Sort(took)
	if n := len(took); n > 0 {
		f.found[name+" p50, ms"] = took[n/2]
		f.found[name+" p99, ms"] = took[n*99/100]
		f.found[name+" slowest, ms"] = took[n-1]
	}
}
