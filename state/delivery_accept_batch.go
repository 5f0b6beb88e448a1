package state

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"millwright/state/audit"
	"millwright/state/db"
	"millwright/state/flow"
)

// Statements that write one row.
const (
	insertPayloadSQL = `INSERT INTO payloads (delivery_uid, factory_uid, body, size, headers)
VALUES ($1, $2, $3, $4, $5)`

	// A shared row of rejections is written again as it grows.
	insertDeliverySQL = `INSERT INTO deliveries (
	webhook_id, uid, factory_uid, outcome, reason, size_bytes, size_max, received_at,
	identity, identity_source, sender, duplicate_of, replay_of, event, generation, count, last_at, flow,
	started, status, headers
)
VALUES (
	$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21
)
ON CONFLICT (webhook_id, uid) DO UPDATE SET
	size_bytes = excluded.size_bytes,
	size_max = excluded.size_max,
	count = excluded.count,
	last_at = excluded.last_at`
)

// Statements that hold generations and store identities on SQLite.
const (
	readGenerationSQL = `SELECT generation FROM factories WHERE uid = $1`

	insertIdentitySQL = `INSERT INTO identities (webhook_id, hash, delivery_uid)
VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING`

	firstIdentitySQL = `SELECT delivery_uid FROM identities WHERE webhook_id = $1 AND hash = $2`
)

// writeSQLite writes a sorted batch. It writes row by row: a statement of many rows needs a journal of its
// own, which costs more than it saves.
func (s *Store) writeSQLite(ctx context.Context, tx *db.Tx, batch []*job) ([]outcome, error) {
	b := newBatchTx(s, tx, batch)
	if err := b.beginSQLite(ctx, tx, batch); err != nil {
		return nil, err
	}

	outcomes, err := b.decide(ctx, batch)
	if err != nil {
		return nil, err
	}

	for _, query := range b.queries {
		for _, row := range b.rows[query] {
			if _, err := tx.Exec(ctx, query, row...); err != nil {
				return nil, err
			}
		}
	}

	return outcomes, nil
}

// beginSQLite reads the generations and stores the identities of what did not move.
func (b *batchTx) beginSQLite(ctx context.Context, tx *db.Tx, batch []*job) error {
	for _, uid := range factoriesOf(batch) {
		var generation int64
		err := tx.QueryRow(ctx, readGenerationSQL, uid).Scan(&generation)
		if db.NoRows(err) != nil {
			return err
		}

		b.generations[uid] = generation
	}

	for _, c := range claimsOf(batch) {
		if b.generations[c.a.FactoryUID] != c.a.Generation {
			continue
		}

		if c.stale != "" {
			if _, err := tx.Exec(ctx, deleteStaleSQL, c.webhook, c.hash[:], c.stale); err != nil {
				return err
			}
		}

		first := c.a.UID
		err := tx.ExecOne(ctx, insertIdentitySQL, c.webhook, c.hash[:], c.a.UID)
		if errors.Is(err, db.ErrNoRow) {
			err = tx.QueryRow(ctx, firstIdentitySQL, c.webhook, c.hash[:]).Scan(&first)
		}
		if err != nil {
			return err
		}

		b.firsts[c.identityKey] = first
	}

	return nil
}

// batchTx is one transaction of the group commit. It has three steps, of which the middle one is the same
// on both databases: hold the generations and store the identities; decide, and gather the rows; write
// the rows of each table, many at once.
type batchTx struct {
	s           *Store
	tx          *db.Tx
	generations map[string]int64       // of the factories of the batch, held until the end; 0: none
	firsts      map[identityKey]string // the delivery that stored the identity first
	queries     []string               // in the order of their first row
	rows        map[string][][]any     // arguments, by the INSERT that takes one row of them
}

// identityKey is the key of the table identities.
type identityKey struct {
	webhook int64
	hash    [16]byte
}

// deleteStaleSQL forgets an identity that does not count any more.
const deleteStaleSQL = `DELETE FROM identities
WHERE webhook_id = $1 AND hash = $2 AND delivery_uid < $3`

// claim is an identity that a delivery of the batch may be the first to have.
type claim struct {
	identityKey
	a     *Acceptance
	stale string // the identity of a delivery with a lesser UID does not count any more
}

func newBatchTx(s *Store, tx *db.Tx, batch []*job) *batchTx {
	return &batchTx{
		s:           s,
		tx:          tx,
		generations: make(map[string]int64, 1),
		firsts:      make(map[identityKey]string, len(batch)),
		rows:        make(map[string][][]any, 3),
	}
}

// factories returns the UIDs of the factories of a batch, sorted.
func factoriesOf(batch []*job) []string {
	var all []string
	for _, j := range batch {
		if j.accept != nil && !slices.Contains(all, j.accept.FactoryUID) {
			all = append(all, j.accept.FactoryUID)
		}
	}
	slices.Sort(all)
	return all
}

// claimsOf returns the identities of a batch in the order in which every writer stores them, so that no
// two wait for one another in a circle. Of equal ones the earliest delivery's comes first.
func claimsOf(batch []*job) []claim {
	all := make([]claim, 0, len(batch))
	for _, j := range batch {
		if a := j.accept; a != nil && a.Identity.Source != "" {
			all = append(all, claim{identityKey{a.WebhookID, a.Identity.Hash}, a, a.stale()})
		}
		if a := j.accept; a != nil && a.Digest != nil {
			all = append(all, claim{identityKey{a.WebhookID, digestHash(a.Digest)}, a, ""})
		}
	}

	slices.SortFunc(all, func(x, y claim) int {
		return cmp.Or(
			cmp.Compare(x.webhook, y.webhook),
			bytes.Compare(x.hash[:], y.hash[:]),
			cmp.Compare(x.a.UID, y.a.UID),
		)
	})

	return all
}

// digestHash is the digest as a key among the identities of a webhook, where it equals none of them.
func digestHash(digest []byte) [16]byte { return IdentityOf("digest", string(digest)).Hash }

// decide gathers the rows of the batch and returns the result of each job.
func (b *batchTx) decide(ctx context.Context, batch []*job) ([]outcome, error) {
	outcomes := make([]outcome, len(batch))
	for i, j := range batch {
		if j.entry != nil {
			b.insertRejection(j.entry)
			continue
		}

		var err error
		if outcomes[i], err = b.accept(ctx, j.accept); err != nil {
			return nil, err
		}
	}

	return outcomes, nil
}

func (b *batchTx) accept(ctx context.Context, a *Acceptance) (outcome, error) {
	if b.generations[a.FactoryUID] != a.Generation {
		return outcome{err: ErrMoved}, nil
	}

	reason := a.Reason
	if a.Identity.Source != "" {
		first, err := b.first(a, a.Identity.Hash)
		if err != nil {
			return outcome{}, err
		}
		if first != a.UID {
			b.insertDelivery(a, DeliveryDuplicate, reason, first, "", 0)
			return outcome{Accepted: Accepted{DeliveryUID: first, Duplicate: true}}, nil
		}
	}

	if a.Digest != nil {
		first, err := b.first(a, digestHash(a.Digest))
		if err != nil {
			return outcome{}, err
		}
		if first != a.UID {
			reason = repeatReason(reason, first)
		}
	}

	out := outcome{Accepted: Accepted{DeliveryUID: a.UID}}
	if err := b.admit(ctx, a, &out); err != nil {
		return outcome{}, err
	}

	decisions, err := decisionsText(out.Flow)
	if err != nil {
		return outcome{}, err
	}

	b.insertDelivery(a, DeliveryAccepted, reason, "", decisions, len(out.Started(a.Runs)))
	if a.ReplayOf != "" {
		b.insert(audit.InsertSQL, a.audited.Row()...)
	}

	b.insert(insertPayloadSQL, a.UID, a.FactoryUID, a.stored, int64(len(a.Body)), bytesOrNull(a.Headers))
	for _, r := range a.Runs {
		if r.keyed() {
			continue
		}

		err := b.s.insertRunWith(r, func(query string, args ...any) error {
			b.insert(query, args...)
			return nil
		})
		if err != nil {
			return outcome{}, err
		}
	}

	return out, nil
}

// admit stores the runs of a delivery that wait for others, or does what their flow says, and the automations
// that are to be decided on.
func (b *batchTx) admit(ctx context.Context, a *Acceptance, out *outcome) error {
	for _, automation := range a.Undecided {
		u := Undecided{
			AutomationUID: automation, DeliveryUID: a.UID, FactoryUID: a.FactoryUID, WebhookUID: a.WebhookUID,
			Received: a.Received,
		}
		d := FlowDecision{AutomationUID: automation, Decision: flow.WaitsForge}
		full, err := u.Add(ctx, b.tx)
		if err != nil {
			return err
		}
		if full {
			d.Decision = flow.SkippedFull
		}
		out.Flow = append(out.Flow, d)
	}

	for _, r := range a.Runs {
		if !r.keyed() {
			continue
		}

		m := b.s.admission(b.tx, r.FactoryUID, r.AutomationUID)
		d, err := m.admit(ctx, r)
		if err != nil {
			return err
		}

		out.changed = append(out.changed, m.changed...)
		if d.Decision != "" {
			out.Flow = append(out.Flow, d)
		}
	}

	return nil
}

// flowsOf returns the automations of a batch whose runs wait for one another, sorted.
func flowsOf(batch []*job) (automations []string) {
	for _, j := range batch {
		if j.accept == nil {
			continue
		}

		for _, r := range j.accept.Runs {
			if r.keyed() {
				automations = append(automations, r.AutomationUID)
			}
		}
	}

	slices.Sort(automations)
	return slices.Compact(automations)
}

// first returns the delivery that stored the identity first, which may be a itself.
func (b *batchTx) first(a *Acceptance, hash [16]byte) (string, error) {
	first := b.firsts[identityKey{a.WebhookID, hash}]
	if first == "" {
		return "", fmt.Errorf("identity of %s is neither stored nor found", a.UID)
	}
	return first, nil
}

func repeatReason(reason, first string) string {
	if reason != "" {
		reason += "; "
	}
	return reason + "the same signed bytes as " + first + " under a new ID"
}

func (b *batchTx) insertDelivery(
	a *Acceptance, outcome DeliveryOutcome, reason, duplicateOf, flow string, started int,
) {
	b.insert(
		insertDeliverySQL,
		a.WebhookID,
		a.UID,
		a.FactoryUID,
		string(outcome),
		reason,
		int64(len(a.Body)),
		nil,
		db.Micros(a.Received),
		a.Identity.Preview,
		string(a.Identity.Source),
		a.Sender,
		duplicateOf,
		a.ReplayOf,
		a.Event,
		a.Generation,
		int64(1),
		nil,
		flow,
		int64(started),
		int64(a.Status),
		string(a.Shown),
	)
}

func (b *batchTx) insertRejection(r *Rejection) {
	b.insert(
		insertDeliverySQL,
		r.WebhookID,
		r.uid,
		r.FactoryUID,
		string(r.Outcome),
		r.Reason,
		nullable(r.Size),
		nullable(r.sizeMax),
		db.Micros(r.Received),
		r.Identity.Preview,
		string(r.Identity.Source),
		r.Sender,
		"",
		"",
		r.Event,
		r.Generation,
		max(r.count, 1),
		db.MicrosOrNull(r.last),
		"",
		int64(0),
		int64(r.Status),
		string(r.Shown),
	)
}

func (b *batchTx) insert(query string, args ...any) {
	if b.rows[query] == nil {
		b.queries = append(b.queries, query)
	}
	b.rows[query] = append(b.rows[query], args)
}

func bytesOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

func nullable(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}
