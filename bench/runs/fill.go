package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // the driver that fills the table

	"millwright/state"
)

// filled returns the address of the state of this name, with n runs. done drops what is not to be kept.
func (o options) filled(ctx context.Context, name string, n int) (dsn string, done func(), err error) {
	began := time.Now()
	done = func() {}
	if o.postgres == "" {
		dsn = filepath.Join(o.dir, fmt.Sprintf("%s-%d.db", name, n))
		if _, err := os.Stat(dsn); err == nil {
			return dsn, done, nil
		}
	} else {
		var there bool
		if dsn, there, done, err = o.schema(ctx, fmt.Sprintf("bench_%s_%d", name, n)); err != nil || there {
			return dsn, done, err
		}
	}

	if err := o.fill(ctx, dsn, n); err != nil {
		done()
		return "", nil, err
	}

	fmt.Fprintf(os.Stderr, "%d runs made in %s\n", n, time.Since(began).Round(time.Second))
	return dsn, done, nil
}

// schema returns the address of a schema of the PostgreSQL server; there says that it was there before.
func (o options) schema(ctx context.Context, name string) (dsn string, there bool, done func(), err error) {
	u, err := url.Parse(o.postgres)
	if err != nil {
		return "", false, nil, err
	}

	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	execute := func(ctx context.Context, statement string) error {
		conn, err := pgx.Connect(ctx, o.postgres)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)

		_, err = conn.Exec(ctx, statement)
		return err
	}

	done = func() {
		if o.keep {
			return
		}
		if err := execute(context.WithoutCancel(ctx), "DROP SCHEMA "+name+" CASCADE"); err != nil {
			fmt.Fprintln(os.Stderr, "drop", name+":", err)
		}
	}

	err = execute(ctx, "CREATE SCHEMA "+name)
	if err != nil && o.keep && strings.Contains(err.Error(), "42P06") {
		return u.String(), true, done, nil
	}

	return u.String(), false, done, err
}

// fill makes a state at dsn with n runs, most of which were started by webhooks. Making them one by one
// would take hours.
func (o options) fill(ctx context.Context, dsn string, n int) error {
	store, err := state.Open(ctx, state.Config{DSN: dsn, MasterKey: make([]byte, 32)})
	if err != nil {
		return err
	}
	if _, err := store.Bootstrap(ctx, apiKey); err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return err
	}

	rows := history{n: n, begin: time.Now().Add(-time.Duration(n) * time.Second), queued: o.backlog}
	if path, ok := state.SQLitePath(dsn); ok {
		err = rows.fillSQLite(ctx, path)
	} else {
		err = rows.fillPostgres(ctx, dsn)
	}

	if err == nil {
		err = vacuum(ctx, dsn)
	}

	return err
}

// vacuum does what PostgreSQL does by itself within minutes.
func vacuum(ctx context.Context, dsn string) error {
	if _, ok := state.SQLitePath(dsn); ok {
		return nil
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "VACUUM ANALYZE")
	return err
}

func (h history) fillSQLite(ctx context.Context, path string) error {
	db, err := sql.Open(
		"sqlite",
		"file:"+path+"?_pragma=synchronous(OFF)&_pragma=cache_size(-400000)&_pragma=foreign_keys(0)",
	)
	if err != nil {
		return err
	}
	defer db.Close()

	db.SetMaxOpenConns(1)
	const chunk = 100_000
	for from := 0; from < h.n; from += chunk {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()

		for table, columns := range filledColumns() {
			marks := strings.TrimSuffix(strings.Repeat("?, ", len(columns)), ", ")
			insert, err := tx.PrepareContext(
				ctx,
				"INSERT INTO "+table+" ("+strings.Join(columns, ", ")+") VALUES ("+marks+")",
			)
			if err != nil {
				return err
			}

			for i := from; i < min(from+chunk, h.n); i++ {
				for _, row := range h.rows(table, i) {
					if _, err := insert.ExecContext(ctx, row...); err != nil {
						return fmt.Errorf("fill %s: %w", table, err)
					}
				}
			}
		}

		if err := tx.Commit(); err != nil {
			return err
		}
	}

	_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

func (h history) fillPostgres(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	for _, table := range []string{"runs", "run_metadata", "run_artifacts"} {
		i, waiting := 0, [][]any(nil)
		_, err := conn.CopyFrom(
			ctx,
			pgx.Identifier{table},
			filledColumns()[table],
			pgx.CopyFromFunc(func() ([]any, error) {
				for len(waiting) == 0 && i < h.n {
					waiting = h.rows(table, i)
					i++
				}

				if len(waiting) == 0 {
					return nil, nil
				}

				row := waiting[0]
				waiting = waiting[1:]
				return row, nil
			}),
		)
		if err != nil {
			return fmt.Errorf("fill %s: %w", table, err)
		}
	}

	return nil
}

// history is n runs, one a second since begin. Of the last hundred some are queued or in progress. The
// oldest tenth are of an automation that has started none since. Each thousandth was gone on with three days later.
type history struct {
	n      int
	begin  time.Time
	queued bool // all of them, as if no worker had ever come
}

// filledColumns are the columns that are filled, by their table.
func filledColumns() map[string][]string {
	return map[string][]string{
		"runs": {
			"id", "factory_uid", "title", "prompt", "state",
			"source", "creator_type", "creator_uid", "creator_name", "conversation_id",
			"parent_run_id", "root_run_id", "automation_uid", "webhook_uid", "delivery_uid",
			"config", "config_name", "model_id", "environment_id", "skill_spec",
			"worker", "worker_name", "claim_hash", "lease_until", "metadata",
			"created_at", "updated_at", "queued_at", "started_at", "finished_at",
		},
		"run_metadata": {"run_id", "key", "value"},
		"run_artifacts": {
			"uid", "run_id", "execution", "attempt", "number", "state", "type", "kind", "path", "size", "created_at",
		},
	}
}

// rows returns the rows of a table that run i has.
func (h history) rows(table string, i int) [][]any {
	web := i%10 < 9
	switch table {
	case "runs":
		return [][]any{h.run(i, web)}
	case "run_artifacts":
		return h.artifacts(i)
	}
	if web {
		return nil
	}
	return [][]any{{h.id(i), "team", fmt.Sprint("team-", i%12)}, {h.id(i), "build", fmt.Sprint("build-", i)}}
}

// artifacts returns what run i left: files of every other run, few pull requests, and hardly any references.
func (h history) artifacts(i int) (all [][]any) {
	for number, of := range []struct {
		each int
		name string
	}{{2, "FILE"}, {300, "PULL_REQUEST"}, {100_000, "EXTERNAL_REFERENCE"}} {
		if i%of.each == 1 {
			all = append(all, []any{
				fmt.Sprintf("art_%020d%06d", i, number), h.id(i), 1, 1, number, "current", of.name, "link", "x", 0,
				h.at(i).UnixMicro(),
			})
		}
	}
	return all
}

func (h history) at(i int) time.Time { return h.begin.Add(time.Duration(i) * time.Second) }

func (h history) id(i int) string {
	ms := h.at(i).UnixMilli()
	return fmt.Sprintf("%08x-%04x-7%03x-8%03x-%012x", ms>>16, ms&0xffff, i%4096, i%4096, i)
}

func (h history) run(i int, web bool) []any {
	id, at, end := h.id(i), h.at(i), h.begin.Add(time.Duration(h.n)*time.Second)
	lasted := time.Minute
	if i%1000 == 500 {
		lasted = 3 * 24 * time.Hour
	}

	updated := at.Add(lasted)
	if updated.After(end) {
		updated = end
	}
	if h.queued {
		updated = at
	}

	pick := func(when bool, yes, no string) string {
		if when {
			return yes
		}
		return no
	}

	status := "SUCCEEDED"
	switch {
	case h.queued || i >= h.n-100 && i%4 == 0:
		status = "QUEUED"
	case i >= h.n-100 && i%25 == 1:
		status = "INPROGRESS"
	case i%20 == 7:
		status = "FAILED"
	case i%100 == 8:
		status = "CANCELLED"
	case i%200 == 9:
		status = "ERROR"
	case i%200 == 11:
		status = "BLOCKED"
	}

	automation := fmt.Sprint("auto_", i%40)
	if i < h.n/10 {
		automation = "auto_old"
	}

	var hash []byte
	var lease, started, finished any
	metadata, parent, root := "{}", "", id
	if !web {
		metadata = fmt.Sprintf(`{"team":"team-%d","build":"build-%d"}`, i%12, i)
	}
	if i > 99 && (i%1000 == 99 || i < 1000 && i%40 == 39) {
		parent, root = h.id(99), h.id(99)
	}

	switch status {
	case "QUEUED":
	case "INPROGRESS":
		hash, lease, started = make([]byte, 32), at.Add(time.Hour).UnixMicro(), at.UnixMicro()
	default:
		started, finished = at.UnixMicro(), updated.UnixMicro()
	}

	return []any{
		id, pick(web, fmt.Sprint("fac_", i%7), ""), fmt.Sprint("Look into event ", i%5000),
		fmt.Sprintf(
			"Look into event %d and report what it means. %s",
			i,
			strings.Repeat("00", 100),
		), status, pick(web, "CUSTOM_WEBHOOK", pick(i%100 == 99, "CLI", "API")),
		"service_account", pick(web, automation, fmt.Sprint("key_", i%3)), "name", fmt.Sprintf("%032x", i),
		parent, root, pick(web, automation, ""),
		pick(web, fmt.Sprint("wh_", i%20), ""), pick(web, fmt.Sprint("dlv_", i), ""),
		fmt.Sprintf(
			`{"name":"agent-%d"}`,
			i%30,
		), fmt.Sprint("agent-", i%30), fmt.Sprint("model-", i%4), pick(i%3 == 0, fmt.Sprint("env-", i%2), ""),
		pick(i%17 == 0, fmt.Sprint("owner/repo:skill-", i%5), ""),
		pick(status == "QUEUED", "", fmt.Sprint("local", i%9)), "worker", hash, lease, metadata,
		at.UnixMicro(), updated.UnixMicro(), at.UnixMicro(), started, finished,
	}
}
