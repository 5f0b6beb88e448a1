package state

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/state/audit"
	"millwright/state/db"
	"millwright/state/notice"
)

// On PostgreSQL a batch takes two round trips, regardless of its size. The first holds the generations of its
// factories, stores the identities, and reads who stored each of them first. The second inserts all rows
// of a table by one statement, and commits. Runs that wait for one another are stored in between, one by one.

// Statements of the first round trip.
const (
	holdGenerationsSQL = `SELECT pg_advisory_xact_lock_shared(hashtextextended(uid, 0))
FROM unnest($1::text[]) AS t (uid)`

	readGenerationsSQL = `SELECT uid, generation FROM factories WHERE uid = ANY($1)`

	// The generation is compared again here, so that both go in one round trip: a delivery that was judged by
	// another one stores nothing.
	insertIdentitiesSQL = `INSERT INTO identities (webhook_id, hash, delivery_uid)
SELECT t.webhook_id, t.hash, t.delivery_uid
FROM unnest($1::bigint[], $2::bytea[], $3::text[], $4::text[], $5::bigint[])
	WITH ORDINALITY AS t (webhook_id, hash, delivery_uid, factory_uid, generation, at)
JOIN factories f ON f.uid = t.factory_uid AND f.generation = t.generation
ORDER BY t.at
ON CONFLICT DO NOTHING`

	// In the order of the claims, as identities are stored, so that no two writers wait in a circle.
	deleteStalesSQL = `WITH stale AS (
	SELECT i.webhook_id, i.hash
	FROM unnest($1::bigint[], $2::bytea[], $3::text[]) WITH ORDINALITY AS t (webhook_id, hash, stale, at)
	JOIN identities i ON i.webhook_id = t.webhook_id AND i.hash = t.hash AND i.delivery_uid < t.stale
	ORDER BY t.at
	FOR UPDATE OF i
)
DELETE FROM identities i
USING stale
WHERE i.webhook_id = stale.webhook_id AND i.hash = stale.hash`

	firstIdentitiesSQL = `SELECT i.webhook_id, i.hash, i.delivery_uid
FROM unnest($1::bigint[], $2::bytea[]) AS t (webhook_id, hash)
JOIN identities i ON i.webhook_id = t.webhook_id AND i.hash = t.hash`
)

// bulkInsert is an INSERT whose parameters are arrays, one for each column.
type bulkInsert struct {
	text  string
	types string // of each parameter: t text, i bigint, b bytea
}

// bulkInserts are the inserts of the hot path that take many rows at once, by those that take one.
func bulkInserts(query string) bulkInsert {
	switch query {
	case insertDeliverySQL:
		return bulkInsert{insertDeliveriesSQL, "itttt" + "iii" + "tttttt" + "iii" + "t" + "iit"}
	case insertPayloadSQL:
		return bulkInsert{insertPayloadsSQL, "ttbib"}
	case insertRunSQL:
		return bulkInsert{insertRunsSQL, "ttttttttttttttttt" + "b" + "ttttt" + "i" + "ttttt" + "ii"}
	case audit.InsertSQL:
		return bulkInsert{insertAuditSQL, "i" + "ttttttttt"}
	case insertRunMetadataSQL:
		return bulkInsert{insertRunsMetadataSQL, "tttt"}
	}

	return bulkInsert{}
}

// Statements of the second round trip. They are those of one row, with the columns in the same order.
const (
	insertDeliveriesSQL = `INSERT INTO deliveries (
	webhook_id, uid, factory_uid, outcome, reason, size_bytes, size_max, received_at,
	identity, identity_source, sender, duplicate_of, replay_of, event, generation, count, last_at, flow,
	started, status, headers
)
SELECT *
FROM unnest(
	$1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
	$9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::bigint[], $16::bigint[],
	$17::bigint[], $18::text[], $19::bigint[], $20::bigint[], $21::text[]
)
ON CONFLICT (webhook_id, uid) DO UPDATE SET
	size_bytes = excluded.size_bytes,
	size_max = excluded.size_max,
	count = excluded.count,
	last_at = excluded.last_at`

	insertPayloadsSQL = `INSERT INTO payloads (delivery_uid, factory_uid, body, size, headers)
SELECT *
FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bigint[], $5::bytea[])`

	insertAuditSQL = `INSERT INTO audit_log (
	at, uid, factory_uid, actor_kind, actor_uid, actor, source, action, subject, detail
)
SELECT *
FROM unnest(
	$1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
	$10::text[]
)`

	insertRunsMetadataSQL = `INSERT INTO run_metadata (run_id, factory_uid, key, value)
SELECT *
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])`

	insertRunsSQL = `INSERT INTO runs (
	id, factory_uid, title, prompt, envelope, source, creator_type, creator_uid, creator_name,
	conversation_id, parent_run_id, root_run_id, automation_uid, webhook_uid, delivery_uid, agent_uid, config,
	sealed, config_name, model_id, environment_id, skill_spec, metadata, created_at, secrets, trigger_url,
	traceparent, waits_for, flow, queued_at, checkout_head, state, updated_at
)
SELECT t.*, 'QUEUED', t.created_at
FROM unnest(
	$1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
	$10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[],
	$18::bytea[], $19::text[], $20::text[], $21::text[], $22::text[], $23::text[], $24::bigint[], $25::text[],
	$26::text[], $27::text[], $28::text[], $29::text[], $30::bigint[], $31::bigint[]
) AS t (
	id, factory_uid, title, prompt, envelope, source, creator_type, creator_uid, creator_name,
	conversation_id, parent_run_id, root_run_id, automation_uid, webhook_uid, delivery_uid, agent_uid, config,
	sealed, config_name, model_id, environment_id, skill_spec, metadata, created_at, secrets, trigger_url,
	traceparent, waits_for, flow, queued_at, checkout_head
)`
)

// arrays turns rows into one array for each column.
func (u bulkInsert) arrays(rows [][]any) ([]any, error) {
	all := make([]any, len(u.types))
	for col, t := range u.types {
		switch t {
		case 't':
			all[col] = column[string](rows, col)
		case 'i':
			all[col] = column[int64](rows, col)
		case 'b':
			all[col] = column[[]byte](rows, col)
		}

		if all[col] == nil {
			return nil, fmt.Errorf("column %d is not of its type", col+1)
		}
	}

	return all, nil
}

// column returns a column of rows as an array, of pointers where there are nulls, or nil when a value is not a T.
func column[T any](rows [][]any, col int) any {
	values := make([]T, len(rows))
	nulls := false
	for i, row := range rows {
		v, ok := row[col].(T)
		if !ok && row[col] != nil {
			return nil
		}

		values[i], nulls = v, nulls || !ok
	}

	if !nulls {
		return values
	}

	pointers := make([]*T, len(rows))
	for i, row := range rows {
		if row[col] != nil {
			pointers[i] = &values[i]
		}
	}

	return pointers
}

// writePostgres writes a sorted batch. After an error the connection may be inside a transaction.
func (s *Store) writePostgres(ctx context.Context, pipe db.Pipe, batch []*job) ([]outcome, error) {
	b := newBatchTx(s, pipe.Tx, batch)
	if err := b.beginPostgres(ctx, pipe, batch); err != nil {
		return nil, err
	}
	if err := s.holdFlows(ctx, pipe.Tx, flowsOf(batch)); err != nil {
		return nil, err
	}

	outcomes, err := b.decide(ctx, batch)
	if err != nil {
		return nil, err
	}

	var out pgx.Batch
	for _, query := range b.queries {
		u := bulkInserts(query)
		arrays, err := u.arrays(b.rows[query])
		if err != nil {
			return nil, err
		}

		out.Queue(u.text, arrays...)
	}

	out.Queue("COMMIT")
	return outcomes, pipe.Send(ctx, &out)
}

// beginPostgres is the first round trip.
func (b *batchTx) beginPostgres(ctx context.Context, pipe db.Pipe, batch []*job) error {
	factories, claims := factoriesOf(batch), claimsOf(batch)
	n := len(claims)
	webhooks, generations, hashes := make([]int64, n), make([]int64, n), make([][]byte, n)
	deliveries, owners, stales := make([]string, n), make([]string, n), make([]string, n)
	windowed := false
	for i, c := range claims {
		webhooks[i], hashes[i] = c.webhook, claims[i].hash[:]
		deliveries[i], owners[i], generations[i] = c.a.UID, c.a.FactoryUID, c.a.Generation
		stales[i], windowed = c.stale, windowed || c.stale != ""
	}

	var in pgx.Batch
	in.Queue("BEGIN")
	if len(factories) > 0 {
		in.Queue(holdGenerationsSQL, factories)
		in.Queue(readGenerationsSQL, factories).Query(func(rows pgx.Rows) error {
			var uid string
			var generation int64
			_, err := pgx.ForEachRow(rows, []any{&uid, &generation}, func() error {
				b.generations[uid] = generation
				return nil
			})
			return err
		})
	}

	if windowed {
		in.Queue(deleteStalesSQL, webhooks, hashes, stales)
	}
	if n > 0 {
		in.Queue(insertIdentitiesSQL, webhooks, hashes, deliveries, owners, generations)
		in.Queue(firstIdentitiesSQL, webhooks, hashes).Query(func(rows pgx.Rows) error {
			var key identityKey
			var hash []byte
			var uid string
			_, err := pgx.ForEachRow(rows, []any{&key.webhook, &hash, &uid}, func() error {
				copy(key.hash[:], hash)
				b.firsts[key] = uid
				return nil
			})
			return err
		})
	}

	return pipe.Send(ctx, &in)
}

// commit writes a batch and answers its jobs. What fails for another reason than the database being out
// of reach is tried again one by one, so that it fails alone.
func (s *Store) commit(ctx context.Context, jobs []*job) {
	ctx, cancel := context.WithTimeout(ctx, acceptDeadline)
	defer cancel()

	slices.SortFunc(jobs, (*job).order)
	outcomes, err := s.transact(ctx, jobs)
	if err != nil && len(jobs) > 1 && !errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
		for i := range jobs {
			s.commit(ctx, jobs[i:i+1])
		}
		return
	}

	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}

		for _, j := range jobs {
			j.answer(outcome{err: err})
		}

		return
	}

	s.Publish(notices(jobs, outcomes)...)
	for _, webhookUID := range followed(jobs) {
		s.Notify(notice.Delivery, webhookUID)
	}

	for i, j := range jobs {
		s.movedAll(ctx, outcomes[i].changed)
		j.answer(outcomes[i])
	}
}

// transact writes a sorted batch in one transaction and returns each job's outcome, in the same order.
func (s *Store) transact(ctx context.Context, jobs []*job) (outcomes []outcome, err error) {
	if s.db.Postgres() {
		err = s.db.Pipeline(ctx, func(ctx context.Context, pipe db.Pipe) (err error) {
			outcomes, err = s.writePostgres(ctx, pipe, jobs)
			return err
		})
		return outcomes, err
	}

	// Without a deadline: that would cost a goroutine for each statement, and a disk does not heed it.
	err = s.db.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *db.Tx) (err error) {
		outcomes, err = s.writeSQLite(ctx, tx, jobs)
		return err
	})
	return outcomes, err
}
