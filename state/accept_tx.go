package state

import (
	"context"
	"database/sql"
	"errors"
)

const (
	readGenerationSQL = `SELECT generation FROM factories WHERE uid = $1`
	insertIdentitySQL = `INSERT INTO identities (webhook_id, hash, delivery_uid) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	firstIdentitySQL  = `SELECT delivery_uid FROM identities WHERE webhook_id = $1 AND hash = $2`
	insertPayloadSQL  = `INSERT INTO payloads (delivery_uid, factory_uid, body) VALUES ($1, $2, $3)`
	insertDeliverySQL = `INSERT INTO deliveries (webhook_id, uid, factory_uid, outcome, reason, size_bytes, size_max, received_at, identity,
		identity_source, sender, duplicate_of, replay_of, event, generation, count, last_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
		ON CONFLICT (webhook_id, uid) DO UPDATE SET size_bytes = excluded.size_bytes, size_max = excluded.size_max,
		count = excluded.count, last_at = excluded.last_at`
)

// transact writes a sorted batch in one transaction and returns each job's outcome, in the same order.
func (a *acceptor) transact(ctx context.Context, batch []*job) ([]outcome, error) {
	stmts, err := a.statements(ctx)
	if err != nil {
		return nil, a.s.classify(err)
	}
	if a.s.dialect == sqlite {
		ctx = context.Background() // a deadline would cost a goroutine for each statement, and a disk does not heed it
	}
	outcomes := make([]outcome, len(batch))
	err = a.s.tx(ctx, func(tx *sql.Tx) error {
		b := &batchTx{s: a.s, ctx: ctx, tx: tx, prepared: stmts, bound: map[string]*sql.Stmt{}, generations: map[string]int64{}}
		if err := b.readGenerations(batch); err != nil {
			return err
		}
		for i, j := range batch {
			var err error
			if j.entry != nil {
				outcomes[i] = outcome{}
				err = b.insertRejection(j.entry)
			} else {
				outcomes[i], err = b.accept(j.accept)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return outcomes, err
}

// statements returns the statements of the group commit, prepared once for the life of the store. They
// are prepared outside of a transaction, since SQLite has one connection that writes.
func (a *acceptor) statements(ctx context.Context) (map[string]*sql.Stmt, error) {
	a.prepare.Lock()
	defer a.prepare.Unlock()
	if a.stmts != nil {
		return a.stmts, nil
	}
	all := map[string]*sql.Stmt{}
	for _, query := range []string{readGenerationSQL + a.s.dialect.forShare(), insertIdentitySQL, firstIdentitySQL, insertPayloadSQL, insertDeliverySQL, insertRunSQL, insertRunMetadataSQL} {
		stmt, err := a.s.write.PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		all[query] = stmt
	}
	a.stmts = all
	return all, nil
}

// batchTx is one transaction of the group commit.
type batchTx struct {
	s           *Store
	ctx         context.Context
	tx          *sql.Tx
	prepared    map[string]*sql.Stmt
	bound       map[string]*sql.Stmt // prepared, in this transaction
	generations map[string]int64     // by factory UID; 0: there is no such factory
}

// readGenerations reads, and on PostgreSQL holds, the generation of every factory of the batch.
func (b *batchTx) readGenerations(batch []*job) error {
	for _, j := range batch {
		if j.accept == nil {
			continue
		}
		uid := j.accept.FactoryUID
		if _, ok := b.generations[uid]; ok {
			continue
		}
		var generation int64
		err := b.stmt(readGenerationSQL+b.s.dialect.forShare()).QueryRowContext(b.ctx, uid).Scan(&generation)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		b.generations[uid] = generation
	}
	return nil
}

func (b *batchTx) accept(a *Acceptance) (outcome, error) {
	if b.generations[a.FactoryUID] != a.Generation {
		return outcome{err: ErrMoved}, nil
	}
	if a.Identity.Source != "" {
		first, err := b.firstOf(a, a.Identity.Hash)
		if err != nil {
			return outcome{}, err
		}
		if first != "" {
			return outcome{Accepted: Accepted{DeliveryUID: first, Duplicate: true}}, b.insertDelivery(a, DeliveryDuplicate, first)
		}
	}
	if a.Digest != nil {
		if err := b.flagRepeat(a); err != nil {
			return outcome{}, err
		}
	}
	if err := b.insertDelivery(a, DeliveryAccepted, ""); err != nil {
		return outcome{}, err
	}
	if err := b.exec(insertPayloadSQL, a.UID, a.FactoryUID, a.Body); err != nil {
		return outcome{}, err
	}
	for _, r := range a.Runs {
		if err := b.s.insertRunWith(r, b.exec); err != nil {
			return outcome{}, err
		}
	}
	return outcome{Accepted: Accepted{DeliveryUID: a.UID}}, nil
}

// flagRepeat notes in the delivery's reason when its signed bytes came before, under another identity.
func (b *batchTx) flagRepeat(a *Acceptance) error {
	first, err := b.firstOf(a, digestHash(a.Digest))
	if first != "" {
		a.Reason = repeatReason(a.Reason, first)
	}
	return err
}

// digestHash is the digest as a key among the identities of a webhook, where it equals none of them.
func digestHash(digest []byte) [16]byte { return IdentityOf("digest", string(digest)).Hash }

func repeatReason(reason, first string) string {
	if reason != "" {
		reason += "; "
	}
	return reason + "the same signed bytes as " + first + " under a new ID"
}

// firstOf stores hash for the delivery, and returns the delivery that stored it first, if any.
func (b *batchTx) firstOf(a *Acceptance, hash [16]byte) (string, error) {
	err := one(b.stmt(insertIdentitySQL).ExecContext(b.ctx, a.WebhookID, hash[:], a.UID))
	if !errors.Is(err, errNoRow) {
		return "", err
	}
	var first string
	err = b.stmt(firstIdentitySQL).QueryRowContext(b.ctx, a.WebhookID, hash[:]).Scan(&first)
	return first, err
}

func (b *batchTx) insertDelivery(a *Acceptance, outcome DeliveryOutcome, duplicateOf string) error {
	return b.exec(insertDeliverySQL, a.WebhookID, a.UID, a.FactoryUID, string(outcome), a.Reason, int64(len(a.Body)), nil, micros(a.Received),
		a.Identity.Preview, string(a.Identity.Source), a.Sender, duplicateOf, a.ReplayOf, a.Event, a.Generation, int64(1), nil)
}

func (b *batchTx) insertRejection(r *Rejection) error {
	return b.exec(insertDeliverySQL, r.WebhookID, r.uid, r.FactoryUID, string(r.Outcome), r.Reason, nullable(r.Size), nullable(r.sizeMax), micros(r.Received),
		r.Identity.Preview, string(r.Identity.Source), r.Sender, "", "", r.Event, r.Generation, max(r.count, 1), microsOrNull(r.last))
}

func nullable(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

func (b *batchTx) exec(query string, args ...any) error {
	_, err := b.stmt(query).ExecContext(b.ctx, args...)
	return err
}

func (b *batchTx) stmt(query string) *sql.Stmt {
	s, ok := b.bound[query]
	if !ok {
		s = b.tx.StmtContext(b.ctx, b.prepared[query])
		b.bound[query] = s
	}
	return s
}
