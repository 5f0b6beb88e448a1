package state

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"millwright/schema"
	"millwright/state/db"
	"millwright/state/flow"
)

// keyed reports whether a key of the run names it, so that other runs wait for it or it for them.
func (r NewRun) keyed() bool {
	f := r.Flow
	return f != nil && (f.Concurrency != nil || f.Debounce != nil || f.Conversation != "")
}

const (
	holdFlowsSQL = `SELECT pg_advisory_xact_lock(
	hashtextextended('millwright flow ' || current_schema() || uid, 0)
)
FROM unnest($1::text[]) AS t (uid)`

	holdFlowOfSQL = `SELECT pg_advisory_xact_lock(
	hashtextextended('millwright flow ' || current_schema() || automation_uid, 0)
)
FROM runs
WHERE id = $1 AND flow <> ''`
)

// holdFlows keeps the keys of automations, which are sorted, from others until tx ends. Rows of runs are locked
// after that and never before.
func (s *Store) holdFlows(ctx context.Context, tx *db.Tx, automations []string) error {
	if !s.db.Postgres() || len(automations) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, holdFlowsSQL, automations)
	return err
}

// holdFlow is holdFlows for the automation of a run that has a flow.
func (s *Store) holdFlow(ctx context.Context, tx *db.Tx, runID string) error {
	if !s.db.Postgres() {
		return nil
	}
	_, err := tx.Exec(ctx, holdFlowOfSQL, runID)
	return err
}

// admission is a change of runs that wait for one another. Its caller holds the flow of their automation.
type admission struct {
	s       *Store
	tx      *db.Tx
	keys    flow.Keys
	late    string // the delivery at hand, if newer ones may have been admitted before
	changed []Run  // beside the run at hand
}

func (s *Store) admission(tx *db.Tx, factoryUID, automationUID string) *admission {
	return &admission{s: s, tx: tx, keys: flow.Keys{FactoryUID: factoryUID, AutomationUID: automationUID}}
}

// conversation returns the run that the delivery is a follow-up of; nil when there is none. A cancelled run has no
// follow-ups.
func (m *admission) conversation(ctx context.Context, r NewRun) (*Run, error) {
	if r.Flow.Conversation == "" {
		return nil, nil
	}
	return m.named(ctx, flow.PartConversation, r.Flow.Conversation, false, func(run Run) bool {
		return run.State != RunCancelled && run.CancelRequested == nil
	})
}

// named returns the first run that a key names, locked. Runs that do not fit are taken off the key.
func (m *admission) named(
	ctx context.Context, part, hash string, waiting bool, fits func(Run) bool,
) (*Run, error) {
	for {
		id, err := m.keys.Run(ctx, m.tx, part, hash, waiting)
		if id == "" || err != nil {
			return nil, err
		}

		run, err := m.s.lockRun(ctx, m.tx, id)
		if err == nil && fits(run) {
			return &run, nil
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if _, _, err := m.keys.Remove(ctx, m.tx, part, hash, id); err != nil {
			return nil, err
		}
	}
}

const extendWindowSQL = `UPDATE runs
SET
	delivery_uid = $2,
	envelope = $3,
	queued_at = $4,
	updated_at = $5
WHERE id = $1`

// extend makes the delivery the newest of a run whose window is open. One that is late may only extend the window.
func (m *admission) extend(ctx context.Context, run *Run, r NewRun) (FlowDecision, error) {
	starts := r.At.Add(run.Flow.Debounce.Wait)
	if last := run.Created.Add(run.Flow.Debounce.Max); starts.After(last) {
		starts = last
	}

	r.bound()
	newest, envelope := r.DeliveryUID, r.Envelope
	if m.late != "" && run.DeliveryUID > newest {
		newest, envelope = run.DeliveryUID, run.Envelope
	}
	err := m.tx.ExecOne(ctx, extendWindowSQL, run.ID, newest, envelope, db.Micros(starts), db.Micros(r.At))
	m.changed = append(m.changed, *run)
	return FlowDecision{AutomationUID: r.AutomationUID, Decision: flow.Debounced, RunID: run.ID}, err
}

// start stores the run, which may have to wait.
func (m *admission) start(ctx context.Context, r NewRun) (FlowDecision, error) {
	f := r.Flow
	d := FlowDecision{AutomationUID: r.AutomationUID}
	full, err := m.full(ctx, f)
	if full || err != nil {
		d.Decision = flow.SkippedFull
		return d, err
	}

	switch {
	case f.Debounce != nil:
		r.waitsFor, r.queuedAt = flow.WaitsDebounce, r.At.Add(f.Debounce.Wait)
		d.Decision, d.RunID = flow.Debounced, r.ID
		err = m.keys.Add(ctx, m.tx, flow.PartDebounce, f.Debounce.Key, r.ID, true)
	case f.Concurrency != nil:
		r.waitsFor, d.Decision, err = m.enter(ctx, *f.Concurrency, r.ID, f.Concurrency.WhenBusy)
	}
	if err != nil || d.Skipped() {
		return d, err
	}

	if f.Conversation != "" {
		if err := m.keys.Add(ctx, m.tx, flow.PartConversation, f.Conversation, r.ID, false); err != nil {
			return d, err
		}
	}

	return d, m.s.insertRunWith(r, func(query string, args ...any) error {
		_, err := m.tx.Exec(ctx, query, args...)
		return err
	})
}

// full reports whether no more runs may wait, or no more keys be remembered.
func (m *admission) full(ctx context.Context, f *Flow) (full bool, err error) {
	if f.Debounce != nil {
		full, err = m.keys.WaitingFull(ctx, m.tx)
	}
	if !full && err == nil && f.Concurrency != nil {
		full, err = m.keys.Full(ctx, m.tx, flow.PartConcurrency)
	}
	if !full && err == nil && f.Conversation != "" {
		full, err = m.keys.Full(ctx, m.tx, flow.PartConversation)
	}
	return full, err
}

// enter names a run by its key of concurrency. It returns what the run waits for, or why it may not start.
func (m *admission) enter(
	ctx context.Context, c FlowConcurrency, runID string, busy schema.WhenBusy,
) (waits, skipped string, err error) {
	if err := m.promote(ctx, c.Key, c.Limit); err != nil { // the definition may allow more than before
		return "", "", err
	}

	free, err := m.free(ctx, c)
	if err == nil && !free && busy == schema.BusySkip {
		return "", flow.SkippedBusy, nil
	}
	if err == nil && !free && (busy == schema.BusyCancel || busy == schema.BusyLatest) {
		skipped, err = m.supersede(ctx, c, runID, busy)
		if skipped == "" && err == nil {
			free, err = m.free(ctx, c)
		}
	}
	if err != nil || skipped != "" {
		return "", skipped, err
	}
	if free {
		return "", "", m.keys.Add(ctx, m.tx, flow.PartConcurrency, c.Key, runID, false)
	}

	full, err := m.keys.WaitingFull(ctx, m.tx)
	if full || err != nil {
		return "", flow.SkippedFull, err
	}
	return flow.WaitsConcurrency, "", m.keys.Add(ctx, m.tx, flow.PartConcurrency, c.Key, runID, true)
}

// free reports whether one more run of the key may go on.
func (m *admission) free(ctx context.Context, c FlowConcurrency) (bool, error) {
	active, err := m.keys.Runs(ctx, m.tx, flow.PartConcurrency, c.Key, false, c.Limit)
	return len(active) < c.Limit, err
}

// supersede cancels the runs of a key that give way to a new one: all that wait, and with BusyCancel the oldest of
// those that go on, so that with the new one no more than the limit are left. A late delivery is skipped if newer
// ones have the places that it could take.
func (m *admission) supersede(
	ctx context.Context, c FlowConcurrency, by string, busy schema.WhenBusy,
) (skipped string, err error) {
	var active []Run
	waiting, err := m.runs(ctx, c.Key, true, flow.MaxWaiting)
	if err == nil && (busy == schema.BusyCancel || m.late != "") {
		active, err = m.runs(ctx, c.Key, false, flow.MaxKeys)
	}
	if err != nil {
		return "", err
	}

	if m.late != "" {
		waits, goes := m.newer(waiting), m.newer(active)
		if waits+goes >= c.Limit || waits > 0 && busy == schema.BusyLatest {
			return flow.SkippedNewer, nil
		}
	}

	leave, stay := waiting, 0
	if busy == schema.BusyCancel {
		leave, stay = append(active, waiting...), c.Limit-1
	}
	many := len(leave) - stay
	if m.late != "" {
		leave = slices.DeleteFunc(leave, func(run Run) bool { return run.DeliveryUID > m.late })
	}

	leave = leave[:max(0, min(many, len(leave)))]
	slices.Reverse(leave) // none of those that wait takes the place of one that goes on
	for i := range leave {
		if err := m.giveWay(ctx, &leave[i], by); err != nil {
			return "", err
		}
	}

	return "", nil
}

// newer counts the runs whose delivery came after the one at hand.
func (m *admission) newer(runs []Run) (n int) {
	for _, run := range runs {
		if run.DeliveryUID > m.late {
			n++
		}
	}
	return n
}

// runs returns the runs of a key that wait, or that go on, locked and in order. It leaves out those that somebody
// has cancelled.
func (m *admission) runs(ctx context.Context, key string, waiting bool, limit int) (runs []Run, err error) {
	ids, err := m.keys.Runs(ctx, m.tx, flow.PartConcurrency, key, waiting, limit)
	if err != nil {
		return nil, err
	}

	for _, id := range ids {
		run, err := m.s.lockRun(ctx, m.tx, id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if err == nil && run.CancelRequested == nil {
			runs = append(runs, run)
		}
	}

	return runs, nil
}

// promote lets the runs of a key start that wait and may, in order. A limit of 0 is the one of each run.
func (m *admission) promote(ctx context.Context, hash string, limit int) error {
	for {
		run, err := m.named(ctx, flow.PartConcurrency, hash, true, func(run Run) bool {
			return run.WaitsFor == flow.WaitsConcurrency
		})
		if run == nil || err != nil {
			return err
		}

		free, err := m.free(ctx, FlowConcurrency{Key: hash, Limit: cmp.Or(limit, run.Flow.Concurrency.Limit)})
		if !free || err != nil {
			return err
		}

		if _, _, err := m.keys.Remove(ctx, m.tx, flow.PartConcurrency, hash, run.ID); err != nil {
			return err
		}
		if err := m.keys.Add(ctx, m.tx, flow.PartConcurrency, hash, run.ID, false); err != nil {
			return err
		}
		if err := m.ready(ctx, run, ""); err != nil {
			return err
		}
	}
}

const readySQL = `UPDATE runs
SET
	waits_for = $2,
	queued_at = $3,
	updated_at = $3
WHERE id = $1`

// ready ends a locked run's wait, or changes what it waits for.
func (m *admission) ready(ctx context.Context, run *Run, waits string) error {
	now := time.Now().Truncate(time.Microsecond).UTC()
	run.WaitsFor, run.Queued, run.Updated = waits, now, now
	m.changed = append(m.changed, *run)
	return m.tx.ExecOne(ctx, readySQL, run.ID, waits, db.Micros(now))
}

// release ends a locked run's wait for a time.
func (m *admission) release(ctx context.Context, run *Run) error {
	if run.WaitsFor == flow.WaitsRetry {
		return m.ready(ctx, run, "")
	}

	if b := run.Flow.Debounce; b != nil {
		if _, _, err := m.keys.Remove(ctx, m.tx, flow.PartDebounce, b.Key, run.ID); err != nil {
			return err
		}
	}

	c := run.Flow.Concurrency
	if c == nil {
		return m.ready(ctx, run, "")
	}

	waits, skipped, err := m.enter(ctx, *c, run.ID, c.WhenBusy)
	if err != nil {
		return err
	}
	if skipped == "" {
		return m.ready(ctx, run, waits)
	}

	d := FlowDecision{AutomationUID: run.AutomationUID, Decision: skipped, RunID: run.ID}
	if err := d.Record(ctx, m.tx, run.FactoryUID, run.WebhookUID, run.DeliveryUID, time.Now()); err != nil {
		return err
	}

	err = m.s.end(ctx, m.tx, run, Result{State: RunCancelled, Message: skipped})
	m.changed = append(m.changed, *run)
	return err
}

// leave takes a locked run that has ended off its keys, and lets the next one start that waits for it.
func (s *Store) leave(ctx context.Context, tx *db.Tx, r *Run, waitedFor string) error {
	if r.Flow == nil {
		return nil
	}

	m := s.admission(tx, r.FactoryUID, r.AutomationUID)
	if b := r.Flow.Debounce; b != nil && waitedFor == flow.WaitsDebounce {
		if _, _, err := m.keys.Remove(ctx, tx, flow.PartDebounce, b.Key, r.ID); err != nil {
			return err
		}
	}

	c := r.Flow.Concurrency
	if c == nil {
		return nil
	}

	removed, waited, err := m.keys.Remove(ctx, tx, flow.PartConcurrency, c.Key, r.ID)
	if err == nil && removed && !waited {
		err = m.promote(ctx, c.Key, 0)
	}

	r.changed = append(r.changed, m.changed...)
	return err
}

// leaveAll is leave of a run whose flow cannot be read.
func (s *Store) leaveAll(ctx context.Context, tx *db.Tx, r *Run) error {
	m := s.admission(tx, r.FactoryUID, r.AutomationUID)
	hashes, err := m.keys.RemoveRun(ctx, tx, r.ID)
	if err != nil {
		return err
	}

	for _, hash := range hashes {
		if err := m.promote(ctx, hash, 0); err != nil {
			return err
		}
	}

	r.changed = append(r.changed, m.changed...)
	return nil
}

// FlowOf returns the flow of the run that a payload starts by an automation; nil when it waits for no others.
// message is what the run of its conversation gets in its place. A scheduled run has neither webhook nor payload.
func FlowOf(a RoutedAutomation, webhookUID string, p schema.Payload, message string) *Flow {
	return flow.Of(a.Spec.Flow, a.UID, webhookUID, p, message)
}

// end ends the current execution of a locked run, whose flow is held, and begins the next one where messages wait
// for it or the run is to be tried again. An ended run lets others of its automation start.
func (s *Store) end(ctx context.Context, tx *db.Tx, r *Run, result Result) error {
	if err := r.leaveSession(ctx, tx); err != nil {
		return err
	}

	var pending int
	if r.CancelRequested == nil && result.State != RunCancelled && result.ErrorCode != codeBudget {
		if err := tx.QueryRow(ctx, pendingSQL, r.ID, r.Execution+1).Scan(&pending); err != nil {
			return err
		}
	}

	if result.State == RunCancelled && r.Flow != nil && r.Flow.SupersededBy != "" {
		result.Message = "superseded by run " + r.Flow.SupersededBy
	}

	said := r.CancelRequested != nil && result.State == RunCancelled && result.Message == "" ||
		r.questions > 0 && result.State == RunBlocked
	if !said { // a request to cancel, and a question, have a message of their own
		r.StatusMessage = db.Text(result.Message)
	}

	r.ErrorCode = result.ErrorCode
	if pending > 0 {
		if r.Flow != nil && r.Flow.Retry != nil {
			r.Flow.Retry.Tried, r.Flow.Retry.First = 0, 0
		}

		r.Execution++
		r.Attempt = 1
		return r.requeue(ctx, tx)
	}
	if err := dropUnfinished(ctx, tx, r.ID); err != nil {
		return err
	}

	if r.retries(result) {
		return r.retry(ctx, tx, result)
	}

	if result.State != RunBlocked {
		if err := r.closeQuestions(ctx, tx); err != nil {
			return err
		}
	}

	now := time.Now()
	waited := r.WaitsFor
	r.State, r.WaitsFor = result.State, ""
	err := tx.ExecOne(ctx, endRunSQL, r.ID, string(r.State), r.StatusMessage, r.ErrorCode, db.Micros(now))
	if err != nil {
		return err
	}

	r.nextSeq++
	if err := r.entered(ctx, tx, now); err != nil {
		return err
	}

	return s.leave(ctx, tx, r, waited)
}

// giveWay cancels a locked run for a newer one. A worker that holds it is told to end it.
func (m *admission) giveWay(ctx context.Context, run *Run, by string) error {
	run.Flow.SupersededBy = by
	text, err := flowText(run.Flow)
	if err != nil {
		return err
	}

	now := time.Now().Truncate(time.Microsecond).UTC()
	if run.Held() {
		run.CancelRequested = &now
	}

	err = m.tx.ExecOne(ctx, giveWaySQL, run.ID, db.MicrosOrNull(run.CancelRequested), db.Micros(now), text)
	if err == nil && run.State == RunQueued {
		err = m.s.end(ctx, m.tx, run, Result{State: RunCancelled})
	}

	m.changed = append(m.changed, *run)
	return err
}
