package state

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"millwright/state/budget"
	"millwright/state/db"
	"millwright/state/flow"
	"millwright/state/lanes"
	"millwright/state/notice"
	"millwright/state/outputs"
)

// claimSQL gives the queued run that is picked to a worker.
const claimSQL = `UPDATE runs
SET state = 'CLAIMED',
	worker = $1,
	worker_name = $2,
	claim_hash = $3,
	lease_until = $4,
	appended = 0,
	claims = claims + 1,
	live = 0,
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
	WHERE state = 'QUEUED' AND waits_for = '' %s
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

// claimLaneSQL claims the oldest run of the factory $6 whose automation is not one of $7, which is a JSON list.
func (s *Store) claimLaneSQL() string {
	return fmt.Sprintf(claimSQL, s.pickSQL(`AND factory_uid = $6 AND `+lanes.NotAmong(s.db.Postgres(), 7)))
}

// headNextSQL locks the run that claimNextSQL would claim, behind the lane $1.
func (s *Store) headNextSQL() string {
	return headColumns + `coalesce(` + s.pickSQL(`AND factory_uid > $1`) + `, ` + s.pickSQL(``) + `)`
}

// headLaneSQL locks the run that claimLaneSQL would claim, of the factory $1 without the automations $2.
func (s *Store) headLaneSQL() string {
	return headColumns + s.pickSQL(`AND factory_uid = $1 AND `+lanes.NotAmong(s.db.Postgres(), 2))
}

const headColumns = `SELECT id, factory_uid, agent_uid, automation_uid, claims
FROM runs
WHERE id = `

// claimOneSQL claims the run $6.
func (s *Store) claimOneSQL() string { return fmt.Sprintf(claimSQL, s.pickSQL(`AND id = $6`)) }

// Ask is a worker's request for a run.
type Ask struct {
	Worker     string // UID that the claim is bound to
	WorkerName string // for people
}

// ClaimBounds are how many runs workers hold at once of one factory, and of one automation; 0 is any number.
type ClaimBounds = lanes.Bounds

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
	bounds ClaimBounds,
) ([]Claimed, error) {
	return s.ClaimRunsOf(ctx, nil, served, asks, hold, bounds)
}

// ClaimRunsOf is ClaimRuns for workers that execute runs of these factories alone; nil: of all.
func (s *Store) ClaimRunsOf(
	ctx context.Context,
	factories []string,
	served string,
	asks []Ask,
	hold time.Duration,
	bounds ClaimBounds,
) ([]Claimed, error) {
	var all []Claimed
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		all = all[:0]
		q, err := s.beginClaims(ctx, tx, factories, served, bounds)
		if err != nil {
			return err
		}

		for _, ask := range asks {
			query, pick, err := q.next(ctx)
			if err == nil {
				err = q.claim(ctx, query, pick, ask, hold)
			}
			if errors.Is(err, sql.ErrNoRows) {
				break
			}
			if err != nil {
				return err
			}
		}

		all = q.claimed
		return q.ledger.Save(ctx, tx, q.at)
	})
	if ofRow(err) {
		return s.claimApart(ctx, factories, served, asks, hold, bounds)
	}
	if err != nil {
		return nil, err
	}

	for _, c := range all {
		s.Notify(notice.Run, c.Run.ID)
	}

	return all, nil
}

// claimApart is ClaimRunsOf with a transaction for each run, so that one which fails fails alone.
func (s *Store) claimApart(
	ctx context.Context,
	factories []string,
	served string,
	asks []Ask,
	hold time.Duration,
	bounds ClaimBounds,
) (all []Claimed, err error) {
	for len(all) < len(asks) {
		id, err := s.head(ctx, factories, served, bounds)
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

// head returns the run that ClaimRunsOf would give next; sql.ErrNoRows when there is none.
func (s *Store) head(
	ctx context.Context, factories []string, served string, bounds ClaimBounds,
) (id string, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		q, err := s.beginClaims(ctx, tx, factories, served, bounds)
		if err != nil {
			return err
		}

		id, err = q.affordable(ctx)
		return err
	})
	return id, err
}

// claims are those of one transaction.
type claims struct {
	*Store
	tx      *db.Tx
	at      time.Time
	only    []string    // the factories whose runs are claimed; nil: all
	lane    string      // the factory that was served last
	room    *lanes.Room // nil: any number of runs
	day     *budget.Day // nil: no budget bounds the day
	ledger  budget.Ledger
	claimed []Claimed
}

// beginClaims begins the claims of a transaction. Where something bounds the runs, claims of other transactions
// wait for its end.
func (s *Store) beginClaims(
	ctx context.Context, tx *db.Tx, factories []string, served string, bounds ClaimBounds,
) (*claims, error) {
	q := &claims{Store: s, tx: tx, at: time.Now(), only: factories, lane: served}
	var err error
	if q.day, err = budget.On(ctx, tx.Reader, s.serverBudget(), q.at); err != nil {
		return nil, err
	}
	if q.day == nil && bounds == (ClaimBounds{}) {
		return q, nil
	}

	if err := lanes.Lock(ctx, s.db, tx); err != nil {
		return nil, err
	}

	if q.room, err = lanes.Of(ctx, s.db, tx, bounds); err != nil || q.day == nil {
		return q, err
	}
	q.day, err = budget.On(ctx, tx.Reader, s.serverBudget(), q.at)
	return q, err
}

// next returns the statement that claims the next run, and its parameters from $6 on.
func (q *claims) next(ctx context.Context) (query string, pick []any, err error) {
	if q.day == nil && q.room == nil && q.only == nil {
		return q.claimNextSQL(), []any{q.lane}, nil
	}
	if q.day == nil && q.only == nil {
		lane, full, err := q.room.Next(ctx, q.tx, q.lane)
		return q.claimLaneSQL(), []any{lane, full}, err
	}

	id, err := q.affordable(ctx)
	return q.claimOneSQL(), []any{id}, err
}

// affordable locks and returns the next run whose budgets of the day are not spent. It parks those before it.
func (q *claims) affordable(ctx context.Context) (id string, err error) {
	for {
		var of budget.Scopes
		var claims int
		err := q.first(ctx, &id, &of.Factory, &of.Agent, &of.Automation, &claims)
		if err != nil || q.day == nil {
			return id, err
		}

		spent := q.day.Spent(of, claims > 0)
		if spent == nil {
			return id, nil
		}
		if err := park(ctx, q.tx, of.Factory, spent, q.at); err != nil {
			return "", err
		}
	}
}

// first locks the next run and reads its columns, those of headColumns.
func (q *claims) first(ctx context.Context, columns ...any) error {
	switch {
	case q.only != nil:
		return q.firstOf(ctx, columns...)
	case q.room == nil:
		return q.tx.QueryRow(ctx, q.headNextSQL(), q.lane).Scan(columns...)
	}

	lane, full, err := q.room.Next(ctx, q.tx, q.lane)
	if err != nil {
		return err
	}
	return q.tx.QueryRow(ctx, q.headLaneSQL(), lane, full).Scan(columns...)
}

// firstOf is first among the lanes of some factories: those behind the lane that was served last, and then the
// others.
func (q *claims) firstOf(ctx context.Context, columns ...any) error {
	all := slices.Sorted(slices.Values(q.only))
	behind, _ := slices.BinarySearch(all, q.lane+"\x00")
	for _, lane := range slices.Concat(all[behind:], all[:behind]) {
		full, open, err := q.room.Open(lane)
		if err != nil {
			return err
		}
		if !open {
			continue
		}

		err = q.tx.QueryRow(ctx, q.headLaneSQL(), lane, full).Scan(columns...)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}

	return sql.ErrNoRows
}

// claim gives the run that a statement picks to the worker of an ask.
func (q *claims) claim(ctx context.Context, query string, pick []any, ask Ask, hold time.Duration) error {
	c, err := q.Store.claim(ctx, q.tx, query, pick, ask, hold)
	if err != nil {
		return err
	}

	if c.Run.claims == 1 { // what is handed back, or lost by its worker, counts once
		q.day.Start(c.Run.scopes())
		q.ledger.Add(c.Run.scopes(), budget.Use{Runs: 1})
	}

	q.lane = c.Run.FactoryUID
	q.room.Take(c.Run.FactoryUID, c.Run.AutomationUID)
	q.claimed = append(q.claimed, c)
	return nil
}

// ClaimRun gives one queued run to a worker, as ClaimRuns does. ErrConflict when the run is not queued, or
// ended as ERROR because its row cannot be read.
func (s *Store) ClaimRun(ctx context.Context, id, worker, workerName string, hold time.Duration) (Claim, Run, error) {
	var c Claimed
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) (err error) {
		q := &claims{Store: s, tx: tx, at: time.Now()}
		err = q.claim(ctx, s.claimOneSQL(), []any{id}, Ask{worker, workerName}, hold)
		if errors.Is(err, sql.ErrNoRows) {
			return refuse(ErrConflict, "run %s is not queued", id)
		}
		if err != nil {
			return err
		}

		c = q.claimed[0]
		return q.ledger.Save(ctx, tx, q.at)
	})

	if ofRow(err) {
		if _, end := s.endUnfit(ctx, id, err, `state = 'QUEUED' AND waits_for = ''`); end != nil {
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

// claim gives the run that a statement picks by its parameters from $6 on to a worker.
func (s *Store) claim(
	ctx context.Context,
	tx *db.Tx,
	query string,
	pick []any,
	a Ask,
	hold time.Duration,
) (Claimed, error) {
	if len(a.Worker) > maxWorker || db.Text(a.Worker) != a.Worker {
		return Claimed{}, refuse(ErrConflict, "the UID of a worker is text of at most %d bytes", maxWorker)
	}

	var token [16]byte
	rand.Read(token[:])
	c := Claim{Worker: a.Worker, Token: hex.EncodeToString(token[:])}
	now := time.Now()

	args := []any{a.Worker, db.Bounded(a.WorkerName, maxWorker), c.hash(), s.db.LeaseEnd(hold), db.Micros(now)}
	r, err := scanRun(tx.QueryRow(ctx, query, append(args, pick...)...))
	if err != nil {
		return Claimed{}, err
	}
	if r.unreadable != nil {
		return Claimed{}, r.unreadable
	}

	c.RunID = r.ID
	if err := outputs.Begin(ctx, tx, r.outputs(), NewID(PrefixOutput)); err != nil {
		return Claimed{}, err
	}

	return Claimed{c, r}, r.entered(ctx, tx, now)
}

// ReleaseRun hands a run back that the worker cannot go on with, through no fault of the run: to QUEUED,
// without counting an attempt, or to CANCELLED when that was asked for. ErrLost when the claim no longer
// holds.
func (s *Store) ReleaseRun(ctx context.Context, c Claim) error {
	return s.handBack(ctx, c, func(*Run) {})
}

// PostponeRun is ReleaseRun for a run that no worker may claim before a pause is over. The status message has
// the reason.
func (s *Store) PostponeRun(ctx context.Context, c Claim, why string, pause time.Duration) error {
	return s.handBack(ctx, c, func(r *Run) {
		r.StatusMessage = db.Text(why)
		r.WaitsFor, r.Queued = flow.WaitsRetry, time.Now().Add(pause)
	})
}

func (s *Store) handBack(ctx context.Context, c Claim, change func(*Run)) error {
	var r Run
	err := s.commitRun(ctx, c.RunID, func(ctx context.Context, tx *db.Tx) (err error) {
		if err := s.holdFlow(ctx, tx, c.RunID); err != nil {
			return err
		}

		r, err = scanRun(
			tx.QueryRow(
				ctx,
				`SELECT `+runColumns+` FROM runs WHERE`+held+s.db.ForUpdate(),
				c.RunID,
				c.Worker,
				c.hash(),
			),
		)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrLost
		}
		if err != nil {
			return err
		}
		if r.CancelRequested != nil {
			return s.end(ctx, tx, &r, Result{State: RunCancelled})
		}

		change(&r)
		return r.again(ctx, tx)
	})
	if err == nil {
		s.moved(ctx, r)
	}

	return err
}

// silence is the rest of a lease below which its worker has missed a heartbeat. A worker sends one every
// third of a lease of 30 s.
const silence = 15 * time.Second

// Unheard describes what happens next to a run whose worker has missed heartbeats. It is empty for every
// other run.
func (s *Store) Unheard(r Run) string {
	if r.State != RunInProgress || r.LeaseUntil == nil || r.LeaseUntil.Sub(s.db.Now()) > silence {
		return ""
	}

	next := "another worker may take the run then"
	switch {
	case r.CancelRequested != nil:
		next = "the run is cancelled then"
	case r.Attempt >= MaxAttempts:
		next = "this was its last attempt"
	}

	return fmt.Sprintf(
		"the worker %s has not been heard from; its lease ends at %s, and %s",
		cmp.Or(r.WorkerName, r.Worker),
		r.LeaseUntil.Format("15:04:05 UTC"),
		next,
	)
}
