package state

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"millwright/state/db"
)

// ScheduleKey names one schedule of an automation.
type ScheduleKey struct {
	AutomationUID string
	Schedule      string // its cron text and name, as one text
}

const schedulesSQL = `SELECT automation_uid, schedule, last_at
FROM schedules
WHERE factory_uid = $1`

// Schedules returns when each of a factory's schedules last fired or, before that, was first seen.
func (s *Store) Schedules(ctx context.Context, factoryUID string) (map[ScheduleKey]time.Time, error) {
	all := map[ScheduleKey]time.Time{}
	err := db.Each(ctx, s.db.Reader, func(row db.Row) error {
		var k ScheduleKey
		var last int64
		err := row.Scan(&k.AutomationUID, &k.Schedule, &last)
		all[k] = db.Time(last)
		return err
	}, schedulesSQL, factoryUID)

	return all, err
}

const addScheduleSQL = `INSERT INTO schedules (automation_uid, schedule, factory_uid, last_at)
VALUES ($1, $2, $3, $4)
ON CONFLICT (automation_uid, schedule) DO UPDATE SET last_at = schedules.last_at
RETURNING last_at`

// AddSchedule notes that a schedule exists since now, and returns when it last fired or was first seen:
// another replica may have been first.
func (s *Store) AddSchedule(ctx context.Context, factoryUID string, k ScheduleKey, now time.Time) (time.Time, error) {
	var last int64
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		return tx.QueryRow(ctx, addScheduleSQL, k.AutomationUID, k.Schedule, factoryUID, db.Micros(now)).
			Scan(&last)
	})
	if db.IsForeignKey(err) {
		return time.Time{}, refuse(ErrNotFound, "automation %q", k.AutomationUID)
	}
	return db.Time(last), err
}

// Tick is a moment at which a schedule fires.
type Tick struct {
	FactoryUID string
	Generation int64 // of the factory, that the schedule was read from
	Key        ScheduleKey
	Last       time.Time // when it fired before this
	At         time.Time
}

const fireSQL = `UPDATE schedules
SET last_at = $4
WHERE automation_uid = $1 AND schedule = $2 AND last_at = $3`

// Fire makes the run of a tick, once however many replicas try; a nil run skips the tick. It reports
// whether this call was the one. ErrMoved: the factory's definition changed since the schedule was read.
func (s *Store) Fire(ctx context.Context, t Tick, run *NewRun) (bool, error) {
	fired := false
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		fired = false
		var generation int64
		query := `SELECT generation FROM factories WHERE uid = $1 AND detached = 0` + s.db.ForUpdate()
		err := tx.QueryRow(ctx, query, t.FactoryUID).Scan(&generation)
		if errors.Is(err, sql.ErrNoRows) || err == nil && generation != t.Generation {
			return ErrMoved
		}
		if err != nil {
			return err
		}

		err = tx.ExecOne(
			ctx,
			fireSQL,
			t.Key.AutomationUID,
			t.Key.Schedule,
			db.Micros(t.Last),
			db.Micros(t.At),
		)
		if errors.Is(err, db.ErrNoRow) {
			return nil
		}
		if fired = err == nil; err != nil || run == nil {
			return err
		}

		return s.insertRunWith(*run, func(query string, args ...any) error {
			_, err := tx.Exec(ctx, query, args...)
			return err
		})
	})
	if err != nil || !fired || run == nil {
		return fired && err == nil, err
	}

	s.moved(ctx, run.run())
	return true, nil
}
