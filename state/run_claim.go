package state

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"millwright/state/db"
	"millwright/state/notice"
)

// claimSQL gives the queued run that is picked to a worker.
const claimSQL = `UPDATE runs
SET state = 'CLAIMED',
	worker = $1,
	worker_name = $2,
	claim_hash = $3,
	lease_until = $4,
	appended = 0,
	status_message = '',
	error_code = '',
	next_seq = next_seq + 1,
	updated_at = $5
WHERE id = %s
RETURNING ` + runColumns

// pickSQL locks the first run of the queue that meets a condition. The index runs_queued has the queue in this
// order: each factory's runs are a lane of their own.
const pickSQL = `(
	SELECT id
	FROM runs
	WHERE state = 'QUEUED' %s
	ORDER BY factory_uid, queued_at, id
	LIMIT 1 %s
)`

func (s *Store) pickSQL(condition string) string {
	lock := ""
	if s.db.Postgres() {
		lock = `FOR UPDATE SKIP LOCKED`
	}
	return fmt.Sprintf(pickSQL, condition, lock)
}

// claimNextSQL claims the oldest run of the lane behind $6 or, behind the last lane, of the first.
func (s *Store) claimNextSQL() string {
	return fmt.Sprintf(claimSQL, `coalesce(`+s.pickSQL(`AND factory_uid > $6`)+`, `+s.pickSQL(``)+`)`)
}

// claimLaneSQL claims the oldest run of the factory $6.
func (s *Store) claimLaneSQL() string {
	return fmt.Sprintf(claimSQL, s.pickSQL(`AND factory_uid = $6`))
}

// claimOneSQL claims the run $6.
func (s *Store) claimOneSQL() string { return fmt.Sprintf(claimSQL, s.pickSQL(`AND id = $6`)) }

// Ask is a worker's request for a run.
type Ask struct {
	Worker     string // UID that the claim is bound to
	WorkerName string // for people
}

// Claimed is a run that was given to a worker.
type Claimed struct {
	Claim Claim
	Run   Run
}

// ClaimRuns gives queued runs to workers, one to each ask in turn, until the queue is empty: QUEUED to
// CLAIMED. It takes the oldest run of one factory after the other, beginning behind the factory served
// last, so that none waits for another's backlog. Of a factory, workers hold at most perFactory runs at once;
// 0 is no such bound. A worker that has not called StartRun when hold is over loses the run to ReapRuns.
// Callers in several processes never get the same run. A run that its row keeps from being claimed ends as
// ERROR. With an error it returns the runs that were claimed before.
func (s *Store) ClaimRuns(
	ctx context.Context,
	served string,
	asks []Ask,
	hold time.Duration,
	perFactory int,
) ([]Claimed, error) {
	var all []Claimed
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		all = all[:0]
		query, lane := s.claimNextSQL(), served
		room, err := s.roomOf(ctx, tx, perFactory)
		if err != nil {
			return err
		}

		for _, ask := range asks {
			pick := lane
			if room != nil {
				query = s.claimLaneSQL()
				pick, err = nextLane(ctx, tx, lane, room)
			}

			var c Claimed
			if err == nil {
				c, err = s.claim(ctx, tx, query, pick, ask, hold)
			}
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}

			lane = c.Run.FactoryUID
			room.take(lane)
			all = append(all, c)
		}

		return nil
	})
	if ofRow(err) {
		return s.claimApart(ctx, served, asks, hold, perFactory)
	}
	if err != nil {
		return nil, err
	}

	for _, c := range all {
		s.Notify(notice.Run, c.Run.ID)
	}

	return all, nil
}

// claimApart is ClaimRuns with a transaction for each run, so that one which fails fails alone.
func (s *Store) claimApart(
	ctx context.Context,
	served string,
	asks []Ask,
	hold time.Duration,
	perFactory int,
) (all []Claimed, err error) {
	for len(all) < len(asks) {
		id, err := s.head(ctx, served, perFactory)
		if errors.Is(err, sql.ErrNoRows) {
			return all, nil
		}
		if err != nil {
			return all, err
		}

		ask := asks[len(all)]
		claim, run, err := s.ClaimRun(ctx, id, ask.Worker, ask.WorkerName, hold)
		if errors.Is(err, ErrConflict) {
			continue // another worker has it, or it has ended
		}
		if err != nil {
			return all, err
		}

		served = run.FactoryUID
		all = append(all, Claimed{claim, run})
	}

	return all, nil
}

// headSQL finds the next run of the queue, behind the lane $1; with $2 = 1 it stays in that lane.
const headSQL = `SELECT id
FROM runs
WHERE state = 'QUEUED' AND ($2 = 0 OR factory_uid = $1)
ORDER BY factory_uid <= $1, factory_uid, queued_at, id
LIMIT 1`

// head returns the run that ClaimRuns would give next; sql.ErrNoRows when there is none.
func (s *Store) head(ctx context.Context, served string, perFactory int) (id string, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		room, err := s.roomOf(ctx, tx, perFactory)
		if err != nil {
			return err
		}
		if room == nil {
			return tx.QueryRow(ctx, headSQL, served, 0).Scan(&id)
		}

		lane, err := nextLane(ctx, tx, served, room)
		if err != nil {
			return err
		}

		return tx.QueryRow(ctx, headSQL, lane, 1).Scan(&id)
	})
	return id, err
}

// factoryRoom is how many more runs of a factory workers may hold: most, where a factory is not in it.
type factoryRoom struct {
	most int
	left map[string]int
}

func (r *factoryRoom) of(factory string) int {
	if left, ok := r.left[factory]; ok {
		return left
	}
	return r.most
}

// take notes that a run of the factory is held. Of nil, which has room for all, it does nothing.
func (r *factoryRoom) take(factory string) {
	if r != nil {
		r.left[factory] = r.of(factory) - 1
	}
}

const (
	// lockClaimsSQL has claims with a bound for each factory wait for each other, on PostgreSQL.
	lockClaimsSQL = `SELECT pg_advisory_xact_lock(hashtextextended('millwright claims ' || current_schema(), 0))`

	heldByFactorySQL = `SELECT factory_uid, count(*)
		FROM runs
		WHERE claim_hash IS NOT NULL
		GROUP BY factory_uid`

	nextLaneSQL = `SELECT factory_uid
		FROM runs
		WHERE state = 'QUEUED' AND factory_uid > $1
		ORDER BY factory_uid
		LIMIT 1`

	firstLaneSQL = `SELECT factory_uid
		FROM runs
		WHERE state = 'QUEUED'
		ORDER BY factory_uid
		LIMIT 1`
)

// roomOf returns the room of each factory, and keeps it from being taken by others until tx ends; nil when
// perFactory is 0.
func (s *Store) roomOf(ctx context.Context, tx *db.Tx, perFactory int) (*factoryRoom, error) {
	if perFactory == 0 {
		return nil, nil
	}

	if s.db.Postgres() {
		if _, err := tx.Exec(ctx, lockClaimsSQL); err != nil {
			return nil, err
		}
	}

	room := &factoryRoom{most: perFactory, left: map[string]int{}}
	err := db.Each(ctx, tx.Reader, func(row db.Row) error {
		var factory string
		var runs int
		err := row.Scan(&factory, &runs)
		room.left[factory] = perFactory - runs
		return err
	}, heldByFactorySQL)
	if err != nil {
		return nil, err
	}

	return room, nil
}

// nextLane returns the next factory behind one, in a circle, that has queued runs and room; sql.ErrNoRows
// when there is none.
func nextLane(ctx context.Context, tx *db.Tx, behind string, room *factoryRoom) (lane string, err error) {
	seen := map[string]bool{}
	for lane = behind; ; {
		after := lane
		err = tx.QueryRow(ctx, nextLaneSQL, after).Scan(&lane)
		if errors.Is(err, sql.ErrNoRows) {
			err = tx.QueryRow(ctx, firstLaneSQL).Scan(&lane)
		}
		if err != nil {
			return "", err
		}

		if room.of(lane) > 0 {
			return lane, nil
		}
		if seen[lane] {
			return "", sql.ErrNoRows
		}
		seen[lane] = true
	}
}

// ClaimRun gives one queued run to a worker, as ClaimRuns does. ErrConflict when the run is not queued, or
// ended as ERROR because its row cannot be read.
func (s *Store) ClaimRun(ctx context.Context, id, worker, workerName string, hold time.Duration) (Claim, Run, error) {
	var c Claimed
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) (err error) {
		c, err = s.claim(ctx, tx, s.claimOneSQL(), id, Ask{worker, workerName}, hold)
		if errors.Is(err, sql.ErrNoRows) {
			return refuse(ErrConflict, "run %s is not queued", id)
		}

		return err
	})

	if ofRow(err) {
		if _, end := s.endUnfit(ctx, id, err, `state = 'QUEUED'`); end != nil {
			return Claim{}, Run{}, errors.Join(err, end)
		}
		return Claim{}, Run{}, refuse(ErrConflict, "run %s cannot be executed as it is stored", id)
	}

	if err != nil {
		return Claim{}, Run{}, err
	}

	s.Notify(notice.Run, id)
	return c.Claim, c.Run, nil
}

// maxWorker is how many bytes the UID of a worker has at most, and how many characters its name.
const maxWorker = 200

// claim gives the run that a statement picks by its parameter $6 to a worker.
func (s *Store) claim(ctx context.Context, tx *db.Tx, query, pick string, a Ask, hold time.Duration) (Claimed, error) {
	if len(a.Worker) > maxWorker || db.Text(a.Worker) != a.Worker {
		return Claimed{}, refuse(ErrConflict, "the UID of a worker is text of at most %d bytes", maxWorker)
	}

	var token [16]byte
	rand.Read(token[:])
	c := Claim{Worker: a.Worker, Token: hex.EncodeToString(token[:])}
	now := time.Now()

	r, err := scanRun(tx.QueryRow(ctx, query,
		a.Worker, db.Bounded(a.WorkerName, maxWorker), c.hash(), s.db.LeaseEnd(hold), db.Micros(now), pick))
	if err != nil {
		return Claimed{}, err
	}
	if r.unreadable != nil {
		return Claimed{}, r.unreadable
	}

	c.RunID = r.ID

	return Claimed{c, r}, r.entered(ctx, tx, now)
}

// QueueStats describes the queue of runs.
type QueueStats struct {
	Queued int
	Oldest *time.Time // when the longest waiting run was queued; nil when none waits
	Held   int        // runs that a worker holds
}

const queueSQL = `SELECT count(*), min(queued_at), (SELECT count(*) FROM runs WHERE claim_hash IS NOT NULL)
FROM runs
WHERE state = 'QUEUED'`

// Queue returns how many runs wait and are held just now.
func (s *Store) Queue(ctx context.Context) (QueueStats, error) {
	var q QueueStats
	var oldest sql.NullInt64
	err := s.db.QueryRow(ctx, queueSQL).Scan(&q.Queued, &oldest, &q.Held)
	q.Oldest = db.TimeOrNil(oldest)
	return q, err
}
