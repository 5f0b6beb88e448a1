package state

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"slices"
	"strconv"
)

const (
	readGenerationSQL = `SELECT generation FROM factories WHERE uid = $1`
	insertIdentitySQL = `INSERT INTO identities (webhook_id, hash, delivery_uid) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	firstIdentitySQL  = `SELECT delivery_uid FROM identities WHERE webhook_id = $1 AND hash = $2`
)

// transactSQLite is transact on SQLite. It has no deadline: that would cost a goroutine for each
// statement, and a disk does not heed it.
func (a *acceptor) transactSQLite(batch []*job) (outcomes []outcome, err error) {
	ctx := context.Background()
	prepared, err := a.statements(ctx)
	if err != nil {
		return nil, a.s.classify(err)
	}

	err = a.s.tx(ctx, func(tx *sql.Tx) error {
		b := newBatchTx(a.s, batch)
		l := &liteTx{ctx: ctx, tx: tx, prepared: prepared, bound: map[string]*sql.Stmt{}}
		if err := l.begin(b, batch); err != nil {
			return err
		}

		var err error
		if outcomes, err = b.decide(batch); err != nil {
			return err
		}

		for _, query := range b.queries {
			for _, row := range b.rows[query] { // one by one: a statement of many rows needs a journal of its own, which costs more than it saves
				if _, err := l.stmt(query).ExecContext(ctx, row...); err != nil {
					return err
				}
			}
		}

		return nil
	})

	return outcomes, err
}

// liteTx is a transaction with the prepared statements.
type liteTx struct {
	ctx      context.Context
	tx       *sql.Tx
	prepared map[string]*sql.Stmt
	bound    map[string]*sql.Stmt // prepared, in this transaction
}

func (l *liteTx) stmt(query string) *sql.Stmt {
	s, ok := l.bound[query]
	if !ok {
		s = l.tx.StmtContext(l.ctx, l.prepared[query])
		l.bound[query] = s
	}
	return s
}

// begin reads the generations and stores the identities of what did not move.
func (l *liteTx) begin(b *batchTx, batch []*job) error {
	for _, uid := range factoriesOf(batch) {
		var generation int64
		if err := l.stmt(readGenerationSQL).QueryRowContext(l.ctx, uid).Scan(&generation); noRows(err) != nil {
			return err
		}

		b.generations[uid] = generation
	}

	claims := slices.DeleteFunc(
		claimsOf(batch),
		func(c claim) bool { return b.generations[c.a.FactoryUID] != c.a.Generation },
	)
	for _, c := range claims {
		err := one(l.stmt(insertIdentitySQL).ExecContext(l.ctx, c.webhook, c.hash[:], c.a.UID))
		first := c.a.UID
		if errors.Is(err, errNoRow) {
			err = l.stmt(firstIdentitySQL).QueryRowContext(l.ctx, c.webhook, c.hash[:]).Scan(&first)
		}
		if err != nil {
			return err
		}

		b.firsts[c.identityKey] = first
	}

	return nil
}

// statements returns the statements of the group commit, prepared once for the life of the store. They
// are prepared outside of a transaction, since there is one connection that writes.
func (a *acceptor) statements(ctx context.Context) (map[string]*sql.Stmt, error) {
	a.prepare.Lock()
	defer a.prepare.Unlock()

	if a.stmts != nil {
		return a.stmts, nil
	}

	all := map[string]*sql.Stmt{}
	for _, query := range []string{readGenerationSQL, insertIdentitySQL, firstIdentitySQL, insertPayloadSQL, insertDeliverySQL, insertRunSQL, insertRunMetadataSQL} {
		stmt, err := a.s.write.PrepareContext(ctx, unnamed(query))
		if err != nil {
			return nil, err
		}

		all[query] = stmt
	}

	a.stmts = all
	return all, nil
}

// unnamed writes the parameters $1, $2, … of a query, which come in this order, as ?, and those that come
// again by their number. To SQLite $1 is a name, and the driver asks for names at every execution.
func unnamed(query string) string {
	next := 1
	return regexp.MustCompile(`\$[0-9]+`).ReplaceAllStringFunc(query, func(parameter string) string {
		if parameter != "$"+strconv.Itoa(next) {
			return "?" + parameter[1:]
		}
		next++
		return "?"
	})
}
