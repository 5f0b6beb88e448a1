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
	if a.s.dialect == postgres {
		return a.transactPostgres(ctx, batch)
	}
	return a.transactSQLite(batch)
}

// batchTx is one transaction of the group commit. It writes the same on both databases; they differ in
// whether a statement is executed at once, or gathered with its like.
type batchTx struct {
	s           *Store
	generations map[string]int64 // of the factories of the batch, held until the end; 0: there is none
	// first stores hash for the delivery, and returns the delivery that stored it first, if any.
	first func(webhook int64, hash [16]byte, deliveryUID string) (string, error)
	exec  func(query string, args ...any) error
}

// write writes the batch.
func (b *batchTx) write(batch []*job) ([]outcome, error) {
	outcomes := make([]outcome, len(batch))
	for i, j := range batch {
		var err error
		if j.entry != nil {
			err = b.insertRejection(j.entry)
		} else {
			outcomes[i], err = b.accept(j.accept)
		}
		if err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

func (b *batchTx) accept(a *Acceptance) (outcome, error) {
	if b.generations[a.FactoryUID] != a.Generation {
		return outcome{err: ErrMoved}, nil
	}
	reason := a.Reason
	if a.Identity.Source != "" {
		first, err := b.first(a.WebhookID, a.Identity.Hash, a.UID)
		if err != nil {
			return outcome{}, err
		}
		if first != "" {
			return outcome{Accepted: Accepted{DeliveryUID: first, Duplicate: true}}, b.insertDelivery(a, DeliveryDuplicate, reason, first)
		}
	}
	if a.Digest != nil {
		first, err := b.first(a.WebhookID, digestHash(a.Digest), a.UID)
		if err != nil {
			return outcome{}, err
		}
		if first != "" {
			reason = repeatReason(reason, first)
		}
	}
	if err := b.insertDelivery(a, DeliveryAccepted, reason, ""); err != nil {
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

// digestHash is the digest as a key among the identities of a webhook, where it equals none of them.
func digestHash(digest []byte) [16]byte { return IdentityOf("digest", string(digest)).Hash }

func repeatReason(reason, first string) string {
	if reason != "" {
		reason += "; "
	}
	return reason + "the same signed bytes as " + first + " under a new ID"
}

func (b *batchTx) insertDelivery(a *Acceptance, outcome DeliveryOutcome, reason, duplicateOf string) error {
	return b.exec(insertDeliverySQL, a.WebhookID, a.UID, a.FactoryUID, string(outcome), reason, int64(len(a.Body)), nil, micros(a.Received),
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

// transactSQLite executes statement after statement. It has no deadline: that would cost a goroutine for
// each statement, and a disk does not heed it.
func (a *acceptor) transactSQLite(batch []*job) (outcomes []outcome, err error) {
	ctx := context.Background()
	prepared, err := a.statements(ctx)
	if err != nil {
		return nil, a.s.classify(err)
	}
	err = a.s.tx(ctx, func(tx *sql.Tx) error {
		bound := make(map[string]*sql.Stmt, len(prepared))
		stmt := func(query string) *sql.Stmt {
			s, ok := bound[query]
			if !ok {
				s = tx.StmtContext(ctx, prepared[query])
				bound[query] = s
			}
			return s
		}
		b := &batchTx{s: a.s, generations: map[string]int64{}}
		b.exec = func(query string, args ...any) error {
			_, err := stmt(query).ExecContext(ctx, args...)
			return err
		}
		b.first = func(webhook int64, hash [16]byte, deliveryUID string) (first string, err error) {
			if err := one(stmt(insertIdentitySQL).ExecContext(ctx, webhook, hash[:], deliveryUID)); !errors.Is(err, errNoRow) {
				return "", err
			}
			return first, stmt(firstIdentitySQL).QueryRowContext(ctx, webhook, hash[:]).Scan(&first)
		}
		for _, j := range batch {
			if j.accept == nil {
				continue
			}
			uid := j.accept.FactoryUID
			if _, ok := b.generations[uid]; ok {
				continue
			}
			var generation int64
			if err := stmt(readGenerationSQL).QueryRowContext(ctx, uid).Scan(&generation); noRows(err) != nil {
				return err
			}
			b.generations[uid] = generation
		}
		var err error
		outcomes, err = b.write(batch)
		return err
	})
	return outcomes, err
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
		stmt, err := a.s.write.PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		all[query] = stmt
	}
	a.stmts = all
	return all, nil
}
