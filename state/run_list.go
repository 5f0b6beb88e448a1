package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"millwright/state/db"
	"millwright/state/flow"
	"millwright/state/runlist"
)

// RunFilter selects the runs of a list; the zero value selects all.
type RunFilter = runlist.Filter[RunState]

// RunSort names what a list of runs is ordered by.
type RunSort = runlist.Sort

// The orders; the run ID breaks ties.
const (
	SortUpdated = runlist.SortUpdated
	SortCreated = runlist.SortCreated
	SortTitle   = runlist.SortTitle
	SortAgent   = runlist.SortAgent
)

// RunOrder is an order and its direction. The zero value lists the last updated run first.
type RunOrder = runlist.Order

// RunPosition is a place in a list of runs: right behind one of them.
type RunPosition = runlist.Position

// Bounds of the memory for one page.
const (
	maxPageBytes = 16 << 20 // of text: long prompts make shorter pages
	readRuns     = 32       // runs that are read at once
)

// Runs returns at most limit of the runs that the filter selects, in the given order, beginning after the
// position if there is one. next is where the list continues; nil at its end. All of a page is of one moment.
//
// A page may have fewer runs than asked for, or none, and the list go on: where no index lists the runs, Runs
// looks at a bounded number of them.
func (s *Store) Runs(
	ctx context.Context, f RunFilter, o RunOrder, after *RunPosition, limit int,
) (runs []Run, next *RunPosition, err error) {
	err = s.db.View(ctx, func(tx db.View) error {
		page, err := runlist.Find(ctx, tx.Built().Query, f, o, after, limit)
		if err != nil {
			return err
		}

		runs, err = runsAt(ctx, tx.Built(), page.Runs)
		if err != nil {
			return err
		}

		next = page.Next
		if n := len(runs); n < len(page.Runs) {
			next = &page.Runs[n-1]
		}

		return nil
	})

	return runs, next, err
}

// runsAt returns the runs at these positions, in their order: as many as their text allows.
func runsAt(ctx context.Context, r db.Reader, found []RunPosition) (runs []Run, err error) {
	size := 0
	for some := range slices.Chunk(found, readRuns) {
		place := map[string]int{}
		var ids []string
		for i, p := range some {
			place[p.ID] = i
			ids = append(ids, p.ID)
		}

		marks, args := db.Placeholders(padded(ids))
		query := `SELECT ` + runColumns + ` FROM runs WHERE id IN (` + marks + `)`
		part, err := db.All(ctx, r, scanRun, query, args...)
		if err != nil {
			return nil, err
		}

		slices.SortFunc(part, func(a, b Run) int { return place[a.ID] - place[b.ID] })

		for _, r := range part {
			if size += len(r.Prompt) + len(r.Config); size > maxPageBytes && len(runs) > 0 {
				return runs, nil
			}
			runs = append(runs, r)
		}
	}

	return runs, nil
}

// RunTally counts the runs in one state that last changed within one span of time.
type RunTally struct {
	State RunState
	From  time.Time // where the span begins: a multiple of its length since the Unix epoch
	Count int64
}

// tallyRunsSQL reads a range of an index for each state, and live runs from another one.
const tallyRunsSQL = `SELECT updated_at / $1 AS span, count(*)
FROM (
	SELECT updated_at
	FROM runs
	WHERE state = $2 AND updated_at >= $3 AND updated_at < $4 AND finished_at IS NOT NULL
	UNION ALL
	SELECT updated_at
	FROM runs
	WHERE state = $2 AND updated_at >= $3 AND updated_at < $4 AND finished_at IS NULL
) AS found
GROUP BY span
ORDER BY span`

// RunTallies counts the runs that last changed between two times, in spans of the given length. Spans and
// states without a run are left out. Its cost grows with the number of these runs.
func (s *Store) RunTallies(ctx context.Context, since, until time.Time, span time.Duration) ([]RunTally, error) {
	var all []RunTally
	for _, in := range RunStates() {
		tallies, err := db.All(ctx, s.db.Reader, func(row db.Row) (RunTally, error) {
			t := RunTally{State: in}
			var at int64
			err := row.Scan(&at, &t.Count)
			t.From = db.Time(at * span.Microseconds())
			return t, err
		}, tallyRunsSQL, span.Microseconds(), string(in), db.Micros(since), db.Micros(until))
		if err != nil {
			return nil, err
		}

		all = append(all, tallies...)
	}

	return all, nil
}

const changesSQL = `SELECT seq, execution, content, at
FROM (
	SELECT seq, execution, content, at
	FROM run_entries
	WHERE run_id = $1 AND kind = '` + kindState + `'
	ORDER BY seq DESC
	LIMIT $2
) AS latest
ORDER BY seq`

// Changes returns the latest changes of a run's state, at most limit of them, oldest first. The run's creation
// is not among them. It returns none for a run that does not exist.
func (s *Store) Changes(ctx context.Context, runID string, limit int) ([]Entry, error) {
	all, err := db.All(ctx, s.db.Reader, func(row db.Row) (e Entry, err error) {
		var content string
		var at int64
		if err := row.Scan(&e.Seq, &e.Execution, &content, &at); err != nil {
			return e, err
		}

		e.At = db.Time(at)
		return e, json.Unmarshal([]byte(content), &e.Change)
	}, changesSQL,
		runID,
		limit)

	return all, err
}

// maxRunChanges is how many changes of a run's state are returned at most.
const maxRunChanges = 1000

// RunChanges returns the first changes of a run's state, at most 1,000 of them, oldest first. The run's creation
// is not among them. It returns none for a run that does not exist.
func (s *Store) RunChanges(ctx context.Context, runID string) ([]Entry, error) {
	return s.entries(ctx, `run_id = $1 AND seq > $2 AND kind = '`+kindState+`'`, runID, 0, maxRunChanges)
}

// NewestRun returns the ID of the newest run of a conversation. ErrNotFound if there is none.
func (s *Store) NewestRun(ctx context.Context, conversationID string) (string, error) {
	var id string
	err := s.db.QueryRow(ctx, `
		SELECT id
		FROM runs
		WHERE conversation_id = $1
		ORDER BY id DESC
		LIMIT 1`, conversationID).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", refuse(ErrNotFound, "conversation %q", conversationID)
	}
	return id, err
}

// ConversationFactories returns the UIDs of the factories whose runs a conversation has; "" stands for runs of
// none. It is empty if there is no such conversation.
func (s *Store) ConversationFactories(ctx context.Context, conversationID string) ([]string, error) {
	return db.Strings(ctx, s.db.Reader, `
		SELECT DISTINCT factory_uid
		FROM runs
		WHERE conversation_id = $1`, conversationID)
}

// WaitingRuns returns the runs of an automation that wait for others of it or for a time, the oldest first: at most
// limit of them.
func (s *Store) WaitingRuns(ctx context.Context, automationUID string, limit int) ([]Run, error) {
	query := `SELECT ` + runColumns + `
FROM runs
WHERE automation_uid = $1 AND state = 'QUEUED' AND waits_for IN ('concurrency', 'debounce', 'retry')
ORDER BY created_at, id
LIMIT $2`
	return db.All(ctx, s.db.Reader, scanRun, query, automationUID, limit)
}

// FlowDecisions returns the deliveries that went to a run or, where runID is empty, those of the automation that
// started nothing: the newest first, at most limit of them.
func (s *Store) FlowDecisions(
	ctx context.Context, automationUID, runID string, limit int,
) ([]RecordedDecision, error) {
	return flow.Decisions(ctx, s.db.Reader, automationUID, runID, limit)
}

const conversationRunsSQL = `SELECT r.id
FROM flow_keys k
JOIN runs r ON r.id = k.run_id
WHERE k.automation_uid = $1 AND k.part = 'conversation' AND k.waiting = 0
ORDER BY k.used_at DESC
LIMIT $2`

// ConversationRuns returns the runs of an automation that later deliveries may go to, the last used first: at most
// limit of them.
func (s *Store) ConversationRuns(ctx context.Context, automationUID string, limit int) ([]Run, error) {
	ids, err := db.Strings(ctx, s.db.Reader, conversationRunsSQL, automationUID, limit)
	if err != nil {
		return nil, err
	}

	runs := make([]Run, 0, len(ids))
	for _, id := range ids {
		run, err := s.Run(ctx, id)
		if err == nil {
			runs = append(runs, run)
		} else if !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}

	return runs, nil
}

// QueueStats describes the queue of runs.
type QueueStats struct {
	Queued int        // runs that wait for a worker
	Oldest *time.Time // when the longest waiting run was queued; nil when none waits
	Held   int        // runs that a worker holds

	Waiting map[string]int // queued runs that no worker may claim yet, by what they wait for
}

const queueSQL = `SELECT count(*), min(queued_at), (SELECT count(*) FROM runs WHERE claim_hash IS NOT NULL)
FROM runs
WHERE state = 'QUEUED' AND waits_for = ''`

const waitingRunsSQL = `SELECT waits_for, count(*)
FROM runs
WHERE state = 'QUEUED' AND waits_for IN ('concurrency', 'debounce', 'retry', 'budget')
GROUP BY waits_for`

// Queue returns how many runs wait and are held just now.
func (s *Store) Queue(ctx context.Context) (QueueStats, error) {
	var q QueueStats
	var oldest sql.NullInt64
	err := s.db.QueryRow(ctx, queueSQL).Scan(&q.Queued, &oldest, &q.Held)
	q.Oldest = db.TimeOrNil(oldest)
	if err != nil {
		return q, err
	}

	q.Waiting = map[string]int{
		flow.WaitsConcurrency: 0, flow.WaitsDebounce: 0, flow.WaitsRetry: 0, waitsBudget: 0,
	}
	err = db.Each(ctx, s.db.Reader, func(row db.Row) error {
		var waits string
		var n int
		err := row.Scan(&waits, &n)
		q.Waiting[waits] = n
		return err
	}, waitingRunsSQL)
	return q, err
}

// DeliveryRun is a run that a delivery started.
type DeliveryRun struct {
	ID            string
	Title         string
	State         string
	WaitsFor      string // as of [Run]
	AutomationUID string
}

// RunsOfDeliveries returns the runs that each of the deliveries started, oldest first.
func (s *Store) RunsOfDeliveries(ctx context.Context, deliveryUIDs ...string) (map[string][]DeliveryRun, error) {
	all := map[string][]DeliveryRun{}
	for len(deliveryUIDs) > 0 {
		chunk := deliveryUIDs[:min(len(deliveryUIDs), 500)]
		deliveryUIDs = deliveryUIDs[len(chunk):]
		marks, args := db.Placeholders(chunk)
		query := `SELECT delivery_uid, id, title, state, waits_for, automation_uid
FROM runs
WHERE delivery_uid IN (` + marks + `) AND delivery_uid <> ''
ORDER BY id`
		err := db.Each(ctx, s.db.Built(), func(row db.Row) error {
			var delivery string
			var r DeliveryRun
			err := row.Scan(&delivery, &r.ID, &r.Title, &r.State, &r.WaitsFor, &r.AutomationUID)
			all[delivery] = append(all[delivery], r)
			return err
		}, query, args...)
		if err != nil {
			return nil, err
		}
	}

	return all, nil
}

// RunSteps is what was said in one run of a conversation.
type RunSteps struct {
	RunID string
	Steps []Step // as of Store.Steps
}

// maxConversationRuns is how many runs of a conversation are read at most, the newest.
const maxConversationRuns = 1000

const conversationSQL = `SELECT id, execution, created_at, octet_length(prompt) + octet_length(envelope)
	+ coalesce((SELECT sum(octet_length(message)) FROM followups WHERE run_id = runs.id AND execution = 1), 0)
FROM runs
WHERE conversation_id = $1 AND ($2 = '' OR id <= $2)
ORDER BY id DESC
LIMIT $3`

// Conversation returns what was said in the runs of a conversation, oldest first: together no more than Steps
// returns of one, the prompts of the runs included. Unless it is empty, last is the newest run to be read.
// ErrNotFound if there is none.
func (s *Store) Conversation(ctx context.Context, id, last string) ([]RunSteps, error) {
	type given struct {
		Run
		size int
	}
	runs, err := db.All(ctx, s.db.Reader, func(row db.Row) (g given, err error) {
		var at int64
		err = row.Scan(&g.ID, &g.Execution, &at, &g.size)
		g.Created = db.Time(at)
		return g, err
	}, conversationSQL, id, last, maxConversationRuns)
	if err == nil && len(runs) == 0 {
		return nil, refuse(ErrNotFound, "conversation %q", id)
	}
	if err != nil {
		return nil, err
	}

	all, left := make([]RunSteps, len(runs)), room{maxSaid, maxSaid}
	for i, r := range runs {
		steps, err := s.steps(ctx, r.Run, 0, &left)
		if err != nil {
			return nil, err
		}

		if r.size > left.given {
			left.given = 0
			steps[0].Messages[0].Content = []Block{leftOut()}
		} else if err := s.begin(ctx, r.Run, steps[0].Messages); err != nil {
			return nil, err
		}

		left.given -= min(r.size, left.given)
		all[len(all)-1-i] = RunSteps{r.ID, steps}
	}

	return all, nil
}
