package state

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"millwright/state/db"
	"millwright/state/notice"
)

// replicaLease is how long a replica may serve without word from the database. A change of the routing
// facts waits at most that long for a replica that died.
const replicaLease = 3 * time.Second

// Replica is one process that serves the ingress. A change of the routing facts returns only when every
// replica with a live lease has loaded it.
type Replica struct {
	s      *Store
	uid    string
	loaded atomic.Int64
	until  atomic.Int64 // nanoseconds since base
	base   time.Time
}

// localReplicas are the replicas of a SQLite state, which all live in this process.
type localReplicas struct {
	mu   sync.Mutex
	all  map[*Replica]struct{}
	cond chan struct{} // closed and replaced when a replica loads or leaves
}

// Join registers a replica that has loaded generation. Leave ends it.
func (s *Store) Join(ctx context.Context, generation int64) (*Replica, error) {
	r := &Replica{s: s, uid: NewID(PrefixReplica), base: time.Now()}
	r.loaded.Store(generation)
	if !s.db.Postgres() {
		s.local.mu.Lock()
		defer s.local.mu.Unlock()

		if s.local.all == nil {
			s.local.all, s.local.cond = map[*Replica]struct{}{}, make(chan struct{})
		}

		s.local.all[r] = struct{}{}
		return r, nil
	}

	return r, r.Renew(ctx)
}

// Loaded records that the replica serves generation. It returns when the record is durable.
func (r *Replica) Loaded(ctx context.Context, generation int64) error {
	r.loaded.Store(generation)
	if !r.s.db.Postgres() {
		r.s.local.wake()
		return nil
	}
	return r.Renew(ctx)
}

func (l *localReplicas) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cond != nil {
		close(l.cond)
		l.cond = make(chan struct{})
	}
}

const renewSQL = `INSERT INTO replicas (uid, generation, lease_until)
VALUES ($1, $2, $3)
ON CONFLICT (uid) DO UPDATE SET generation = excluded.generation, lease_until = excluded.lease_until`

// Renew prolongs the replica's lease. Call it at least every second; it is free on SQLite.
func (r *Replica) Renew(ctx context.Context) error {
	if !r.s.db.Postgres() {
		return nil
	}

	asked := time.Since(r.base) // before the write, so that others see the lease end later than we do
	err := r.s.db.Exec(ctx, renewSQL, r.uid, r.loaded.Load(), r.s.db.LeaseEnd(2*replicaLease))
	if err != nil {
		return err
	}

	r.until.Store(int64(asked + replicaLease))
	return nil
}

// Live reports whether the replica may still judge requests: whether its lease has not run out.
func (r *Replica) Live() bool {
	return !r.s.db.Postgres() || int64(time.Since(r.base)) < r.until.Load()
}

// Leave ends the replica's membership: changes no longer wait for it.
func (r *Replica) Leave(ctx context.Context) error {
	if !r.s.db.Postgres() {
		r.s.local.mu.Lock()
		delete(r.s.local.all, r)
		r.s.local.mu.Unlock()
		r.s.local.wake()
		return nil
	}

	r.until.Store(0)
	return r.s.db.Exec(ctx, `DELETE FROM replicas WHERE uid = $1`, r.uid)
}

const behindSQL = `SELECT count(*) FROM replicas WHERE generation < $1 AND lease_until > $2`

// served waits until every live replica has loaded generation. The change is durable already, so the
// end of ctx is the only way to fail.
func (s *Store) served(ctx context.Context, generation int64) error {
	if !s.db.Postgres() {
		return s.local.served(ctx, generation)
	}

	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()

	for {
		var behind int
		err := s.db.QueryRow(ctx, behindSQL, generation, db.Micros(s.db.Now())).Scan(&behind)
		if err == nil && behind == 0 {
			return nil
		}

		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

func (l *localReplicas) served(ctx context.Context, generation int64) error {
	for {
		l.mu.Lock()
		behind := false
		for r := range l.all {
			behind = behind || r.loaded.Load() < generation
		}

		cond := l.cond
		l.mu.Unlock()
		if !behind {
			return nil
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-cond:
		}
	}
}

// lockGenerationSQL locks a generation on PostgreSQL, which deliveries hold in common. It is an advisory lock,
// not a row lock: those queue in order, so that a change of the definition does not wait for ever behind
// deliveries that overlap, and a batch writes no row for it.
const lockGenerationSQL = `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`

const nextGenerationSQL = `UPDATE routing
SET generation = generation + 1
WHERE id = 1
RETURNING generation`

// bump gives the factory a new generation inside a transaction that changes its routing facts.
func (s *Store) bump(ctx context.Context, tx *db.Tx, factoryUID string) (int64, error) {
	if s.db.Postgres() {
		if _, err := tx.Exec(ctx, lockGenerationSQL, factoryUID); err != nil {
			return 0, err
		}
	}

	var generation int64
	err := tx.QueryRow(ctx, nextGenerationSQL).Scan(&generation)
	if err != nil {
		return 0, err
	}

	_, err = tx.Exec(ctx, `UPDATE factories SET generation = $1 WHERE uid = $2`, generation, factoryUID)
	return generation, err
}

// announce tells this process and, on PostgreSQL, every replica that the routing facts changed, and
// waits until all serve them.
func (s *Store) announce(ctx context.Context, generation int64) error {
	s.Notify(notice.Routing, "")
	return s.served(ctx, generation)
}

const leaseSQL = `INSERT INTO locks (name, holder, lease_until)
VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, lease_until = excluded.lease_until
WHERE locks.holder = excluded.holder OR locks.lease_until < $4`

// Lease takes or prolongs the named lease for holder until ttl from now, and reports whether holder has
// it. A lease that ran out is anyone's.
func (s *Store) Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	now := s.db.Now()
	err := s.db.ExecOne(ctx, leaseSQL, name, holder, db.Micros(now.Add(ttl)), db.Micros(now))
	if errors.Is(err, db.ErrNoRow) {
		return false, nil
	}
	return err == nil, err
}

// Release gives up the named lease if holder has it.
func (s *Store) Release(ctx context.Context, name, holder string) error {
	return s.db.Exec(ctx, `DELETE FROM locks WHERE name = $1 AND holder = $2`, name, holder)
}
