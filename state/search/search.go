// Package search finds webhooks, automations and deliveries for people. Each search reads a bounded number of
// rows, and reports if there are more.
package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"

	"millwright/state/db"
)

// Bounds of a search.
const (
	MaxNames    = 10_000 // webhooks and automations, each
	MaxPayloads = 500
	maxBytes    = 16 << 20 // of payloads
	maxListed   = 5000     // deliveries, of all factories
	maxWebhooks = 10_000   // whose logs are asked for a delivery
)

// Finder searches. A search concerns the given factories, and all factories if they are nil.
type Finder struct{ db *db.DB }

// New returns a finder.
func New(d *db.DB) Finder { return Finder{d} }

// Named is a webhook or an automation.
type Named struct{ FactoryUID, UID, Name string }

// Webhooks calls visit with the webhooks that are not deleted. cut reports that there are more.
func (f Finder) Webhooks(ctx context.Context, factories []string, visit func(Named)) (cut bool, err error) {
	where, args := of(factories)
	return f.names(ctx, `SELECT factory_uid, uid, name
FROM webhooks
WHERE deleted_at IS NULL`+where+`
ORDER BY factory_uid, name
LIMIT `+strconv.Itoa(MaxNames+1), args, visit)
}

// Automations is Webhooks for automations. It reads no other resources.
func (f Finder) Automations(ctx context.Context, factories []string, visit func(Named)) (cut bool, err error) {
	where, args := of(factories)
	return f.names(ctx, `SELECT r.factory_uid, r.uid, r.name
FROM factories f
CROSS JOIN resources r
WHERE r.factory_uid = f.uid
	AND r.kind = 'automation'
	AND r.deleted_at IS NULL`+where+`
ORDER BY f.uid, r.name
LIMIT `+strconv.Itoa(MaxNames+1), args, visit)
}

// of returns a condition on the factory.
func of(factories []string) (where string, args []any) {
	switch {
	case factories == nil:
		return "", nil
	case len(factories) == 0:
		return ` AND 1 = 0`, nil
	}

	marks, args := db.Placeholders(factories)
	return ` AND factory_uid IN (` + marks + `)`, args
}

func (f Finder) names(ctx context.Context, query string, args []any, visit func(Named)) (cut bool, err error) {
	n := 0
	err = db.Each(ctx, f.db.Built(), func(row db.Row) error {
		var one Named
		if err := row.Scan(&one.FactoryUID, &one.UID, &one.Name); err != nil {
			return err
		}
		if n++; n <= MaxNames {
			visit(one)
		}
		return nil
	}, query, args...)
	return n > MaxNames, err
}

const webhookOfSQL = `SELECT w.factory_uid, w.uid
FROM (
	SELECT id, factory_uid, uid
	FROM webhooks
	ORDER BY id DESC
	LIMIT $2
) w
CROSS JOIN deliveries d
WHERE d.webhook_id = w.id AND d.uid = $1
LIMIT 1`

// WebhookOf returns the webhook whose log has a delivery, and its factory. found is false if none has.
func (f Finder) WebhookOf(ctx context.Context, deliveryUID string) (w Named, found bool, err error) {
	err = f.db.QueryRow(ctx, webhookOfSQL, deliveryUID, maxWebhooks).Scan(&w.FactoryUID, &w.UID)
	if errors.Is(err, sql.ErrNoRows) {
		return w, false, nil
	}
	return w, err == nil, err
}

// Payload is a stored payload. Body is valid until visit returns.
type Payload struct {
	DeliveryUID string
	FactoryUID  string
	Body        []byte
}

// Reach is how far a search through payloads came.
type Reach struct {
	Read int
	Last string // UID of the last delivery that was looked at, or before
	More bool   // there may be older ones
}

// Payloads calls visit with stored payloads, the newest first, from before a delivery on if before is not empty.
// It ends at its bounds, when visit returns false, and when ctx is over, which is no error.
func (f Finder) Payloads(
	ctx context.Context, factories []string, before string, visit func(Payload) bool,
) (Reach, error) {
	s := scan{Finder: f, factories: factories, visit: visit, buffer: make([]byte, 0, 256<<10)}
	s.reach.Last = cmp.Or(before, "~") // which is behind all UIDs

	for s.listed < maxListed {
		end, err := s.next(ctx)
		if ctx.Err() != nil {
			err, end = nil, true
			s.reach.More = true
		}
		if err != nil || end {
			return s.reach, err
		}
	}

	s.reach.More = true
	return s.reach, nil
}

// Sizes of slices.
const (
	sliceListed = 256
	sliceBodies = 8
)

// scan is a search through payloads.
type scan struct {
	Finder
	factories []string
	visit     func(Payload) bool
	buffer    []byte
	reach     Reach
	listed    int
	bytes     int
}

// The body stands behind the columns that are read here, and is not.
const listPayloadsSQL = `SELECT delivery_uid, factory_uid
FROM payloads
WHERE delivery_uid < $1
ORDER BY delivery_uid DESC
LIMIT $2`

// next reads a slice. It reports whether the search is over.
func (s *scan) next(ctx context.Context) (end bool, err error) {
	rows, err := db.All(ctx, s.db.Reader, func(row db.Row) (p Payload, err error) {
		return p, row.Scan(&p.DeliveryUID, &p.FactoryUID)
	}, listPayloadsSQL, s.reach.Last, sliceListed)
	if err != nil {
		return false, err
	}

	s.listed += len(rows)
	own := slices.DeleteFunc(slices.Clone(rows), func(p Payload) bool {
		return s.factories != nil && !slices.Contains(s.factories, p.FactoryUID)
	})
	for slice := range slices.Chunk(own, sliceBodies) {
		end, err := s.bodies(ctx, slice)
		if err != nil || end {
			s.reach.More = end
			return end, err
		}
	}

	if len(rows) > 0 {
		s.reach.Last = rows[len(rows)-1].DeliveryUID
	}
	return len(rows) < sliceListed, nil
}

// bodies reads payloads. It reports whether the search has come to a bound, or to the end of what is wanted.
func (s *scan) bodies(ctx context.Context, slice []Payload) (end bool, err error) {
	uids := make([]string, sliceBodies) // one statement for all slices
	for i := range uids {
		uids[i] = slice[min(i, len(slice)-1)].DeliveryUID
	}

	marks, args := db.Placeholders(uids)
	query := `SELECT delivery_uid, factory_uid, body, size
FROM payloads
WHERE delivery_uid IN (` + marks + `)
ORDER BY delivery_uid DESC`
	err = db.Each(ctx, s.db.Built(), func(row db.Row) error {
		var p Payload
		var stored sql.RawBytes
		var size int64
		if err := row.Scan(&p.DeliveryUID, &p.FactoryUID, &stored, &size); err != nil {
			return err
		}
		if end {
			return nil
		}

		body, err := db.Decompress(s.buffer, stored, size)
		s.reach.Read++
		s.reach.Last = p.DeliveryUID
		s.bytes += len(body)
		if p.Body = body; err == nil && !s.visit(p) { // a damaged one hides no other
			end = true
		}
		end = end || s.reach.Read >= MaxPayloads || s.bytes >= maxBytes
		return nil
	}, query, args...)
	return end, err
}
