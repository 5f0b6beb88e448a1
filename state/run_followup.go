package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"millwright/schema"
	"millwright/schema/agentconfig"
	"millwright/state/budget"
	"millwright/state/db"
	"millwright/state/flow"
	"millwright/state/notice"
)

// maxPending is how many messages may wait for one execution, and maxPendingText how many characters of them.
const (
	maxPending     = 100
	maxPendingText = 8 << 20
	maxLiveText    = 128 << 10 // of a message to a living session: a longer one waits for the next execution
)

const waitingSQL = `SELECT count(*), coalesce(sum(length(message)), 0)
FROM followups
WHERE run_id = $1 AND execution = $2`

// Followup sends a message to a run and returns its UID and its effect. A repeat of a request within
// 24 hours, by idem, returns what the first one did, and sends nothing. ErrNotFound when there is no such
// run; ErrConflict when the repeat's request differs; ErrFull when too many messages wait already, or the
// run is being cancelled.
func (s *Store) Followup(
	ctx context.Context,
	id, text string,
	idem Idempotency,
) (uid string, outcome FollowupOutcome, err error) {
	var r Run
	first := ""
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) (err error) {
		uid = NewID(PrefixFollowup)
		if err := s.holdFlow(ctx, tx, id); err != nil {
			return err
		}
		if r, err = s.lockRun(ctx, tx, id); err != nil {
			return err
		}

		if r.CancelRequested != nil && !r.Ended() {
			return refuse(ErrFull, "run %s is being cancelled: send the message when it has ended", id)
		}

		var execution int
		execution, outcome = r.next()
		if outcome == FollowupPending && r.live && len(text) <= maxLiveText {
			execution, outcome = r.Execution, FollowupLive
		}
		if idem.Key != "" {
			if first, err = s.first(ctx, tx, idem, r.FactoryUID, uid+" "+string(outcome)); err != nil || first != "" {
				return err
			}
		}

		return s.follow(ctx, tx, &r, message{
			uid: uid, text: text, execution: execution, live: outcome == FollowupLive,
		})
	})
	if err != nil {
		return "", "", err
	}
	if uid, did, ok := strings.Cut(first, " "); ok {
		return uid, FollowupOutcome(did), nil
	}

	s.moved(ctx, r)
	if outcome == FollowupLive {
		s.Notify(notice.Wake, r.Worker+" "+id)
	}
	return uid, outcome, nil
}

// next returns the execution that gets the next message to a run, and what becomes of the message.
func (r *Run) next() (execution int, outcome FollowupOutcome) {
	switch {
	case r.State == RunQueued:
		return r.Execution, FollowupQueued
	case r.Ended():
		return r.Execution + 1, FollowupHandoff
	}
	return r.Execution + 1, FollowupPending
}

// message is a text for an execution of a run. Unless it is empty, delivery is what it comes from.
type message struct {
	uid, text, delivery string
	execution           int
	live                bool // it is for the agent's living session
}

// follow sends a message to a locked run. ErrFull when too many wait already.
func (s *Store) follow(ctx context.Context, tx *db.Tx, r *Run, m message) error {
	var waiting, size int
	if err := tx.QueryRow(ctx, waitingSQL, r.ID, m.execution).Scan(&waiting, &size); err != nil {
		return err
	}
	if full := waiting >= maxPending || waiting > 0 && size+len(m.text) > maxPendingText; full &&
		!r.Ended() { // what waited when the run was cancelled goes with the message that reopens it
		return refuse(ErrFull, "run %s has %d messages waiting already", r.ID, waiting)
	}

	if r.Ended() {
		if err := s.reenter(ctx, tx, r); err != nil {
			return err
		}
	}

	now := time.Now()
	_, err := tx.Exec(ctx, insertFollowupSQL, m.uid, r.ID, r.FactoryUID, m.text, m.execution, db.Micros(now),
		m.delivery,
		db.Flag(m.live))
	if err != nil {
		return err
	}

	if r.Ended() {
		r.Execution, r.Attempt, r.StatusMessage, r.ErrorCode = m.execution, 1, "", ""
		return r.requeue(ctx, tx)
	}

	_, err = tx.Exec(ctx, `UPDATE runs SET updated_at = $2 WHERE id = $1`, r.ID, db.Micros(now))
	return err
}

// reenter makes a locked run that had ended wait for the others of its key.
func (s *Store) reenter(ctx context.Context, tx *db.Tx, r *Run) error {
	if r.Flow == nil {
		return nil
	}

	r.Flow.SupersededBy = ""
	if r.Flow.Retry != nil {
		r.Flow.Retry.Tried, r.Flow.Retry.First = 0, 0
	}
	c := r.Flow.Concurrency
	if c == nil {
		return nil
	}

	m := s.admission(tx, r.FactoryUID, r.AutomationUID)
	waits, skipped, err := m.enter(ctx, *c, r.ID, schema.BusyQueue)
	if err == nil && skipped != "" {
		return refuse(ErrFull, "too many runs of automation %q wait already", r.AutomationUID)
	}

	r.WaitsFor = waits
	r.changed = append(r.changed, m.changed...)
	return err
}

// Prompts returns, for each execution so far, the message that began it: the run's prompt, and then
// follow-ups.
func (s *Store) Prompts(ctx context.Context, r Run) ([]Message, error) {
	left := maxSaid
	prompts, err := s.prompts(ctx, r, &left)
	if err != nil {
		return nil, err
	}

	return prompts, s.begin(ctx, r, prompts)
}

// Servers returns the mcp_servers of a run's configuration with the values that are sealed at rest, as
// JSON; nil when it has none.
func (s *Store) Servers(ctx context.Context, r Run) (json.RawMessage, error) {
	var sealed []byte
	err := s.db.QueryRow(ctx, `SELECT sealed FROM runs WHERE id = $1`, r.ID).Scan(&sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, noRun(r.ID, err)
	}
	if err != nil {
		return nil, err
	}
	if sealed != nil {
		return s.seal.Open("run "+r.ID, sealed)
	}

	config, err := agentconfig.Decode(r.Config)
	if err != nil || config.MCPServers == nil {
		return nil, err
	}

	return json.Marshal(config.MCPServers)
}

// SubmittedPrompt returns the whole text that the agent gets for the run's current execution: the prompt with
// the messages that came before the agent began, or the messages that began a later execution, and the
// envelope.
func (s *Store) SubmittedPrompt(ctx context.Context, r Run) (string, error) {
	return s.given(ctx, r, r.Execution)
}

// ReviewParked puts the runs back into the queue that need not wait for their budget any more by now. It ends those
// as FAILED that have waited for budget.MaxWait and whose budget is spent still, and returns them.
func (s *Store) ReviewParked(ctx context.Context, now time.Time) (ended []Run, err error) {
	overdue, err := db.Strings(ctx, s.db.Reader, overdueSQL, db.Micros(now), db.Micros(now.Add(-budget.MaxWait)))
	if err != nil {
		return nil, err
	}

	for _, id := range overdue {
		r, err := s.giveUpWaiting(ctx, id, now)
		if ofRow(err) {
			s.Skip(loopReap, r.FactoryUID, "run "+id, err)
			continue
		}
		if err != nil {
			return ended, err
		}
		if r.Ended() {
			s.moved(ctx, r)
			ended = append(ended, r)
		}
	}

	var freed int64
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) (err error) {
		freed, err = tx.Exec(ctx, unparkDueSQL, db.Micros(now))
		return err
	})
	if err == nil && freed > 0 {
		s.Publish(notice.Notice{Topic: notice.Queued})
	}

	return ended, err
}

// giveUpWaiting ends a parked run if its budget is spent still.
func (s *Store) giveUpWaiting(ctx context.Context, id string, now time.Time) (r Run, err error) {
	err = s.commitRun(ctx, id, func(ctx context.Context, tx *db.Tx) (err error) {
		if err := s.holdFlow(ctx, tx, id); err != nil {
			return err
		}
		if r, err = s.lockRun(ctx, tx, id); err != nil || r.ParkedUntil == nil {
			return err
		}

		day, err := budget.On(ctx, tx.Reader, s.serverBudget(), now)
		if err != nil {
			return err
		}
		spent := day.Spent(r.scopes(), r.claims > 0)
		if spent == nil {
			return nil
		}

		if err := s.countStopped(ctx, tx, r, now); err != nil {
			return err
		}
		return s.end(ctx, tx, &r, Result{State: RunFailed, ErrorCode: codeBudget, Message: spent.Waited()})
	})
	return r, err
}

// Fire makes the run of a tick, once however many replicas try; a nil run skips the tick. It reports
// whether this call was the one, and what the automation's flow made of the tick. ErrMoved: the factory's
// definition changed since the schedule was read.
func (s *Store) Fire(ctx context.Context, t Tick, run *NewRun) (fired bool, d FlowDecision, err error) {
	var changed []Run
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		fired, d, changed = false, FlowDecision{}, nil
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

		if run.keyed() {
			if err := s.holdFlows(ctx, tx, []string{run.AutomationUID}); err != nil {
				return err
			}

			m := s.admission(tx, run.FactoryUID, run.AutomationUID)
			d, err = m.admit(ctx, *run)
			changed = m.changed
			return err
		}

		return s.insertRunWith(*run, func(query string, args ...any) error {
			_, err := tx.Exec(ctx, query, args...)
			return err
		})
	})
	if err != nil || !fired || run == nil {
		return fired && err == nil, d, err
	}

	if !d.Merged(run.ID) {
		s.moved(ctx, run.run())
	}
	s.movedAll(ctx, changed)
	return true, d, nil
}

// admit stores a run whose automation has a flow, or does with its delivery what the flow says. The decision is
// empty for a run that starts or waits on its own.
func (m *admission) admit(ctx context.Context, r NewRun) (FlowDecision, error) {
	d, err := m.join(ctx, r)
	if err == nil && d.Decision == "" {
		d, err = m.start(ctx, r)
	}
	if err != nil || d.Decision == "" || r.DeliveryUID == "" {
		return d, err
	}

	return d, d.Record(ctx, m.tx, r.FactoryUID, r.WebhookUID, r.DeliveryUID, r.At)
}

// join gives a delivery to the run of its conversation, or to the one whose window is open.
func (m *admission) join(ctx context.Context, r NewRun) (FlowDecision, error) {
	window, err := m.window(ctx, r)
	if err != nil {
		return FlowDecision{}, err
	}

	talk, err := m.conversation(ctx, r)
	switch {
	case err != nil:
		return FlowDecision{}, err
	case talk != nil && (window == nil || talk.ID != window.ID):
		return m.follow(ctx, talk, r)
	case window != nil:
		return m.extend(ctx, window, r)
	}

	return FlowDecision{}, nil
}

// window returns the run whose window is open for the delivery; nil when there is none.
func (m *admission) window(ctx context.Context, r NewRun) (*Run, error) {
	b := r.Flow.Debounce
	if b == nil {
		return nil, nil
	}

	run, err := m.named(ctx, flow.PartDebounce, b.Key, true, func(run Run) bool {
		return run.WaitsFor == flow.WaitsDebounce
	})
	if run == nil || err != nil {
		return nil, err
	}

	if run.due(r.At) {
		return nil, m.release(ctx, run)
	}
	return run, nil
}

// follow makes a delivery a message to a run.
func (m *admission) follow(ctx context.Context, run *Run, r NewRun) (FlowDecision, error) {
	execution, _ := run.next()
	err := m.s.follow(ctx, m.tx, run, message{
		uid:       NewID(PrefixFollowup),
		text:      r.Flow.Message,
		delivery:  r.DeliveryUID,
		execution: execution,
	})
	if errors.Is(err, ErrFull) {
		return FlowDecision{AutomationUID: r.AutomationUID, Decision: flow.SkippedFull}, nil
	}
	if err != nil {
		return FlowDecision{}, err
	}

	m.changed = append(m.changed, *run)
	d := FlowDecision{AutomationUID: r.AutomationUID, Decision: flow.FollowedUp, RunID: run.ID}
	return d, m.keys.Use(ctx, m.tx, flow.PartConversation, r.Flow.Conversation)
}

// ReleaseDue ends the wait of the runs whose window or pause is over, and returns when the next one's will be; the
// zero time when none waits so.
func (s *Store) ReleaseDue(ctx context.Context) (next time.Time, err error) {
	type due struct{ id, automation, factory string }
	now := time.Now()
	runs, err := db.All(ctx, s.db.Reader, func(row db.Row) (d due, err error) {
		return d, row.Scan(&d.id, &d.automation, &d.factory)
	}, dueRunsSQL, db.Micros(now), db.Micros(now.Add(clockSet)), dueAtOnce)
	if err != nil {
		return next, err
	}

	for _, d := range runs {
		err := s.releaseDue(ctx, d.automation, d.id)
		if ofRow(err) {
			s.Skip(loopDue, d.factory, "run "+d.id, err)
		} else if err != nil {
			return next, err
		}
	}

	var at int64
	err = s.db.QueryRow(ctx, nextDueSQL).Scan(&at)
	if at != 0 {
		next = db.Time(at)
	}
	return next, err
}

func (s *Store) releaseDue(ctx context.Context, automation, id string) error {
	var changed []Run
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		changed = nil
		if err := s.holdFlows(ctx, tx, []string{automation}); err != nil {
			return err
		}

		run, err := s.lockRun(ctx, tx, id)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if run.WaitsFor != flow.WaitsDebounce && run.WaitsFor != flow.WaitsRetry || !run.due(time.Now()) {
			return nil
		}

		m := s.admission(tx, run.FactoryUID, run.AutomationUID)
		err = m.release(ctx, &run)
		changed = m.changed
		return err
	})
	if err == nil {
		s.movedAll(ctx, changed)
	}

	return err
}
