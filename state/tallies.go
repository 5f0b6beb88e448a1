package state

import (
	"context"
	"time"
)

// DeliveryTally counts the requests of one outcome that a webhook's log holds, of one span of time.
type DeliveryTally struct {
	WebhookUID string
	Outcome    DeliveryOutcome
	From       time.Time // where the span begins: a multiple of its length since the Unix epoch
	Count      int64
}

// DeliveryTallies counts what the logs of a factory's webhooks, or of all factories' if factoryUID is
// empty, hold since a time, in spans of the given length. Spans and outcomes without a request are left
// out. Its cost grows with the number of rows since then.
func (s *Store) DeliveryTallies(
	ctx context.Context,
	factoryUID string,
	since time.Time,
	span time.Duration,
) ([]DeliveryTally, error) {
	rows, err := s.read.QueryContext(
		ctx,
		`SELECT w.uid, d.outcome, d.received_at / $1 AS span, sum(d.count) FROM webhooks w JOIN deliveries d ON d.webhook_id = w.id
		WHERE (w.factory_uid = $2 OR $2 = '') AND d.uid >= $3 AND d.received_at >= $4 GROUP BY w.uid, d.outcome, span ORDER BY span, w.uid, d.outcome`,
		span.Microseconds(),
		factoryUID,
		DeliveryUIDAt(since.Add(-clockSlack)),
		micros(since),
	)
	if err != nil {
		return nil, s.classify(err)
	}

	all, err := scanAll(rows, func(row scanner) (t DeliveryTally, err error) {
		var at int64
		err = row.Scan(&t.WebhookUID, &t.Outcome, &at, &t.Count)
		t.From = timeOf(at * span.Microseconds())
		return t, err
	})

	return all, s.classify(err)
}

// RunTally counts the runs in one state that last changed within one span of time.
type RunTally struct {
	State RunState
	From  time.Time // where the span begins: a multiple of its length since the Unix epoch
	Count int64
}

// RunTallies counts the runs that last changed since a time, in spans of the given length. Spans and
// states without a run are left out. Its cost grows with the number of runs since then.
func (s *Store) RunTallies(ctx context.Context, since time.Time, span time.Duration) ([]RunTally, error) {
	// Each state is a range of an index, which alone is read; live runs have another one.
	const tally = `
		SELECT updated_at / $1 AS span, count(*)
		FROM (
			SELECT updated_at FROM runs WHERE state = $2 AND updated_at >= $3 AND finished_at IS NOT NULL
			UNION ALL
			SELECT updated_at FROM runs WHERE state = $2 AND updated_at >= $3 AND finished_at IS NULL
		) AS found
		GROUP BY span
		ORDER BY span`

	var all []RunTally
	for _, in := range RunStates() {
		rows, err := s.read.QueryContext(ctx, tally, span.Microseconds(), string(in), micros(since))
		if err != nil {
			return nil, s.classify(err)
		}

		tallies, err := scanAll(rows, func(row scanner) (RunTally, error) {
			t := RunTally{State: in}
			var at int64
			err := row.Scan(&at, &t.Count)
			t.From = timeOf(at * span.Microseconds())
			return t, err
		})
		if err != nil {
			return nil, s.classify(err)
		}

		all = append(all, tallies...)
	}

	return all, nil
}
