package state

import (
	"context"
	"database/sql/driver"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// On PostgreSQL a batch takes two round trips, whatever its size. The first holds the generations of its
// factories, stores the identities, and reads who stored each of them first. The second inserts all rows
// of a table by one statement, and commits.

const (
	// A generation is held by an advisory lock, not by a row lock: those queue in order, so that a change of
	// the definition does not wait for ever behind deliveries that overlap, and a batch writes no row for it.
	lockGenerationSQL  = `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`
	holdGenerationsSQL = `SELECT pg_advisory_xact_lock_shared(hashtextextended(uid, 0)) FROM unnest($1::text[]) AS t (uid)`
	readGenerationsSQL = `SELECT uid, generation FROM factories WHERE uid = ANY($1)`

	// The generation is looked at again here, so that both go in one round trip: what moved stores nothing.
	insertIdentitiesSQL = `INSERT INTO identities (webhook_id, hash, delivery_uid)
		SELECT t.webhook_id, t.hash, t.delivery_uid
		FROM unnest($1::bigint[], $2::bytea[], $3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY AS t (webhook_id, hash, delivery_uid, factory_uid, generation, at)
		JOIN factories f ON f.uid = t.factory_uid AND f.generation = t.generation
		ORDER BY t.at ON CONFLICT DO NOTHING`

	firstIdentitiesSQL = `SELECT i.webhook_id, i.hash, i.delivery_uid FROM unnest($1::bigint[], $2::bytea[]) AS t (webhook_id, hash)
		JOIN identities i ON i.webhook_id = t.webhook_id AND i.hash = t.hash`
)

// unnested are the inserts of the hot path in the form that takes many rows at once.
var unnested = sync.OnceValue(func() map[string]unnestedInsert {
	all := map[string]unnestedInsert{}
	for query, types := range map[string]string{
		insertDeliverySQL:    "itttt iii tttttt iii",
		insertPayloadSQL:     "ttbb",
		insertRunSQL:         "ttttttttttttttttt b ttttt i ttt",
		insertRunMetadataSQL: "tttt",
	} {
		all[query] = unnest(query, strings.ReplaceAll(types, " ", ""))
	}
	return all
})

// unnestedInsert is an INSERT whose parameters are arrays, one for each column.
type unnestedInsert struct {
	text  string
	types string // of each parameter: t text, i bigint, b bytea
}

// unnest makes INSERT … VALUES ($1, …) into INSERT … SELECT … FROM unnest($1::text[], …).
func unnest(query, types string) unnestedInsert {
	before, rest, _ := strings.Cut(query, "VALUES (")
	values, after, _ := strings.Cut(rest, ")") // there are no parentheses among the values
	values = regexp.MustCompile(`\$(\d+)`).ReplaceAllString(values, "t.c$1")
	params, names := make([]string, len(types)), make([]string, len(types))
	for i, t := range types {
		params[i] = fmt.Sprintf("$%d::%s[]", i+1, map[rune]string{'t': "text", 'i': "bigint", 'b': "bytea"}[t])
		names[i] = fmt.Sprintf("c%d", i+1)
	}

	return unnestedInsert{
		text: before + "SELECT " + values + " FROM unnest(" + strings.Join(
			params,
			", ",
		) + ") AS t (" + strings.Join(
			names,
			", ",
		) + ")" + after,
		types: types,
	}
}

// arrays turns rows into one array for each column.
func (u unnestedInsert) arrays(rows [][]any) ([]any, error) {
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

// transactPostgres is transact on PostgreSQL. It is tried again when the database asks for that.
func (a *acceptor) transactPostgres(ctx context.Context, batch []*job) (outcomes []outcome, err error) {
	for try := 0; ; try++ {
		outcomes, err = a.onPgx(ctx, batch)
		if err == nil || try == 4 || !a.s.retryable(err) {
			return outcomes, a.s.classify(err)
		}
	}
}

func (a *acceptor) onPgx(ctx context.Context, batch []*job) (outcomes []outcome, err error) {
	conn, err := a.s.write.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()

	var failed error
	err = conn.Raw(func(c any) error {
		pg := c.(*stdlib.Conn).Conn()
		if outcomes, failed = a.s.writePgx(ctx, pg, batch); failed == nil || pg.IsClosed() {
			return nil
		}
		if _, err := pg.Exec(ctx, "ROLLBACK"); err != nil {
			return driver.ErrBadConn // never reused
		}

		return nil
	})
	if failed != nil {
		return nil, failed
	}

	return outcomes, err
}

// writePgx writes a sorted batch. After an error the connection may be inside a transaction.
func (s *Store) writePgx(ctx context.Context, pg *pgx.Conn, batch []*job) ([]outcome, error) {
	b := newBatchTx(s, batch)
	if err := b.beginPgx(ctx, pg, batch); err != nil {
		return nil, err
	}

	outcomes, err := b.decide(batch)
	if err != nil {
		return nil, err
	}

	var out pgx.Batch
	for _, query := range b.queries {
		u := unnested()[query]
		arrays, err := u.arrays(b.rows[query])
		if err != nil {
			return nil, err
		}

		out.Queue(u.text, arrays...)
	}

	out.Queue("COMMIT")
	return outcomes, pg.SendBatch(ctx, &out).Close()
}

// beginPgx is the first round trip.
func (b *batchTx) beginPgx(ctx context.Context, pg *pgx.Conn, batch []*job) error {
	factories, claims := factoriesOf(batch), claimsOf(batch)
	n := len(claims)
	webhooks, generations, hashes := make([]int64, n), make([]int64, n), make([][]byte, n)
	deliveries, owners := make([]string, n), make([]string, n)
	for i, c := range claims {
		webhooks[i], generations[i], hashes[i], deliveries[i], owners[i] = c.webhook, c.a.Generation, claims[i].hash[:], c.a.UID, c.a.FactoryUID
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

	return pg.SendBatch(ctx, &in).Close()
}
