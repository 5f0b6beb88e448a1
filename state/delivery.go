package state

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"millwright/state/db"
)

// The values of DeliveryOutcome.
const (
	DeliveryAccepted     DeliveryOutcome = "accepted"
	DeliveryDuplicate    DeliveryOutcome = "duplicate"
	DeliveryRejectedAuth DeliveryOutcome = "rejected_auth"
	DeliveryInvalidJSON  DeliveryOutcome = "rejected_invalid_json"
	DeliveryTooLarge     DeliveryOutcome = "rejected_too_large"
	DeliveryHandshake    DeliveryOutcome = "handshake" // a provider's set-up probe, answered
)

// DeliveryOutcomes are all values of DeliveryOutcome.
func DeliveryOutcomes() []DeliveryOutcome {
	return []DeliveryOutcome{
		DeliveryAccepted,
		DeliveryDuplicate,
		DeliveryRejectedAuth,
		DeliveryInvalidJSON,
		DeliveryTooLarge,
		DeliveryHandshake,
	}
}

// Label returns the outcome as text for people.
func (o DeliveryOutcome) Label() string {
	switch o {
	case DeliveryAccepted:
		return "Accepted"
	case DeliveryDuplicate:
		return "Duplicate"
	case DeliveryRejectedAuth:
		return "Rejected (auth)"
	case DeliveryInvalidJSON:
		return "Rejected (invalid JSON)"
	case DeliveryTooLarge:
		return "Rejected (too large)"
	case DeliveryHandshake:
		return "Handshake"
	}

	return string(o)
}

// Delivery is a row of a webhook's log.
type Delivery struct {
	UID            string
	FactoryUID     string
	WebhookUID     string
	Outcome        DeliveryOutcome
	Reason         string // the precise cause, for the owner; may be empty
	Size           *int64 // of the body in bytes, as far as known; the smallest where Count is above 1
	SizeMax        *int64 // the largest, where Count is above 1
	Received       time.Time
	Identity       string // preview; empty unless the request got that far
	IdentitySource IdentitySource
	Sender         string // client address, or IPv6 network
	DuplicateOf    string // UID of the delivery that was accepted first
	ReplayOf       string // UID of the delivery that was started again
	Event          string // preview of the provider's kind of event
	Generation     int64  // of the factory's definition that judged it
	Count          int64  // of requests that share this row
	Last           *time.Time
	Flow           []FlowDecision // of automations that it started no run of its own for, or one that waits for a time
	Started        int64          // number of runs of its own
	Status         int            // of the answer to the sender; 0 of a replay, which had none
	Headers        []byte         // of the request, as Acceptance has them
}

// Idle reports whether the delivery was accepted, and neither started a run nor went to one.
func (d Delivery) Idle() bool {
	waits := func(f FlowDecision) bool { return !f.Skipped() }
	return d.Outcome == DeliveryAccepted && d.Started == 0 && !slices.ContainsFunc(d.Flow, waits)
}

// DeliveryFilter selects rows of a delivery log. The zero value selects all.
type DeliveryFilter struct {
	Outcome DeliveryOutcome
	From    time.Time // received at or after
	To      time.Time // received before
}

const deliveryColumns = `
	d.uid, d.factory_uid, w.uid, d.outcome, d.reason, d.size_bytes, d.size_max, d.received_at,
	d.identity, d.identity_source, d.sender, d.duplicate_of, d.replay_of, d.event, d.generation, d.count,
	d.last_at, d.flow, d.started, d.status, d.headers`

func scanDelivery(row db.Row) (Delivery, error) {
	var d Delivery
	var size, sizeMax, last sql.NullInt64
	var received int64
	var flow string
	err := row.Scan(
		&d.UID,
		&d.FactoryUID,
		&d.WebhookUID,
		&d.Outcome,
		&d.Reason,
		&size,
		&sizeMax,
		&received,
		&d.Identity,
		&d.IdentitySource,
		&d.Sender,
		&d.DuplicateOf,
		&d.ReplayOf,
		&d.Event,
		&d.Generation,
		&d.Count,
		&last,
		&flow,
		&d.Started,
		&d.Status,
		&d.Headers,
	)
	if flow != "" && json.Unmarshal([]byte(flow), &d.Flow) != nil {
		d.Flow = nil // what cannot be read hides no other delivery
	}
	if size.Valid {
		d.Size = &size.Int64
	}
	if sizeMax.Valid {
		d.SizeMax = &sizeMax.Int64
	}

	d.Received, d.Last = db.Time(received), db.TimeOrNil(last)
	return d, err
}

// Deliveries returns rows of a webhook's log, newest first, those before the UID cursor if it is not
// empty. ErrNotFound when the factory has no such webhook, live or deleted.
func (s *Store) Deliveries(
	ctx context.Context,
	factoryUID, webhookUID string,
	f DeliveryFilter,
	cursor string,
	limit int,
) ([]Delivery, error) {
	webhook, err := s.webhookRow(ctx, factoryUID, webhookUID)
	if err != nil {
		return nil, err
	}

	// The UIDs are found first, because SQLite takes the index of outcomes only where it has all that is
	// asked for.
	query := `SELECT ` + deliveryColumns + `
FROM deliveries d
JOIN webhooks w ON w.id = d.webhook_id
WHERE d.webhook_id = $1 AND d.uid IN (SELECT d.uid FROM deliveries d WHERE d.webhook_id = $1`
	args := []any{webhook}
	where := func(condition string, arg any) {
		args = append(args, arg)
		query += ` AND ` + condition + ` $` + strconv.Itoa(len(args))
	}
	if f.Outcome != "" {
		where(`d.outcome =`, string(f.Outcome))
		if f.Outcome != DeliveryAccepted {
			query += ` AND d.outcome <> 'accepted'` // as the index of outcomes has it
		}
	}

	if !f.From.IsZero() {
		where(`d.received_at >=`, db.Micros(f.From))
		where(`d.uid >=`, DeliveryUIDAt(f.From.Add(-clockSlack)))
	}
	if !f.To.IsZero() {
		where(`d.received_at <`, db.Micros(f.To))
		where(`d.uid <`, DeliveryUIDAt(f.To.Add(clockSlack)))
	}
	if cursor != "" {
		where(`d.uid <`, cursor)
	}

	// The limit is no parameter: PostgreSQL would plan for any, and read the whole log.
	query += ` ORDER BY d.uid DESC LIMIT ` + strconv.Itoa(limit) + `) ORDER BY d.uid DESC`
	return db.All(ctx, s.db.Built(), scanDelivery, query, args...)
}

const deliverySQL = `SELECT ` + deliveryColumns + `
FROM deliveries d
JOIN webhooks w ON w.id = d.webhook_id
WHERE w.factory_uid = $1 AND w.uid = $2 AND d.webhook_id = w.id AND d.uid = $3`

// Delivery returns one row of a webhook's log. ErrNotFound if there is none.
func (s *Store) Delivery(ctx context.Context, factoryUID, webhookUID, uid string) (Delivery, error) {
	d, err := scanDelivery(s.db.QueryRow(ctx, deliverySQL, factoryUID, webhookUID, uid))
	return d, orNotFound(err, "delivery %q", uid)
}

// DeliveriesOf returns those of the deliveries that the webhooks of a factory have, live or deleted.
func (s *Store) DeliveriesOf(ctx context.Context, factoryUID string, uids ...string) ([]Delivery, error) {
	marks, args := db.Placeholders(append([]string{factoryUID}, uids...))
	query := `SELECT ` + deliveryColumns + `
FROM webhooks w
JOIN deliveries d ON d.webhook_id = w.id AND d.uid IN (` + marks + `)
WHERE w.factory_uid = $1
ORDER BY d.uid DESC`
	return db.All(ctx, s.db.Built(), scanDelivery, query, args...)
}

// Payload returns the body of an accepted delivery, byte for byte. ErrNotFound when it was never kept, or
// is kept no longer.
func (s *Store) Payload(ctx context.Context, factoryUID, deliveryUID string) ([]byte, error) {
	_, body, err := s.Request(ctx, factoryUID, deliveryUID)
	return body, err
}

const countDeliveriesSQL = `SELECT w.uid, d.outcome, sum(d.count)
FROM webhooks w
JOIN deliveries d ON d.webhook_id = w.id
WHERE w.factory_uid = $1
GROUP BY w.uid, d.outcome`

// DeliveryCounts returns how many requests of each outcome the logs of a factory's webhooks hold, by
// webhook UID, deleted webhooks included.
func (s *Store) DeliveryCounts(ctx context.Context, factoryUID string) (map[string]map[DeliveryOutcome]int64, error) {
	all := map[string]map[DeliveryOutcome]int64{}
	err := db.Each(ctx, s.db.Reader, func(row db.Row) error {
		var webhook string
		var o DeliveryOutcome
		var n int64
		err := row.Scan(&webhook, &o, &n)
		if all[webhook] == nil {
			all[webhook] = map[DeliveryOutcome]int64{}
		}

		all[webhook][o] = n
		return err
	}, countDeliveriesSQL, factoryUID)

	return all, err
}

const webhookIDSQL = `SELECT id
FROM webhooks
WHERE factory_uid = $1 AND uid = $2`

func (s *Store) webhookRow(ctx context.Context, factoryUID, webhookUID string) (int64, error) {
	var id int64
	err := s.db.QueryRow(ctx, webhookIDSQL, factoryUID, webhookUID).
		Scan(&id)
	return id, orNotFound(err, "webhook %q", webhookUID)
}

const acceptedAfterSQL = `SELECT ` + deliveryColumns + `
FROM deliveries d
JOIN webhooks w ON w.id = d.webhook_id
WHERE d.webhook_id = $1
	AND d.uid > $2
	AND d.outcome = 'accepted'
ORDER BY d.uid
LIMIT $3`

// AcceptedAfter returns the accepted deliveries of a webhook with UIDs greater than after, in their order,
// which is that of the time at which they were judged; they are stored in a slightly different one.
func (s *Store) AcceptedAfter(
	ctx context.Context,
	factoryUID, webhookUID, after string,
	limit int,
) ([]Delivery, error) {
	webhook, err := s.webhookRow(ctx, factoryUID, webhookUID)
	if err != nil {
		return nil, err
	}

	all, err := db.All(ctx, s.db.Reader, scanDelivery, acceptedAfterSQL, webhook, after, limit)
	return all, err
}

const requestSQL = `SELECT headers, body, size
FROM payloads
WHERE delivery_uid = $1 AND factory_uid = $2`

// Request returns the body of an accepted delivery, byte for byte, and the headers that were kept of it, as
// lines "Name: value" that end in CR LF; nil when none were. ErrNotFound as of Payload.
func (s *Store) Request(ctx context.Context, factoryUID, deliveryUID string) (headers, body []byte, err error) {
	var size int64
	err = s.db.QueryRow(ctx, requestSQL, deliveryUID, factoryUID).
		Scan(&headers, &body, &size)
	if err != nil {
		return nil, nil, orNotFound(err, "payload of delivery %q", deliveryUID)
	}

	body, err = db.Decompress(nil, body, size)
	return headers, body, err
}

// DeliveryTally counts the requests of one outcome that a webhook's log holds, of one span of time.
type DeliveryTally struct {
	WebhookUID string
	Outcome    DeliveryOutcome
	From       time.Time // where the span begins: a multiple of its length since the Unix epoch
	Count      int64
}

const tallyDeliveriesSQL = `SELECT w.uid, d.outcome, d.received_at / $1 AS span, sum(d.count)
FROM webhooks w
JOIN deliveries d ON d.webhook_id = w.id
WHERE (w.factory_uid = $2 OR $2 = '')
	AND d.uid >= $3
	AND d.uid < $4
	AND d.received_at >= $5
	AND d.received_at < $6
GROUP BY w.uid, d.outcome, span
ORDER BY span, w.uid, d.outcome`

// DeliveryTallies counts what the logs of a factory's webhooks, or of all factories' if factoryUID is
// empty, hold from one time to another, in spans of the given length. Spans and outcomes without a request are
// left out. Its cost grows with the number of rows between them.
func (s *Store) DeliveryTallies(
	ctx context.Context,
	factoryUID string,
	since, until time.Time,
	span time.Duration,
) ([]DeliveryTally, error) {
	all, err := db.All(ctx, s.db.Reader, func(row db.Row) (t DeliveryTally, err error) {
		var at int64
		err = row.Scan(&t.WebhookUID, &t.Outcome, &at, &t.Count)
		t.From = db.Time(at * span.Microseconds())
		return t, err
	}, tallyDeliveriesSQL,
		span.Microseconds(),
		factoryUID,
		DeliveryUIDAt(since.Add(-clockSlack)),
		DeliveryUIDAt(until.Add(clockSlack)),
		db.Micros(since),
		db.Micros(until))

	return all, err
}

// StoredDelivery is an accepted delivery with its request.
type StoredDelivery struct {
	UID        string
	WebhookUID string
	Received   time.Time
	Event      string
	Headers    []byte // as Request returns them
	Body       []byte
}

// Stored deliveries are listed and read in small slices and at a fixed rate, so that new ones are accepted
// meanwhile.
const (
	listingTime  = 40 * time.Microsecond  // for each delivery
	readingTime  = 280 * time.Microsecond // for each delivery
	slicePayload = 8                      // deliveries whose payloads are read at once
	sliceRows    = 64                     // deliveries that are listed at once
)

// NewestAccepted calls f with the newest accepted deliveries to some webhooks of a factory since a time whose
// payload is stored, the newest first: at most limit of them, until ctx ends. It takes listingTime and
// readingTime for each.
// Headers and body are valid until f returns.
func (s *Store) NewestAccepted(
	ctx context.Context,
	factoryUID string,
	webhookUIDs []string,
	since time.Time,
	limit int,
	f func(StoredDelivery),
) error {
	p := pace{began: time.Now(), due: time.Now()}
	var all []StoredDelivery
	oldest := DeliveryUIDAt(since.Add(-clockSlack))
	for _, uid := range webhookUIDs {
		newest, err := s.newestOf(ctx, &p, factoryUID, uid, oldest, since, limit)
		if err != nil {
			return err
		}

		all = append(all, newest...)
		slices.SortFunc(all, func(a, b StoredDelivery) int { return cmp.Compare(b.UID, a.UID) })
		if len(all) >= limit {
			all = all[:limit]
			oldest = all[limit-1].UID
		}
	}

	buffer := make([]byte, 0, 256<<10) // for any body
	for slice := range slices.Chunk(all, slicePayload) {
		if err := s.readRequests(ctx, slice, buffer, f); err != nil {
			return err
		}
		if err := p.rest(ctx, time.Duration(len(slice))*readingTime); err != nil {
			return err
		}
	}

	return nil
}

const newestAcceptancesSQL = `SELECT uid, received_at, event
FROM deliveries
WHERE webhook_id = $1 AND outcome = 'accepted' AND uid >= $2 AND uid < $3 AND received_at >= $4
ORDER BY uid DESC
LIMIT $5`

// newestOf lists the newest accepted deliveries to a webhook.
func (s *Store) newestOf(
	ctx context.Context, p *pace, factoryUID, webhookUID, oldest string, since time.Time, limit int,
) (all []StoredDelivery, err error) {
	webhook, err := s.webhookRow(ctx, factoryUID, webhookUID)
	if err != nil {
		return nil, err
	}

	before := "~" // behind all UIDs
	for len(all) < limit {
		rows, err := db.All(ctx, s.db.Reader, func(row db.Row) (d StoredDelivery, err error) {
			var at int64
			err = row.Scan(&d.UID, &at, &d.Event)
			d.WebhookUID, d.Received = webhookUID, db.Time(at)
			return d, err
		}, newestAcceptancesSQL, webhook, oldest, before, db.Micros(since), min(sliceRows, limit-len(all)))
		if err != nil {
			return nil, err
		}

		all = append(all, rows...)
		if len(rows) < sliceRows {
			return all, nil
		}

		before = rows[len(rows)-1].UID
		if err := p.rest(ctx, sliceRows*listingTime); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// readRequests calls f with deliveries and what is stored of their requests. It leaves out what is damaged.
func (s *Store) readRequests(ctx context.Context, all []StoredDelivery, buffer []byte, f func(StoredDelivery)) error {
	uids := make([]string, len(all))
	for i, d := range all {
		uids[i] = d.UID
	}

	marks, args := db.Placeholders(padded(uids))
	query := `SELECT delivery_uid, body, size, headers
FROM payloads
WHERE delivery_uid IN (` + marks + `)
ORDER BY delivery_uid DESC`
	return db.Each(ctx, s.db.Built(), func(row db.Row) error {
		var uid string
		var stored, headers sql.RawBytes
		var size int64
		if err := row.Scan(&uid, &stored, &size, &headers); err != nil {
			return err
		}

		body, err := db.Decompress(buffer, stored, size)
		if err != nil {
			return nil
		}

		d := all[slices.IndexFunc(all, func(d StoredDelivery) bool { return d.UID == uid })]
		d.Body, d.Headers = body, headers
		f(d)
		return nil
	}, query, args...)
}

// pace spreads work over time: the present slice of it began, and the next one is due.
type pace struct{ began, due time.Time }

// rest waits until the time that the slice of work is allowed is over. Work that is late rests twice as long as
// its slice took. A slice that waited for the processor or the disk does not make it later still: such a rest is
// at most as long as the slice is allowed to take.
func (p *pace) rest(ctx context.Context, slice time.Duration) error {
	p.due = p.due.Add(slice)
	late := min(2*time.Since(p.began), slice)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(max(time.Until(p.due), late)):
	}

	p.began = time.Now()
	return nil
}
