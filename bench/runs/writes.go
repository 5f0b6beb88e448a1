package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/state"
)

// writes measures what the database writes for the whole life of a run, beside many others: for SQLite what its
// process writes, to the log and from there to the file; for PostgreSQL its log.
func writes(ctx context.Context, o options) error {
	dsn, done, err := o.filled(ctx, "writes", o.many)
	if err != nil {
		return err
	}
	defer done()

	store, err := state.Open(ctx, state.Config{DSN: dsn, MasterKey: make([]byte, 32)})
	if err != nil {
		return err
	}
	defer store.Close()

	const waves = 100
	phases := []struct {
		name string
		live func(l *life) error
	}{
		{"create", func(l *life) (err error) {
			l.run, err = store.CreateRun(ctx, lived(l.number), nil, state.Idempotency{})
			return err
		}},
		{"claim", func(l *life) (err error) {
			l.claim, _, err = store.ClaimRun(ctx, l.run.ID, "wrk_1", "worker", time.Minute)
			return err
		}},
		{"start", func(l *life) error { return second(store.StartRun(ctx, l.claim, time.Minute)) }},
		{"heartbeat", func(l *life) error { return second(store.RenewLease(ctx, l.claim, time.Minute)) }},
		{"end", func(l *life) error {
			return second(store.FinishRun(ctx, l.claim, state.Result{State: state.RunSucceeded}))
		}},
	}

	bytes := make([]int64, len(phases))
	for w := range waves {
		wave := make([]life, o.connections)
		for i := range wave {
			wave[i].number = w*o.connections + i
		}

		for k, p := range phases {
			n, err := writtenBy(ctx, dsn, wave, p.live)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}

			bytes[k] += n
		}
	}

	kib := func(n int64) float64 { return float64(n) / float64(waves*o.connections) / 1024 }
	total := int64(0)
	for k, p := range phases {
		total += bytes[k]
		fmt.Printf("%-10s %6.2f KiB a run\n", p.name, kib(bytes[k]))
	}

	fmt.Printf("%-10s %6.2f KiB a run, %d at a time, beside %d\n", "life", kib(total), o.connections, o.many)
	return nil
}

// writtenBy does the same with all runs of a wave at once, and returns how many bytes that wrote.
func writtenBy(ctx context.Context, dsn string, wave []life, do func(*life) error) (int64, error) {
	before, err := written(ctx, dsn)
	if err != nil {
		return 0, err
	}

	errs := make([]error, len(wave))
	var wg sync.WaitGroup
	for i := range wave {
		wg.Go(func() { errs[i] = do(&wave[i]) })
	}

	wg.Wait()
	after, err := written(ctx, dsn)
	return after - before, errors.Join(append(errs, err)...)
}

// life is a run that is measured.
type life struct {
	number int
	run    state.Run
	claim  state.Claim
}

// lived is run i: what a delivery to a webhook starts.
func lived(i int) state.NewRun {
	automation := fmt.Sprint("auto_", i%40)
	return state.NewRun{
		FactoryUID: fmt.Sprint("fac_", i%7), Title: fmt.Sprint("Look into event ", i),
		Prompt: "Look into this event. " + strings.Repeat("00", 100), Source: "CUSTOM_WEBHOOK",
		Creator:       state.Creator{Type: "service_account", UID: automation, DisplayName: "name"},
		AutomationUID: automation, WebhookUID: fmt.Sprint("wh_", i%20),
		DeliveryUID: state.NewID(state.PrefixDelivery),
		ConfigName:  fmt.Sprint("agent-", i%30), ModelID: fmt.Sprint("model-", i%4),
	}
}

func second[T any](_ T, err error) error { return err }

// written returns how many bytes were written until now.
func written(ctx context.Context, dsn string) (n int64, err error) {
	if _, ok := state.SQLitePath(dsn); ok {
		counters, err := os.ReadFile("/proc/self/io")
		if err != nil {
			return 0, err
		}

		_, after, _ := strings.Cut(string(counters), "wchar: ")
		_, err = fmt.Sscan(after, &n)
		return n, err
	}

	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)

	return n, conn.QueryRow(ctx, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&n)
}
