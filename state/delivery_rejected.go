package state

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"millwright/bounds"
	"millwright/state/batch"
	"millwright/state/db"
)

// manySenders stands for senders that had no room of their own.
const manySenders = "many"

// share takes r into a shared row if its webhook is beyond the cap, and reports whether it did.
func (r *rejects) share(one *Rejection) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.count(one.WebhookID, 1) <= bounds.RejectedRows {
		return false
	}

	key := rejectKey{one.WebhookID, one.Outcome, one.Sender, one.Received.Unix() / 60}
	row := r.waiting[key]
	if row == nil &&
		(len(r.waiting) >= bounds.SharedRejectedRows || r.rows[one.WebhookID] >= bounds.SharedRejectedRowsOfWebhook) {
		key.sender = manySenders
		row = r.waiting[key]
	}

	if row == nil {
		if r.waiting == nil {
			r.waiting, r.rows = map[rejectKey]*sharedReject{}, map[int64]int{}
		}

		r.rows[one.WebhookID]++
		row = &sharedReject{Rejection: *one}
		row.uid, row.Sender, row.Identity = NewID(PrefixDelivery), key.sender, Identity{}
		row.Event, row.Shown, row.Size = "", nil, nil
		r.waiting[key] = row
	}

	row.add(one)
	return true
}

// count returns how many rejections a webhook had in the minute, with n more. The minute is one of the
// monotonic clock: neither a request that began earlier nor a clock that is set begins another.
func (r *rejects) count(webhook int64, n int) int {
	if now := time.Now(); r.seen == nil || now.Sub(r.began) >= time.Minute {
		r.began, r.seen = now, map[int64]int{}
	}
	r.seen[webhook] += n
	return r.seen[webhook]
}

func (s *sharedReject) add(r *Rejection) {
	s.dirty = true
	s.count++
	if s.Received.After(r.Received) {
		s.Received = r.Received
	}
	if s.last == nil || s.last.Before(r.Received) {
		last := r.Received
		s.last = &last
	}
	if r.Size == nil {
		return
	}

	if size := *r.Size; s.Size == nil {
		smallest, largest := size, size
		s.Size, s.sizeMax = &smallest, &largest
	} else {
		*s.Size, *s.sizeMax = min(*s.Size, size), max(*s.sizeMax, size)
	}
}

// due returns copies of the shared rows to write, and drops those of past minutes that
// were written in full.
func (r *rejects) due(now time.Time) map[rejectKey]Rejection {
	r.mu.Lock()
	defer r.mu.Unlock()

	rows := map[rejectKey]Rejection{}
	for key, row := range r.waiting {
		switch {
		case row.dirty:
			row.dirty = false
			rows[key] = row.copy()
		case key.minute < now.Unix()/60:
			delete(r.waiting, key)
			if r.rows[key.webhook]--; r.rows[key.webhook] == 0 {
				delete(r.rows, key.webhook)
			}
		}
	}

	return rows
}

func (s *sharedReject) copy() Rejection {
	c := s.Rejection
	if s.Size != nil {
		smallest, largest := *s.Size, *s.sizeMax
		c.Size, c.sizeMax = &smallest, &largest
	}
	last := *s.last
	c.last = &last
	return c
}

func (r *rejects) again(key rejectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if row := r.waiting[key]; row != nil {
		row.dirty = true
	}
}

// RefusalKind is the reason why a webhook refused a request that its log does not show.
type RefusalKind string

// The values of RefusalKind.
const (
	RefusedDeliveries RefusalKind = "delivery_budget"    // 429: the sender's deliveries
	RefusedFailures   RefusalKind = "failed_auth_budget" // 429: the sender's failed authentications
	RefusedDisabled   RefusalKind = "disabled"           // 404: the webhook is disabled
)

// RefusedRequests counts the requests that a webhook refused for one cause.
type RefusedRequests struct {
	WebhookID  int64
	FactoryUID string
	Kind       RefusalKind
	Count      int64
	Sender     string // of the last one
	Budget     int    // how many a minute were allowed then; 0 while disabled
	Last       time.Time
}

// refusalsKept is how long the counts of an hour are kept.
const refusalsKept = 7 * 24 * time.Hour

const countRefusalSQL = `
	INSERT INTO webhook_refusals (webhook_id, hour, kind, factory_uid, count, sender, budget, last_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
	ON CONFLICT (webhook_id, hour, kind) DO UPDATE
	SET count = webhook_refusals.count + excluded.count,
		sender = excluded.sender,
		budget = excluded.budget,
		last_at = excluded.last_at`

// CountRefusals adds refused requests to the counts of their webhooks, for the hour of the last request of each.
// It adds all in one transaction, or none.
func (s *Store) CountRefusals(ctx context.Context, refusals []RefusedRequests) error {
	if len(refusals) == 0 {
		return nil
	}

	return s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		for _, r := range refusals {
			hour := db.Micros(r.Last.Truncate(time.Hour))
			_, err := tx.Exec(
				ctx,
				countRefusalSQL,
				r.WebhookID,
				hour,
				string(r.Kind),
				r.FactoryUID,
				r.Count,
				db.Text(r.Sender),
				r.Budget,
				db.Micros(r.Last),
			)
			if err != nil {
				return err
			}
		}

		_, err := tx.Exec(
			ctx,
			`DELETE FROM webhook_refusals WHERE hour < $1`,
			db.Micros(time.Now().Add(-refusalsKept)),
		)
		return err
	})
}

const refusalsSQL = `
	SELECT w.uid, r.kind, r.count, r.sender, r.budget, r.last_at
	FROM webhook_refusals r
	JOIN webhooks w ON w.id = r.webhook_id
	WHERE (r.factory_uid = $1 OR $1 = '') AND r.hour >= $2
	ORDER BY r.last_at`

// Refusals returns what the webhooks of a factory, or of all if factoryUID is empty, refused in the hours
// since a time, by webhook UID and cause.
func (s *Store) Refusals(
	ctx context.Context,
	factoryUID string,
	since time.Time,
) (map[string]map[RefusalKind]RefusedRequests, error) {
	all := map[string]map[RefusalKind]RefusedRequests{}
	err := db.Each(ctx, s.db.Reader, func(row db.Row) error {
		var webhook string
		var last int64
		r := RefusedRequests{FactoryUID: factoryUID}
		if err := row.Scan(&webhook, &r.Kind, &r.Count, &r.Sender, &r.Budget, &last); err != nil {
			return err
		}

		if all[webhook] == nil {
			all[webhook] = map[RefusalKind]RefusedRequests{}
		}
		r.Last = db.Time(last)
		r.Count += all[webhook][r.Kind].Count
		all[webhook][r.Kind] = r
		return nil
	}, refusalsSQL, factoryUID, db.Micros(since.Truncate(time.Hour)))

	return all, err
}

const (
	maxRepeats = 50        // duplicates that are looked at, the newest
	farApart   = time.Hour // between a delivery and its duplicate: no sender tries again after that
)

const repeatsSQL = `
	SELECT d.identity_source, d.uid, d.duplicate_of
	FROM deliveries d
	WHERE d.webhook_id = $1 AND d.outcome = 'duplicate' AND d.outcome <> 'accepted' AND d.uid >= $2
	ORDER BY d.uid DESC
	LIMIT $3`

// RepeatedBodies counts the duplicates of a week, at most the newest 50, that a webhook's log has, when the
// hash of the body alone made all of them duplicates and some came more than an hour after the first. It is
// 0 in every other case: then they are what their senders say they are.
func (s *Store) RepeatedBodies(ctx context.Context, webhook Webhook) (int, error) {
	n, far, others := 0, 0, 0
	err := db.Each(ctx, s.db.Reader, func(row db.Row) error {
		var source IdentitySource
		var uid, first string
		if err := row.Scan(&source, &uid, &first); err != nil {
			return err
		}

		n++
		if source != IdentityBodyHash {
			others++
		}
		if ValidID(PrefixDelivery, first) && DeliveryTime(uid).Sub(DeliveryTime(first)) > farApart {
			far++
		}
		return nil
	}, repeatsSQL, webhook.ID, DeliveryUIDAt(time.Now().Add(-7*24*time.Hour)), maxRepeats)
	if err != nil || others > 0 || far == 0 {
		return 0, err
	}

	return n, nil
}

// RecordRejected logs a rejected request. When it returns nil, the row is on disk, unless the webhook
// had more than 1,000 rejections in this minute: from then on, those of one outcome, sender and minute
// share a row with a count, which is written within seconds.
func (s *Store) RecordRejected(ctx context.Context, r Rejection) error {
	if s.rejects.share(&r) {
		return nil
	}
	r.uid = NewID(PrefixDelivery)
	return s.submit(ctx, &job{entry: &r}).err
}

// RejectedElsewhere counts rejections that other replicas have just recorded, so that the cap of
// RecordRejected is one for all. Beyond it each replica has its own shared rows.
func (s *Store) RejectedElsewhere(webhookID int64, n int) {
	r := &s.rejects
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(webhookID, n)
}

// flushRejects writes the shared rows that changed. Rows that cannot be written now are retried later.
func (s *Store) flushRejects(ctx context.Context) {
	rows := s.rejects.due(time.Now())
	keys := make([]rejectKey, 0, len(rows))
	jobs := make([]*job, 0, len(rows))
	flush := func() {
		_, err := s.transact(ctx, jobs)
		alone := ofRow(err) // one of them keeps the others from being written
		for i, key := range keys {
			if alone {
				_, err = s.transact(ctx, jobs[i:i+1])
			}
			if ofRow(err) {
				s.Skip(
					loopRejects,
					jobs[i].entry.FactoryUID,
					"rejections of webhook "+jobs[i].entry.WebhookUID,
					err,
				)
			} else if err != nil {
				s.rejects.again(key)
			}
		}

		if err != nil && !ofRow(err) {
			s.log.Warn("writing shared rows of rejected deliveries", "error", err)
		}

		jobs, keys = jobs[:0], keys[:0]
	}

	order := slices.SortedFunc(maps.Keys(rows), func(x, y rejectKey) int {
		return cmp.Or(cmp.Compare(x.webhook, y.webhook), cmp.Compare(rows[x].uid, rows[y].uid))
	})
	for _, key := range order {
		row := rows[key]
		keys, jobs = append(keys, key), append(jobs, &job{entry: &row})
		if len(jobs) == batch.MaxJobs {
			flush()
		}
	}

	if len(jobs) > 0 {
		flush()
	}
}

// OfferedSecret is what a request brought as the secret of a webhook that waits for one. The request proved
// nothing: whoever knows the webhook's URL may have sent it.
type OfferedSecret struct {
	Value    string
	Sender   string
	Received time.Time
	Count    int64 // of the requests that brought one; this is the last of them
}

const offerSecretSQL = `INSERT INTO offered_secrets (webhook_uid, factory_uid, sealed, sender, received_at, count)
VALUES ($1, $2, $3, $4, $5, 1)
ON CONFLICT (webhook_uid) DO UPDATE SET
	sealed = excluded.sealed,
	sender = excluded.sender,
	received_at = excluded.received_at,
	count = offered_secrets.count + 1`

// OfferSecret keeps what a request brought as the secret of a webhook, sealed, in place of what was kept
// before. ErrNotFound when the factory has no such webhook. It is forgotten when the delivery log forgets
// rows as old.
func (s *Store) OfferSecret(ctx context.Context, factoryUID, webhookUID string, o OfferedSecret) error {
	err := s.db.Exec(
		ctx,
		offerSecretSQL,
		webhookUID,
		factoryUID,
		s.seal.Seal("offered "+webhookUID, []byte(o.Value)),
		o.Sender,
		db.Micros(o.Received),
	)
	if db.IsForeignKey(err) {
		return refuse(ErrNotFound, "webhook %q", webhookUID)
	}

	return err
}

const offeredSecretSQL = `SELECT sealed, sender, received_at, count
FROM offered_secrets
WHERE webhook_uid = $1 AND factory_uid = $2`

// OfferedSecret returns what OfferSecret kept last. ErrNotFound when there is nothing.
func (s *Store) OfferedSecret(ctx context.Context, factoryUID, webhookUID string) (OfferedSecret, error) {
	var o OfferedSecret
	var sealed []byte
	var received int64
	err := s.db.QueryRow(ctx, offeredSecretSQL, webhookUID, factoryUID).
		Scan(&sealed, &o.Sender, &received, &o.Count)
	if errors.Is(err, sql.ErrNoRows) {
		return o, refuse(ErrNotFound, "offered secret of %q", webhookUID)
	} else if err != nil {
		return o, err
	}

	value, err := s.seal.Open("offered "+webhookUID, sealed)
	o.Value, o.Received = string(value), db.Time(received)
	return o, err
}

// expireOffered forgets the secrets that were offered before a time.
func (s *Store) expireOffered(ctx context.Context, before time.Time) error {
	err := s.db.Exec(ctx, `DELETE FROM offered_secrets WHERE received_at < $1`, db.Micros(before))
	return err
}
