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
	"millwright/state/notice"
)

// Undecided is an automation that a delivery starts only after an answer of its forge.
type Undecided = flow.Undecided

// Decisions on deliveries whose forge is asked.
const (
	SkippedForge   = flow.SkippedForge   // the forge gave no answer
	SkippedTrigger = flow.SkippedTrigger // no trigger matches, by its answer
)

// Undecided returns the automations that are to be decided on now: at most limit, of all factories by turns. Those of
// one factory are in the order of their deliveries.
func (s *Store) Undecided(ctx context.Context, limit int) ([]Undecided, error) {
	return flow.Due(ctx, s.db.Reader, time.Now(), limit)
}

// UndecidedOf returns the deliveries that an automation may start on, once their forge has answered: the oldest
// first, at most limit.
func (s *Store) UndecidedOf(ctx context.Context, automationUID string, limit int) ([]Undecided, error) {
	return flow.UndecidedOf(ctx, s.db.Reader, automationUID, limit)
}

// HoldUndecided keeps other replicas from a decision until a time. It reports false if another one was first.
func (s *Store) HoldUndecided(ctx context.Context, u *Undecided, until time.Time) (held bool, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		row := *u
		if held, err = row.Hold(ctx, tx, until); held {
			*u = row
		}
		return err
	})
	return held && err == nil, err
}

// Postpone has a decision made at a later time, and notes why. It does nothing if the decision was made before.
func (s *Store) Postpone(ctx context.Context, u Undecided, next time.Time, why string) error {
	err := s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		waits, err := u.Postpone(ctx, tx, next)
		if err != nil || !waits {
			return err
		}
		return noteDecision(ctx, tx, s.db.ForUpdate(), u, 0, FlowDecision{
			AutomationUID: u.AutomationUID, Decision: flow.WaitsForge, Detail: why,
		})
	})
	if err == nil {
		s.Notify(notice.Delivery, u.WebhookUID)
	}
	return err
}

// Decide ends a decision, once: with a run, or with what was decided in its place. A run is of the factory's
// definition of generation, or ErrMoved. decided is false if the decision was made before. made is the
// result: for a run the decision of its flow, whose Decision is empty if the run starts.
func (s *Store) Decide(
	ctx context.Context,
	u Undecided,
	generation int64,
	run *NewRun,
	instead FlowDecision,
) (decided bool, made FlowDecision, err error) {
	var changed []Run
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		decided, made, changed = false, instead, nil
		made.AutomationUID = u.AutomationUID
		if run != nil {
			if err := holdGeneration(ctx, tx, s.db.ForUpdate(), u.FactoryUID, generation); err != nil {
				return err
			}
		}

		var err error
		if decided, err = u.Remove(ctx, tx); err != nil || !decided {
			return err
		}
		if run != nil {
			made, changed, err = s.startDecided(ctx, tx, *run)
		} else if made.Decision != flow.SkippedTrigger {
			err = s.recordSkip(ctx, tx, u, made)
		}
		if err != nil {
			return err
		}

		started := 0
		if run != nil && !made.Merged(run.ID) {
			started = 1
		}
		return noteDecision(ctx, tx, s.db.ForUpdate(), u, started, made)
	})
	if err != nil || !decided {
		return false, made, err
	}

	s.Notify(notice.Delivery, u.WebhookUID)
	if run != nil && !made.Merged(run.ID) {
		s.moved(ctx, run.run())
	}
	s.movedAll(ctx, changed)
	return true, made, nil
}

// holdGeneration keeps a factory at a generation until tx ends; ErrMoved if it has another.
func holdGeneration(ctx context.Context, tx *db.Tx, forUpdate, factoryUID string, generation int64) error {
	var is int64
	err := tx.QueryRow(ctx, `SELECT generation FROM factories WHERE uid = $1`+forUpdate, factoryUID).Scan(&is)
	if errors.Is(err, sql.ErrNoRows) || err == nil && is != generation {
		return ErrMoved
	}
	return err
}

// startDecided stores the run of a decision, or does what its flow says.
func (s *Store) startDecided(ctx context.Context, tx *db.Tx, run NewRun) (FlowDecision, []Run, error) {
	if !run.keyed() {
		return FlowDecision{AutomationUID: run.AutomationUID}, nil,
			s.insertRunWith(run, func(query string, args ...any) error {
				_, err := tx.Exec(ctx, query, args...)
				return err
			})
	}

	if err := s.holdFlows(ctx, tx, []string{run.AutomationUID}); err != nil {
		return FlowDecision{}, nil, err
	}
	m := s.admission(tx, run.FactoryUID, run.AutomationUID)
	m.late = run.DeliveryUID
	d, err := m.admit(ctx, run)
	return d, m.changed, err
}

// recordSkip notes for the automation that a delivery started nothing.
func (s *Store) recordSkip(ctx context.Context, tx *db.Tx, u Undecided, d FlowDecision) error {
	if err := s.holdFlows(ctx, tx, []string{u.AutomationUID}); err != nil {
		return err
	}
	return d.Record(ctx, tx, u.FactoryUID, u.WebhookUID, u.DeliveryUID, time.Now())
}

const (
	deliveryFlowSQL = `SELECT d.flow
FROM deliveries d
JOIN webhooks w ON w.id = d.webhook_id
WHERE w.uid = $1 AND d.uid = $2`

	setDeliveryFlowSQL = `UPDATE deliveries
SET flow = $3, started = started + $4
WHERE uid = $2 AND webhook_id = (
	SELECT id
	FROM webhooks
	WHERE uid = $1
)`
)

// noteDecision writes a decision into the row of its delivery, in place of the one before; one that is empty
// removes that. It adds the started runs to those of the row. A row that has expired stays so.
func noteDecision(
	ctx context.Context, tx *db.Tx, forUpdate string, u Undecided, started int, d FlowDecision,
) error {
	var text string
	query := deliveryFlowSQL
	if forUpdate != "" {
		query += forUpdate + " OF d"
	}
	err := tx.QueryRow(ctx, query, u.WebhookUID, u.DeliveryUID).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}

	var all []FlowDecision
	if text != "" {
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			return err
		}
	}
	all = slices.DeleteFunc(all, func(d FlowDecision) bool { return d.AutomationUID == u.AutomationUID })
	if d.Decision != "" {
		d.AutomationUID = u.AutomationUID
		all = append(all, d)
	}

	if text, err = decisionsText(all); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, setDeliveryFlowSQL, u.WebhookUID, u.DeliveryUID, text, started)
	return err
}
