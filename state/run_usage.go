package state

import (
	"context"
	"encoding/json"
	"time"

	"millwright/state/db"
)

// Usage is what the language models of a run were asked for, and what it cost: the sum of all its executions and
// attempts.
type Usage struct {
	InputTokens  int64        `json:"input_tokens"` // cached ones included
	OutputTokens int64        `json:"output_tokens"`
	CachedTokens int64        `json:"cached_input_tokens"`
	CostUSD      *float64     `json:"inference_cost_usd,omitempty"` // nil: nobody knows
	Models       []ModelUsage `json:"models,omitempty"`             // in the order of their names
}

// ModelUsage is the part of one model. Model is empty for what no model is named for.
type ModelUsage struct {
	Model        string   `json:"model_id"`
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	CachedTokens int64    `json:"cached_input_tokens"`
	CostUSD      *float64 `json:"inference_cost_usd,omitempty"`
}

// SetUsage records what the present attempt has used so far, in place of what was recorded of it before, and
// returns the change. ErrLost when the claim no longer holds.
func (s *Store) SetUsage(ctx context.Context, c Claim, models []ModelUsage) (added Usage, r Run, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *db.Tx) error {
		if r, err = s.lockHeld(ctx, tx, c); err != nil {
			return err
		}

		was, err := usageOf(ctx, tx, r.ID)
		if err != nil {
			return err
		}

		_, err = tx.Exec(ctx, `
			DELETE FROM run_usage
			WHERE run_id = $1 AND execution = $2 AND attempt = $3`, r.ID, r.Execution, r.Attempt)
		if err != nil {
			return err
		}

		for _, m := range models {
			_, err := tx.Exec(ctx, `
				INSERT INTO run_usage (run_id, execution, attempt, model_id, factory_uid, automation_uid,
					input_tokens, output_tokens, cached_tokens, cost_usd, at)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
				r.ID, r.Execution, r.Attempt, m.Model, r.FactoryUID, r.AutomationUID,
				m.InputTokens, m.OutputTokens, m.CachedTokens, m.CostUSD, db.Micros(time.Now()))
			if err != nil {
				return err
			}
		}

		sum, err := usageOf(ctx, tx, r.ID)
		if err != nil {
			return err
		}

		text, err := json.Marshal(sum)
		if err != nil {
			return err
		}

		added = sum.since(was)
		_, err = tx.Exec(ctx, `UPDATE runs SET usage = $2 WHERE id = $1`, r.ID, string(text))
		return err
	})
	return added, r, err
}

// usageOf sums what a run has used.
func usageOf(ctx context.Context, tx *db.Tx, runID string) (Usage, error) {
	var u Usage
	var err error
	u.Models, err = db.All(ctx, tx.Reader, scanUsage, `
		SELECT model_id, CAST(sum(input_tokens) AS BIGINT), CAST(sum(output_tokens) AS BIGINT),
			CAST(sum(cached_tokens) AS BIGINT), sum(cost_usd)
		FROM run_usage
		WHERE run_id = $1
		GROUP BY model_id
		ORDER BY model_id`, runID)
	for _, m := range u.Models {
		u.InputTokens += m.InputTokens
		u.OutputTokens += m.OutputTokens
		u.CachedTokens += m.CachedTokens
		if m.CostUSD != nil {
			u.CostUSD = new(u.Cost() + *m.CostUSD)
		}
	}

	return u, err
}

func scanUsage(row db.Row) (m ModelUsage, err error) {
	return m, row.Scan(&m.Model, &m.InputTokens, &m.OutputTokens, &m.CachedTokens, &m.CostUSD)
}

// Cost returns what it cost in US dollars, 0 where nobody knows.
func (u Usage) Cost() float64 {
	if u.CostUSD == nil {
		return 0
	}
	return *u.CostUSD
}

// since returns what came on top of was.
func (u Usage) since(was Usage) Usage {
	return Usage{
		InputTokens:  max(0, u.InputTokens-was.InputTokens),
		OutputTokens: max(0, u.OutputTokens-was.OutputTokens),
		CachedTokens: max(0, u.CachedTokens-was.CachedTokens),
		CostUSD:      new(max(0, u.Cost()-was.Cost())),
	}
}
