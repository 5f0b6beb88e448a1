package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"millwright/schema"
	"millwright/state/db"
	"millwright/state/notice"
)

// Routing is what the ingress needs to judge a delivery: the live webhooks of every attached factory
// with their credentials, and the automations that a delivery may start.
type Routing struct {
	// Generation counts changes of the routing facts of all factories.
	Generation int64
	Factories  []RoutedFactory
}

// RoutedFactory is one factory's part of the routing facts.
type RoutedFactory struct {
	UID  string
	Name string
	// Generation is the value of Routing.Generation at the factory's last change. A delivery is accepted
	// only while it is still that.
	Generation  int64
	Webhooks    []RoutedWebhook
	Automations []RoutedAutomation
	// Err is set when the stored definition cannot be read, so that nobody knows what a delivery starts. Then
	// Automations is nil and every webhook has an error.
	Err error

	spec string // factory.yaml as it is stored
	file *schema.FactoryFile
}

// RoutedWebhook is a live webhook, disabled ones included.
type RoutedWebhook struct {
	ID      int64 // the row's key, short for the hot path
	UID     string
	Spec    schema.Webhook
	Secret  []byte // the value of the version that was applied; nil when Pending
	Pending bool
	Err     error // why no delivery to it can be judged; nil when one can
}

// LoopRouting is the reading of the routing facts, as a loop that may skip rows.
const LoopRouting = "routing"

const routingGenerationSQL = `SELECT generation FROM routing WHERE id = 1`

const attachedFactoriesSQL = `SELECT uid, name, generation, spec
FROM factories
WHERE detached = 0
ORDER BY name`

func scanRoutedFactory(row db.Row) (f RoutedFactory, err error) {
	err = row.Scan(&f.UID, &f.Name, &f.Generation, &f.spec)
	f.Err = json.Unmarshal([]byte(f.spec), &f.file)
	return f, err
}

// Routing reads the routing facts in one consistent view. A factory or webhook whose stored row cannot
// be read has an Err, and is skipped.
func (s *Store) Routing(ctx context.Context) (Routing, error) {
	var r Routing
	err := s.db.View(ctx, func(tx db.View) error {
		r = Routing{}
		err := tx.QueryRow(ctx, routingGenerationSQL).Scan(&r.Generation)
		if err != nil {
			return err
		}

		r.Factories, err = db.All(ctx, tx.Reader, scanRoutedFactory, attachedFactoriesSQL)
		if err != nil {
			return err
		}

		for i := range r.Factories {
			if err := s.routeFactory(ctx, tx.Reader, &r.Factories[i]); err != nil {
				return fmt.Errorf("factory %q: %w", r.Factories[i].Name, err)
			}
		}

		return nil
	})
	if err != nil {
		return r, err
	}

	for _, f := range r.Factories {
		s.Skip(LoopRouting, f.UID, "factory "+f.UID, f.Err)
		for _, w := range f.Webhooks {
			if f.Err == nil {
				s.Skip(LoopRouting, f.UID, "webhook "+w.UID, w.Err)
			}
		}
	}

	return r, nil
}

const routedWebhooksSQL = `SELECT w.id, w.uid, w.spec, v.name, v.sealed
FROM webhooks w
JOIN secret_versions v ON v.name = w.secret_name AND v.version = w.secret_version
WHERE w.factory_uid = $1 AND w.deleted_at IS NULL
ORDER BY w.name`

func (s *Store) scanRoutedWebhook(row db.Row) (w RoutedWebhook, err error) {
	var spec, name string
	var sealed []byte
	if err := row.Scan(&w.ID, &w.UID, &spec, &name, &sealed); err != nil {
		return w, err
	}

	w.Err = json.Unmarshal([]byte(spec), &w.Spec)
	w.Pending = sealed == nil
	if !w.Pending && w.Err == nil {
		w.Secret, w.Err = s.seal.Open("secret "+name, sealed)
	}

	return w, nil
}

// routeFactory reads the webhooks and automations of a factory. Its error is the database's; what is wrong
// with rows is noted at the webhook or the factory.
func (s *Store) routeFactory(ctx context.Context, r db.Reader, f *RoutedFactory) error {
	var err error
	f.Webhooks, err = db.All(ctx, r, s.scanRoutedWebhook, routedWebhooksSQL, f.UID)
	if err != nil {
		return err
	}

	d, err := s.applied(ctx, r, f.UID, f.Generation)
	switch {
	case errors.Is(err, ErrUnreadable):
		f.Err = err
	case err != nil:
		return err
	case f.Err == nil:
		f.Automations, f.Err = d.route(f.spec, f.file)
	}

	if f.Err != nil {
		f.Automations = nil
		for i := range f.Webhooks {
			f.Webhooks[i].Err = f.Err
		}
	}

	return nil
}

// RoutingGeneration returns the present value of Routing.Generation, to see cheaply whether it moved.
func (s *Store) RoutingGeneration(ctx context.Context) (int64, error) {
	var generation int64
	err := s.db.QueryRow(ctx, routingGenerationSQL).Scan(&generation)
	return generation, err
}

// replicaLease is how long a replica may serve without word from the database. A change of the routing
// facts waits at most that long for a replica that died.
const replicaLease = 3 * time.Second

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

// Renew prolongs the replica's lease. Call it at least every second; it is free on SQLite. Changes did not wait
// for a lease that had run out: a replica that missed one is live again once it has loaded it.
func (r *Replica) Renew(ctx context.Context) error {
	if !r.s.db.Postgres() {
		return nil
	}

	asked := time.Since(r.base) // before the write, so that others see the lease end later than we do
	lapsed := int64(asked) >= r.until.Load()
	err := r.s.db.Exec(ctx, renewSQL, r.uid, r.loaded.Load(), r.s.db.LeaseEnd(2*replicaLease))
	if err != nil {
		return err
	}

	if lapsed {
		generation, err := r.s.RoutingGeneration(ctx)
		if err != nil || generation > r.loaded.Load() {
			return err
		}
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

// Served waits until all replicas serve the definition that the factory has now. ErrNotFound if there is no such
// factory.
func (s *Store) Served(ctx context.Context, factoryUID string) error {
	var generation int64
	row := s.db.QueryRow(ctx, `SELECT generation FROM factories WHERE uid = $1`, factoryUID)
	if err := row.Scan(&generation); err != nil {
		return orNotFound(err, "factory %q", factoryUID)
	}
	return s.served(ctx, generation)
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

// lockGenerationSQL locks a generation on PostgreSQL, which deliveries hold in common. It is an advisory
// lock, not a row lock: those queue in order, so that a change of the definition does not wait for ever
// behind deliveries that overlap, and a batch writes no row for it.
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
	for old := s.announced.Load(); old < generation; old = s.announced.Load() {
		s.announced.CompareAndSwap(old, generation)
	}

	s.Notify(notice.Routing, "")
	return s.served(ctx, generation)
}

// Announced reports whether this process has announced a change that made a generation newer than the given
// one. It reads no table.
func (s *Store) Announced(generation int64) bool { return s.announced.Load() > generation }

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
