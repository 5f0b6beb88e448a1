package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	_ "modernc.org/sqlite" // the driver that fills the table

	"millwright/state"
)

// fill makes a state at path with n runs that have ended and a few that have not, of which most were started
// by webhooks. Making them one by one would take hours.
func fill(ctx context.Context, path string, n int) error {
	store, err := state.Open(ctx, state.Config{DSN: path, MasterKey: make([]byte, 32)})
	if err != nil {
		return err
	}
	if _, err := store.Bootstrap(ctx, apiKey); err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(OFF)&_pragma=cache_size(-400000)&_pragma=foreign_keys(0)")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	const chunk = 100_000
	begin := time.Now().Add(-time.Duration(n) * time.Second).UnixMicro()
	for from := 0; from < n; from += chunk {
		for _, statement := range []string{insertRuns, insertMetadata} {
			if _, err := db.ExecContext(ctx, statement, from, min(from+chunk, n), begin, n); err != nil {
				return fmt.Errorf("fill: %w", err)
			}
		}
	}
	_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// Run i of $4 was made i seconds after $3. Of the last hundred some are queued or in progress. The oldest
// tenth are of an automation that has started none since.
const (
	series  = `WITH RECURSIVE n (i) AS (SELECT $1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $2), `
	columns = `r AS (SELECT i, $3 + i * 1000000 AS at, i % 100 AS h,
		CASE WHEN i >= $4 - 100 AND i % 4 = 0 THEN 'QUEUED' WHEN i >= $4 - 100 AND i % 25 = 1 THEN 'INPROGRESS'
			WHEN i % 20 = 7 THEN 'FAILED' WHEN i % 100 = 8 THEN 'CANCELLED' WHEN i % 200 = 9 THEN 'ERROR' WHEN i % 200 = 11 THEN 'BLOCKED' ELSE 'SUCCEEDED' END AS state,
		CASE WHEN i % 10 < 9 THEN 'CUSTOM_WEBHOOK' WHEN i % 100 = 99 THEN 'CLI' ELSE 'API' END AS source FROM n) `
	id         = `printf('%08x-%04x-7%03x-8%03x-%012x', ($3 + i * 1000000) / 1000 / 65536, (($3 + i * 1000000) / 1000) % 65536, i % 4096, i % 4096, i)`
	insertRuns = series + columns + `INSERT INTO runs (id, factory_uid, title, prompt, state, source, creator_type, creator_uid, creator_name, conversation_id,
		parent_run_id, root_run_id, automation_uid, webhook_uid, delivery_uid, config, config_name, model_id, environment_id, skill_spec, worker, worker_name,
		claim_hash, lease_until, created_at, updated_at, queued_at, started_at, finished_at)
		SELECT ` + id + `, CASE WHEN source = 'CUSTOM_WEBHOOK' THEN 'fac_' || (i % 7) ELSE '' END,
		'Look into event ' || (i % 5000), 'Look into event ' || i || ' and report what it means. ' || hex(zeroblob(100)), state, source, 'service_account',
		CASE WHEN source = 'CUSTOM_WEBHOOK' THEN 'auto_' || CASE WHEN i < $4 / 10 THEN 'old' ELSE i % 40 END ELSE 'key_' || (i % 3) END, 'name', printf('%032x', i),
		CASE WHEN i % 1000 = 99 AND i > 1000 THEN printf('%08x-%04x-7%03x-8%03x-%012x', ($3 + 99 * 1000000) / 1000 / 65536, (($3 + 99 * 1000000) / 1000) % 65536, 99, 99, 99) ELSE '' END, 'root',
		CASE WHEN source = 'CUSTOM_WEBHOOK' THEN 'auto_' || CASE WHEN i < $4 / 10 THEN 'old' ELSE i % 40 END ELSE '' END,
		CASE WHEN source = 'CUSTOM_WEBHOOK' THEN 'wh_' || (i % 20) ELSE '' END, CASE WHEN source = 'CUSTOM_WEBHOOK' THEN 'dlv_' || i ELSE '' END,
		'{"name":"agent-' || (i % 30) || '"}', 'agent-' || (i % 30), 'model-' || (i % 4), CASE WHEN i % 3 = 0 THEN 'env-' || (i % 2) ELSE '' END,
		CASE WHEN i % 17 = 0 THEN 'owner/repo:skill-' || (i % 5) ELSE '' END, CASE state WHEN 'QUEUED' THEN '' ELSE 'local' || (i % 9) END, 'worker',
		CASE state WHEN 'INPROGRESS' THEN randomblob(32) END, CASE state WHEN 'INPROGRESS' THEN at + 3600000000 END,
		at, at + 60000000, at, CASE state WHEN 'QUEUED' THEN NULL ELSE at END, CASE WHEN state IN ('QUEUED', 'INPROGRESS') THEN NULL ELSE at + 60000000 END FROM r`
	insertMetadata = series + columns + `INSERT INTO run_metadata (run_id, key, value)
		SELECT ` + id + `, 'team', 'team-' || (i % 12) FROM r WHERE source <> 'CUSTOM_WEBHOOK' UNION ALL SELECT ` + id + `, 'build', 'build-' || i FROM r WHERE source <> 'CUSTOM_WEBHOOK'`
)
