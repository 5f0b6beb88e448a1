package state

import (
	"context"
	"slices"
	"strings"
	"time"

	"millwright/state/db"
)

// StoredDelivery is an accepted delivery with its request.
type StoredDelivery struct {
	UID        string
	WebhookUID string
	Received   time.Time
	Event      string
	Headers    []byte // as Request returns them
	Body       []byte
}

const newestAcceptancesSQL = `SELECT uid, received_at, event
FROM deliveries
WHERE webhook_id = $1 AND outcome = 'accepted' AND uid >= $2 AND received_at >= $3
ORDER BY uid DESC
LIMIT $4`

const (
	storedAtOnce = 64 // requests that are read at once
	pace         = 3  // times as long as that takes, the machine is left to those who accept deliveries
)

// NewestAccepted calls f with the newest accepted deliveries to some webhooks of a factory since a time whose
// payload is stored, the newest first: at most limit of them, until f or ctx ends it.
func (s *Store) NewestAccepted(
	ctx context.Context,
	factoryUID string,
	webhookUIDs []string,
	since time.Time,
	limit int,
	f func(StoredDelivery) error,
) error {
	var all []StoredDelivery
	for _, uid := range webhookUIDs {
		webhook, err := s.webhookRow(ctx, factoryUID, uid)
		if err != nil {
			return err
		}

		newest, err := db.All(ctx, s.db.Reader, func(row db.Row) (d StoredDelivery, err error) {
			var at int64
			err = row.Scan(&d.UID, &at, &d.Event)
			d.WebhookUID, d.Received = uid, db.Time(at)
			return d, err
		}, newestAcceptancesSQL, webhook, DeliveryUIDAt(since.Add(-clockSlack)), db.Micros(since), limit)
		if err != nil {
			return err
		}

		all = append(all, newest...)
	}

	slices.SortFunc(all, func(a, b StoredDelivery) int { return strings.Compare(b.UID, a.UID) })
	for chunk := range slices.Chunk(all[:min(len(all), limit)], storedAtOnce) {
		began := time.Now()
		if err := s.readRequests(ctx, chunk); err != nil {
			return err
		}

		for _, d := range chunk {
			if d.Body == nil {
				continue
			}
			if err := f(d); err != nil {
				return err
			}
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pace * time.Since(began)):
		}
	}

	return nil
}

// readRequests fills in what is stored of requests.
func (s *Store) readRequests(ctx context.Context, all []StoredDelivery) error {
	place := map[string]int{}
	var uids []string
	for i, d := range all {
		place[d.UID] = i
		uids = append(uids, d.UID)
	}

	marks, args := db.Placeholders(padded(uids))
	query := `SELECT delivery_uid, body, size, headers FROM payloads WHERE delivery_uid IN (` + marks + `)`
	return db.Each(ctx, s.db.Built(), func(row db.Row) error {
		var uid string
		var stored, headers []byte
		var size int64
		if err := row.Scan(&uid, &stored, &size, &headers); err != nil {
			return err
		}

		body, err := db.Decompress(stored, size)
		d := &all[place[uid]]
		d.Body, d.Headers = body, headers
		return err
	}, query, args...)
}
